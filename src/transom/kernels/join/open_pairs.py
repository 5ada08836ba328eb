"""The undetermined set of a join: pairs that were made while the end of a member was open.

A pair ends when the first of its members does. Each pair is in two lists, one per member, so whichever row ends closes
its pairs and takes them out of the other's list in O(1). Pairs whose end was known when they were made are never in
here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from transom.core.delta import Int64s, no_int64s
from transom.kernels.jit import jit
from transom.kernels.sound import owned
from transom.state.checks import rooms
from transom.state.slots import SlotPool, grown

LEFT, RIGHT, OPEN_ID, NEXT_LEFT, BACK_LEFT, NEXT_RIGHT, BACK_RIGHT = range(7)


@dataclass
class OpenPairs:
    """`pairs[:, p]`: positions of the two rows, the pair's open row id, and next and back in the lists of either
    row."""

    slots: SlotPool = field(default_factory=SlotPool)
    pairs: Int64s = field(default_factory=lambda: np.zeros((7, 0), dtype=np.int64))

    def check(self) -> None:
        rooms(self.slots.high, self.pairs)

    def check_members(self, left: Any, right: Any) -> None:
        """Every pair is in the list of either of its rows, and in no other."""
        for side, row, following, back in ((left, LEFT, NEXT_LEFT, BACK_LEFT), (right, RIGHT, NEXT_RIGHT, BACK_RIGHT)):
            slots = side.used()
            of = self.pairs[row] & side.mask
            owned(side.first_pair[slots], slots, self.pairs[following], of, self.slots, self.pairs[back])

    def owned(self) -> list[Int64s]:
        return [self.pairs[OPEN_ID, self.slots.used()]]

    def add(self, left: Int64s, right: Int64s, open_id: Int64s, first_left, left_mask, first_right, right_mask) -> None:  # type: ignore[no-untyped-def]
        indexes = self.slots.take(len(left))
        if self.slots.high > self.pairs.shape[1]:
            self.pairs = grown(self.pairs, self.slots.high)
        link_pairs(indexes, left, right, open_id, self.pairs, first_left, left_mask, first_right, right_mask)

    def close(self, dead, side, left, right) -> tuple[Int64s, Int64s, Int64s]:  # type: ignore[no-untyped-def]
        """Open row ids, ends and places of the pairs of rows that are dead on one side (0 left, 1 right).

        `left` and `right` are those sides. What was in the places may be read until pairs are added.
        """
        if not len(dead) or not self.slots.in_use:
            return no_int64s(), no_int64s(), no_int64s()
        of_left, of_right = ((each.te, each.first_pair, each.mask) for each in (left, right))
        open_id, te, freed = close_pairs(dead, side, self.pairs, *of_left, *of_right, self.slots.in_use)
        self.slots.give_back(freed)
        return open_id, te, freed


@jit
def link_pairs(indexes, left, right, open_id, pairs, first_left, left_mask, first_right, right_mask):  # type: ignore[no-untyped-def]
    for i in range(len(indexes)):
        p = indexes[i]
        pairs[LEFT, p] = left[i]
        pairs[RIGHT, p] = right[i]
        pairs[OPEN_ID, p] = open_id[i]
        l = left[i] & left_mask  # noqa: E741
        r = right[i] & right_mask
        following = first_left[l]
        pairs[NEXT_LEFT, p] = following
        pairs[BACK_LEFT, p] = -1
        if following >= 0:
            pairs[BACK_LEFT, following] = p
        first_left[l] = p
        following = first_right[r]
        pairs[NEXT_RIGHT, p] = following
        pairs[BACK_RIGHT, p] = -1
        if following >= 0:
            pairs[BACK_RIGHT, following] = p
        first_right[r] = p


@jit
def close_pairs(  # type: ignore[no-untyped-def]
    dead, side, pairs, left_te, first_left, left_mask, right_te, first_right, right_mask, at_most
):
    open_ids = np.empty(at_most, dtype=np.int64)
    ends = np.empty(at_most, dtype=np.int64)
    freed = np.empty(at_most, dtype=np.int64)
    count = 0
    my_next = NEXT_LEFT if side == 0 else NEXT_RIGHT
    other_next = NEXT_RIGHT if side == 0 else NEXT_LEFT
    other_back = BACK_RIGHT if side == 0 else BACK_LEFT
    for position in dead:
        slot = position & (left_mask if side == 0 else right_mask)
        p = first_left[slot] if side == 0 else first_right[slot]
        while p >= 0:
            l = pairs[LEFT, p] & left_mask  # noqa: E741
            r = pairs[RIGHT, p] & right_mask
            open_ids[count] = pairs[OPEN_ID, p]
            ends[count] = min(left_te[l], right_te[r])
            freed[count] = p
            count += 1
            previous = pairs[other_back, p]
            following = pairs[other_next, p]
            if previous >= 0:
                pairs[other_next, previous] = following
            elif side == 0:
                first_right[r] = following
            else:
                first_left[l] = following
            if following >= 0:
                pairs[other_back, following] = previous
            p = pairs[my_next, p]
        if side == 0:
            first_left[slot] = -1
        else:
            first_right[slot] = -1
    return open_ids[:count], ends[:count], freed[:count]
