"""The undetermined set of a join of many inputs: tuples that were made while the end of a member was open.

A tuple ends when the first of its members does. Each tuple is in as many lists as it has members, so whichever row ends
closes its tuples and takes them out of the lists of the others in O(1) each. Tuples whose end was known when they were
made are never in here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from transom.core.delta import Int64s, no_int64s
from transom.kernels.jit import jit
from transom.kernels.kernel import OPEN_END
from transom.kernels.multiway.input_rows import InputRows, LazyRows, RingRows
from transom.kernels.sound import owned
from transom.state.checks import need
from transom.state.slots import SlotPool

OPEN_ID, END, MEMBERS = range(3)  # then for each input: the position of the member, and next and back in its list


@dataclass
class OpenTuples:
    """`tuples[p]`: the open row id, the earliest end that came so far, and three numbers for each member."""

    tuples: Int64s
    slots: SlotPool = field(default_factory=SlotPool)

    def check_members(self, inputs: Sequence[LazyRows | RingRows]) -> None:
        """Every tuple is in the list of each of its rows, and in no other; none of them has ended."""
        need(self.slots.high <= len(self.tuples) and self.tuples.shape[1] == MEMBERS + 3 * len(inputs))
        need(bool((self.tuples[self.slots.used(), END] == OPEN_END).all()))
        for i, own in enumerate(inputs):
            member, following, back = (self.tuples[:, MEMBERS + 3 * i + column] for column in range(3))
            slots = own.used()
            owned(own.first_open[slots], slots, following, member & own.mask, self.slots, back)

    def owned(self) -> list[Int64s]:
        return [self.tuples[self.slots.used(), OPEN_ID]]

    @staticmethod
    def of(inputs: int) -> OpenTuples:
        return OpenTuples(np.zeros((0, MEMBERS + 3 * inputs), dtype=np.int64))

    def add(self, members: Int64s, open_id: Int64s, inputs: Sequence[InputRows]) -> None:
        """Tuples by the positions of their members, members[tuple, input]."""
        indexes = self.slots.take(len(members))
        if self.slots.high > len(self.tuples):
            tuples = np.zeros((max(self.slots.high, 2 * len(self.tuples), 64), self.tuples.shape[1]), dtype=np.int64)
            tuples[: len(self.tuples)] = self.tuples
            self.tuples = tuples
        self.tuples[indexes, OPEN_ID] = open_id
        self.tuples[indexes, END] = OPEN_END
        for i, own in enumerate(inputs):
            member = np.ascontiguousarray(members[:, i])
            link_tuples(indexes, member, MEMBERS + 3 * i, self.tuples, own.first_open, own.mask)

    def close(self, dead: Sequence[Int64s], inputs: Sequence[InputRows]) -> tuple[Int64s, Int64s]:
        """Open row ids and ends of the tuples that have a member among the dead rows of the inputs."""
        touched = np.empty(self.slots.in_use, dtype=np.int64)
        count = 0
        for i, own in enumerate(inputs):
            if len(dead[i]):
                slots = dead[i] & own.mask
                count = note_ends(slots, own.te, own.first_open, MEMBERS + 3 * i, self.tuples, touched, count)
        if not count:
            return no_int64s(), no_int64s()
        closed = touched[:count].copy()
        for i, own in enumerate(inputs):
            take_out(closed, MEMBERS + 3 * i, self.tuples, own.first_open, own.mask)
        self.slots.give_back(closed)
        return self.tuples[closed, OPEN_ID], self.tuples[closed, END]


@jit
def link_tuples(indexes, member, at, tuples, first_open, mask):  # type: ignore[no-untyped-def]
    for i in range(len(indexes)):
        p = indexes[i]
        slot = member[i] & mask
        following = first_open[slot]
        tuples[p, at] = member[i]
        tuples[p, at + 1] = following
        tuples[p, at + 2] = -1
        if following >= 0:
            tuples[following, at + 2] = p
        first_open[slot] = p


@jit
def note_ends(dead, te, first_open, at, tuples, touched, count):  # type: ignore[no-untyped-def]
    """The ends of dead rows go to their tuples; those that had none yet are listed."""
    for slot in dead:
        p = first_open[slot]
        while p >= 0:
            if tuples[p, END] == OPEN_END:
                touched[count] = p
                count += 1
            tuples[p, END] = min(tuples[p, END], te[slot])
            p = tuples[p, at + 1]
    return count


@jit
def take_out(indexes, at, tuples, first_open, mask):  # type: ignore[no-untyped-def]
    for p in indexes:
        following = tuples[p, at + 1]
        previous = tuples[p, at + 2]
        if previous >= 0:
            tuples[previous, at + 1] = following
        else:
            first_open[tuples[p, at] & mask] = following
        if following >= 0:
            tuples[following, at + 2] = previous
