"""Rows are taken as Arrow takes them: any type, slice and NULLs; and nothing behind a buffer is read."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from transom.kernels.taken import FEW, taken, taken_rows

TEXTS = ("", "a", "x" * 31, "y" * 32, "z" * 33, "w" * 100, "é")
VALUES: list[tuple[pa.DataType, tuple[Any, ...]]] = [
    (pa.int64(), (0, -1, 2**62)),
    (pa.int32(), (0, -1, 2**30)),
    (pa.float64(), (0.5, -0.0, float("inf"))),
    (pa.bool_(), (True, False)),
    (pa.timestamp("us"), (datetime(2024, 1, 1), datetime(1969, 12, 31))),
    (pa.decimal128(38, 2), (Decimal("0.50"), Decimal(-(2**70)))),
    (pa.string(), TEXTS),
    (pa.binary(), tuple(text.encode() for text in TEXTS)),
]


@pytest.mark.parametrize("count", [0, 1, FEW - 1, FEW, 3 * FEW])
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_rows_are_taken_as_arrow_takes_them(count: int, nulls: float) -> None:
    random = Random(count + int(10 * nulls))
    columns = [
        pa.array([None if random.random() < nulls else random.choice(values) for _ in range(500)], type_)
        for type_, values in VALUES
    ]
    for first, length in ((0, 500), (3, 490), (499, 1)):
        sliced = [column.slice(first, length) for column in columns]
        rows = np.array([random.randrange(length) for _ in range(count)], dtype=np.int64)
        found = taken(sliced, rows)
        for one, column in zip(found, sliced, strict=True):
            one.validate(full=True)
            assert one.equals(column.take(pa.array(rows)))
            assert one.null_count == column.take(pa.array(rows)).null_count


def test_a_text_that_ends_with_its_buffer() -> None:
    offsets = np.array([0, 40, 45], dtype=np.int32)
    data = np.frombuffer(b"q" * 40 + b"abcde", dtype=np.uint8)
    column = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    (found,) = taken([column], np.array([1, 0] * FEW, dtype=np.int64))
    assert found.to_pylist() == ["abcde", "q" * 40] * FEW


def test_rows_without_columns_are_counted() -> None:
    batch = pa.RecordBatch.from_struct_array(pa.array([{}] * 1000, pa.struct([])))
    assert len(taken_rows(batch, np.arange(FEW + 5))) == FEW + 5
