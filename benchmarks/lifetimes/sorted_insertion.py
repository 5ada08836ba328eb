"""The baseline that paper 1 sorts lazily to beat: every row that gets its end is inserted at its sorted place at once.

It takes the place of the lazily sorted set in a join whose sides are `lazy_hash`, and gives the same answers. It cannot
be saved, and no query runs with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from transom.core.delta import Ends, Int64s, no_int64s
from transom.core.time import FOREVER
from transom.kernels.jit import jit
from transom.kernels.join.join import JoinState
from transom.kernels.lifetimes import LifetimeSet
from transom.pipeline.part import PartState
from transom.state.slots import grown


@jit
def insert_sorted(te, slots, first, count, new_te, new_slots):  # type: ignore[no-untyped-def]
    """Put each new end behind those not later than it, looked for from the front.

    Entries first .. first + count - 1 are sorted; there must be room behind them for the new ones.
    """
    for i in range(len(new_te)):
        end = new_te[i]
        stop = first + count
        index = first
        while index < stop and te[index] <= end:
            index += 1
        for j in range(stop, index, -1):
            te[j] = te[j - 1]
            slots[j] = slots[j - 1]
        te[index] = end
        slots[index] = new_slots[i]
        count += 1


@dataclass
class SortedEnds:
    """Ends in ascending order with their slots: the places from `first` on, `count` of them."""

    te: Int64s = field(default_factory=no_int64s)
    slots: Int64s = field(default_factory=no_int64s)
    first: int = 0
    count: int = 0

    def insert(self, te: Int64s, slots: Int64s) -> None:
        if self.first + self.count + len(te) > len(self.te):
            used = slice(self.first, self.first + self.count)
            room = 2 * (self.count + len(te))
            self.te, self.slots, self.first = grown(self.te[used], room), grown(self.slots[used], room), 0
        insert_sorted(self.te, self.slots, self.first, self.count, te, slots)
        self.count += len(te)

    def take(self, frontier: int) -> tuple[Int64s, Int64s]:
        """Slots and ends before `frontier`; they are in here no more."""
        due = int(np.searchsorted(self.te[self.first : self.first + self.count], frontier))
        taken = slice(self.first, self.first + due)
        self.first += due
        self.count -= due
        return self.slots[taken].copy(), self.te[taken].copy()


@dataclass
class SortedInsertionSet(LifetimeSet):
    """>>> rows = SortedInsertionSet()
    >>> rows.add(np.array([0, 1, 2]), np.array([7, 9, 3]), np.full(3, -1))
    >>> [part.tolist() for part in rows.leave(Ends(), frontier=8)]
    [[2, 0], [3, 7]]
    """

    determined: SortedEnds = field(default_factory=SortedEnds)

    @property
    def due(self) -> int:
        ends = self.determined
        return int(ends.te[ends.first]) if ends.count else FOREVER

    def closed(self, ends: Ends) -> tuple[Int64s, Int64s]:
        """An end is written in the step that passes it, so these are the only ones of that step to be sorted in."""
        slots, te = super().closed(ends)
        moved = SortedEnds()
        moved.insert(te, slots)
        return moved.take(int(te.max(initial=0)) + 1)

    def leave(self, ends: Ends, frontier: int) -> tuple[Int64s, Int64s]:
        closed, due = self.closed(ends), self.determined.take(frontier)
        return np.concatenate([closed[0], due[0]]), np.concatenate([closed[1], due[1]])

    def add_determined(self, slots: Int64s, te: Int64s) -> None:
        self.determined.insert(te, slots)


def with_sorted_insertion(state: PartState) -> PartState:
    """The state of a part, before its first step, with sorted insertion in its joins."""
    joins = [memory for memories in state.operators for memory in memories if isinstance(memory, JoinState)]
    for join in joins:
        join.left.lifetimes, join.right.lifetimes = SortedInsertionSet(), SortedInsertionSet()
    return state
