"""Random sets of queries on one view: what the view computes is computed once for them all."""

from __future__ import annotations

from random import Random

from tests.properties.queries import Column, Generator, Source

VIEWS = (
    "group",
    "group",
    "aggregate",
    "distinct",
    "join",
    "outer_join",
    "sub_query",
    "set_operation",
    "top_n",
    "over",
)


SLIDING_VIEWS = ("group", "aggregate", "aggregate", "join", "join3", "distinct", "outer_join", "set_operation")


class Sliding(Generator):
    """All windows of its queries slide."""

    def window(self, columns: tuple[Column, ...]) -> str:
        self.noted.windows.add("slide")
        seconds = self.random.randint(1, 9) + 4 * self.joined
        return f"[RANGE {seconds} SECONDS SLIDE {self.random.randint(1, 4)} SECONDS]"


class Readers(Generator):
    """Queries that read nothing but a view of these columns, once or several times."""

    def __init__(self, random: Random, columns: tuple[Column, ...], snapshots: int = 10) -> None:
        super().__init__(random)
        self.columns, self.snapshots = columns, snapshots

    def source(self, depth: int) -> Source:
        if depth > 0 and self.chance(40):
            if self.chance(25):
                inner = self.select(0)
                operator = self.pick(("ISTREAM", "DSTREAM"))
                return Source(f"{operator}({inner.text}) {self.window(inner.columns)}", inner.columns)
            inner = self.query(depth - 1)
            return Source(f"({inner.text})", inner.columns)
        return Source("v", self.columns)

    def statement(self) -> str:
        text = "SELECT * FROM v" if self.chance(10) else self.query(self.pick((0, 1))).text
        if self.chance(self.snapshots):
            return f"RSTREAM({text})"
        if self.chance(20):
            return f"{self.pick(('ISTREAM', 'DSTREAM'))}({text})"
        return text
