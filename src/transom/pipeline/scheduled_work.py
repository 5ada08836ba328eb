"""The work of a shared join in the order of a scheduler: which rows wait, what is done for them, what is lost.

A row that has come in meets the rows of the other side that came before it, part by part, from the youngest to the
oldest: the part between two windows is a split of them. The scheduler says for which rows which parts come next.

When more rows wait than may, the oldest leave: what they were not done for is lost to those queries, counted and noted
with its instant. They are still there to be met by others, so nothing else is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, Int64s, forever, no_int64s, no_open_ids
from transom.core.errors import OverloadError
from transom.core.time import UNBOUNDED, format_instant
from transom.kernels.columns import empty_batch
from transom.kernels.shared_join.arrived import partners, spread
from transom.kernels.shared_join.join import SharedJoinKernel
from transom.kernels.shared_join.keyed_sides import KeyedSides
from transom.pipeline.scheduled_state import FoundPairs, MeasuredWork, ScheduledJoinState
from transom.planner.scheduling import Schedule
from transom.scheduling.backlog import WorkRun
from transom.scheduling.levels import levels_of
from transom.scheduling.mqt import groups_of
from transom.scheduling.policy import Policy
from transom.scheduling.scheduler import Scheduler, WorkLedger
from transom.scheduling.simulation import Trace

INTERVAL: Final = 500_000
"""The load is measured twice a second."""

PAIRS_AT_ONCE: Final = 1 << 16
GIVEN_AT_ONCE: Final = 1 << 18
_ROWS_AT_ONCE: Final = 1 << 12
EFFORT_OF_A_RUN: Final = 1 << 13
EFFORT_OF_A_ROW: Final = 1 << 4
"""Compared with looking at one pair of rows."""

MOMENT: Final = 256  # rows of both sides that are of one age to the scheduler
_MEASUREMENTS_KEPT: Final = 7_200


class Measurements:
    """What the scheduler measured, at which time of the clock; the latest ones.

    `spend` hears of the effort of every piece of work, for a clock that does not go by itself.
    """

    def __init__(self, now: Callable[[], int], spend: Callable[[int], None] = lambda effort: None) -> None:
        self.now = now
        self.spend = spend
        self.trace = Trace()
        self.state = MeasuredWork(now(), now())

    @property
    def capacity(self) -> float:
        """The work that can be done in an interval, in units of window; infinite as long as nobody knows."""
        return self.state.capacity or float("inf")

    def note(self, units: int, since: int) -> None:
        """So much work was done since then, in units of window."""
        self.state.done += units
        self.state.busy += self.now() - since

    def measure(self, scheduler: Scheduler, buffer: int) -> None:
        """If an interval is over."""
        now, state = self.now(), self.state
        if now - state.last < INTERVAL:
            return
        state.last = now
        if state.busy > 0:  # what could be done in an interval with nothing else to do
            state.capacity, state.done, state.busy = INTERVAL * state.done / state.busy, 0, 0
        backlog = scheduler.backlog
        sides = zip(backlog.sides, backlog.recent, strict=True)
        leaving = [max(0, side.arrived - side.left + recent - buffer) for side, recent in sides]
        before = scheduler.state.beta
        load = scheduler.measure(leaving, self.capacity)
        after = scheduler.policy.readings.decide == "after"
        alpha = load.threshold(scheduler.state.beta if after else before)
        self.trace.note((now - state.started) / 1_000_000, load, alpha, scheduler.state)
        if len(self.trace.time) > 2 * _MEASUREMENTS_KEPT:
            for column in vars(self.trace).values():
                del column[:_MEASUREMENTS_KEPT]


class ScheduledWork:
    """For the queries of `state.accounts`. `kernel` says which pairs there are, and has their columns."""

    def __init__(
        self,
        state: ScheduledJoinState,
        kernel: SharedJoinKernel,
        schedule: Schedule,
        policy: Policy,
        measurements: Measurements,
    ) -> None:
        self.state = state
        self.schedule = schedule
        self.levels = levels_of({name: (each.windows[0], each.windows[1]) for name, each in state.accounts.items()})
        groups = groups_of(self.levels.sizes, policy.readings.ties)
        self.scheduler = Scheduler(groups, policy)
        self.scheduler.backlog, self.scheduler.state = state.backlog, state.policy
        self._kernel = kernel
        self._keyed = None if not kernel.left_keys else KeyedSides(kernel, state.sides)
        self._measurements = measurements
        self.pair_count = 0
        self._processed = np.zeros(len(state.accounts), dtype=np.int64)
        self._group_of = {
            name: next(group for group, end in enumerate(groups.ends) if level <= end)
            for name, level in zip(self.levels.names, self.levels.level, strict=True)
        }

    # --- rows come and leave -----------------------------------------------------------------------------------------

    def arrive(self, came: Sequence[Delta]) -> None:
        """Rows of both sides that progress has passed."""
        for number, (side, delta) in enumerate(zip(self.state.sides, came, strict=True)):
            if self._keyed is not None:
                self._keyed.append(number, delta.values, side.arrived)
            side.append(delta.values.columns, delta.ta)
        for account in self.state.accounts.values():
            account.due += sum(map(len, came))
        for moment in _moments([delta.ta for delta in came]):
            self.scheduler.arrive(moment)

    @property
    def waiting(self) -> int:
        """Rows of the side that has more of them."""
        return max(side.arrived - side.waiting[-1] for side in self.state.backlog.sides)

    def make_room(self) -> None:
        """The oldest rows leave where more wait than may, after there was time for what came."""
        lost: dict[tuple[int, int], list[Int64s]] = {}
        for number, side in enumerate(self.state.backlog.sides):
            frontier = side.arrived - self.schedule.buffer
            if self.schedule.overload == "block":
                frontier = min(frontier, side.waiting[-1])
            if frontier <= side.left:
                continue
            if self.schedule.overload == "fail" and side.waiting[-1] < frontier:
                raise self._overload(number, side.waiting)
            for run in self.scheduler.leave(number, frontier):
                rows = self.state.sides[number]
                t = rows.t[run.first - rows.first : run.stop - rows.first]
                lost.setdefault((run.done, run.target), []).append(t)
        for (done, reached), times in lost.items():
            instants, counts = np.unique(np.concatenate(times), return_counts=True)
            for name in self.levels.names[self.levels.span(done, reached)]:
                self.state.accounts[name].shed.add(instants, counts.astype(np.int64))

    def _overload(self, number: int, waiting: Sequence[int]) -> OverloadError:
        name = self.levels.names[-1]
        row = waiting[-1] - self.state.sides[number].first
        instant = format_instant(int(self.state.sides[number].t[row]))
        return OverloadError(
            f"query '{name}' has not come to a row of {instant}, and more than {self.schedule.buffer:,} rows of its"
            " side wait",
            remedy="SET overload = 'block' to read no faster than the queries are, or 'shed' to lose the oldest rows",
        )

    # --- work --------------------------------------------------------------------------------------------------------

    def work(self, deadline: int | None = None) -> bool:
        """Until the time is over, but something; whether there was anything."""
        worked = False
        while (run := self.scheduler.next()) is not None:
            since = self._measurements.now()
            rows = self._do(run.cut(_ROWS_AT_ONCE))
            self._measurements.note(rows * self.scheduler.groups.work(run.done, run.target), since)
            worked = True
            self._measurements.measure(self.scheduler, self.schedule.buffer)
            if deadline is not None and self._measurements.now() >= deadline:
                break
        return worked

    def _do(self, run: WorkRun) -> int:
        """The first rows of a run, with their part of the rows of the other side; how many rows that were."""
        own, others = self.state.sides[run.side], self.state.sides[1 - run.side]
        lo, hi = (self.levels.reach[level][1 - run.side] for level in (run.done, run.target))
        looked_at = 0
        if lo < hi and len(others):
            t = own.t[run.first - own.first : run.stop - own.first]
            begin, end = partners(t, others, run.side == 1, lo, hi)
            of_keys = None if self._keyed is None else self._keyed.ranges(run.side, run.first, begin, end)
            counts = end - begin if of_keys is None else of_keys.counts
            rows = int(np.searchsorted(np.cumsum(counts), PAIRS_AT_ONCE, side="right"))
            run = run.cut(max(rows, 1))
            looked_at = int(counts[: run.rows].sum())
            if of_keys is None:
                self._find(run, *spread(run.first, begin[: run.rows], end[: run.rows]))
            else:
                self._find(run, *of_keys.pairs(run.first, run.rows))
        self._measurements.spend(EFFORT_OF_A_RUN + EFFORT_OF_A_ROW * run.rows + looked_at)
        self.scheduler.did(run)
        self._processed[self.levels.span(run.done, run.target)] += run.rows
        return run.rows

    def _find(self, run: WorkRun, own: Int64s, others: Int64s) -> None:
        """Rows of a run, each with a partner."""
        left, right = (own, others) if run.side == 0 else (others, own)
        sides = self.state.sides
        if self._keyed is not None:
            left, right = self._keyed.equal(left, right)
        if self._kernel.residual is not None and len(left):
            kept = self._kernel.satisfying(sides[0], sides[1], left, right)
            if kept is not None:
                left, right = left[kept], right[kept]
        if not len(left):
            return
        t_left, t_right = sides[0].at(left), sides[1].at(right)
        of_run = FoundPairs(run.done, left, right, np.maximum(t_left, t_right), t_right - t_left)
        self.state.pairs.append(of_run)
        self.pair_count += len(left)

    # --- answers -----------------------------------------------------------------------------------------------------

    def _waiting_for(self, name: str) -> list[int]:
        """Of each side the first row that was not done for a query."""
        group = self._group_of[name]
        return [side.waiting[group] for side in self.state.backlog.sides]

    def reached(self, name: str, frontier: int) -> int:
        """How far the answer of a query can go, at most `frontier`: to its first row that was not done."""
        for side, first in zip(self.state.sides, self._waiting_for(name), strict=True):
            if first < side.arrived:
                frontier = min(frontier, int(side.t[first - side.first]))
        return frontier

    def cuts(self, before: int, frontier: int, level: int) -> list[int]:
        """Instants between which few enough pairs were found to be given to the queries at once."""
        all_times = [of_run.ta for of_run in self.state.pairs if of_run.done < level]
        times = [ta[slice(*np.searchsorted(ta, (before, frontier)))] for ta in all_times]
        if sum(map(len, times)) <= GIVEN_AT_ONCE:
            return []
        instants = np.unique(np.sort(np.concatenate(times))[GIVEN_AT_ONCE::GIVEN_AT_ONCE]).tolist()
        return [at for at in instants if at > before]

    def pairs(self, before: int, frontier: int, level: int) -> Delta:
        """What was found up to a level of rows that came between two instants, in that order."""
        parts: list[list[Int64s]] = []
        for of_run in self.state.pairs:
            first, last = (int(np.searchsorted(of_run.ta, t)) for t in (before, frontier))
            if of_run.done < level and first < last:
                columns = (of_run.left, of_run.right, of_run.ta, of_run.age)
                parts.append([column[first:last] for column in columns])
        if not parts:
            none = no_int64s()
            return Delta(empty_batch(self._kernel.emitted), none, none, none, frontier)
        left, right, ta, age = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.argsort(ta, kind="stable")
        pair = self._kernel.values(self.state.sides[0], self.state.sides[1], left[order], right[order])
        values = pa.RecordBatch.from_arrays([*pair.columns, pa.array(age[order])], schema=self._kernel.emitted)
        return Delta(values, ta[order], forever(len(ta)), no_open_ids(len(ta)), frontier)

    def forget(self, behind: int) -> None:
        """Rows that nobody meets any more, and pairs that everybody has, with all queries at this instant or after."""
        for side, reach in zip(self.state.sides, self.levels.reach[-1], strict=True):
            if reach < UNBOUNDED:
                side.drop_until(behind - reach)
        if self._keyed is not None:
            self._keyed.forget()
        self.state.pairs = [
            of_run if of_run.ta[0] >= behind else of_run.from_on(behind)
            for of_run in self.state.pairs
            if of_run.ta[-1] >= behind
        ]

    def keep_within_windows(self) -> None:
        """Other queries have gone: what they alone had found is of no use."""
        narrowed = [each.within(*self.levels.reach[-1]) for each in self.state.pairs]
        self.state.pairs = [each for each in narrowed if len(each.ta)]

    def ledger_of(self, name: str) -> WorkLedger:
        """Pairs of a row and the query, since it came."""
        self.drain()
        account = self.state.accounts[name]
        waiting = self._waiting_for(name)
        pending = sum(side.arrived - first for side, first in zip(self.state.backlog.sides, waiting, strict=True))
        return WorkLedger(account.due, account.processed, account.shed.total, pending)

    def drain(self) -> None:
        """What was done is written down in the accounts."""
        for name, rows in zip(self.levels.names, self._processed.tolist(), strict=True):
            self.state.accounts[name].processed += rows
        self._processed[:] = 0


def _moments(came: Sequence[Int64s]) -> Iterator[list[int]]:
    """Rows of the sides that came at about the same time.

    >>> list(_moments([np.array([1, 2]), np.array([2])]))
    [[2, 1]]
    """
    t = np.sort(np.concatenate(came))
    if not len(t):
        return
    bounds = [*np.unique(t[MOMENT::MOMENT]).tolist(), int(t[-1]) + 1]
    before = [0] * len(came)
    for bound in bounds:
        reached = [int(np.searchsorted(times, bound)) for times in came]
        if reached != before:
            yield [now - then for now, then in zip(reached, before, strict=True)]
            before = reached
