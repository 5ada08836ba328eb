"""A standing query in this process: rows from its sources, through the pipeline, to its sink.

A step reads one batch from the input that holds progress back, and goes as far as that allows. Between two steps the
query can be saved: the pipeline's memory, how far each source has been read, and the epochs of its sinks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from transom.connectors.connector import OpenSink, Sink, Source
from transom.core.time import FOREVER
from transom.pipeline.driver import Pipeline
from transom.pipeline.memory import state_bytes, state_rows
from transom.pipeline.side import SIDE
from transom.plan.catalogue import StreamDefinition, TableDefinition
from transom.plan.options import OPTIONS
from transom.planner.fingerprint import of_another_plan
from transom.planner.multiway_choice import read_decisions, written
from transom.planner.operator import Operator
from transom.program.clock import Clock, RealClock
from transom.program.inputs import Definition
from transom.program.latency import Stopwatch
from transom.program.planned import Planned
from transom.program.run import Ending
from transom.program.sink_epochs import SinkEpochs
from transom.program.slides import slides_of
from transom.program.status import InputStatus, OperatorStatus, Status
from transom.runtimes.local.intake import Intake, Reading
from transom.state import codec
from transom.state.checks import alike


class LocalQuery:
    """A query that can be stepped, run, asked how it is doing, saved and restored.

    `open_source`, `open_sink` and `open_side` make the ends of it.
    Unless it is to end with its inputs they may grow, and streams that are idle are left behind.
    """

    def __init__(
        self,
        planned: Planned,
        open_source: Callable[[Definition], Source],
        open_sink: OpenSink,
        *,
        open_side: OpenSink | None = None,
        emit: str = "changes",
        ending: Ending = "end",
        clock: Clock | None = None,
        name: str = "query",
        home: str | None = None,
    ) -> None:
        assert planned.root is not None
        self.name = name
        self.clock: Clock = clock or RealClock()
        self._planned = planned
        self._emit = emit
        self._home = home
        self.pipeline = self._made(planned)
        self.schema = self.pipeline.output_schema
        definitions: dict[str, Definition] = {}
        for relation in self.pipeline.names:
            definition = planned.catalogue.relations[relation]
            assert isinstance(definition, StreamDefinition | TableDefinition)
            definitions[relation] = definition
        rows: int = planned.catalogue.options.get("batch_rows", OPTIONS["batch_rows"].default)
        self._intake = Intake(definitions, open_source, self._refuse, rows=rows, ending=ending, clock=self.clock)
        self._answer = SinkEpochs(open_sink, self.schema, self.pipeline.emit_name == "latest")
        self._side = None if open_side is None else SinkEpochs(open_side, SIDE)
        self._latest: pa.RecordBatch | None = None
        self._latest_is_new = False
        self._steps = 0
        self._stepping = threading.RLock()
        self._written_upto = FOREVER  # within a step, what was final before it: what follows is not with the sink yet
        stamped = any(self.pipeline.doors.stamped(relation) for relation in self.pipeline.inputs)
        self._stopwatch = Stopwatch() if stamped else None

    # --- running -----------------------------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """All input has been read to its end, and everything that follows from it is out."""
        return self.pipeline.finished or self._intake.complete

    @property
    def done(self) -> bool:
        """Whether there is nothing more for this run to do, once a step has found nothing."""
        return self.finished or self._intake.exhausted

    def step(self) -> bool:
        """Read one batch and go on; False when there is nothing to do: for good, or for now."""
        if self.finished:
            return False
        for each in self.sinks:
            _ = each.sink  # opened before anything is read
        self._written_upto = self.pipeline.progress
        try:
            return self._step()
        finally:
            self._written_upto = FOREVER

    def _step(self) -> bool:
        read = False
        while not read and (name := self._intake.next_input(self.pipeline)) is not None:
            batch = self._intake.read(name)
            with self._stepping:
                read = self._intake.take(name, batch, self.pipeline, self._stopwatch)
        went_on = self._advance() if self._intake.tables_read else False
        went_on = went_on or (not read and self._catch_up())
        self._steps += read or went_on
        return read or went_on

    def run(self) -> None:
        """To the end of the input, which must have one."""
        try:
            while self.step():
                pass
            self.close()
        except BaseException:
            self.abandon()
            raise

    def close(self) -> None:
        """Everything that was written is seen."""
        try:
            self.pipeline.settle()
        finally:
            self.pipeline.close()
        self._show_latest()
        for each in self.sinks:
            each.close()
        self.pipeline.saved()

    def abandon(self) -> None:
        """What was written since it was last shown is forgotten."""
        self.pipeline.close()
        for each in self.sinks:
            each.abort()

    @property
    def sink(self) -> Sink:
        """Where the answer goes."""
        return self._answer.sink

    @property
    def in_memory(self) -> bool:
        """Whether the answer can be had from `table`."""
        return self.sink.collected() is not None

    def table(self) -> pa.Table:
        """The answer so far, of a query whose answer stays in memory."""
        self._show_latest()
        found = self.sink.collected()
        assert found is not None
        return found

    def _advance(self) -> bool:
        with self._stepping:
            self._intake.leave_idle_behind(self.pipeline)
            output, refused = self.pipeline.advance()
            for name, rows in refused.items():
                self._intake.note(name, rows)
        if output is None:
            return False
        if self.pipeline.emit_name == "latest":
            self._latest, self._latest_is_new = output.rows, True
        else:
            self._answer.write(output.rows)
            if self._stopwatch is not None:
                self._stopwatch.leave()
        return True

    def _catch_up(self) -> bool:
        """Nothing has come: there is time for results that were put off."""
        output = self.pipeline.idle()
        if output is not None:
            self._answer.write(output.rows)
        return output is not None

    def _made(self, planned: Planned) -> Pipeline:
        assert planned.root is not None
        pipeline = Pipeline(planned.root, planned.catalogue, self._emit, home=self._home)
        pipeline.taker = lambda rows: self._answer.write(rows)
        pipeline.clock = self.clock.now
        return pipeline

    def _refuse(self, rows: pa.RecordBatch) -> None:
        if self._side is not None:
            self._side.write(rows)

    @property
    def sinks(self) -> list[SinkEpochs]:
        return [self._answer] if self._side is None else [self._answer, self._side]

    # --- status ------------------------------------------------------------------------------------------------------

    def status(self) -> Status:
        """How it is doing; any thread may ask, and waits for a step that is under way, but not for a source."""
        with self._stepping:
            return self._status()

    def _status(self) -> Status:
        pipeline = self.pipeline
        pipeline.settle()
        waits = pipeline.inputs and not self.finished
        return Status(
            name=self.name,
            inputs=tuple(self._input_status(name) for name in pipeline.names),
            operators=tuple(self._operator_status(i, each) for i, each in enumerate(pipeline.root.walk(), 1)),
            progress=min(pipeline.progress, self._written_upto),
            held_back_by=pipeline.held_back_by if waits else None,
            rows_out=pipeline.state.rows_out,
            steps=self._steps,
            finished=self.finished,
            latency=None if self._stopwatch is None else self._stopwatch.latency,
        )

    def _input_status(self, name: str) -> InputStatus:
        ledger, reading = self.pipeline.ledger(name), self._intake.readings[name]
        return InputStatus(
            name=self._intake.definitions[name].name,
            rows_in=ledger.rows_in,
            used=ledger.used,
            late=ledger.late,
            rejected=ledger.rejected,
            waiting=ledger.waiting,
            watermark=self.pipeline.watermark(name) if name in self.pipeline.inputs else None,
            ended=reading.complete,
            reasons=dict(reading.reasons),
        )

    def _operator_status(self, number: int, operator: Operator) -> OperatorStatus:
        place = self.pipeline.part.number[id(operator)]
        counters = self.pipeline.state.part.counters[place]
        return OperatorStatus(
            number=number,
            operator=operator.kind,
            tactic=operator.tactic.name,
            rows_in=counters.rows_in,
            rows_out=counters.rows_out,
            ends=counters.ends_out,
            state_bytes=state_bytes(self.pipeline.state.part.operators[place]),
            seconds=counters.seconds,
            state_rows=state_rows(self.pipeline.state.part.operators[place]),
            slides=slides_of(self.pipeline.state.part.operators[place]),
        )

    # --- saving ------------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Everything that another process needs to go on; what was written until now is shown."""
        data = self.save()
        self.show()
        return data

    def save(self) -> bytes:
        """As `snapshot`, but what was written is not shown yet: for whoever writes the bytes down first."""
        sinks = [each.prepare() for each in self.sinks]
        saved = {
            "pipeline": np.frombuffer(self.pipeline.snapshot(), np.uint8),
            "readings": self._intake.readings,
            "sinks": sinks,
            "latest": self._latest,
            "steps": self._steps,
            "decisions": written(self._planned.decisions),
        }
        return codec.encode(saved)

    def show(self) -> None:
        """What was written until now is seen."""
        self._show_latest()
        for each in self.sinks:
            each.commit()
        self.pipeline.saved()

    def _show_latest(self) -> None:
        if self._latest is not None and self._latest_is_new:
            self._answer.replace(self._latest)
            self._latest_is_new = False
            if self._stopwatch is not None:
                self._stopwatch.leave()

    def begin(self) -> None:
        """There is nothing to go on from; a run that died may have left something."""
        self.pipeline.begin()

    def restore(self, data: bytes) -> None:
        """Go on where `snapshot` was taken, by the same query over the same inputs."""
        saved: Any = codec.decode(data, (Reading,))
        if not isinstance(saved, dict) or set(saved.get("readings", ())) != set(self._intake.readings):
            raise of_another_plan()
        with codec.restoring():
            self._plan_as(saved.get("decisions", ""))
            self.pipeline.restore(saved["pipeline"].tobytes())
            self.pipeline.close()
            alike(dict.fromkeys(self._intake.readings, Reading()), saved["readings"])
            self._intake.go_on(saved["readings"])
            for each, kept in zip(self.sinks, [*saved["sinks"], None], strict=False):
                each.restore(kept)
            self._latest, self._latest_is_new = saved["latest"], True
            self._steps = int(saved["steps"])

    def _plan_as(self, decisions: str) -> None:
        """As the one who wrote a checkpoint did; with other rows to look at it might be planned otherwise."""
        planned = self._planned.decided(read_decisions(decisions)) if decisions else self._planned
        if planned is not self._planned:
            self.pipeline.close()
            self._planned = planned
            self.pipeline = self._made(planned)
