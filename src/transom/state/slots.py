"""Numbered places in flat arrays, given out and taken back.

A `SlotPool` hands out the lowest places first in a fresh pool and reuses what was freed, so arrays indexed by slot
stay as long as the greatest number of places that were in use at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from transom.core.delta import Int64s, no_int64s
from transom.state.checks import need, within

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass
class SlotPool:
    """`high` places exist; `free[:free_count]` of them are not in use.

    >>> pool = SlotPool()
    >>> pool.take(3).tolist(), pool.take(1).tolist()
    ([0, 1, 2], [3])
    >>> pool.give_back(np.array([1])); pool.take(2).tolist(), pool.in_use
    ([1, 4], 5)
    """

    high: int = 0
    free: Int64s = field(default_factory=no_int64s)
    free_count: int = 0

    @property
    def in_use(self) -> int:
        return self.high - self.free_count

    def check(self) -> None:
        need(self.high >= 0 and 0 <= self.free_count <= len(self.free))
        free = self.free[: self.free_count]
        within(free, self.high)
        need(len(np.unique(free)) == len(free))

    def mask(self) -> npt.NDArray[np.bool_]:
        """Which places are in use."""
        used = np.ones(self.high, dtype=np.bool_)
        used[self.free[: self.free_count]] = False
        return used

    def used(self) -> Int64s:
        """The places in use, ascending."""
        return np.flatnonzero(self.mask())

    def take(self, count: int) -> Int64s:
        reused = min(count, self.free_count)
        slots = np.empty(count, dtype=np.int64)
        slots[:reused] = self.free[self.free_count - reused : self.free_count]
        slots[reused:] = np.arange(self.high, self.high + count - reused)
        self.free_count -= reused
        self.high += count - reused
        return slots

    def give_back(self, slots: Int64s) -> None:
        needed = self.free_count + len(slots)
        if needed > len(self.free):
            self.free = grown(self.free, needed)
        self.free[self.free_count : needed] = slots
        self.free_count = needed


def grown(array: npt.NDArray[Scalar], needed: int, fill: int = 0) -> npt.NDArray[Scalar]:
    """A copy along the last axis with room for `needed` entries, at least twice the old; new entries hold `fill`."""
    size = max(needed, 2 * array.shape[-1], 64)
    taken = array.shape[-1]
    shape = (*array.shape[:-1], size)
    # Zeros that the system has ready cost nothing until they are touched.
    bigger: npt.NDArray[Scalar] = np.empty(shape, dtype=array.dtype) if fill else np.zeros(shape, dtype=array.dtype)
    bigger[..., :taken] = array
    if fill:
        bigger[..., taken:] = fill
    return bigger
