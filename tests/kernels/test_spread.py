"""Rows that agree on the keys are in the same partition, and every row is in one."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transom.kernels.spread import spread
from transom.runtimes.reference.history import grouped

COLUMNS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int32(): st.integers(-5, 5),
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5),
    pa.float64(): st.floats() | st.sampled_from([0.0, -0.0, math.nan]),
    pa.string(): st.text("ab\0", max_size=3),
    pa.bool_(): st.booleans(),
    pa.decimal128(6, 2): st.sampled_from([Decimal("0.10"), Decimal("2.00"), Decimal("-2.50")]),
}


@settings(max_examples=60)
@given(st.data(), st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=3), st.sampled_from([1, 2, 5, 32]))
def test_every_row_is_in_one_partition_and_equal_keys_are_in_the_same(data: Any, types: Any, partitions: int) -> None:
    rows = data.draw(st.lists(st.tuples(*(st.none() | COLUMNS[kind] for kind in types)), max_size=40))
    keys = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(types)]
    found = spread(keys, len(rows), partitions)
    assert len(found) == partitions
    assert sorted(at for part in found for at in part) == list(range(len(rows)))
    assert all(part.tolist() == sorted(part) for part in found), "rows keep their order"
    where = {at: partition for partition, part in enumerate(found) for at in part.tolist()}
    homes: dict[Any, int] = {}
    for at, row in enumerate(rows):
        assert homes.setdefault(grouped(row), where[at]) == where[at], row


@pytest.mark.parametrize("values", [list(range(1000)), [str(n) for n in range(1000)], [n * 2**32 for n in range(1000)]])
def test_keys_of_any_pattern_are_spread_over_all_partitions(values: list[Any]) -> None:
    assert min(len(part) for part in spread([pa.array(values)], 1000, 4)) > 150


def test_integers_meet_whatever_their_width_and_null_meets_null_whatever_lies_beneath() -> None:
    values = [None, *range(-20, 20)]
    narrow, wide = (spread([pa.array(values, kind)], len(values), 5) for kind in (pa.int16(), pa.int64()))
    assert [part.tolist() for part in narrow] == [part.tolist() for part in wide]
    beneath = pa.Array.from_buffers(pa.int64(), 64, [pa.py_buffer(bytes(8)), pa.array(range(64)).buffers()[1]])
    assert beneath.null_count == 64
    assert sorted(len(part) for part in spread([beneath], 64, 4)) == [0, 0, 0, 64]


def test_without_rows_every_partition_gets_none() -> None:
    assert [len(part) for part in spread([pa.array([], pa.int64())], 0, 3)] == [0, 0, 0]
