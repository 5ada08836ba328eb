"""Queries that share a join whose work is put in order: rows wait, and each query has its own frontier.

A query stands before the first row that was not done for it, so that quick queries are ahead of slow ones, and the
answer of each is exact up to its own progress.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from transom.core.time import FOREVER
from transom.kernels.kernel import Step
from transom.kernels.operator import scanned
from transom.pipeline.consumer import ConsumerSpec
from transom.pipeline.engine import Emit
from transom.pipeline.group import GroupPipeline
from transom.pipeline.input_gates import InputGatesState
from transom.pipeline.migration import KeptNote
from transom.pipeline.part import Part, PartState
from transom.pipeline.scheduled_join import ScheduledJoin, sides_of
from transom.pipeline.scheduled_state import ScheduledJoinState
from transom.pipeline.scheduled_work import Measurements, ScheduledWork
from transom.pipeline.stage import Stage
from transom.plan.algebra import StreamScan
from transom.plan.catalogue import Catalogue
from transom.planner.scheduling import Schedule


class ScheduledGroup(GroupPipeline):
    """Queries that share a join whose work is put in order (SET schedule). `now` is a clock, in microseconds."""

    def __init__(
        self, specs: Sequence[ConsumerSpec], catalogue: Catalogue, schedule: Schedule, now: Callable[[], int]
    ) -> None:
        self.schedule = schedule
        self.measurements = Measurements(now)
        self._now = now
        super().__init__(specs, catalogue)

    @property
    def work(self) -> ScheduledWork:
        return self.scheduled.work

    # --- running -----------------------------------------------------------------------------------------------------

    def _step(self, emit_rows: Emit) -> bool:
        """Take in what progress has passed, and do as much of what waits as there is time for."""
        gates = self.subplan.gates
        came = self._take_in()
        went_on = self.scheduled.turn(self._now() + self.schedule.budget, gates, gates.last_used, emit_rows)
        if gates.state.frontier is None or not (came or went_on):
            return False
        self.scheduled.forget(gates.state.origin)
        return True

    @property
    def finished(self) -> bool:
        return all(account.frontier == FOREVER for account in self.scheduled.accounts.values())

    @property
    def at_rest(self) -> bool:
        return self.scheduled.at_rest(self.subplan.gates)

    @property
    def _subplan_timer(self) -> int:
        return self._below.next_timer(self.subplan.state.part)

    @property
    def full(self) -> bool:
        return self.scheduled.full

    def progress_of(self, name: str) -> int | None:
        return self.scheduled.accounts[name].frontier

    def _take_in(self) -> bool:
        subplan = self.subplan
        next_step = subplan.gates.next_step()
        if next_step is None:
            return False
        before, frontier, origin = next_step
        step = Step(before, frontier, origin, subplan.state.part.open_ids)
        brought = {name: subplan.gates.release(name, frontier) for name in subplan.inputs}
        deltas = Stage(self._below).advance(subplan.state.whole, brought, step, subplan.gates.last_used).deltas
        subplan.state.gates.frontier = frontier
        self.scheduled.arrive(sides_of(subplan.root, self._below, deltas))
        return True

    # --- coming and going --------------------------------------------------------------------------------------------

    def _arrange(self) -> None:
        super()._arrange()
        root = self.subplan.root
        operators = list(root.walk())[:-1]
        channels = {(id(each), 0): scanned(each) for each in operators if isinstance(each.node, StreamScan)}
        self._below = Part(operators, channels, self._catalogue, self.subplan.tick)
        self.scheduled = ScheduledJoin(
            root, self.runners, self._catalogue, self.subplan.tick, self.schedule, self.measurements
        )
        self._keep()

    def _keep(self) -> None:
        """The state of the join is that of the last operator."""
        part = self.subplan.state.part
        part.operators[-1] = [self.work.state]
        self.scheduled.counters = part.counters[-1]

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
        self.scheduled.counters = part.counters[-1]
        self.scheduled.adopt(state, [note.indexes for note in kept], gates.frontier)
        self._keep()

    def snapshot(self) -> bytes:
        self.work.drain()
        return super().snapshot()
