"""The rows that a stateful operator keeps, by their ends: the undetermined set and the determined set of paper 1.

- **Undetermined**: rows whose end is open. `observer[open_id]` starts the list of slots that wait for that open row id
  (a union or a self-join brings several rows with one open row id); when the end is written, they leave with it at
  once, because an end is never written before time passes it.
- **Determined**: rows whose end is known, sorted **lazily** (paper 1, section 4.2): new rows go to an unsorted part of
  which only the earliest end is remembered; it is sorted into a run when time passes that end. Due rows are the heads
  of the runs; runs of similar size are merged, so a row is moved O(log n) times.
- Rows that live forever are in neither set: they never leave.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from transom.core.delta import NO_OPEN_ID, Ends, Int64s, no_int64s
from transom.core.time import FOREVER
from transom.kernels.columns import alike
from transom.kernels.jit import jit
from transom.kernels.sound import listed
from transom.kernels.time_order import time_order
from transom.state.checks import need, within
from transom.state.slots import grown


@dataclass
class EndRun:
    """Ends in ascending order with the slots they belong to."""

    te: Int64s
    slots: Int64s

    def check(self) -> None:
        need(self.te.dtype == self.slots.dtype == np.int64 and self.te.shape == self.slots.shape and self.te.ndim == 1)


@dataclass
class LifetimeSet:
    """Slots of rows that are alive, to be taken out in the step that passes their end.

    >>> rows = LifetimeSet()
    >>> rows.add(np.array([0, 1]), np.array([7, FOREVER]), np.array([NO_OPEN_ID, 3]))
    >>> [part.tolist() for part in rows.leave(Ends.of(np.array([3]), np.array([4])), frontier=7)]
    [[1], [4]]
    >>> [part.tolist() for part in rows.leave(Ends(), frontier=8)]
    [[0], [7]]
    """

    observer: Int64s = field(default_factory=no_int64s)
    next_observer: Int64s = field(default_factory=no_int64s)
    runs: list[EndRun] = field(default_factory=list)
    unsorted: list[EndRun] = field(default_factory=list)
    earliest: int = FOREVER
    undetermined: int = 0

    def check(self) -> None:
        need(all(len(run.te) and bool((run.te[1:] >= run.te[:-1]).all()) for run in self.runs))
        need(self.earliest == min([int(run.te.min()) for run in self.unsorted if len(run.te)], default=FOREVER))
        seen = listed(self.observer, self.next_observer, len(self.next_observer))
        need(int(seen.sum()) == self.undetermined)

    def check_slots(self, used: npt.NDArray[np.bool_]) -> None:
        """The rows are those of places in use, each once."""
        observed = np.flatnonzero(listed(self.observer, self.next_observer, len(self.next_observer)))
        slots = np.concatenate([no_int64s(), observed, *[run.slots for run in (*self.runs, *self.unsorted)]])
        within(slots, len(used))
        need(bool(used[slots].all()) and len(np.unique(slots)) == len(slots))

    def array_bytes(self) -> int:
        """Bytes of all arrays. There may be hundreds of runs, and whoever looks at a query asks again and again."""
        runs = sum([run.te.nbytes + run.slots.nbytes for run in (*self.runs, *self.unsorted)])
        return self.observer.nbytes + self.next_observer.nbytes + runs

    def add(self, slots: Int64s, te: Int64s, open_id: Int64s) -> None:
        open_rows = open_id != NO_OPEN_ID
        if open_rows.any():
            self.observe(open_id[open_rows], slots[open_rows])
            determined = ~open_rows & (te < FOREVER)
        else:
            determined = te < FOREVER
        if determined.all():
            self.add_determined(slots, te)
        elif determined.any():
            self.add_determined(slots[determined], te[determined])

    def add_determined(self, slots: Int64s, te: Int64s) -> None:
        """As `add`, where all ends are known and none is FOREVER."""
        if len(te):
            self.unsorted.append(EndRun(te, slots))
            self.earliest = min(self.earliest, int(te.min()))

    def observe(self, open_ids: Int64s, slots: Int64s) -> None:
        """Wait for the ends of these open row ids on behalf of these slots."""
        top = int(open_ids.max()) + 1
        if top > len(self.observer):
            self.observer = grown(self.observer, top, -1)
        top = int(slots.max()) + 1
        if top > len(self.next_observer):
            self.next_observer = grown(self.next_observer, top, -1)
        link_observers(open_ids, slots, self.observer, self.next_observer)
        self.undetermined += len(open_ids)

    def move(self, old: Int64s, new: Int64s, capacity: int) -> None:
        """Rows in the slots `old` are in the slots `new` (below `capacity`) from now on.

        Only for rows given to `observe`.
        """
        if not self.undetermined:
            self.next_observer = no_int64s()
            return
        to = np.full(max(int(old.max()) + 1, len(self.next_observer)) + 1, -1, dtype=np.int64)
        to[old] = new  # and -1, none, stays -1: it reads the last entry
        following = grown(self.next_observer, len(to) - 1, -1)
        moved = np.full(capacity, -1, dtype=np.int64)
        moved[new] = to[following[old]]
        self.next_observer = moved
        self.observer = to[self.observer]

    def renumbered(self, slots: Int64s) -> LifetimeSet:
        """A copy in which slots[i], in ascending order, is i."""
        copied = LifetimeSet(earliest=self.earliest)
        copied.runs = [EndRun(run.te.copy(), np.searchsorted(slots, run.slots)) for run in self.runs]
        copied.unsorted = [EndRun(run.te.copy(), np.searchsorted(slots, run.slots)) for run in self.unsorted]
        if self.undetermined:
            copied.observer, copied.next_observer = self.observer.copy(), self.next_observer.copy()
            copied.undetermined = self.undetermined
            copied.move(slots, np.arange(len(slots)), max(len(slots), 1))
        return copied

    def closed(self, ends: Ends) -> tuple[Int64s, Int64s]:
        """Slots of ours among the open row ids that were closed, with their ends; they are no longer observed."""
        open_ids, te = ends.arrays()
        if not len(open_ids) or not self.undetermined:
            return no_int64s(), no_int64s()
        slots, te = notify_observers(open_ids, te, self.observer, self.next_observer, self.undetermined)
        self.undetermined -= len(slots)
        return slots, te

    def leave(self, ends: Ends, frontier: int) -> tuple[Int64s, Int64s]:
        """Slots and ends of all rows whose end lies before `frontier`; they are ours no more. In no particular
        order."""
        slots, te = self.closed(ends)
        parts = [EndRun(te, slots)] if len(te) else []
        if self.earliest < frontier:
            self._sort()
        for run in self.runs:
            due = int(np.searchsorted(run.te, frontier, side="left"))
            if due:
                parts.append(EndRun(run.te[:due], run.slots[:due]))
                run.te, run.slots = run.te[due:], run.slots[due:]
        self.runs = [run for run in self.runs if len(run.te)]
        if len(parts) == 1:
            return parts[0].slots, parts[0].te
        if not parts:
            return no_int64s(), no_int64s()
        return np.concatenate([p.slots for p in parts]), np.concatenate([p.te for p in parts])

    def open_ids(self, capacity: int) -> Int64s:
        """By slot below `capacity`, the open row id whose end it waits for, NO_OPEN_ID for all others."""
        ids = np.full(capacity, NO_OPEN_ID, dtype=np.int64)
        waiting = np.flatnonzero(self.observer >= 0) if self.undetermined else no_int64s()
        slots = self.observer[waiting]
        while len(slots):
            ids[slots] = waiting
            slots = self.next_observer[slots]
            waiting, slots = waiting[slots >= 0], slots[slots >= 0]
        return ids

    def ends(self, capacity: int) -> Int64s:
        """By slot below `capacity`, the end that is known, FOREVER for all others."""
        te = np.full(capacity, FOREVER, dtype=np.int64)
        for run in (*self.runs, *self.unsorted):
            te[run.slots] = run.te
        return te

    @property
    def next_timer(self) -> int:
        """The earliest end that is known; of those that are open nobody knows."""
        return min([self.earliest, *[int(run.te[0]) for run in self.runs]]) if self.runs else self.earliest

    def _sort(self) -> None:
        """The unsorted part becomes a run; runs no more than twice as long as the one after them are merged with it."""
        self.runs.append(_sorted_run(self.unsorted))
        self.unsorted = []
        self.earliest = FOREVER
        while len(self.runs) > 1 and len(self.runs[-2].te) <= 2 * len(self.runs[-1].te):
            last = self.runs.pop()
            self.runs[-1] = _merged(self.runs[-1], last)


def _sorted_run(parts: list[EndRun]) -> EndRun:
    te = np.concatenate([part.te for part in parts])
    slots = np.concatenate([part.slots for part in parts])
    if (te[1:] >= te[:-1]).all():
        return EndRun(te, slots)
    order = time_order(te)
    return EndRun(te[order], slots[order])


def _merged(first: EndRun, second: EndRun) -> EndRun:
    if first.te[-1] <= second.te[0]:
        return EndRun(np.concatenate([first.te, second.te]), np.concatenate([first.slots, second.slots]))
    return EndRun(*merge(alike(first.te), alike(first.slots), alike(second.te), alike(second.slots)))


@jit
def merge(te, slots, other_te, other_slots):  # type: ignore[no-untyped-def]
    """One run of two; which of them comes next nobody can foretell, so it is chosen without a branch."""
    n, other_n = len(te), len(other_te)
    out_te = np.empty(n + other_n, dtype=np.int64)
    out_slots = np.empty(n + other_n, dtype=np.int64)
    i, j = 0, 0
    while i < n and j < other_n:
        later = other_te[j] < te[i]
        out_te[i + j] = other_te[j] if later else te[i]
        out_slots[i + j] = other_slots[j] if later else slots[i]
        i, j = i + (not later), j + later
    out_te[i + j : n + j] = te[i:]
    out_slots[i + j : n + j] = slots[i:]
    out_te[n + j :] = other_te[j:]
    out_slots[n + j :] = other_slots[j:]
    return out_te, out_slots


@jit
def link_observers(open_ids, slots, observer, following):  # type: ignore[no-untyped-def]
    for i in range(len(open_ids)):
        following[slots[i]] = observer[open_ids[i]]
        observer[open_ids[i]] = slots[i]


@jit
def notify_observers(open_ids, te, observer, following, at_most):  # type: ignore[no-untyped-def]
    out_slots = np.empty(at_most, dtype=np.int64)
    out_te = np.empty(at_most, dtype=np.int64)
    count = 0
    for i in range(len(open_ids)):
        if open_ids[i] >= len(observer):
            continue
        slot = observer[open_ids[i]]
        observer[open_ids[i]] = -1
        while slot >= 0:
            out_slots[count] = slot
            out_te[count] = te[i]
            count += 1
            slot = following[slot]
    return out_slots[:count].copy(), out_te[:count].copy()
