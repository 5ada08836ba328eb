"""Random queries with the aggregates beyond COUNT, SUM, AVG, MIN and MAX, with FILTER and DISTINCT."""

from __future__ import annotations

from tests.properties.queries import Column, Generator, Source

FAMILIES = ("group", "aggregate")
_FRACTIONS = ("0", "0.25", "0.5", "0.95", "1")
_NUMBERS = ("int", "float", "decimal")


class Aggregates(Generator):
    def statement(self, family: str) -> str:
        """The whole query, now and then a stream."""
        make = self.group if family == "group" else self.aggregate
        text = make(self.pick((0, 0, 1))).text
        if self.chance(15):
            operator = self.pick(("ISTREAM", "DSTREAM", "RSTREAM"))
            self.noted.operators.add(operator.lower())
            return f"{operator}({text});"
        return f"{text};"

    def source(self, depth: int) -> Source:
        if self.chance(20):
            joined = self.join(0)
            return Source(f"({joined.text})", joined.columns)
        return super().source(depth)

    def between(self, once: str, name: str, fraction: str) -> str:
        """A quantile in one spelling or the other."""
        if once or fraction not in ("0.25", "1"):
            return f"QUANTILE_CONT({once}{name}, {fraction})"
        return f"PERCENTILE_CONT({fraction}) WITHIN GROUP (ORDER BY {name})"

    def calls(self, columns: list[Column]) -> list[tuple[str, str]]:
        made = []
        for _ in range(self.random.randint(1, 3)):
            column = self.pick(columns)
            name, type_ = column.name, column.type
            once = self.pick(("", "", "DISTINCT "))
            options = [
                ("COUNT(*)", "int"),
                (f"COUNT({once}{name})", "int"),
                (f"COUNT_IF({self.predicate(columns, 1)})", "int"),
                (f"BOOL_AND({self.predicate(columns, 1)})", "bool"),
                (f"BOOL_OR({self.predicate(columns, 1)})", "bool"),
                (f"ANY_VALUE({name})", type_),
                (f"APPROX_COUNT_DISTINCT({name})", "int"),
                (f"MAX({once}{name})", type_),
                (f"MODE({once}{name})", type_),
            ]
            other, way, q = self.pick(columns).name, self.pick(("", " DESC", " NULLS FIRST")), self.pick(_FRACTIONS)
            options += [
                (f"ARG_MIN({name}, {other})", type_),
                (f"ARG_MAX({name}, {other})", type_),
                (f"FIRST({name} ORDER BY {other}{way})", type_),
                (f"LAST({name} ORDER BY {other}{way}, {self.pick(columns).name})", type_),
                (f"QUANTILE_DISC({once}{name}, {q})", type_)
                if once or q != "0.5" or type_ not in _NUMBERS
                else (f"APPROX_PERCENTILE({q}, 0.01) WITHIN GROUP (ORDER BY {name})", "float"),
                (f"PERCENTILE_DISC({q}) WITHIN GROUP (ORDER BY {name})", type_),
            ]
            if type_ in ("text", "int"):
                order = self.pick(("", f" ORDER BY {other}{way}"))
                options += 2 * [(f"STRING_AGG({name}, '-'{order})", "text"), (f"STRING_AGG(DISTINCT {name})", "text")]
            if type_ in ("text", "int", "float"):
                in_order = self.pick((f"{once}{name}", f"{name} ORDER BY {other}{way}"))
                options += [(f"ARRAY_AGG({in_order})", "list")]
            if type_ == "int":
                options += 2 * [(f"{self.pick(('BIT_AND', 'BIT_OR', 'BIT_XOR'))}({once}CAST({name} AS BIGINT))", "int")]
            if type_ in _NUMBERS:
                options += [(f"MEDIAN({once}{name})", "float"), (self.between(once, name, q), "float")]
                summed = "float" if type_ == "float" else "decimal"
                options += [(f"SUM({once}{name})", summed), (f"AVG({once}{name})", "float")]
                second = self.pick([c.name for c in columns if c.type in _NUMBERS])
                pair = self.pick(("COVAR_POP", "COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_R2"))
                options += 2 * [(f"{pair}({name}, {second})", "float")]
                spread = self.pick(("VAR_POP", "VAR_SAMP", "STDDEV", "STDDEV_POP"))
                options += 3 * [(f"{spread}({once}{name})", "float")]
            call, type_ = self.pick(options)
            self.noted.operators.add(call.split("(")[0].lower() + (" distinct" if "DISTINCT " in call else ""))
            if self.chance(40):
                self.noted.operators.add("filter")
                call += f" FILTER (WHERE {self.predicate(columns, 1)})"
            made.append((call, type_))
        return made
