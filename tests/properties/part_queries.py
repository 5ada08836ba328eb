"""Random sets of queries on one view, or on one join: what they have in common is computed once for them all."""

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


def joins_that_differ(generator: Generator) -> list[str]:
    """Queries over one join, of three streams or of windows that slide, each with windows of its own by time."""
    random = generator.random
    streams = [random.choice("stu") for _ in range(random.choice((2, 3, 3)))]
    keys = [random.choice(("a{0}.k = a{1}.k", "a{0}.g = a{1}.g")).format(i, i + 1) for i in range(len(streams) - 1)]
    texts = []
    for _ in range(random.randint(2, 4)):
        order = random.sample(range(len(streams)), len(streams))
        slides = len(streams) == 2 or generator.chance(40)
        tables = ", ".join(f"{streams[i]} {_window(generator, slides)} AS a{i}" for i in order)
        parts = [
            *keys,
            *(f"a{i}.x {random.choice('<>')} {random.randint(-2, 3)}" for i in order if generator.chance(25)),
        ]
        if generator.chance(25):
            parts.append(f"a{order[0]}.x <= a{order[1]}.x")
        where = " AND ".join(random.sample(parts, len(parts)))
        texts.append(
            _answer(generator, f"FROM {tables} WHERE {where}", [f"a{i}.{random.choice('kgx')}" for i in order])
        )
    return texts


def _window(generator: Generator, slides: bool) -> str:
    seconds = generator.random.randint(2, 12)
    kind = generator.pick(("range", "range", "now", "unbounded", *(["slide"] * 5 * slides)))
    generator.noted.windows.add(kind)
    return {
        "range": f"[RANGE {seconds} SECONDS]",
        "now": "[NOW]",
        "unbounded": "[RANGE UNBOUNDED]",
        "slide": f"[RANGE {seconds} SECONDS SLIDE {generator.random.randint(1, 4)} SECONDS]",
    }[kind]


def _answer(generator: Generator, joined: str, columns: list[str]) -> str:
    wanted = generator.some(columns, 3)
    names = ", ".join(f"{column} AS c{i}" for i, column in enumerate(wanted))
    text = f"SELECT {names} {joined}"
    if generator.chance(20):
        text = f"SELECT {wanted[0]} AS c, COUNT(*) AS n {joined} GROUP BY {wanted[0]}"
    elif generator.chance(10):
        text = f"SELECT COUNT(*) AS n {joined}"
    return f"{generator.pick(('ISTREAM', 'DSTREAM', 'RSTREAM', 'RSTREAM'))}({text})" if generator.chance(50) else text
