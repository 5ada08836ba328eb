"""A queue of rows of int64 columns: appended at the end, dropped at the front, both in bulk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transom.core.delta import Int64s
from transom.state.checks import need
from transom.state.slots import grown


@dataclass
class Fifo:
    """Entries are `data[:, first:last]`. Moved to the front when full, so an entry is moved O(1) times on average.

    >>> queue = Fifo.of(2)
    >>> queue.append(np.array([1, 2]), np.array([10, 20])); queue.drop(1)
    >>> queue.column(1).tolist()
    [20]
    """

    data: npt.NDArray[np.int64]
    first: int = 0
    last: int = 0

    @staticmethod
    def of(columns: int) -> Fifo:
        return Fifo(np.zeros((columns, 0), dtype=np.int64))

    def check(self) -> None:
        need(self.data.ndim == 2 and 0 <= self.first <= self.last <= self.data.shape[1])

    def __len__(self) -> int:
        return self.last - self.first

    def column(self, index: int) -> Int64s:
        """A view of one column, oldest entry first."""
        return self.data[index, self.first : self.last]

    def append(self, *columns: Int64s) -> None:
        count = len(columns[0])
        if self.last + count > self.data.shape[1]:
            alive = len(self)
            if 2 * (alive + count) <= self.data.shape[1]:
                self.data[:, :alive] = self.data[:, self.first : self.last]
            else:
                self.data = grown(self.data[:, self.first : self.last].copy(), alive + count)
            self.first, self.last = 0, alive
        for index, column in enumerate(columns):
            self.data[index, self.last : self.last + count] = column
        self.last += count

    def drop(self, count: int) -> None:
        self.first += count
