"""What a join remembers whose work is put in order by a scheduler: rows, what is still to be done, what was lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from transom.core.delta import Int64s, no_int64s
from transom.kernels.shared_join.arrived import ArrivedRows
from transom.pipeline.part import Counters
from transom.scheduling.backlog import Backlog, BacklogSide
from transom.scheduling.policy import PolicyState

_MOST_SPANS: Final = 4096


@dataclass
class FoundPairs:
    """Pairs in the order in which their younger row came, found on the way from level `done` on: row numbers, times.

    `age` is how much younger the right row is than the left one.
    """

    done: int
    left: Int64s
    right: Int64s
    ta: Int64s
    age: Int64s

    def from_on(self, t: int) -> FoundPairs:
        """Without what began before an instant."""
        first = int(np.searchsorted(self.ta, t))
        if 2 * first < len(self.ta):
            return FoundPairs(self.done, *(column[first:] for column in self._columns))
        return FoundPairs(self.done, *(column[first:].copy() for column in self._columns))

    def within(self, left: int, right: int) -> FoundPairs:
        """Of whatever level, those whose older row is no older than that."""
        within = (self.age < left) & (self.age > -right)
        return FoundPairs(0, *(column[within] for column in self._columns))

    @property
    def _columns(self) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        return self.left, self.right, self.ta, self.age


@dataclass
class Shed:
    """Rows of a query that were lost, by instant: so many from `first` to `last`.

    There are at most so many spans, then neighbours become one: what is reported gets coarser, never less.

    >>> shed = Shed()
    >>> shed.note(np.array([5, 5, 9]))
    >>> shed.note(np.array([9]))
    >>> shed.first.tolist(), shed.rows.tolist()
    ([5, 9], [2, 2])
    """

    first: Int64s = field(default_factory=no_int64s)
    last: Int64s = field(default_factory=no_int64s)
    rows: Int64s = field(default_factory=no_int64s)

    def note(self, t: Int64s) -> None:
        """Rows of these times are lost."""
        instants, counts = np.unique(t, return_counts=True)
        self.add(instants, counts.astype(np.int64))

    def add(self, instants: Int64s, counts: Int64s) -> None:
        """So many rows of each of these instants, which grow."""
        if not len(instants):
            return
        in_order = not len(self.last) or instants[0] > self.last[-1]
        self.first = np.concatenate([self.first, instants])
        self.last = np.concatenate([self.last, instants])
        self.rows = np.concatenate([self.rows, counts])
        if not in_order:
            self._sort()
        while len(self.first) > _MOST_SPANS:
            starts = np.arange(0, len(self.first), 2)
            self.last = self.last[np.minimum(starts + 1, len(self.last) - 1)]
            self.rows = np.add.reduceat(self.rows, starts)
            self.first = self.first[starts]

    def _sort(self) -> None:
        """In order of time, what overlaps as one."""
        order = np.lexsort((self.last, self.first))
        first, last, rows = self.first[order], self.last[order], self.rows[order]
        reached = np.maximum.accumulate(last)
        starts = np.flatnonzero(np.concatenate([[True], first[1:] > reached[:-1]]))
        self.first, self.last = first[starts], np.maximum.reduceat(last, starts)
        self.rows = np.add.reduceat(rows, starts)

    @property
    def total(self) -> int:
        return int(self.rows.sum())


@dataclass
class QueryAccount:
    """Pairs of a row and the query: due = processed + shed + pending. `frontier` is the query's own progress.

    `windows` are its two, by which it was put in its place among the others.
    """

    windows: list[int]
    frontier: int | None = None
    due: int = 0
    processed: int = 0
    shed: Shed = field(default_factory=Shed)


@dataclass
class ScheduledJoinState:
    """The rows, what is to be done for them, and the pairs that were found and not yet emitted to everybody."""

    sides: list[ArrivedRows]
    backlog: Backlog
    policy: PolicyState
    accounts: dict[str, QueryAccount]
    pairs: list[FoundPairs] = field(default_factory=list)


@dataclass
class MeasuredWork:
    """When the measurements began and when the last one was; work done since, and the time it took.

    `capacity` is what could be done in an interval by the last one, 0 as long as nobody knows.
    """

    started: int
    last: int
    done: int = 0
    busy: int = 0
    capacity: float = 0.0


@dataclass
class PlannedTime:
    """A clock that goes by the work that is done: `speed` is the effort of a second. None: nobody has said so."""

    now: int = 0
    speed: float | None = None


@dataclass
class ScheduledMemory:
    """What a partition remembers of a join whose work is put in order, `counters` of what the join has done."""

    join: ScheduledJoinState
    counters: Counters
    measured: MeasuredWork
    time: PlannedTime


SCHEDULED_CLASSES: Final[tuple[type, ...]] = (
    ArrivedRows,
    Backlog,
    FoundPairs,
    PolicyState,
    QueryAccount,
    ScheduledJoinState,
    Shed,
    BacklogSide,
)

SCHEDULED_IN_PARTITIONS: Final = (*SCHEDULED_CLASSES, MeasuredWork, PlannedTime, ScheduledMemory)
"""What a checkpoint holds of a scheduled join that a partition of Spark keeps."""
