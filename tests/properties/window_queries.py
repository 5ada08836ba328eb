"""Random queries over windows that are tables, over sessions, and over both beside other windows.

The bounds of a window are columns like any other; now and then they are what a group or a join is by.
"""

from __future__ import annotations

from tests.properties.queries import STREAM_COLUMNS, Column, Generator, Source, query_of

BOUNDS = ("window_start", "window_end", "window_time")


class WindowGenerator(Generator):
    """As `Generator`; inputs are mostly TUMBLE, HOP or SESSION, and among other windows there are sessions."""

    def window(self, columns: tuple[Column, ...]) -> str:
        if not self.chance(40):
            return super().window(columns)
        self.noted.windows.add("session")
        keys = ", ".join(column.name for column in self.keys(columns))
        by = self.pick((f"PARTITION BY {keys} ", f"PARTITION BY {keys} ", ""))
        return f"[{by}SESSION {self.random.randint(1, 4) + 2 * self.joined} SECONDS]"

    def source(self, depth: int) -> Source:
        if depth > 0 and self.chance(40):
            inner = self.query(depth - 1)
            return Source(f"({inner.text})", inner.columns)
        return super().source(0) if self.chance(25) else self.window_table()

    def window_table(self) -> Source:
        name = self.pick(("s", "s", "t", "t", "u"))
        columns = tuple(Column(*column) for column in STREAM_COLUMNS)
        kind = self.pick(("tumble", "tumble", "hop", "hop", "session"))
        self.noted.windows.add(kind)
        seconds = self.random.randint(1, 6) + 2 * self.joined
        if self.joined and self.chance(60):
            seconds = 8  # so that windows of both sides are the same
        keys = ", ".join(column.name for column in self.keys(columns))
        text = {
            "tumble": f"TUMBLE({name}, ts, {seconds} SECONDS{self.pick(('', '', ', 3 SECONDS'))})",
            "hop": f"HOP({name}, ts, {self.random.randint(1, 5)} SECONDS, {seconds} SECONDS)",
            "session": f"SESSION({name} PARTITION BY {keys}, ts, {self.random.randint(1, 4)} SECONDS)",
        }[kind]
        return Source(text, (*columns, *(Column(bound, "stamp") for bound in BOUNDS)))

    def keys(self, columns: tuple[Column, ...]) -> list[Column]:
        bounds = [column for column in columns if column.type == "stamp"]
        own = [column for column in columns if column.type != "stamp"]
        if not own:
            return self.some(bounds, 2)
        keys = super().keys(tuple(own))
        return [*keys, self.pick(bounds)] if bounds and self.chance(75) else keys

    def equalities(self, left: list[Column], right: list[Column]) -> list[str]:
        rest = [column for column in right if column.type != "stamp"]
        conditions = super().equalities([column for column in left if column.type != "stamp"], rest)
        bounds = [[column.name for column in side if column.type == "stamp"] for side in (left, right)]
        if all(bounds) and self.chance(75):
            left_bound, right_bound = (self.pick(side) for side in bounds)
            same = [name for name in bounds[1] if name.split(".")[1] == left_bound.split(".")[1]]
            conditions.append(f"{left_bound} = {same[0] if same and self.chance(80) else right_bound}")
        return conditions

    def predicate(self, columns: list[Column], depth: int) -> str:
        own = [column for column in columns if column.type != "stamp"]
        return super().predicate(own, depth) if own else f"{columns[0].name} IS NOT NULL"


def statement_of(generator: WindowGenerator, family: str) -> str:
    """The whole query, now and then a stream; RSTREAM is not for windows that are tables."""
    query = query_of(generator, family)
    if generator.chance(25):
        operator = generator.pick(("istream", "dstream"))
        generator.noted.operators.add(operator)
        return f"{operator.upper()}({query.text})"
    return query.text
