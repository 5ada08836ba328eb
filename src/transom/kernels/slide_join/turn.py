"""One step of a join of sliding windows: what came is taken in, and the slides that are due are made.

Whatever is to be made is a **work**, done in units: a share of the join, or a stored result of the merge. Between two
units it can be left for later, saved, and resumed. Where rows are stamped on arrival new ones must be taken when
the next slide is due; if a basic window has to go to disk for them while a result that needs it is unfinished, that
attempt ends as incomplete, and the slide is put off until there is time.

With a time that a step may take (`put_off`) the same is so for rows with times of their own, and on every runtime:
what is not made by then is state, and the steps that bring nothing make it. Where a step ends must not depend on the
clock, for a batch whose answer is out may have to be made again. So a step does as much work as the one before it found
to be right (its **pace**), and chooses by what was known then; what it learned itself is a decision, for the next.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from transom.core.delta import StreamDelta
from transom.core.errors import EvaluationError
from transom.core.time import FOREVER
from transom.kernels.decisions import Decisions
from transom.kernels.kernel import Step
from transom.kernels.slide_join.budget import BudgetPool, MemoryLimits
from transom.kernels.slide_join.estimates import Estimates
from transom.kernels.slide_join.labour import Labour
from transom.kernels.slide_join.memory import BasicWindow, Loose, SlideJoinState, SlideWork
from transom.kernels.slide_join.outlet import COMPLETE, INCOMPLETE, Outlet
from transom.kernels.slide_join.sorted_run import by_itself, held_bytes, sorted_run
from transom.kernels.slide_join.spec import SlideSpec
from transom.state.spill import SpillStore

MOST_SLIDES = 1 << 20
MOST_LOOSE = 64
FIRST_PACE = 1 << 18
LEAST_PACE = 1 << 12
MOST_PACE = 1 << 30
"""Rows that a step probes with, finds and merges before it leaves the rest for later."""

Arrived = tuple[int, int, int, int, pa.RecordBatch]
"""Rows of an input: the instant that closes their basic window, the input, when they begin and end, and they."""


class Turn:
    def __init__(
        self,
        spec: SlideSpec,
        forced: str,
        limits: MemoryLimits,
        state: SlideJoinState,
        step: Step,
        outlet: Outlet,
        put_off: int | None = None,
    ) -> None:
        self._spec = spec
        self._limits = limits
        self._state = state
        self._step = step
        self._outlet = outlet
        self._put_off_after = put_off
        self._pace = state.pace or FIRST_PACE
        self._began = self._now()
        self._decisions = step.decisions or Decisions()
        self._store = step.spill if step.spill is not None else SpillStore()  # of which nothing is asked
        self._pool = step.budget if step.budget is not None else BudgetPool()
        self._pool.join(state, self._store)
        estimates = copy.deepcopy(state.estimates) if put_off is not None else state.estimates
        self._labour = Labour(spec, forced, limits, state, outlet, self._store, self._pool, self._decisions, estimates)
        state.attach(self._store)
        self._end_voided()

    def take(self, inputs: Sequence[StreamDelta]) -> None:
        """Rows in time order, and every slide that is final with them."""
        state, limit = self._state, self._step.frontier
        arrived = sorted((arrival for i, rows in enumerate(inputs) for arrival in self._arrived(i, rows)), key=_index)
        if limit == FOREVER:
            limit = max(self._step.horizon, state.last) + 1
        index, slides = 0, 0
        while True:
            at = self._next_instant(arrived[index][0] if index < len(arrived) else FOREVER)
            if at >= limit:
                break
            index = self._keep(arrived, index, at)
            self._close(at)
            self._slide(at)
            slides += 1
            if slides > MOST_SLIDES:
                raise EvaluationError(
                    f"more than {MOST_SLIDES:,} slides pass in one step",
                    remedy="SET batch_rows to a smaller number, or write a longer SLIDE",
                )
        self._keep(arrived, index, FOREVER)
        quiet = not any(map(len, inputs)) or self._step.clock is None
        if self._step.frontier == FOREVER or (self._put_off_after is not None and quiet):
            self.catch_up()

    # --- what comes --------------------------------------------------------------------------------------------------

    def _arrived(self, source: int, rows: StreamDelta) -> Iterator[Arrived]:
        """In runs of rows that belong together."""
        if not len(rows):
            return
        side = self._spec.sides[source]
        ta, te = side.lifetimes(rows.t)
        last = te[-1] if te[-1] < FOREVER else ta[-1]
        self._state.last = max(self._state.last, int(last))
        batch, indexes = side.kept(rows.values)
        ta, te, t = ta[indexes], te[indexes], rows.t[indexes]
        at = np.minimum.reduce([-(-t // slide) * slide for slide in self._spec.slides])
        changes = np.flatnonzero((at[1:] != at[:-1]) | (te[1:] != te[:-1])) + 1
        for first, last in pairwise([0, *changes.tolist(), len(at)]):
            if first < last and ta[first] < te[first]:
                run = batch.slice(first, last - first)
                yield int(at[first]), source, int(ta[first]), int(te[first]), run

    def _next_instant(self, arriving: int) -> int:
        """The next one at which something is alive, or begins to be, or there is a row in any case."""
        state = self._state
        instant = min((window.at for window in state.windows if window.loose), default=arriving)
        begins = [run.ta for run in state.runs if run.te > state.at]
        if begins:
            instant = min(instant, self._spec.instant_from(max(state.at + 1, min(begins))))
        if self._spec.always:
            instant = min(instant, self._spec.instant_from(max(state.at + 1, self._step.origin)))
        return min(instant, arriving)

    def _keep(self, arrived: Sequence[Arrived], index: int, at: int) -> int:
        """The rows whose basic window ends at the instant or before."""
        while index < len(arrived) and arrived[index][0] <= at:
            closing, source, ta, te, rows = arrived[index]
            window = self._window(closing)
            size = max(len(rows) * self._limits.run // max(held_bytes(rows), 1), 1)
            for first in range(0, len(rows), size):
                part = by_itself(rows.slice(first, size))
                self._make_room(held_bytes(part))
                self._add(window, source, ta, te, part)
            index += 1
        return index

    def _window(self, at: int) -> BasicWindow:
        state = self._state
        if not state.windows or state.windows[-1].at < at:
            state.windows.append(BasicWindow(at))
        assert state.windows[-1].at == at
        return state.windows[-1]

    def _add(self, window: BasicWindow, source: int, ta: int, te: int, rows: pa.RecordBatch) -> None:
        pending = next((loose for loose in window.loose if (loose.source, loose.te) == (source, te)), None)
        if pending is None:
            pending = Loose(source, ta, te)
            window.loose.append(pending)
        pending.batches.append(rows)
        pending.bytes += held_bytes(rows)
        if pending.bytes >= self._limits.run:
            self._seal(window, pending)
        elif len(pending.batches) > MOST_LOOSE:
            pending.batches = [pa.concat_batches(pending.batches)]
            pending.bytes = held_bytes(pending.batches[0])

    def _seal(self, window: BasicWindow, loose: Loose) -> None:
        window.loose.remove(loose)
        run = sorted_run(loose.source, loose.ta, loose.te, loose.batches)
        run.reader = self._store
        self._make_room(run.bytes)
        window.runs.append(run)

    def _close(self, at: int) -> None:
        """No more rows come to the basic windows up to this instant."""
        for window in self._state.windows:
            if window.at <= at:
                for loose in list(window.loose):
                    self._seal(window, loose)

    def _make_room(self, size: int) -> None:
        """For so many bytes more; results and windows go to disk, in the order of Algorithm 1."""
        self._pool.make_room(size, self._limits.room)
        self._end_voided()
        self._pool.note_peak(self._state, size, self._limits)

    def _end_voided(self) -> None:
        """Attempts that ended for want of memory, here or in the turn of another join with the same budget."""
        for at, attempt in self._state.voided:
            self._outlet.end(at, attempt, INCOMPLETE)
        self._state.voided = []

    # --- slides ------------------------------------------------------------------------------------------------------

    def _slide(self, at: int) -> None:
        state = self._state
        state.at = at
        if any(run.alive(at) for run in state.runs):
            state.works.append(SlideWork(at, due=self._now()))
        else:
            if not state.works:
                self._labour.forget_stored()
                state.covered = True
            if self._spec.always:
                self._labour.finish_empty(at)
        self._resume()
        self._bury()

    def _resume(self) -> None:
        """First attempts, the oldest first, for as long as there is time."""
        for work in [work for work in self._state.works if not work.put_off]:
            if not self._finish(work):
                return

    def _finish(self, work: SlideWork) -> bool:
        """Whether there was time for all of it."""
        while not self._labour.done(work):
            if self._pressed():
                self._leave(work)
                return False
            self._labour.do(work)
        self._complete(work)
        return True

    def _complete(self, work: SlideWork) -> None:
        self._labour.give_groups(work)
        self._outlet.end(work.at, work.attempt, COMPLETE)
        self._state.works.remove(work)
        self._labour.finish(work, self._now() - work.due)

    def _pressed(self) -> bool:
        """Whether a slide is due that this step does not know of: what came meanwhile has to be taken first. With a
        time that steps may take, whether enough was done for one, or its answer is as large as it may be."""
        clock = self._step.clock
        if clock is None or self._step.frontier == FOREVER:
            return False
        if self._put_off_after is not None:
            large = self._step.emit_rows is None and self._outlet.held >= self._limits.answer
            return large or self._labour.worked >= self._pace
        return clock() >= self._spec.instant_from(max(self._step.frontier, self._state.at + 1))

    def _now(self) -> int:
        return 0 if self._step.clock is None else self._step.clock()

    def catch_up(self) -> None:
        """Everything that is unfinished, for as long as there is time; of what was put off the newest first."""
        while (work := self._next_work()) is not None and self._finish(work):
            pass
        self._bury()

    def work_a_while(self) -> bool:
        """A unit of what is unfinished, in a time when nothing comes in; whether there was one."""
        work = self._next_work()
        if work is None:
            return False
        if not self._labour.done(work):
            self._labour.do(work)
        if self._labour.done(work):
            self._complete(work)
            self._bury()
        else:
            self._leave(work)
        return True

    def _leave(self, work: SlideWork) -> None:
        """For later; all of it is in the state."""
        self._labour.flush(work)
        self._outlet.end(work.at, work.attempt, None)

    def _next_work(self) -> SlideWork | None:
        works = self._state.works
        first = next((work for work in works if not work.put_off), None)
        return first or max(works, key=lambda work: work.at, default=None)

    def _bury(self) -> None:
        """Rows and results that no slide needs any more: they are gone at the next one."""
        state = self._state
        following = self._spec.instant_from(state.at + 1)
        needed = [work.at for work in state.works]
        for window in state.windows:
            gone = [p for p in window.runs if p.te <= following and not any(p.alive(at) for at in needed)]
            for run in gone:
                run.give_up(self._store)
            if gone:
                window.runs = [run for run in window.runs if run not in gone]
        state.windows = [window for window in state.windows if window.runs or window.loose]
        first = min((work.at for work in state.works if not work.put_off), default=following)
        state.drop([part for part in state.stored if part.death <= min(first, following)], self._store)

    def close(self) -> StreamDelta:
        """What is emitted at the end of the step."""
        self._labour.note_disk()
        if self._put_off_after is not None:
            pace, *estimates = self._decisions.make(lambda: [self._next_pace(), *self._state.estimates.numbers()])
            self._state.pace = pace
            self._state.estimates = Estimates.of(estimates)
        self._outlet.frontier = self._step.frontier
        return self._outlet.given()

    def _next_pace(self) -> int:
        """So much work as takes the time that a step may take, as far as this one shows."""
        worked, took = self._labour.worked, self._now() - self._began
        if self._put_off_after is None or worked < LEAST_PACE or took <= 0:
            return self._pace
        pace = worked * self._put_off_after // took
        return int(min(max(pace, LEAST_PACE, self._pace // 4), MOST_PACE, 4 * self._pace))


def _index(arrived: Arrived) -> tuple[int, int]:
    return arrived[0], arrived[1]
