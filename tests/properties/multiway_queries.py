"""Random joins of two to six inputs, by the shape of what joins them.

- `one_key`: all inputs on one set of columns;
- `chain`, `star` and `cycle`: each with the next, all with the first, or all around, on a column per edge;
- `anything`: some equalities of any columns, predicates of several inputs, or nothing at all.
"""

from __future__ import annotations

from tests.properties.queries import STREAM_COLUMNS, Column, Generator, Source

FAMILIES = ("one_key", "chain", "star", "cycle", "anything")
_SETS = (("k",), ("k",), ("g",), ("k", "g"), ("x",), ("f",), ("m",), ("k", "x"))


class MultiwayJoins(Generator):
    def statement(self, family: str) -> str:
        """The whole query; now and then a stream, or something over the join."""
        text = self.joined_inputs(family)
        if self.chance(15):
            operator = self.pick(("ISTREAM", "DSTREAM", "RSTREAM"))
            self.noted.operators.add(operator.lower())
            return f"{operator}({text});"
        if self.chance(15):
            self.noted.operators.add("distinct over a join")
            text = text.replace("SELECT ", "SELECT DISTINCT ", 1)
        return f"{text};"

    def joined_inputs(self, family: str) -> str:
        count = self.pick((2, 3, 3, 4, 5, 6)) if family in ("one_key", "chain") else self.pick((3, 3, 4, 4, 5, 6))
        self.noted.operators.add(f"{family} of {count}")
        keys = self.pick(_SETS)
        # Wide windows, or rows would never meet; not too wide where many meet.
        self.joined = max(0, 4 - count) if family == "one_key" else max(1, 5 - count)
        sources: list[Source] = []
        for _ in range(count):
            sources.append(sources[-1] if sources and self.repeated() else self.input(family, keys))
        self.joined = 0
        aliases = [self.alias() for _ in sources]
        columns = [self.qualified(source, alias) for source, alias in zip(sources, aliases, strict=True)]
        conditions = self.conditions(family, aliases, columns, keys)
        if self.chance(30):
            conditions.append(self.predicate([column for own in columns for column in own], 1))
            self.noted.operators.add("predicate")
        self.random.shuffle(conditions)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        items, _ = self.items([column for own in columns for column in own])
        parts = ", ".join(f"{source.text} AS {alias}" for source, alias in zip(sources, aliases, strict=True))
        return f"SELECT {items} FROM {parts}{where}"

    def input(self, family: str, keys: tuple[str, ...]) -> Source:
        """A windowed stream or, where it has the keys, a table; or the groups of one."""
        if family == "one_key" and set(keys) <= {"k", "g"} and self.chance(15):
            name = self.pick(("r", "p", "names"))
            self.noted.operators.add({"r": "changes table", "p": "upsert table", "names": "static table"}[name])
            return Source(name, (Column("k", "int"), Column("g", "text")))
        columns = tuple(Column(*column) for column in STREAM_COLUMNS)
        text = f"{self.pick(('s', 's', 't', 't', 'u'))} {self.window(columns)}"
        if family == "one_key" and keys == ("k",) and self.chance(10):
            self.noted.operators.add("join of groups")
            return Source(f"(SELECT k, COUNT(*) AS n FROM {text} GROUP BY k)", (Column("k", "int"), Column("n", "int")))
        return Source(text, columns)

    def conditions(
        self, family: str, aliases: list[str], columns: list[list[Column]], keys: tuple[str, ...]
    ) -> list[str]:
        """What joins the inputs."""
        count = len(aliases)
        if family == "one_key":
            return [
                self.equal(f"{self.pick(aliases[:i])}.{k}", f"{aliases[i]}.{k}") for i in range(1, count) for k in keys
            ]
        if family == "anything":
            conditions = []
            for _ in range(self.random.randint(count - 2, count)):
                first, second = self.random.sample(columns, 2)
                pairs = [(a.name, b.name) for a in first for b in second if a.type == b.type]
                a, b = self.pick(pairs)
                conditions.append(self.equal(a, b) if self.chance(70) else f"{a} {self.pick(('<', '<=', '<>'))} {b}")
            return conditions
        edges = {
            "chain": [(i, i + 1) for i in range(count - 1)],
            "star": [(0, i) for i in range(1, count)],
            "cycle": [(i, (i + 1) % count) for i in range(count)],
        }[family]
        return [self.edge(aliases[a], aliases[b], n) for n, (a, b) in enumerate(edges)]

    def edge(self, left: str, right: str, number: int) -> str:
        """On the columns by turns; those of integers may be different ones."""
        name = ("k", "x", "g", "k", "f")[number % 5]
        if name in ("k", "x") and self.chance(30):
            return self.equal(f"{left}.{name}", f"{right}.{self.pick(('k', 'x'))}")
        return self.equal(f"{left}.{name}", f"{right}.{name}")

    def equal(self, *sides: str) -> str:
        sides_in_any_order = list(sides)
        self.random.shuffle(sides_in_any_order)
        return " = ".join(sides_in_any_order)
