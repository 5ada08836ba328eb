"""Random sets of queries on one join: each with its own windows, selections, columns and whatever stands above."""

from __future__ import annotations

from random import Random

from tests.properties.queries import STREAM_COLUMNS, Column, Generator, Source

_KEYS = (("k",), ("k",), ("g",), ("k", "g"), ("x",), ("COALESCE(k, 7)",), ("m",), ())
_STREAMS = (("s", "t"), ("s", "t"), ("t", "u"), ("s", "s"))


class SharedJoins(Generator):
    """Queries on the same join; `counting` in percent is how many windows count rows."""

    def __init__(self, random: Random, counting: int) -> None:
        super().__init__(random)
        self.counting = counting
        self.streams = self.pick(_STREAMS)
        self.equal = self.pick(_KEYS)
        self.noted.operators.add(f"shared join on {len(self.equal)} keys")

    def statement(self) -> str:
        kinds = (self.joined_columns, self.joined_columns, self.group, self.aggregate, self.distinct, self.select)
        text = self.by_key() if self.equal and self.chance(20) else self.pick(kinds)(0).text
        if self.chance(30):
            operator = self.pick(("ISTREAM", "DSTREAM", "RSTREAM"))
            self.noted.operators.add(operator.lower())
            return f"{operator}({text});"
        return f"{text};"

    def source(self, depth: int) -> Source:
        """The join, now and then the last of its changes."""
        inner = self.joined_columns(depth)
        if self.chance(15):
            window = self.pick(("[ROWS 3]", "[RANGE 4 SECONDS]", "[RANGE 4 SECONDS SLIDE 3 SECONDS]"))
            return Source(f"ISTREAM({inner.text}) {window}", inner.columns)
        return Source(f"({inner.text})", inner.columns)

    def by_key(self) -> str:
        """Grouped by one of the keys: rows of a group are in one partition if it is the only key, and else in many."""
        inner = self.joined_columns(0, key=self.pick(self.equal))
        grouped = self.pick(
            ("SELECT j.key, COUNT(*) AS n FROM ({}) AS j GROUP BY j.key", "SELECT DISTINCT j.key FROM ({}) AS j")
        )
        self.noted.operators.add("group by" if "GROUP" in grouped else "distinct")
        return grouped.format(inner.text)

    def joined_columns(self, depth: int, key: str | None = None) -> Source:
        columns = tuple(Column(*column) for column in STREAM_COLUMNS)
        sides = [(stream, self.alias()) for stream in self.streams]
        (_, left), (_, right) = sides
        if self.equal:
            conditions = [_equality(key, left, right, self.chance(50)) for key in self.equal]
        else:
            conditions = [f"{left}.k < {right}.k", f"{left}.f <> {right}.f"]
        self.random.shuffle(conditions)
        parts = []
        for stream, alias in sides:
            own = [Column(f"{alias}.{column.name}", column.type) for column in columns]
            if self.chance(35):
                conditions.append(self.predicate(own, 0))
            parts.append(f"{stream} {self.shared_window()} AS {alias}")
        if self.chance(50):
            parts.reverse()
        everything = self.qualified(Source("", columns), left) + self.qualified(Source("", columns), right)
        if self.equal and self.chance(25):
            conditions.append(f"{left}.x {self.pick(('<', '<>', '>='))} {right}.x")
        items, out = self.items(everything)
        if key is not None:
            items = f"{_of(left, key)} AS key"
        return Source(f"SELECT {items} FROM {', '.join(parts)} WHERE {' AND '.join(conditions)}", out)

    def shared_window(self) -> str:
        rows, seconds = self.random.randint(1, 6), self.random.randint(1, 15)
        if self.chance(self.counting):
            kind = self.pick(("rows", "rows_range"))
        else:
            kind = self.pick(("range", "range", "range", "now", "unbounded"))
        self.noted.windows.add(kind)
        return {
            "rows": f"[ROWS {rows}]",
            "rows_range": f"[ROWS {rows} RANGE {seconds} SECONDS]",
            "range": f"[RANGE {seconds} SECONDS]",
            "now": "[NOW]",
            "unbounded": "[RANGE UNBOUNDED]",
        }[kind]


def _equality(key: str, left: str, right: str, turned: bool) -> str:
    sides = [_of(alias, key) for alias in (left, right)]
    return " = ".join(reversed(sides) if turned else sides)


def _of(alias: str, key: str) -> str:
    return key.replace("(k", f"({alias}.k") if "(" in key else f"{alias}.{key}"
