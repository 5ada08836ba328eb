"""Random queries over streams that are made of streams: without repeats, and of changes."""

from __future__ import annotations

from tests.properties.queries import STREAM_COLUMNS, Column, Generator, Source


class StreamGenerator(Generator):
    """As `Generator`; inputs are mostly DEDUPLICATE of a stream, with any window."""

    def source(self, depth: int) -> Source:
        if depth > 0 and self.chance(40):
            inner = self.query(depth - 1)
            return Source(f"({inner.text})", inner.columns)
        if self.chance(25):
            return super().source(0)
        stream = self.without_repeats(2)
        return Source(f"{stream.text} {self.window(stream.columns)}", stream.columns)

    def without_repeats(self, most: int) -> Source:
        """Of a declared stream, of such a one, or of what is new in a relation."""
        self.noted.operators.add("deduplicate")
        name = self.pick(("s", "s", "t", "t", "u"))
        stream = Source(name, tuple(Column(*column) for column in STREAM_COLUMNS))
        if most > 1 and self.chance(20):
            stream = self.without_repeats(most - 1)
        elif self.chance(15):
            inner = self.select(0)
            stream = Source(f"ISTREAM({inner.text})", inner.columns)
        keys = ", ".join(column.name for column in self.keys(stream.columns))
        text = f"DEDUPLICATE({stream.text} PARTITION BY {keys}, {self.random.randint(1, 9)} SECONDS)"
        return Source(text, stream.columns)
