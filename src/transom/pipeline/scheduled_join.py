"""A join whose work is put in order, and the queries that share it: each is taken as far as its own work has come.

Whoever hosts it brings the rows that time has passed (`arrive`), and gives it turns: work until a deadline, room for
more, and the answers that follow. In one process a deadline is a time of the clock. In a partition that is kept by a
log it must be the same whenever a batch runs again: there the clock goes by the work itself, from the time and at the
speed that were written down when the batch was planned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from transom.core.delta import Delta
from transom.kernels.kernel import Step
from transom.kernels.operator import Operator, Site
from transom.kernels.shared_join.arrived import ArrivedRows
from transom.kernels.shared_join.carry import KeptSide, carried_rows
from transom.kernels.shared_join.join import SharedJoinKernel
from transom.kernels.shared_join.node import SharedJoin
from transom.pipeline.consumer_runner import ConsumerRunner, picked
from transom.pipeline.input_gates import InputGates
from transom.pipeline.part import Counters, Part
from transom.pipeline.scheduled_state import PlannedTime, QueryAccount, ScheduledJoinState
from transom.pipeline.scheduled_work import Measurements, ScheduledWork
from transom.pipeline.timers import Brought
from transom.plan.catalogue import Catalogue
from transom.planner.scheduling import Schedule
from transom.planner.sharing import length_of
from transom.scheduling.backlog import Backlog
from transom.scheduling.levels import levels_of
from transom.scheduling.load import LoadMethod
from transom.scheduling.mqt import groups_of
from transom.scheduling.policy import policy_named

FIRST_SPEED: Final = 20e6
"""The effort of a second before anybody has measured it."""

Emit = Callable[[int, pa.RecordBatch], None]


@dataclass
class PlannedClock:
    """Goes by the effort of what is done; `effort` is that of this process, since it was set to 0."""

    state: PlannedTime = field(default_factory=PlannedTime)
    effort: int = 0

    def now(self) -> int:
        return self.state.now

    def spend(self, effort: int) -> None:
        """
        >>> clock = PlannedClock(PlannedTime(now=5, speed=2e6))
        >>> clock.spend(100)
        >>> clock.now()
        55
        """
        self.effort += effort
        self.state.now += int(1e6 * effort / (self.state.speed or FIRST_SPEED))

    def begin(self, now: int, speed: float | None) -> None:
        """A batch was planned at this time; the clock is never put back."""
        self.state.now, self.state.speed = max(self.state.now, now), speed


class ScheduledJoin:
    """`root` is the join, `runners` are the queries; `counters` counts what the join does."""

    def __init__(
        self,
        root: Operator,
        runners: Sequence[ConsumerRunner],
        catalogue: Catalogue,
        tick: int,
        schedule: Schedule,
        measurements: Measurements,
    ) -> None:
        self.runners = runners
        self.schedule = schedule
        self.measurements = measurements
        assert isinstance(root.node, SharedJoin)
        self._root, self._node = root, root.node
        self._tick = tick
        self._policy = policy_named(schedule.policy)
        (kernel,) = root.tactic.kernels(root, Site(catalogue, tick))
        assert isinstance(kernel, SharedJoinKernel)
        self._kernel = kernel
        self.counters = Counters()
        self.resume(self.start())

    # --- what is remembered ------------------------------------------------------------------------------------------

    def start(self) -> ScheduledJoinState:
        """Before the first row."""
        sides = [ArrivedRows.of(window.schema.held().types) for window in self._root.inputs]
        return self._begun(sides, {name: QueryAccount(list(lengths)) for name, lengths in self._windows().items()})

    def _begun(self, sides: list[ArrivedRows], accounts: dict[str, QueryAccount]) -> ScheduledJoinState:
        """Nothing waits; from here on it is for these queries."""
        levels = levels_of({name: (each.windows[0], each.windows[1]) for name, each in accounts.items()})
        ends = groups_of(levels.sizes, self._policy.readings.ties).ends
        backlog = Backlog.empty(ends, len(sides))
        if any(side.arrived for side in sides):
            backlog.arrive([side.arrived for side in sides], settled=True)
        for number, side in enumerate(sides):
            backlog.leave(number, max(0, side.arrived - self.schedule.buffer))
        return ScheduledJoinState(sides, backlog, self._policy.start(), accounts)

    def resume(self, state: ScheduledJoinState) -> None:
        state.policy.method = LoadMethod(state.policy.method)  # a saved one is a plain word
        self.work = ScheduledWork(state, self._kernel, self.schedule, self._policy, self.measurements)

    def adopt(self, state: ScheduledJoinState, kept: Sequence[Sequence[int]], frontier: int | None) -> None:
        """Go on with the rows and the work of another shared join, which kept these columns; if the queries are
        others, its work is done first. Those that come begin at the frontier."""
        types = [tuple(window.schema.held().types) for window in self._root.inputs]
        for side, before, indexes, kinds in zip(state.sides, kept, self._node.side_columns, types, strict=True):
            was, now = KeptSide(tuple(before), (), None), KeptSide(tuple(indexes), kinds, None)
            side.rows = carried_rows(side.rows, was, now)
        self.resume(state)
        windows = self._windows()
        if {name: tuple(account.windows) for name, account in state.accounts.items()} == windows:
            return
        self.do(None)
        self.work.drain()
        accounts = {}
        for name, lengths in windows.items():
            accounts[name] = state.accounts.get(name) or QueryAccount(list(lengths), frontier)
        begun = self._begun(state.sides, accounts)
        begun.policy, begun.pairs = state.policy, state.pairs
        begun.backlog.recent = state.backlog.recent
        self.resume(begun)
        self.work.keep_within_windows()

    def _windows(self) -> dict[str, tuple[int, int]]:
        windows = {}
        for runner in self.runners:
            left, right = (length_of(window, self._tick) for window in runner.spec.of_join.windows)
            windows[runner.spec.name] = left, right
        return windows

    # --- running -----------------------------------------------------------------------------------------------------

    def arrive(self, came: Sequence[Delta]) -> None:
        """Rows of both sides that progress has passed."""
        self.counters.rows_in += sum(map(len, came))
        self.work.arrive(came)

    def turn(self, deadline: int | None, gates: InputGates, last_used: int, emit_rows: Emit) -> bool:
        """Do as much of what waits as there is time for, and emit what follows; whether there was anything."""
        worked = self.do(deadline)
        self.work.make_room()
        self.measurements.measure(self.work.scheduler, self.schedule.buffer)
        return self._emit(gates, last_used, emit_rows) or worked

    def do(self, deadline: int | None) -> bool:
        """Work until then, or until all is done."""
        before, started = self.work.pair_count, time.perf_counter()
        worked = self.work.work(deadline)
        self.counters.seconds += time.perf_counter() - started
        self.counters.rows_out += self.work.pair_count - before
        return worked

    def _emit(self, gates: InputGates, last_used: int, emit_rows: Emit) -> bool:
        """Take each query as far as it can go; those that go together get the same pairs. Whether any could go on."""
        state, levels = self.work.state, self.work.levels
        frontier_of_inputs, origin = gates.state.frontier, gates.state.origin
        if frontier_of_inputs is None or origin is None:
            return False
        here = {runner.spec.name: index for index, runner in enumerate(self.runners)}
        by_span: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for name, level in zip(levels.names, levels.level, strict=True):
            account = state.accounts[name]
            before = origin if account.frontier is None else account.frontier
            frontier = self.work.reached(name, frontier_of_inputs)
            if before < frontier:
                by_span.setdefault((before, frontier), []).append((here[name], level))
        for (before, frontier), going in sorted(by_span.items(), key=lambda each: min(each[1])):
            most = max(level for _, level in going)
            runners = {index: self.runners[index] for index, _ in sorted(going)}
            for at in [*self.work.cuts(before, frontier, most), frontier]:
                all_pairs = self.work.pairs(before, at, most)
                pairs = {read: picked(all_pairs, read) for read in {runner.read for runner in runners.values()}}
                for index, runner in runners.items():
                    step = Step(before, at, origin, runner.state.part.open_ids, last_row=gates.last_row)
                    emit_rows(index, runner.step(pairs[runner.read], {}, step, last_used))
                    state.accounts[runner.spec.name].frontier = at
                before = at
        return bool(by_span)

    def forget(self, origin: int | None) -> None:
        """What nobody needs any more."""
        instants = [at for at in self._reached(origin) if at is not None]
        if len(instants) == len(self.work.state.accounts):
            self.work.forget(min(instants))

    def _reached(self, origin: int | None) -> list[int | None]:
        return [origin if each.frontier is None else each.frontier for each in self.work.state.accounts.values()]

    @property
    def full(self) -> bool:
        """Whether no more rows are to be brought for now."""
        return self.schedule.overload == "block" and self.work.waiting >= self.schedule.buffer

    def at_rest(self, gates: InputGates) -> bool:
        """Whether nothing waits to be done, or to be emitted."""
        frontier = gates.state.frontier
        emitted = frontier is None or all(at == frontier for at in self._reached(gates.state.origin))
        return emitted and self.work.scheduler.next() is None

    @property
    def accounts(self) -> Mapping[str, QueryAccount]:
        """How far each query is, and what has become of its rows."""
        return self.work.state.accounts


def sides_of(root: Operator, part: Part, deltas: Sequence[Brought]) -> list[Delta]:
    """What came for both sides of the join, of what the operators below it gave."""
    sides = []
    for window in root.inputs:
        delta = deltas[part.number[id(window)]]
        assert isinstance(delta, Delta)
        sides.append(delta)
    return sides
