"""What the partitions reported is one answer, in the order in which one partition would have told it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.pipeline.spread_queries import Spread, laid_out, rows
from transom.core.schema import BIGINT, Schema
from transom.pipeline import fragment_partition
from transom.pipeline.answer import output_schema
from transom.pipeline.merge import merged, value_ranks

ROW = Schema.of(("n", BIGINT))


def reported(emit: str, *parts: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    schema = output_schema(emit, ROW)
    batches = [
        pa.RecordBatch.from_arrays(
            [pa.array([row[i] for row in part], f.type) for i, f in enumerate(schema)], schema=schema
        )
        for part in parts
    ]
    return list(zip(*(column.to_pylist() for column in _plain(merged(batches, emit, schema)).columns), strict=True))


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def test_changes_are_in_time_order_what_left_first_then_by_value() -> None:
    one, other = [("+", 2, 5), ("-", 3, 5), ("+", 3, 7)], [("-", 2, 9), ("+", 2, None), ("-", 3, 1)]
    assert reported("changes", one, other) == [
        ("-", 2, 9), ("+", 2, None), ("+", 2, 5), ("-", 3, 1), ("-", 3, 5), ("+", 3, 7),
    ]  # fmt: skip


def test_rows_of_a_stream_and_of_the_latest_snapshot() -> None:
    assert reported("stream", [(1, 8), (4, 2)], [], [(1, 3)]) == [(1, 3), (1, 8), (4, 2)]
    assert reported("latest", [(3,), (8,)], [(-1,), (None,)]) == [(None,), (-1,), (3,), (8,)]


def test_nothing_reported_has_the_columns_of_the_answer() -> None:
    schema = output_schema("changes", ROW)
    assert merged([], "changes", schema).schema == schema


def test_equal_rows_have_equal_ranks() -> None:
    columns = [pa.array([0.0, None, -0.0, float("nan"), 1.5]), pa.array(["b", "", "b", "a", None])]
    ranks = value_ranks(columns, 5)
    assert ranks[0] == ranks[2]
    assert sorted(range(5), key=lambda i: (ranks[i], i)) == [1, 0, 2, 4, 3]


@pytest.mark.parametrize("partitions", [1, 4])
def test_the_latest_snapshot_is_reported_once_a_batch_for_all_partitions(
    partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fragment_partition, "SLICE_ROWS", 1)
    spread = Spread(laid_out("SELECT k FROM s [RANGE 5 SECONDS]", partitions, emit="latest"))
    first = spread.batch([rows(spread.layout, "s", *((t, t % 4, 0) for t in range(10)))])
    assert first == [(0,), (0,), (1,), (2,), (3,)]  # just before 9: rows of 4 .. 8
    assert spread.push("s", (11, 7, 0)) == [(0,), (1,), (2,), (3,)]


def test_what_leaves_one_partition_and_enters_another_at_once_is_no_change() -> None:
    """k moves the row to another partition, the answer (x) stays the same."""
    spread = Spread(laid_out("SELECT x FROM p", partitions=4))
    out = spread.push("p", *((0, k, 1) for k in range(6))) + spread.push("p", (1, 0, 2), (1, 1, 2))
    out += spread.batch([rows(spread.layout, "p", (2, 0, 1), (2, 2, 2))]) + spread.end("p")
    assert [row for row in out if row[1] == 2.0] == []
