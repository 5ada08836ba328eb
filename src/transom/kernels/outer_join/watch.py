"""When a row of a join has a partner: a number a row, and not its partners.

Partners come in the order of time, so those that a row has met cover the time from the first of them up to the latest
of their ends, unless a gap is between them. It is enough to know how far that goes. A partner whose end is open covers
everything until it ends; of those the row knows how many there are.

A row without a partner is *alone*. An outer and an anti join show it while it is alone, a semi join while it is not.
When the cover of a row runs out nothing comes in that would say so: `timers` has the instant, or an earlier one, of
each row that is covered by partners whose ends are known; the cover may have grown since. A row that is covered to its
own end needs none: it is looked at then anyway. Where rows are wanted once they are over and not before, nobody has to
know when a row comes to be alone: only of a semi join there are timers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from transom.core.delta import NO_OPEN_ID, Ends, Int64s
from transom.core.time import FOREVER
from transom.kernels.address import prefetch
from transom.kernels.jit import borrowing, jit
from transom.kernels.join.side import TA, TE, JoinSide
from transom.kernels.kernel import OPEN_END
from transom.kernels.lifetimes import LifetimeSet
from transom.state.allocator import aligned_zeros
from transom.state.checks import need, within

COVER, OPEN_PARTNERS, SHOWN, SINCE, TIMER = range(5)  # columns of `marks`
WIDTH = 8  # of a row of `marks`, which is then one line of the cache
AHEAD = 16  # pairs whose rows are fetched while others are looked at
NONE = np.iinfo(np.int64).min
NOT_SHOWN = -1  # below it: -2 - i is row i of those that this step shows


@dataclass
class Watch:
    """Beside a side of a join, by its slots.

    `marks[slot]`: how far partners cover the row, how many open ones it has, the open row id of the row that is shown
    of it, since when it is covered (of semi joins), and when its timer is.
    """

    STATE_VERSION: ClassVar[int] = 2

    marks: Int64s = field(default_factory=lambda: np.zeros((0, WIDTH), dtype=np.int64))
    mask: int = -1
    timers: LifetimeSet = field(default_factory=LifetimeSet)

    def check_side(self, side: JoinSide) -> None:
        need(self.marks.dtype == np.int64 and self.marks.shape == (side.capacity, WIDTH) and self.mask == side.mask)
        for run in (*self.timers.runs, *self.timers.unsorted):
            within(run.slots & self.mask, side.capacity)

    def owned_by(self, slots: Int64s) -> Int64s:
        """The open row ids of what is shown of these rows."""
        shown = self.marks[slots, SHOWN]
        open_ids: Int64s = shown[shown != NOT_SHOWN]
        return open_ids

    def fit(self, side: JoinSide, oldest: int, newest: int) -> None:
        """Be as large as the side; in a ring, rows between these positions are in other slots then."""
        if len(self.marks) == side.capacity:
            return
        marks = aligned_zeros((side.capacity, WIDTH), np.int64)
        if side.mask == -1:
            marks[: len(self.marks)] = self.marks
        else:
            positions = np.arange(oldest, newest)
            marks[positions & side.mask] = self.marks[positions & self.mask]
        self.marks, self.mask = marks, side.mask

    def due(self, frontier: int) -> Int64s:
        """Positions and instants of the timers before `frontier`."""
        if self.timers.next_timer >= frontier:
            return np.empty((2, 0), dtype=np.int64)
        return np.stack(self.timers.leave(Ends(), frontier))

    def add_timers(self, timers: Int64s) -> None:
        if timers.shape[1]:
            self.timers.add(timers[0], timers[1], np.full(timers.shape[1], NO_OPEN_ID, dtype=np.int64))


@jit
def advance(  # type: ignore[no-untyped-def]
    marks, mask, entries, new, pairs, closed, dead, due, others, frontier, semi, over
):
    """Take what a step brought to one side, all by position.

    `new` rows; `pairs`, in the order of time, with their ta and te; partners that were open and have ended
    (`closed`, with their ends); rows that are `dead`, with their ends; timers that are `due`; `others` whose standing
    is wanted. `over`: a row is shown when it is over, and not before. Gives rows (position, ta, te) to be shown,
    OPEN_END where they go on; ends (open row id, te) of what was shown; and new timers (position, instant).
    """
    most = len(new) + 2 * pairs.shape[1] + closed.shape[1] + dead.shape[1] + due.shape[1] + len(others)
    rows = np.empty((3, most), dtype=np.int64)
    ends = np.empty((2, most), dtype=np.int64)
    timers = np.empty((2, most), dtype=np.int64)
    counts = np.zeros(3, dtype=np.int64)
    for position in new:
        slot = position & mask
        marks[slot, COVER] = entries[slot, TA]
        marks[slot, OPEN_PARTNERS] = 0
        marks[slot, SHOWN] = NOT_SHOWN
        marks[slot, SINCE] = NONE
        marks[slot, TIMER] = NONE
    for i in range(closed.shape[1]):
        slot = closed[0, i] & mask
        marks[slot, OPEN_PARTNERS] -= 1
        marks[slot, COVER] = max(marks[slot, COVER], closed[1, i])
    marked = marks.ctypes.data
    for i in range(-AHEAD, pairs.shape[1]):
        if i + AHEAD < pairs.shape[1]:
            prefetch(marked + 8 * WIDTH * (pairs[0, i + AHEAD] & mask))
        if i < 0:
            continue
        position = pairs[0, i]
        slot = position & mask
        ta = pairs[1, i]
        cover = marks[slot, COVER]
        if marks[slot, OPEN_PARTNERS] == 0 and cover < ta:
            if semi:
                end_covered(marks, slot, position, cover, rows, ends, counts)
            else:
                end_alone(marks, slot, position, cover, ta, rows, ends, counts)
        if marks[slot, SINCE] == NONE and cover < FOREVER:
            marks[slot, SINCE] = ta
        if pairs[2, i] == OPEN_END:
            marks[slot, OPEN_PARTNERS] += 1
            marks[slot, COVER] = max(cover, ta)
        else:
            marks[slot, COVER] = max(cover, pairs[2, i])
    for i in range(dead.shape[1]):
        position = dead[0, i]
        slot = position & mask
        te = dead[1, i]
        cover = marks[slot, COVER] if marks[slot, OPEN_PARTNERS] == 0 else te
        if semi:
            end_covered(marks, slot, position, min(cover, te), rows, ends, counts)
        elif cover < te:
            end_alone(marks, slot, position, cover, te, rows, ends, counts)
        marks[slot, COVER] = OPEN_END  # nothing more is said of it
        marks[slot, OPEN_PARTNERS] = 0
        marks[slot, TIMER] = NONE
    looked_at = np.empty(most, dtype=np.int64)
    n = 0
    if semi or not over:
        for some in (new, closed[0], pairs[0], others):
            looked_at[n : n + len(some)] = some
            n += len(some)
    for i in range(due.shape[1]):
        slot = due[0, i] & mask
        if marks[slot, TIMER] == due[1, i]:  # or else it is that of a row that was here before
            marks[slot, TIMER] = NONE
            looked_at[n] = due[0, i]
            n += 1
    for i in range(n):
        if i + AHEAD < n:
            prefetch(marked + 8 * WIDTH * (looked_at[i + AHEAD] & mask))
        settle(marks, entries, looked_at[i] & mask, looked_at[i], frontier, semi, over, rows, timers, ends, counts)
    return rows[:, : counts[0]], ends[:, : counts[1]], timers[:, : counts[2]]


@borrowing
def end_alone(marks, slot, position, begin, end, rows, ends, counts):  # type: ignore[no-untyped-def]
    """The row was alone from `begin` to `end`."""
    shown = marks[slot, SHOWN]
    if shown >= 0:
        ends[0, counts[1]] = shown
        ends[1, counts[1]] = end
        counts[1] += 1
        marks[slot, SHOWN] = NOT_SHOWN
    else:
        rows[0, counts[0]] = position
        rows[1, counts[0]] = begin
        rows[2, counts[0]] = end
        counts[0] += 1


@borrowing
def end_covered(marks, slot, position, end, rows, ends, counts):  # type: ignore[no-untyped-def]
    """The row had partners up to `end`, if it had any."""
    if marks[slot, SINCE] != NONE:
        end_alone(marks, slot, position, marks[slot, SINCE], end, rows, ends, counts)
        marks[slot, SINCE] = NONE


@borrowing
def settle(marks, entries, slot, position, frontier, semi, over, rows, timers, ends, counts):  # type: ignore[no-untyped-def]
    """How the row stands when the step is over; to say it again changes nothing."""
    cover = marks[slot, COVER]
    alone = marks[slot, OPEN_PARTNERS] == 0 and cover < frontier
    if alone and semi:
        end_covered(marks, slot, position, cover, rows, ends, counts)
    elif semi and cover == FOREVER and marks[slot, SHOWN] == NOT_SHOWN:
        # Nothing can change it any more. What is shown already stays open: no end is written before time passes it.
        end_covered(marks, slot, position, cover, rows, ends, counts)
    elif not over and (alone or (semi and marks[slot, SINCE] != NONE)) and marks[slot, SHOWN] == NOT_SHOWN:
        rows[0, counts[0]] = position
        rows[1, counts[0]] = marks[slot, SINCE] if semi else cover
        rows[2, counts[0]] = OPEN_END
        marks[slot, SHOWN] = -2 - counts[0]
        counts[0] += 1
    if alone or marks[slot, OPEN_PARTNERS] > 0 or marks[slot, TIMER] != NONE:
        return
    if cover < min(entries[slot, TE], FOREVER):
        marks[slot, TIMER] = cover
        timers[0, counts[2]] = position
        timers[1, counts[2]] = cover
        counts[2] += 1
