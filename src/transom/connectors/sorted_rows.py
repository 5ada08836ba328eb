"""Rows in an order, for people to look at."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from transom.plan.algebra import SortKey


def in_order(batch: pa.RecordBatch, order: Sequence[SortKey]) -> pa.RecordBatch:
    """The rows sorted; those that the order does not tell apart as they were.

    >>> batch = pa.record_batch({"a": [1.0, float("nan"), None, 2.0]})
    >>> in_order(batch, [SortKey(0, descending=True)]).column(0).to_pylist()
    [nan, 2.0, 1.0, None]
    """
    for key in reversed(order):
        values = batch.column(key.column)
        words = [values, pc.is_nan(values)] if pa.types.is_floating(values.type) else [values]
        for word in words:  # NaN is the greatest of all numbers, which Arrow has last in both directions
            at = pc.array_sort_indices(
                word,
                order="descending" if key.descending else "ascending",
                null_placement="at_start" if key.nulls_first else "at_end",
            )
            if word is not words[-1]:
                words[-1] = words[-1].take(at)
            batch = batch.take(at)
    return batch
