"""What people see of an answer: snapshots in an order, and of rows that come perhaps the first alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from transom.plan.algebra import SortKey


@dataclass
class AnswerView:
    """Snapshots are shown in the order of `order`; with `most`, so many rows are shown and then no more.

    >>> view = AnswerView(most=3)
    >>> [len(view.first(pa.record_batch({"a": [1, 2]}))) for _ in range(2)], view.full
    ([2, 1], True)
    """

    order: tuple[SortKey, ...] = ()
    most: int | None = None
    rows: int = 0

    @property
    def full(self) -> bool:
        """Whether all that is to be shown has been shown."""
        return self.most is not None and self.rows >= self.most

    def first(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are shown of those that come."""
        if self.most is not None:
            batch = batch.slice(0, max(self.most - self.rows, 0))
        self.rows += len(batch)
        return batch

    def snapshot(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What is shown of the answer as it is now."""
        batch = in_order(batch, self.order)
        return batch if self.most is None else batch.slice(0, self.most)


def in_order(batch: pa.RecordBatch, order: Sequence[SortKey]) -> pa.RecordBatch:
    """The rows sorted; those that the order does not tell apart as they were.

    >>> batch = pa.record_batch({"a": [1.0, float("nan"), None, 2.0]})
    >>> in_order(batch, [SortKey(0, descending=True)]).column(0).to_pylist()
    [nan, 2.0, 1.0, None]
    """
    for key in reversed(order):
        values = batch.column(key.column)
        if pa.types.is_nested(values.type):
            values = _ranked(values)
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


def _ranked(values: pa.Array) -> pa.Array:
    """Numbers in the order of arrays or structs: element by element, NULL behind all."""
    order = [None if value is None else _order_of(value) for value in values.to_pylist()]
    ranks = {each: rank for rank, each in enumerate(sorted({each for each in order if each is not None}))}
    return pa.array([None if each is None else ranks[each] for each in order], pa.int64())


def _order_of(value: Any) -> tuple[int, Any]:
    if value is None:
        return 2, 0
    if isinstance(value, list | dict):
        return 0, tuple(map(_order_of, value.values() if isinstance(value, dict) else value))
    if isinstance(value, str):
        return 0, value.encode()
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)
