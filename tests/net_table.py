"""A table that net changes are applied to, batch by batch, which are held to what is promised of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from transom.runtimes.reference.history import History, RelationHistory, Row, canonical, show, value_order


class NetTable:
    """With a `key`, places of columns, + is an upsert and - removes the row of its key; without, both count copies."""

    def __init__(self, key: Sequence[int] | None) -> None:
        self.key = key
        self.rows: Counter[Row] = Counter()

    def apply(self, batch: pa.RecordBatch) -> None:
        signs, *columns = [column.to_pylist() for column in batch.columns]
        changes = [(sign, canonical(row)) for sign, *row in zip(signs, *columns, strict=True)]
        assert set(signs) <= {"+", "-"}
        left, came = (Counter(row for sign, row in changes if sign == wanted) for wanted in "-+")
        assert not left & came, "what leaves and comes is reported"
        assert left <= self.rows, "a row leaves that was not there"
        if self.key is not None:
            keys = [tuple(row[at] for at in self.key) for _, row in changes]
            assert len(set(keys)) == len(keys), "two changes of a key"
            assert not came & self.rows, "a row comes that was there"
            row_of = {tuple(row[at] for at in self.key): row for row in self.rows}
            assert len(row_of) == self.rows.total(), "two rows of a key"
            left += Counter(
                row_of[key] for (sign, _), key in zip(changes, keys, strict=True) if sign == "+" and key in row_of
            )
        self.rows = self.rows - left + came


def check_table(text: str, expected: History, frontier: int | None, table: NetTable) -> None:
    """The table of a query is what is alive just before the progress that has been reached; None: none yet."""
    assert isinstance(expected, RelationHistory)
    alive: Counter[Row] = Counter() if frontier is None else expected.grouped().snapshot(frontier - 1)
    if table.rows != alive:
        reported = [" ".join(map(show, sorted(bag.elements(), key=value_order))) for bag in (alive, table.rows)]
        raise AssertionError(f"{text}\nbefore {frontier}\n  expected: {reported[0]}\n  given:    {reported[1]}")
