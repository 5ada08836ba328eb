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
from transom.pipeline.branch import picked
from transom.pipeline.consumer import Member
from transom.pipeline.doors import DoorsState
from transom.pipeline.engine import Tell
from transom.pipeline.group import GroupPipeline
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
from transom.scheduling.load import Method
from transom.scheduling.mqt import groups_of
from transom.scheduling.policy import policy_named


class ScheduledGroup(GroupPipeline):
    """`now` is a clock, in microseconds."""

    def __init__(
        self, members: Sequence[Member], catalogue: Catalogue, schedule: Schedule, now: Callable[[], int]
    ) -> None:
        self.schedule = schedule
        self.measurements = Measurements(now)
        self._now = now
        self._policy = policy_named(schedule.policy)
        super().__init__(members, catalogue)

    # --- running -----------------------------------------------------------------------------------------------------

    def _step(self, tell: Tell) -> bool:
        """Take in what progress has passed, and do as much of what waits as there is time for."""
        came = self._take_in()
        worked = self._do(self._now() + self.schedule.budget)
        self.work.make_room()
        self.measurements.measure(self.work.scheduler, self.schedule.buffer)
        told = self._tell(tell)
        if self.trunk.state.doors.upto is None or not (came or worked or told):
            return False
        self._forget()
        return True

    @property
    def finished(self) -> bool:
        return all(account.upto == FOREVER for account in self.work.state.accounts.values())

    @property
    def at_rest(self) -> bool:
        doors = self.trunk.state.doors
        reached = [doors.origin if each.upto is None else each.upto for each in self.work.state.accounts.values()]
        told = doors.upto is None or all(upto == doors.upto for upto in reached)
        return told and self.work.scheduler.next() is None

    @property
    def _trunk_due(self) -> int:
        return self._below.due(self.trunk.state.part)

    @property
    def full(self) -> bool:
        return self.schedule.overload == "block" and self.work.waiting >= self.schedule.buffer

    def progress_of(self, name: str) -> int | None:
        return self.work.state.accounts[name].upto

    def _take_in(self) -> bool:
        trunk = self.trunk
        found = trunk.doors.next_step()
        if found is None:
            return False
        before, upto, origin = found
        step = Step(before, upto, origin, trunk.state.part.holders)
        brought = {name: trunk.doors.release(name, upto) for name in trunk.inputs}
        deltas = Stage(self._below).advance(trunk.state.whole, brought, step, trunk.doors.last_used).deltas
        came: list[Delta] = []
        for window in trunk.root.inputs:
            delta = deltas[self._below.number[id(window)]]
            assert isinstance(delta, Delta)
            came.append(delta)
        trunk.state.doors.upto = upto
        trunk.state.part.counters[-1].rows_in += sum(map(len, came))
        self.work.arrive(came)
        return True

    def _do(self, deadline: int | None) -> bool:
        counters, before, started = self.trunk.state.part.counters[-1], self.work.found, time.perf_counter()
        worked = self.work.work(deadline)
        counters.seconds += time.perf_counter() - started
        counters.rows_out += self.work.found - before
        return worked

    def _tell(self, tell: Tell) -> bool:
        """Take each query as far as it can go; those that go together get the same pairs. Whether any could go on."""
        doors, state, levels = self.trunk.state.doors, self.work.state, self.work.levels
        if doors.upto is None or doors.origin is None:
            return False
        here = {branch.member.name: place for place, branch in enumerate(self.branches)}
        ways: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for name, level in zip(levels.names, levels.level, strict=True):
            account = state.accounts[name]
            before = doors.origin if account.upto is None else account.upto
            upto = self.work.reached(name, doors.upto)
            if before < upto:
                ways.setdefault((before, upto), []).append((here[name], level))
        for (before, upto), going in sorted(ways.items(), key=lambda way: min(way[1])):
            found = self.work.pairs(before, upto, max(level for _, level in going))
            branches = {place: self.branches[place] for place, _ in sorted(going)}
            pairs = {columns: picked(found, columns) for columns in {branch.read for branch in branches.values()}}
            step = Step(before, upto, doors.origin, self.trunk.state.part.holders, last_row=self.trunk.doors.last_row)
            for place, branch in branches.items():
                tell(place, branch.step(pairs[branch.read], {}, step, self.trunk.doors.last_used))
                state.accounts[branch.member.name].upto = upto
        return bool(ways)

    def _forget(self) -> None:
        origin = self.trunk.state.doors.origin
        reached = [origin if each.upto is None else each.upto for each in self.work.state.accounts.values()]
        known = [upto for upto in reached if upto is not None]
        if len(known) == len(reached):
            self.work.forget(min(known))

    # --- coming and going --------------------------------------------------------------------------------------------

    def _arrange(self) -> None:
        super()._arrange()
        root = self.trunk.root
        (kernel,) = root.tactic.kernels(root, Site(self._catalogue, self.trunk.tick))
        assert isinstance(kernel, SharedJoinKernel)
        self._kernel = kernel
        operators = list(root.walk())[:-1]
        ports = {(id(each), 0): scanned(each) for each in operators if isinstance(each.node, StreamScan)}
        self._below = Part(operators, ports, self._catalogue, self.trunk.tick)
        sides = [ArrivedRows.of(window.schema.arrow().types) for window in root.inputs]
        self._begin(sides, {name: QueryAccount(list(lengths)) for name, lengths in self._windows().items()})

    def _begin(self, sides: list[ArrivedRows], accounts: dict[str, QueryAccount]) -> None:
        """Nothing waits; from here on it is for these queries."""
        levels = levels_of({name: (each.windows[0], each.windows[1]) for name, each in accounts.items()})
        ends = groups_of(levels.sizes, self._policy.readings.ties).ends
        backlog = Backlog.empty(ends, len(sides))
        backlog.arrive([side.arrived for side in sides], settled=True)
        for number, side in enumerate(sides):
            backlog.leave(number, max(0, side.arrived - self.schedule.buffer))
        self._go_on(ScheduledJoinState(sides, backlog, self._policy.start(), accounts))

    def _go_on(self, state: ScheduledJoinState) -> None:
        self.work = ScheduledWork(state, self._kernel, self.schedule, self._policy, self.measurements)
        self.trunk.state.part.operators[-1] = [state]

    def _arrange_anew(self) -> None:
        self.work.settle()
        super()._arrange_anew()

    def _adopt(self, doors: DoorsState, part: PartState, kept: Sequence[KeptNote]) -> None:
        """Go on with the rows and the work of another trunk; if the queries are others, its work is done first."""
        trunk = self.trunk
        trunk.state.doors = trunk.doors.state = doors
        new = trunk.state.part
        new.holders, new.counters = part.holders, part.counters
        (state,) = part.operators[-1]
        assert isinstance(state, ScheduledJoinState)
        for side, was, now, window in zip(state.sides, kept, kept_by(trunk.root), trunk.root.inputs, strict=True):
            types = tuple(window.schema.arrow().types)
            before, after = KeptSide(tuple(was.places), (), None), KeptSide(tuple(now.places), types, None)
            side.rows = carried_rows(side.rows, before, after)
        state.policy.method = Method(state.policy.method)  # a saved one is a plain word
        self._go_on(state)
        windows = self._windows()
        if {name: tuple(account.windows) for name, account in state.accounts.items()} == windows:
            return
        self._do(None)
        self.work.settle()
        accounts = {}
        for name, lengths in windows.items():
            accounts[name] = state.accounts.get(name) or QueryAccount(list(lengths), doors.upto)
        self._begin(state.sides, accounts)
        self.work.state.policy = self.work.scheduler.state = state.policy
        self.work.state.backlog.recent = state.backlog.recent
        self.work.state.found = state.found
        self.work.keep_within_reach()

    def _windows(self) -> dict[str, tuple[int, int]]:
        found = {}
        for branch in self.branches:
            left, right = (length_of(window, self.trunk.tick) for window in branch.member.asked.windows)
            found[branch.member.name] = left, right
        return found

    def snapshot(self) -> bytes:
        self.work.settle()
        return super().snapshot()
