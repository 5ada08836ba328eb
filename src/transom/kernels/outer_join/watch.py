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
from typing import ClassVar, NamedTuple

import numpy as np

from transom.core.delta import Ends, Int64s
from transom.core.time import FOREVER
from transom.kernels.address import prefetch, store_word, word_at
from transom.kernels.jit import borrowing, jit
from transom.kernels.join.side import TA, TE, JoinSide
from transom.kernels.kernel import OPEN_END
from transom.kernels.lifetimes import LifetimeSet
from transom.state.allocator import aligned_zeros
from transom.state.checks import need, within

COVER, OPEN_PARTNERS, SHOWN, SINCE, TIMER = range(5)  # columns of `marks`
WIDTH = 8  # of a row of `marks`, which is then one line of the cache
LINE, ENTRY = 8 * WIDTH, 32  # bytes of a row of `marks`, and of one of the entries of a side
AHEAD = 16  # pairs whose rows are fetched while others are looked at
NONE = np.iinfo(np.int64).min
NOT_SHOWN = -1
WITHOUT_ID = -2  # instead of an open row id: it is shown, and is given again when it is over, or by this step
TAKEN = NONE  # instead of a beginning: it was shown before


@dataclass
class Watch:
    """Beside a side of a join, by its slots.

    `marks[slot]`: how far partners cover the row, how many open ones it has, the open row id of the row that is shown
    of it, or WITHOUT_ID, since when it is covered (of semi joins), and when its timer is.
    """

    STATE_VERSION: ClassVar[int] = 3

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
        open_ids: Int64s = shown[shown >= 0]
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

    def due(self, frontier: int) -> tuple[Int64s, Int64s]:
        """Positions and instants of the timers before `frontier`."""
        return self.timers.leave(Ends(), frontier)


class SideLines(NamedTuple):
    """What is remembered of the rows of a side, and the rows themselves, by their positions within the mask."""

    marks: Int64s
    mask: int
    entries: Int64s


class Events(NamedTuple):
    """What a step brought to one side, all by position.

    `new` rows; those that `met` somebody, in the order of time, with the times of the pair; those whose open pair was
    `closed`, and its end; rows that are `dead`; timers that are `due`, and the instants of these; `others` whose
    standing is wanted.
    """

    new: Int64s
    met: Int64s
    met_ta: Int64s
    met_te: Int64s
    closed: Int64s
    closed_te: Int64s
    dead: Int64s
    due: Int64s
    due_at: Int64s
    others: Int64s


@jit
def advance(lines, events, frontier, semi, over, stays):  # type: ignore[no-untyped-def]
    """Take what a step brought to one side.

    `over`: a row is shown when it is over, and not before. `stays`: what is shown of a row that is dead never ends.
    Gives rows (positions, ta, te) to be shown, OPEN_END where they go on, and those which were shown WITHOUT_ID and are
    over, with TAKEN for their ta; ends (open row ids, te) of what was shown; and new timers (positions, instants).

    Whether the next row was alone, or was shown, nobody can foretell: what might be said of it is written, and counted
    if it is so.
    """
    new, met, met_ta, met_te, dead, others = (
        events.new, events.met, events.met_ta, events.met_te, events.dead, events.others
    )  # fmt: skip
    closed, closed_te, due, due_at = events.closed, events.closed_te, events.due, events.due_at
    most = len(new) + 2 * len(met) + len(closed) + len(dead) + len(due) + len(others)
    rows = np.empty((3, most), dtype=np.int64)
    ends = np.empty((2, most), dtype=np.int64)
    looked_at = np.empty(most, dtype=np.int64)  # rows of which it may be that they are alone, or want a timer
    n_rows, n_ends, n = 0, 0, 0
    marked, entered, mask = lines.marks.ctypes.data, lines.entries.ctypes.data, lines.mask
    for position in new:
        line = marked + LINE * (position & mask)
        store_word(line + 8 * COVER, word_at(entered + ENTRY * (position & mask), TA))
        store_word(line + 8 * OPEN_PARTNERS, 0)
        store_word(line + 8 * SHOWN, NOT_SHOWN)
        store_word(line + 8 * SINCE, NONE)
        store_word(line + 8 * TIMER, NONE)
    for i in range(len(closed)):
        line = marked + LINE * (closed[i] & mask)
        store_word(line + 8 * OPEN_PARTNERS, word_at(line, OPEN_PARTNERS) - 1)
        store_word(line + 8 * COVER, max(word_at(line, COVER), closed_te[i]))
        looked_at[n] = closed[i]
        n += semi or not over
    for i in range(-AHEAD, len(met)):
        if i + AHEAD < len(met):
            prefetch(marked + LINE * (met[i + AHEAD] & mask))
            prefetch(entered + ENTRY * (met[i + AHEAD] & mask))
        if i < 0:
            continue
        position, ta, te = met[i], met_ta[i], met_te[i]
        line = marked + LINE * (position & mask)
        partners, cover = word_at(line, OPEN_PARTNERS), word_at(line, COVER)
        was_alone = (partners == 0) & (cover < ta)
        if not semi:
            n_rows, n_ends = end_shown(line, position, cover, ta, was_alone, rows, ends, n_rows, n_ends)
        else:
            if was_alone:
                n_rows, n_ends = end_covered(line, position, cover, rows, ends, n_rows, n_ends)
            if word_at(line, SINCE) == NONE and cover < FOREVER:
                store_word(line + 8 * SINCE, ta)
        is_open = te == OPEN_END
        partners += is_open
        cover = max(cover, ta if is_open else te)
        store_word(line + 8 * OPEN_PARTNERS, partners)
        store_word(line + 8 * COVER, cover)
        looked_at[n] = position
        untimed = (partners == 0) & (word_at(line, TIMER) == NONE)  # or else its timer has it looked at
        runs_out = untimed & (cover < word_at(entered + ENTRY * (position & mask), TE))
        if semi:
            n += (not over) | runs_out | (cover == FOREVER)
        else:
            n += (not over) & runs_out
    for i in range(len(dead)):
        position = dead[i]
        line = marked + LINE * (position & mask)
        te = FOREVER if stays else word_at(entered + ENTRY * (position & mask), TE)
        cover = word_at(line, COVER) if word_at(line, OPEN_PARTNERS) == 0 else te
        if semi:
            n_rows, n_ends = end_covered(line, position, min(cover, te), rows, ends, n_rows, n_ends)
        else:
            n_rows, n_ends = end_shown(line, position, cover, te, cover < te, rows, ends, n_rows, n_ends)
        store_word(line + 8 * COVER, OPEN_END)  # nothing more is said of it
        store_word(line + 8 * OPEN_PARTNERS, 0)
        store_word(line + 8 * TIMER, NONE)
    for i in range(-AHEAD, len(due)):
        if i + AHEAD < len(due):
            prefetch(marked + LINE * (due[i + AHEAD] & mask))
        if i < 0:
            continue
        line = marked + LINE * (due[i] & mask)
        looked_at[n] = due[i]
        if word_at(line, TIMER) == due_at[i]:  # or else it is that of a row that was here before
            store_word(line + 8 * TIMER, NONE)
            n += 1
    for i in range(len(others)):
        looked_at[n] = others[i]
        n += semi or not over
    timers = np.empty((2, n), dtype=np.int64)
    n_timers = 0
    for position in new:  # those without a partner are nowhere else
        line = marked + LINE * (position & mask)
        alone = (word_at(line, OPEN_PARTNERS) == 0) & (word_at(line, COVER) < frontier)
        if not semi and not over:
            n_rows = show(line, position, word_at(line, COVER), alone, rows, n_rows)
    for i in range(n):
        if i + AHEAD < n:
            prefetch(marked + LINE * (looked_at[i + AHEAD] & mask))
            prefetch(entered + ENTRY * (looked_at[i + AHEAD] & mask))
        position = looked_at[i]
        line = marked + LINE * (position & mask)
        cover, timer, partners = word_at(line, COVER), word_at(line, TIMER), word_at(line, OPEN_PARTNERS)
        alone = (partners == 0) & (cover < frontier)
        if not semi:
            n_rows = show(line, position, cover, alone, rows, n_rows)
        # What nothing can change any more is over, but stays open if it is shown: no end is written before its time.
        elif alone or (cover == FOREVER and word_at(line, SHOWN) == NOT_SHOWN):
            n_rows, n_ends = end_covered(line, position, cover, rows, ends, n_rows, n_ends)
        elif not over:
            since = word_at(line, SINCE)
            n_rows = show(line, position, since, since != NONE, rows, n_rows)
        wanted = (not alone) & (partners == 0) & (timer == NONE)
        wanted &= cover < min(word_at(entered + ENTRY * (position & mask), TE), FOREVER)
        store_word(line + 8 * TIMER, cover if wanted else timer)
        timers[0, n_timers] = position
        timers[1, n_timers] = cover
        n_timers += wanted
    return (
        (rows[0, :n_rows], rows[1, :n_rows], rows[2, :n_rows]),
        (ends[0, :n_ends], ends[1, :n_ends]),
        (timers[0, :n_timers], timers[1, :n_timers]),
    )


@borrowing
def show(line, position, begin, it_is, rows, n_rows):  # type: ignore[no-untyped-def]
    """If `it_is` so and not shown yet, show the row from `begin` on; gives how many rows there are."""
    shown = word_at(line, SHOWN)
    new = it_is & (shown == NOT_SHOWN)
    rows[0, n_rows] = position
    rows[1, n_rows] = begin
    rows[2, n_rows] = OPEN_END
    store_word(line + 8 * SHOWN, WITHOUT_ID if new else shown)
    return n_rows + new


@borrowing
def end_shown(line, position, begin, end, it_is, rows, ends, n_rows, n_ends):  # type: ignore[no-untyped-def]
    """If `it_is` so, what is shown of the row ends, or is shown from `begin` to `end`; gives how many there are."""
    shown = word_at(line, SHOWN)
    ends[0, n_ends] = shown
    ends[1, n_ends] = end
    store_word(line + 8 * SHOWN, NOT_SHOWN if it_is else shown)
    rows[0, n_rows] = position
    rows[1, n_rows] = TAKEN if shown == WITHOUT_ID else begin
    rows[2, n_rows] = end
    return n_rows + (it_is & (shown < 0)), n_ends + (it_is & (shown >= 0))


@borrowing
def end_covered(line, position, end, rows, ends, n_rows, n_ends):  # type: ignore[no-untyped-def]
    """The row had partners up to `end`, if it had any."""
    since = word_at(line, SINCE)
    store_word(line + 8 * SINCE, NONE)
    return end_shown(line, position, since, end, since != NONE, rows, ends, n_rows, n_ends)
