"""Rows of one side of a shared join by their keys, and those of a key in the order of their age.

The partners of a row within a window are a range of the rows of its key then, which two binary searches find. Rows lie
in sorted runs: those that come together are a run, and the last runs become one as soon as the last has half as many
rows as the one before it, so there are as many as n has digits and a row is moved as often.

>>> order = KeyOrder()
>>> order.append(np.array([7, 5, 7], dtype=np.uint64), np.zeros(3, dtype=bool), 0)
>>> order.append(np.array([7], dtype=np.uint64), np.zeros(1, dtype=bool), 3)
>>> ranges = order.ranges(np.array([7, 9], dtype=np.uint64), np.array([1, 0]), np.array([4, 4]))
>>> ranges.counts.tolist(), [numbers.tolist() for numbers in ranges.pairs(10, 2)]
([2, 0], [[10, 10], [2, 3]])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transom.core.delta import Int64s, no_int64s
from transom.kernels.keys import Hashes
from transom.kernels.shared_join.arrived import spread

_FEW = 1024  # rows that are not worth a run of their own


class KeyOrder:
    def __init__(self) -> None:
        self._runs: list[_Run] = []

    def append(self, hashes: Hashes, null: npt.NDArray[np.bool_], first: int) -> None:
        """Rows from this number on; a NULL equals nothing."""
        there = np.flatnonzero(~null)
        if not len(there):
            return
        self._runs.append(_Run.of(hashes[there], there + first))
        while len(self._runs) > 1 and 2 * len(self._runs[-1]) >= len(self._runs[-2]):
            self._merge()
        while len(self._runs) > 1 and len(self._runs[-2]) < _FEW:
            self._merge()

    def _merge(self) -> None:
        younger, older = self._runs.pop(), self._runs.pop()
        hashes = np.concatenate([older.hashes, younger.hashes])
        self._runs.append(_Run.of(hashes, np.concatenate([older.numbers, younger.numbers])))

    def drop_until(self, first: int) -> None:
        """Rows before this number are needed no more; they go once they are half of a run."""
        for index, run in enumerate(self._runs):
            if 2 * (first - run.first) > run.last - run.first:
                self._runs[index] = run.from_on(first)
        self._runs = [run for run in self._runs if len(run)]

    def ranges(self, hashes: Hashes, begin: Int64s, end: Int64s) -> KeyRanges:
        """For rows with these keys, the rows of the same key whose numbers lie from `begin` to before `end`."""
        return KeyRanges(len(hashes), [(run, *run.ranges(hashes, begin, end)) for run in self._runs])


@dataclass
class KeyRanges:
    """For each of so many rows a range in every run."""

    rows: int
    parts: list[tuple[_Run, Int64s, Int64s]]

    @property
    def counts(self) -> Int64s:
        """How many partners each row has."""
        return sum((end - begin for _, begin, end in self.parts), np.zeros(self.rows, dtype=np.int64))

    def pairs(self, first: int, rows: int) -> tuple[Int64s, Int64s]:
        """The first rows, which have the numbers from `first` on, each with its partners from the oldest on."""
        own, others = [no_int64s()], [no_int64s()]
        for run, begin, end in self.parts:
            numbers, places = spread(first, begin[:rows], end[:rows])
            own.append(numbers)
            others.append(run.numbers[places])
        left, right = np.concatenate(own), np.concatenate(others)
        order = np.lexsort((right, left))
        return left[order], right[order]


class _Run:
    """Rows in the order of their keys, and then of their numbers."""

    def __init__(self, hashes: Hashes, numbers: Int64s) -> None:
        self.hashes, self.numbers = hashes, numbers
        self.first = int(numbers.min(initial=1 << 62))
        self.last = int(numbers.max(initial=0))
        begins = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]])) if len(hashes) else no_int64s()
        self._keys = hashes[begins]
        key = np.repeat(np.arange(len(begins), dtype=np.int64), np.diff(np.append(begins, len(hashes))))
        self._places = (key << 32) | (numbers - self.first)
        """The number of the key and of the row in one: sorted, as the rows are."""

    @staticmethod
    def of(hashes: Hashes, numbers: Int64s) -> _Run:
        """Of rows in the order of their numbers, or of several runs one behind the other."""
        order = np.lexsort((numbers, hashes))
        return _Run(hashes[order], numbers[order])

    def __len__(self) -> int:
        return len(self.numbers)

    def from_on(self, first: int) -> _Run:
        there = self.numbers >= first
        return _Run(self.hashes[there], self.numbers[there])

    def ranges(self, hashes: Hashes, begin: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
        key = np.minimum(np.searchsorted(self._keys, hashes), len(self._keys) - 1)
        most = self.last - self.first + 1
        first, last = (
            np.searchsorted(self._places, (key << 32) | np.clip(bound - self.first, 0, most)) for bound in (begin, end)
        )
        return first, np.where(self._keys[key] == hashes, np.maximum(first, last), first)
