"""Queries that share a join whose work is put in order: rows wait, and each query has its own progress.

A query stands before the first row that was not done for it, so that quick queries are ahead of slow ones, and the
answer of each is exact up to its own progress.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from transom.core.delta import Delta
from transom.core.time import FOREVER
from transom.kernels.kernel import Step
from transom.kernels.operator import Site, scanned
from transom.kernels.shared_join.arrived import ArrivedRows
from transom.kernels.shared_join.carry import KeptSide, carried_rows
from transom.kernels.shared_join.join import SharedJoinKernel
from transom.pipeline.consumer import ConsumerSpec
from transom.pipeline.consumer_runner import picked
from transom.pipeline.engine import Emit
from transom.pipeline.group import GroupPipeline
from transom.pipeline.input_gates import InputGatesState
from transom.pipeline.migration import KeptNote, kept_by
from transom.pipeline.part import Part, PartState
from transom.pipeline.scheduled_state import QueryAccount, ScheduledJoinState
from transom.pipeline.scheduled_work import Measurements, ScheduledWork
from transom.pipeline.stage import Stage
from transom.plan.algebra import StreamScan
from transom.plan.catalogue import Catalogue
from transom.planner.scheduling import Schedule
from transom.planner.sharing import length_of
from transom.scheduling.backlog import Backlog
from transom.scheduling.levels import levels_of
from transom.scheduling.load import LoadMethod
from transom.scheduling.mqt import groups_of
from transom.scheduling.policy import policy_named


class ScheduledGroup(GroupPipeline):
    """Queries that share a join whose work is put in order (SET schedule). `now` is a clock, in microseconds."""

    def __init__(
        self, specs: Sequence[ConsumerSpec], catalogue: Catalogue, schedule: Schedule, now: Callable[[], int]
    ) -> None:
        self.schedule = schedule
        self.measurements = Measurements(now)
        self._now = now
        self._policy = policy_named(schedule.policy)
        super().__init__(specs, catalogue)

    # --- running -----------------------------------------------------------------------------------------------------

    def _step(self, emit_rows: Emit) -> bool:
        """Take in what progress has passed, and do as much of what waits as there is time for."""
        came = self._take_in()
        worked = self._do(self._now() + self.schedule.budget)
        self.work.make_room()
        self.measurements.measure(self.work.scheduler, self.schedule.buffer)
        emitted = self._emit_rows(emit_rows)
        if self.subplan.state.gates.frontier is None or not (came or worked or emitted):
            return False
        self._forget()
        return True

    @property
    def finished(self) -> bool:
        return all(account.frontier == FOREVER for account in self.work.state.accounts.values())

    @property
    def at_rest(self) -> bool:
        gates = self.subplan.state.gates
        reached = [
            gates.origin if each.frontier is None else each.frontier for each in self.work.state.accounts.values()
        ]
        emitted = gates.frontier is None or all(frontier == gates.frontier for frontier in reached)
        return emitted and self.work.scheduler.next() is None

    @property
    def _subplan_timer(self) -> int:
        return self._below.next_timer(self.subplan.state.part)

    @property
    def full(self) -> bool:
        return self.schedule.overload == "block" and self.work.waiting >= self.schedule.buffer

    def progress_of(self, name: str) -> int | None:
        return self.work.state.accounts[name].frontier

    def _take_in(self) -> bool:
        subplan = self.subplan
        found = subplan.gates.next_step()
        if found is None:
            return False
        before, frontier, origin = found
        step = Step(before, frontier, origin, subplan.state.part.open_ids)
        brought = {name: subplan.gates.release(name, frontier) for name in subplan.inputs}
        deltas = Stage(self._below).advance(subplan.state.whole, brought, step, subplan.gates.last_used).deltas
        came: list[Delta] = []
        for window in subplan.root.inputs:
            delta = deltas[self._below.number[id(window)]]
            assert isinstance(delta, Delta)
            came.append(delta)
        subplan.state.gates.frontier = frontier
        subplan.state.part.counters[-1].rows_in += sum(map(len, came))
        self.work.arrive(came)
        return True

    def _do(self, deadline: int | None) -> bool:
        counters, before, started = self.subplan.state.part.counters[-1], self.work.found, time.perf_counter()
        worked = self.work.work(deadline)
        counters.seconds += time.perf_counter() - started
        counters.rows_out += self.work.found - before
        return worked

    def _emit_rows(self, emit_rows: Emit) -> bool:
        """Take each query as far as it can go; those that go together get the same pairs. Whether any could go on."""
        gates, state, levels = self.subplan.state.gates, self.work.state, self.work.levels
        if gates.frontier is None or gates.origin is None:
            return False
        here = {runner.spec.name: index for index, runner in enumerate(self.runners)}
        by_span: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for name, level in zip(levels.names, levels.level, strict=True):
            account = state.accounts[name]
            before = gates.origin if account.frontier is None else account.frontier
            frontier = self.work.reached(name, gates.frontier)
            if before < frontier:
                by_span.setdefault((before, frontier), []).append((here[name], level))
        for (before, frontier), going in sorted(by_span.items(), key=lambda each: min(each[1])):
            found = self.work.pairs(before, frontier, max(level for _, level in going))
            runners = {index: self.runners[index] for index, _ in sorted(going)}
            pairs = {columns: picked(found, columns) for columns in {runner.read for runner in runners.values()}}
            step = Step(
                before, frontier, gates.origin, self.subplan.state.part.open_ids, last_row=self.subplan.gates.last_row
            )
            for index, runner in runners.items():
                emit_rows(index, runner.step(pairs[runner.read], {}, step, self.subplan.gates.last_used))
                state.accounts[runner.spec.name].frontier = frontier
        return bool(by_span)

    def _forget(self) -> None:
        origin = self.subplan.state.gates.origin
        reached = [origin if each.frontier is None else each.frontier for each in self.work.state.accounts.values()]
        known = [frontier for frontier in reached if frontier is not None]
        if len(known) == len(reached):
            self.work.forget(min(known))

    # --- coming and going --------------------------------------------------------------------------------------------

    def _arrange(self) -> None:
        super()._arrange()
        root = self.subplan.root
        (kernel,) = root.tactic.kernels(root, Site(self._catalogue, self.subplan.tick))
        assert isinstance(kernel, SharedJoinKernel)
        self._kernel = kernel
        operators = list(root.walk())[:-1]
        channels = {(id(each), 0): scanned(each) for each in operators if isinstance(each.node, StreamScan)}
        self._below = Part(operators, channels, self._catalogue, self.subplan.tick)
        sides = [ArrivedRows.of(window.schema.held().types) for window in root.inputs]
        self._begin(sides, {name: QueryAccount(list(lengths)) for name, lengths in self._windows().items()})

    def _begin(self, sides: list[ArrivedRows], accounts: dict[str, QueryAccount]) -> None:
        """Nothing waits; from here on it is for these queries."""
        levels = levels_of({name: (each.windows[0], each.windows[1]) for name, each in accounts.items()})
        ends = groups_of(levels.sizes, self._policy.readings.ties).ends
        backlog = Backlog.empty(ends, len(sides))
        backlog.arrive([side.arrived for side in sides], settled=True)
        for number, side in enumerate(sides):
            backlog.leave(number, max(0, side.arrived - self.schedule.buffer))
        self._resume(ScheduledJoinState(sides, backlog, self._policy.start(), accounts))

    def _resume(self, state: ScheduledJoinState) -> None:
        self.work = ScheduledWork(state, self._kernel, self.schedule, self._policy, self.measurements)
        self.subplan.state.part.operators[-1] = [state]

    def _arrange_anew(self) -> None:
        self.work.drain()
        super()._arrange_anew()

    def _adopt(self, gates: InputGatesState, part: PartState, kept: Sequence[KeptNote]) -> None:
        """Go on with the rows and the work of another shared sub-plan; if the queries are others, its work is done
        first."""
        subplan = self.subplan
        subplan.state.gates = subplan.gates.state = gates
        new = subplan.state.part
        new.open_ids, new.counters = part.open_ids, part.counters
        (state,) = part.operators[-1]
        assert isinstance(state, ScheduledJoinState)
        for side, was, now, window in zip(state.sides, kept, kept_by(subplan.root), subplan.root.inputs, strict=True):
            types = tuple(window.schema.held().types)
            before, after = KeptSide(tuple(was.indexes), (), None), KeptSide(tuple(now.indexes), types, None)
            side.rows = carried_rows(side.rows, before, after)
        state.policy.method = LoadMethod(state.policy.method)  # a saved one is a plain word
        self._resume(state)
        windows = self._windows()
        if {name: tuple(account.windows) for name, account in state.accounts.items()} == windows:
            return
        self._do(None)
        self.work.drain()
        accounts = {}
        for name, lengths in windows.items():
            accounts[name] = state.accounts.get(name) or QueryAccount(list(lengths), gates.frontier)
        self._begin(state.sides, accounts)
        self.work.state.policy = self.work.scheduler.state = state.policy
        self.work.state.backlog.recent = state.backlog.recent
        self.work.state.found = state.found
        self.work.keep_within_windows()

    def _windows(self) -> dict[str, tuple[int, int]]:
        found = {}
        for runner in self.runners:
            left, right = (length_of(window, self.subplan.tick) for window in runner.spec.of_join.windows)
            found[runner.spec.name] = left, right
        return found

    def snapshot(self) -> bytes:
        self.work.drain()
        return super().snapshot()
