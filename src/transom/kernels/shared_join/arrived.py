"""Rows of one side of a shared join in the order in which they came, so that those of an age lie side by side.

>>> rows = ArrivedRows.of([pa.int64()])
>>> rows.append([pa.array([7, 8, 9])], np.array([1, 2, 5]))
>>> rows.drop_until(1)
>>> rows.first, rows.arrived, rows.gather(np.array([2]), [0], [pa.int64()])[0].to_pylist()
(1, 3, [9])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s
from transom.kernels.row_store import RowStore
from transom.state.fifo import Fifo

_FEW: Final = 1024  # rows that are not worth being moved


@dataclass
class ArrivedRows:
    """Rows are known by their number in the side; the first that is kept is `first`, and `base` is in slot 0."""

    rows: RowStore
    times: Fifo = field(default_factory=lambda: Fifo.of(1))
    first: int = 0
    base: int = 0

    @staticmethod
    def of(types: Sequence[pa.DataType]) -> ArrivedRows:
        return ArrivedRows(RowStore.of(types))

    def __len__(self) -> int:
        return len(self.times)

    @property
    def arrived(self) -> int:
        """How many have come so far: the number of the next one."""
        return self.first + len(self.times)

    @property
    def t(self) -> Int64s:
        """The times of the rows that are kept."""
        return self.times.column(0)

    def at(self, numbers: Int64s) -> Int64s:
        """The times of some rows."""
        return self.t[numbers - self.first]

    def append(self, arrays: Sequence[pa.Array], t: Int64s) -> None:
        if self.first - self.base > max(_FEW, len(self)):
            self._move_together()
        slot, count = self.arrived - self.base, len(t)
        self.rows.reserve(slot + count)
        self.rows.write(slice(slot, slot + count), arrays)
        self.times.append(t)

    def drop_until(self, t: int) -> None:
        """Rows up to an instant are needed no more."""
        count = int(np.searchsorted(self.t, t, side="right"))
        if count:
            slot = self.first - self.base
            self.rows.free(slice(slot, slot + count))
            self.times.drop(count)
            self.first += count

    def gather(self, positions: Int64s, columns: Sequence[int], types: Sequence[pa.DataType]) -> list[pa.Array]:
        """Some columns of the rows of these numbers."""
        return self.rows.gather(positions - self.base, [types[i] for i in columns], columns)

    def _move_together(self) -> None:
        slots = np.arange(self.first - self.base, self.arrived - self.base, dtype=np.int64)
        self.rows = self.rows.picked(slots, max(2 * len(slots), 64))
        self.base = self.first


def partners(times: Int64s, others: ArrivedRows, come_last: bool, lo: int, hi: int) -> tuple[Int64s, Int64s]:
    """For rows that came at `times`: where those rows of the other side begin and end that are `lo` to `hi` older.

    Of one instant all rows of one side come before those of the other: with `come_last` rows of the same time are met
    by them, otherwise they have not come yet.
    """
    t = others.t
    begin = np.searchsorted(t, times - hi, side="right")
    if lo:
        end = np.searchsorted(t, times - lo, side="right")
    else:
        end = np.searchsorted(t, times, side="right" if come_last else "left")
    return begin + others.first, np.maximum(begin, end) + others.first


def spread(first: int, begin: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """Rows from number `first` on, each with all of its partners.

    >>> [numbers.tolist() for numbers in spread(5, np.array([0, 2]), np.array([2, 3]))]
    [[5, 5, 6], [0, 1, 2]]
    """
    counts = end - begin
    rows = np.repeat(np.arange(first, first + len(counts), dtype=np.int64), counts)
    starts = np.cumsum(counts) - counts
    return rows, np.arange(len(rows), dtype=np.int64) - np.repeat(starts - begin, counts)
