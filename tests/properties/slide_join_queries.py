"""Random joins of two to four sliding windows on a key that all of them have, reported slide by slide."""

from __future__ import annotations

from tests.properties.queries import STREAM_COLUMNS, Column, Generator, Source

_SETS = (("k",), ("k",), ("g",), ("k", "g"), ("x",), ("f",), ("m",), ("g", "x"))
_SECONDS = (1, 2, 2, 3, 4)


class SlideJoins(Generator):
    def statement(self) -> str:
        count = self.pick((2, 2, 2, 3, 3, 4))
        keys = self.pick(_SETS)
        self.noted.operators.add(f"slide join of {count} on {', '.join(keys)}")
        same = self.chance(50)
        window = self.sliding()
        sources: list[Source] = []
        for _ in range(count):
            if sources and self.repeated():
                sources.append(sources[-1])
                continue
            sources.append(self.input(window if same else self.sliding(), keys))
        aliases = [self.alias() for _ in sources]
        columns = [self.qualified(source, alias) for source, alias in zip(sources, aliases, strict=True)]
        conditions = []
        for i in range(1, count):
            for key in keys:
                sides = [f"{self.pick(aliases[:i])}.{key}", f"{aliases[i]}.{key}"]
                self.random.shuffle(sides)
                conditions.append(" = ".join(sides))
        if self.chance(15):
            conditions.append(f"{aliases[0]}.k = {aliases[0]}.x")
        if self.chance(35):
            conditions.append(self.predicate([column for own in columns for column in own], 1))
            self.noted.operators.add("predicate")
        self.random.shuffle(conditions)
        items, _ = self.items([column for own in columns for column in own])
        parts = ", ".join(f"{source.text} AS {alias}" for source, alias in zip(sources, aliases, strict=True))
        return f"RSTREAM(SELECT {items} FROM {parts} WHERE {' AND '.join(conditions)});"

    def input(self, window: str, keys: tuple[str, ...]) -> Source:
        columns = tuple(Column(*column) for column in STREAM_COLUMNS)
        text = f"{self.pick(('s', 's', 't', 't', 'u'))} {window}"
        if self.chance(20):
            self.noted.operators.add("sub-query below a slide join")
            where = f" WHERE {self.predicate(list(columns), 1)}"
            return Source(f"(SELECT k, g, x, f, m FROM {text}{where})", columns)
        return Source(text, columns)

    def sliding(self) -> str:
        self.noted.windows.add("slide")
        length = self.pick((*_SECONDS, 5, 7, 8, 12))
        return f"[RANGE {length} SECONDS SLIDE {self.pick(_SECONDS)} SECONDS]"
