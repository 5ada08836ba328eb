"""Random aggregates over joins: the inputs, what joins them, the grouping and the calls.

A family says what there may be beside equalities of all inputs on one set of columns:

- `one_key`: nothing, so that the factorised tactic can run it;
- `predicates`: further predicates between the inputs, or no equality at all; two inputs, or windows that know ends;
- `anything`: equalities that do not go all around, calls and keys over several inputs, DISTINCT.

`one_key_of_two` is `one_key` of two inputs.
"""

from __future__ import annotations

from tests.properties.queries import STREAM_COLUMNS, Column, Generator, Source

FAMILIES = ("one_key", "predicates", "anything")
_SETS = (("k",), ("k",), ("k",), ("g",), ("k", "g"), ("x",), ("f",), ("m",), ("k", "x"))
_NUMBERS = ("int", "float", "decimal")


class JoinAggregates(Generator):
    def statement(self, family: str) -> str:
        """The whole query, now and then a stream."""
        text = self.joined_aggregate(family)
        if self.chance(15):
            operator = self.pick(("ISTREAM", "DSTREAM", "RSTREAM"))
            self.noted.operators.add(operator.lower())
            return f"{operator}({text});"
        return f"{text};"

    def joined_aggregate(self, family: str) -> str:
        counts = {"predicates": (2, 2, 2, 3), "one_key_of_two": (2,)}
        count = self.pick(counts.get(family, (2, 2, 2, 3, 3, 4)))
        self.noted.operators.add(f"aggregate of a join of {count}")
        keys = self.pick(_SETS)
        self.joined = 2 if count < 4 else 1  # wide windows, or rows would never meet; not too wide for four of them
        sources = [self.input(keys, family == "predicates" and count > 2) for _ in range(count)]
        self.joined = 0
        aliases = [self.alias() for _ in sources]
        columns = [self.qualified(source, alias) for source, alias in zip(sources, aliases, strict=True)]
        conditions = self.conditions(family, aliases, columns, keys)
        for own in columns:
            if self.chance(20):
                conditions.append(self.predicate(own, 0))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        everything = [column for own in columns for column in own]
        by = self.grouped_by(family, everything)
        items = [f"{key} AS c{i}" for i, key in enumerate(by)]
        items += [f"{call} AS c{len(by) + i}" for i, call in enumerate(self.called(family, everything))]
        parts = ", ".join(f"{source.text} AS {alias}" for source, alias in zip(sources, aliases, strict=True))
        text = f"SELECT {', '.join(items)} FROM {parts}{where}"
        if by:
            text += f" GROUP BY {', '.join(by)}"
            if self.chance(25):
                self.noted.operators.add("having")
                text += self.pick((" HAVING COUNT(*) > 1", " HAVING COUNT(*) < 9"))
        return text

    def input(self, keys: tuple[str, ...], ends_known: bool) -> Source:
        """A windowed stream or, where it has the keys, a table."""
        if set(keys) <= {"k", "g"} and self.chance(12):
            name = self.pick(("names",) if ends_known else ("r", "p", "names"))
            self.noted.operators.add({"r": "changes table", "p": "upsert table", "names": "static table"}[name])
            return Source(name, (Column("k", "int"), Column("g", "text")))
        columns = tuple(Column(*column) for column in STREAM_COLUMNS)
        name, noted = self.pick(("s", "s", "t", "t", "u")), set(self.noted.windows)
        window = self.window(columns)
        while ends_known and "ROWS" in window:
            self.noted.windows = set(noted)
            window = self.window(columns)
        return Source(f"{name} {window}", columns)

    def conditions(
        self, family: str, aliases: list[str], columns: list[list[Column]], keys: tuple[str, ...]
    ) -> list[str]:
        """What joins the inputs."""
        if family == "predicates" and len(aliases) == 2 and self.chance(35):
            keys = ()
            self.noted.operators.add("no key")
        conditions = []
        for i in range(1, len(aliases)):
            for key in keys:
                other = self.random.randrange(i)
                if family == "anything" and self.chance(15):
                    continue
                sides = [f"{aliases[other]}.{key}", f"{aliases[i]}.{key}"]
                self.random.shuffle(sides)
                conditions.append(" = ".join(sides))
        if family == "predicates" or (family == "anything" and self.chance(30)):
            first, second = self.random.sample(columns, 2)
            pairs = [(a.name, b.name) for a in first for b in second if a.type == b.type]
            a, b = self.pick(pairs)
            conditions.append(f"{a} {self.pick(('<', '<=', '<>', '>='))} {b}")
            self.noted.operators.add("predicate between inputs")
        return conditions

    def grouped_by(self, family: str, columns: list[Column]) -> list[str]:
        if self.chance(40):
            self.noted.operators.add("over everything")
            return []
        self.noted.operators.add("by columns")
        names = []
        for column in self.some(columns, 2):
            name = column.name
            if self.chance(15):
                name = f"COALESCE({name}, 'none')" if column.type == "text" else f"({name} IS NULL)"
            names.append(name)
        if family == "anything" and self.chance(15):
            texts = [column.name for column in columns if column.type == "text"]
            names.append(f"({texts[0]} || {texts[-1]})")
        return names

    def called(self, family: str, columns: list[Column]) -> list[str]:
        calls = []
        for _ in range(self.random.randint(1, 3)):
            column = self.pick(columns)
            options = ["COUNT(*)", f"COUNT({column.name})", f"MIN({column.name})", f"MAX({column.name})"]
            if column.type in _NUMBERS:
                options = [*options, f"SUM({column.name})", f"AVG({column.name})"] * 2
                options.append(f"SUM({column.name})")
            if column.type == "float":
                options.append(f"SUM({column.name} * 3)")
            if column.type == "int" and self.chance(35):  # made of other calls; an argument that could fail
                options = [f"VAR_POP({column.name})", f"STDDEV({column.name})", f"SUM({column.name} + 1)"]
                options += [f"MIN({column.name} + 2)", f"VAR_SAMP({column.name} - 1) FILTER (WHERE {column.name} > 1)"]
            if family == "predicates" and self.chance(25):  # arguments that are computed for matches
                whole = [other.name for other in columns if other.type == "int"]
                options = [f"SUM({whole[0]} * {whole[-1]})", f"AVG({whole[0]} - {whole[-1]})"]
                options += [f"COUNT({whole[0]} + {whole[-1]})", f"SUM({whole[0]}) FILTER (WHERE {whole[-1]} > 1)"]
            if family == "anything" and self.chance(15):
                options = [f"COUNT(DISTINCT {column.name})", f"MAX(DISTINCT {column.name})", "SUM(1)"]
                floats = [other.name for other in columns if other.type == "float"]
                if floats:
                    options.append(f"SUM({floats[0]} + {floats[-1]})")
            call = self.pick(options)
            self.noted.operators.add(call.split("(")[0].lower() + (" distinct" if "DISTINCT" in call else ""))
            calls.append(call)
        return calls
