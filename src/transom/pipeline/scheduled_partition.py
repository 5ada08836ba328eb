"""A scheduled join in a partition that is kept by a log: what it does depends on what came and on nothing else.

Its clock goes by the work that is done, from the time at which a batch was planned and at the speed that batches before
it were seen to have; both are logged with the plan of the batch.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from transom.kernels.operator import Operator
from transom.pipeline.consumer_runner import ConsumerRunner
from transom.pipeline.input_gates import InputGates
from transom.pipeline.part import Counters
from transom.pipeline.scheduled_batch import ScheduledBatch
from transom.pipeline.scheduled_join import Emit, PlannedClock, ScheduledJoin
from transom.pipeline.scheduled_state import MeasuredWork, PlannedTime, ScheduledMemory
from transom.pipeline.scheduled_work import Measurements
from transom.plan.catalogue import Catalogue
from transom.planner.scheduling import Schedule
from transom.scheduling.load import LoadMethod
from transom.scheduling.simulation import Trace
from transom.state.checks import need


class ScheduledPartition:
    """Logic; what it remembers is brought with every batch (`begin`)."""

    def __init__(
        self,
        root: Operator,
        runners: Sequence[ConsumerRunner],
        catalogue: Catalogue,
        tick: int,
        schedule: Schedule,
    ) -> None:
        for runner in runners:
            runner.read_from(root)
        self.root = root
        self.clock = PlannedClock()
        self.measurements = Measurements(self.clock.now, self.clock.spend)
        self.join = ScheduledJoin(root, runners, catalogue, tick, schedule, self.measurements)
        self._all = False
        self.seconds = 0.0
        """What the work of this batch took."""

    def start(self) -> ScheduledMemory:
        return ScheduledMemory(self.join.start(), Counters(), MeasuredWork(0, 0), PlannedTime())

    @staticmethod
    def mend(memories: Any) -> None:
        """A method that was saved is a plain word."""
        need(isinstance(memories, list) and all(isinstance(each, ScheduledMemory) for each in memories))
        for each in memories:
            need(each.join.policy.method in list(LoadMethod))
            each.join.policy.method = LoadMethod(each.join.policy.method)

    def begin(self, memory: ScheduledMemory, batch: ScheduledBatch | None) -> None:
        """A batch has come. Where nobody has planned it, it does all its work: nobody could say how much it may do."""
        self.clock.state = memory.time
        if batch is not None:
            if not memory.measured.started:
                memory.measured = MeasuredWork(batch.now, batch.now)
            self.clock.begin(batch.now, batch.speed)
        self._all = batch is None or batch.all
        self.measurements.state = memory.measured
        self.measurements.trace = Trace()
        self.clock.effort, self.seconds = 0, 0.0
        self.join.counters = memory.counters
        self.join.resume(memory.join)

    def take_over(self, memory: ScheduledMemory, kept: Sequence[Sequence[int]], frontier: int | None) -> None:
        """From another partition, whose join kept these columns."""
        self.clock.state, self.measurements.state = memory.time, memory.measured
        self.join.counters = memory.counters
        self.join.adopt(memory.join, kept, frontier)
        self.join.work.drain()

    def turn(self, gates: InputGates, last_used: int, emit_rows: Emit, last: bool) -> None:
        """A step of work; and more of them as long as too much waits, or as there is no batch to come."""
        while True:
            started = time.perf_counter()
            self.join.turn(self.clock.now() + self.join.schedule.budget, gates, last_used, emit_rows)
            self.seconds += time.perf_counter() - started  # with what queries make of the pairs
            self.join.forget(gates.state.origin)
            if not self.join.full and (not (last and self._all) or self.join.at_rest(gates)):
                return

    def status(self, gates: InputGates) -> dict[str, Any]:
        """How it is doing, as JSON can hold it, with what was measured in this batch."""
        work = self.join.work
        trace = self.measurements.trace
        return {
            "waits": not self.join.at_rest(gates),
            "effort": self.clock.effort,
            "seconds": self.seconds,
            "method": str(work.scheduler.method),
            "loads": {name: list(column) for name, column in vars(trace).items()},
            "queries": {name: self._query(name) for name in self.join.accounts},
        }

    def _query(self, name: str) -> Mapping[str, Any]:
        ledger, account = self.join.work.ledger_of(name), self.join.accounts[name]
        shed = account.shed
        return {
            "frontier": account.frontier,
            "ledger": [ledger.due, ledger.processed, ledger.shed, ledger.pending],
            "windows": list(account.windows),
            "shed": [column.tolist() for column in (shed.first, shed.last, shed.rows)],
        }
