"""Some rows of a batch, by column, and a column put together from the values of several such parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.kernels.scalar.values import Value, as_array


class SelectedRows(Protocol):
    """Some rows of a batch, by column."""

    count: int

    def column(self, index: int) -> pa.Array: ...


class AllRows:
    __slots__ = ("batch", "count")

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.count: int = batch.num_rows

    def column(self, index: int) -> pa.Array:
        return self.batch.column(index)


class SomeRows:
    """The rows at some positions; a column is gathered when it is first wanted."""

    __slots__ = ("columns", "count", "positions", "source")

    def __init__(self, source: SelectedRows, positions: pa.Array) -> None:
        self.source = source
        self.positions = positions
        self.count: int = len(positions)
        self.columns: dict[int, pa.Array] = {}

    def column(self, index: int) -> pa.Array:
        array = self.columns.get(index)
        if array is None:
            array = self.columns[index] = self.source.column(index).take(self.positions)
        return array


Compiled = Callable[[SelectedRows], Value]
"""Run on at least one row. A scalar stands for the same value in all rows."""


class Pieces:
    """A column put together from pieces: each time some of the rows that are left get their values."""

    def __init__(self, rows: SelectedRows, type_: pa.DataType) -> None:
        self.source = rows
        self.rows = rows
        self.type = type_
        self.positions: pa.Array | None = None  # of the rows that are left; None is all
        self.done: list[tuple[pa.Array, pa.Array]] = []

    @property
    def left(self) -> int:
        return self.rows.count

    def put(self, takes: Value, result: Compiled) -> None:
        """Give the rows for which `takes` is true the values that `result` has for them."""
        mask = as_array(takes, self.left)
        if mask.true_count:
            here = pc.indices_nonzero(mask)
            some = SomeRows(self.rows, here)
            self._settle(mask, here, as_array(result(some), some.count))

    def put_values(self, takes: Value, values: Value) -> None:
        """Give the rows for which `takes` is true their values out of those of all rows that are left."""
        mask = as_array(takes, self.left)
        if mask.true_count:
            here = pc.indices_nonzero(mask)
            self._settle(mask, here, as_array(values, self.left).take(here))

    def _settle(self, mask: pa.Array, here: pa.Array, values: pa.Array) -> None:
        self.done.append((self._global(here), values))
        rest = pc.indices_nonzero(pc.invert(mask))
        self.rows, self.positions = SomeRows(self.rows, rest), self._global(rest)

    def _global(self, positions: pa.Array) -> pa.Array:
        return positions if self.positions is None else self.positions.take(positions)

    def whole(self, otherwise: Compiled) -> pa.Array:
        """The column, with `otherwise` in the rows that are left."""
        if self.positions is None:
            return as_array(otherwise(self.rows), self.left)
        if self.left:
            self.done.append((self.positions, as_array(otherwise(self.rows), self.left)))
        order = np.empty(self.source.count, dtype=np.int64)
        order[np.concatenate([positions.to_numpy() for positions, _ in self.done])] = np.arange(self.source.count)
        return pa.concat_arrays([values for _, values in self.done]).take(pa.array(order))
