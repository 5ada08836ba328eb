"""Random queries over streams that are made of streams: without repeats, of changes, and beside a table as of then."""

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

    def without_repeats(self, most: int, name: str | None = None) -> Source:
        """Of a declared stream, perhaps of this one; of such a one, or of what is new in a relation."""
        self.noted.operators.add("deduplicate")
        declared = name or self.pick(("s", "s", "t", "t", "u"))
        stream = Source(declared, tuple(Column(*column) for column in STREAM_COLUMNS))
        if most > 1 and self.chance(20):
            stream = self.without_repeats(most - 1)
        elif name is None and self.chance(15):
            inner = self.select(0)
            stream = Source(f"ISTREAM({inner.text})", inner.columns)
        keys = ", ".join(column.name for column in self.keys(stream.columns))
        text = f"DEDUPLICATE({stream.text} PARTITION BY {keys}, {self.random.randint(1, 9)} SECONDS)"
        return Source(text, stream.columns)

    def as_of(self, depth: int) -> Source:
        """A stream beside a table, or beside what a query gives, as of its time; perhaps beside a second one."""
        name, alias = self.pick(("s", "t", "u")), self.alias()
        stream = Source(name, tuple(Column(*column) for column in STREAM_COLUMNS))
        if self.chance(25):
            stream = self.without_repeats(1, name)
        seconds, slide = self.random.randint(1, 9), self.random.randint(1, 4)
        slides = f"[RANGE {seconds} SECONDS SLIDE {slide} SECONDS]"
        text = f"{stream.text} {self.pick(('', '[NOW]', f'[RANGE {seconds} SECONDS]', slides))} AS {alias}"
        columns = self.qualified(stream, alias)
        for _ in range(self.pick((1, 1, 2))):
            kind = self.pick(("", "LEFT "))
            self.noted.operators.add(f"{kind.lower()}join as of")
            there, other = self.pick(("r", "p", "p", "names")), self.alias()
            table = Source(there, (Column("k", "int"), Column("g", "text")))
            if self.chance(20):
                inner = self.group(0)
                table = Source(f"({inner.text})", inner.columns)
            joined = self.qualified(table, other)
            conditions = self.equalities(columns, joined)
            if not conditions or self.chance(20):
                conditions.append(self.predicate(columns + joined, 1))
            on = " AND ".join(conditions)
            text += f" {kind}JOIN {table.text} FOR SYSTEM_TIME AS OF {alias}.ts AS {other} ON {on}"
            columns += joined
        where = self.where(columns, 30)
        items, out = self.items(columns)
        return Source(f"SELECT {items} FROM {text}{where}", out)
