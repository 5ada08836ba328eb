"""A standing query in this process: rows from its sources, through the pipeline, to its sink.

A step reads one batch from the input that holds progress back, and goes as far as that allows. Between two steps the
query can be saved: the pipeline's memory, how far each source has been read, and how many parts the sink has.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from transom.connectors.memory import MemorySink
from transom.connectors.sink import Sink
from transom.connectors.source import START, Position, Source, SourceBatch
from transom.core.errors import CheckpointError
from transom.core.time import FOREVER
from transom.pipeline.admission import Refused
from transom.pipeline.driver import Pipeline
from transom.pipeline.memory import state_bytes, state_rows
from transom.pipeline.side import SIDE, count_reasons, refused_rows, unreadable
from transom.plan.catalogue import StreamDefinition, TableDefinition
from transom.plan.options import OPTIONS
from transom.planner.multiway_choice import read_decisions, written
from transom.planner.operator import Operator
from transom.program.clock import Clock, RealClock
from transom.program.inputs import Definition
from transom.program.latency import Stopwatch
from transom.program.planned import Planned
from transom.program.slides import slides_of
from transom.program.status import InputStatus, OperatorStatus, Status
from transom.state import codec
from transom.state.checks import alike

POLL: Final = 200_000
"""Microseconds after which an input that had nothing is looked at again."""


@dataclass
class Reading:
    """How far an input has been read, and why rows of it were refused. `complete`: there is nothing more."""

    position: Position = field(default_factory=lambda: START)
    reads: int = 0
    complete: bool = False
    reasons: dict[str, int] = field(default_factory=dict)


class LocalQuery:
    """A query that can be stepped, run, asked how it is doing, saved and restored.

    `open_source`, `open_sink` and `open_side` make the ends of it; sinks are told how many parts they have already.
    With `follow` the inputs may grow: the query does not end by itself while an input may have more, and idle streams
    are left behind.
    """

    def __init__(
        self,
        planned: Planned,
        open_source: Callable[[Definition], Source],
        open_sink: Callable[[pa.Schema, int], Sink],
        *,
        open_side: Callable[[pa.Schema, int], Sink] | None = None,
        emit: str = "changes",
        follow: bool = False,
        clock: Clock | None = None,
        name: str = "query",
        home: str | None = None,
    ) -> None:
        assert planned.root is not None
        self.name = name
        self.follow = follow
        self.clock: Clock = clock or RealClock()
        self._planned = planned
        self._emit = emit
        self._home = home
        self.pipeline = self._made(planned)
        self.schema = self.pipeline.output_schema
        self.batch_rows: int = planned.catalogue.options.get("batch_rows", OPTIONS["batch_rows"].default)
        self._definitions: dict[str, Definition] = {}
        for relation in self.pipeline.names:
            definition = planned.catalogue.relations[relation]
            assert isinstance(definition, StreamDefinition | TableDefinition)
            self._definitions[relation] = definition
        self._sources = {relation: open_source(known) for relation, known in self._definitions.items()}
        self._readings = {relation: Reading() for relation in self._definitions}
        self._idle = {
            name: known.idle
            for name, known in self._definitions.items()
            if name in self.pipeline.inputs and known.idle is not None
        }
        self._open_sink = open_sink
        self._open_side = open_side
        self._sink: Sink | None = None
        self._side: Sink | None = None
        self._parts = [0, 0]
        self._latest: pa.RecordBatch | None = None
        self._latest_is_new = False
        self._steps = 0
        self._spoke = dict.fromkeys(self._definitions, self.clock.now())
        self._look_again: dict[str, int] = {}
        self._stepping = threading.RLock()
        self._written_upto = FOREVER  # within a step, what was final before it: what follows is not with the sink yet
        stamped = any(self.pipeline.doors.stamped(relation) for relation in self.pipeline.inputs)
        self._stopwatch = Stopwatch() if stamped else None

    # --- running -----------------------------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """All input has been read to its end, and everything that follows from it is out."""
        return self.pipeline.finished or self._all_read

    @property
    def _all_read(self) -> bool:
        return bool(self._readings) and all(reading.complete for reading in self._readings.values())

    def step(self) -> bool:
        """Read one batch and go on; False when there is nothing to do: for good, or for now when following."""
        if self.finished:
            return False
        self._open()
        self._written_upto = self.pipeline.progress
        try:
            return self._step()
        finally:
            self._written_upto = FOREVER

    def _step(self) -> bool:
        read = False
        while not read and (name := self._next_input()) is not None:
            read = self._read(name)
        if not all(self._readings[table].complete for table in self.pipeline.statics):
            went_on = False
        else:
            went_on = self._advance()
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
        self.show()
        for sink in self._open():
            sink.close()

    def abandon(self) -> None:
        """What was written since it was last shown is forgotten."""
        self.pipeline.close()
        for sink in (self._sink, self._side):
            if sink is not None:
                sink.abandon()

    @property
    def sink(self) -> Sink:
        """Where the answer goes."""
        return self._open()[0]

    @property
    def in_memory(self) -> bool:
        """Whether the answer can be had from `table`."""
        return isinstance(self._open()[0], MemorySink)

    def table(self) -> pa.Table:
        """The answer so far, of a query whose answer stays in memory."""
        self.show()
        (sink, *_) = self._open()
        assert isinstance(sink, MemorySink)
        return sink.table()

    def _next_input(self) -> str | None:
        """A static table that is not complete; else the input that is furthest behind, of those that may have rows."""
        for table in self.pipeline.statics:
            if not self._readings[table].complete:
                return table
        now = self.clock.now()
        open_ones = [
            name for name in self.pipeline.inputs
            if not self._readings[name].complete and self._look_again.get(name, now) <= now
        ]  # fmt: skip
        return min(
            open_ones, key=lambda name: (self.pipeline.watermark(name), self._readings[name].reads), default=None
        )

    def _read(self, name: str) -> bool:
        """One batch of an input; whether there was one, or it was seen to have ended."""
        reading = self._readings[name]
        growing = self.follow and name in self.pipeline.inputs
        batch = self._sources[name].read(reading.position, self.batch_rows, growing=growing)
        with self._stepping:
            return self._take(name, batch, growing)

    def _take(self, name: str, batch: SourceBatch, growing: bool) -> bool:
        reading = self._readings[name]
        reading.position = batch.position
        reading.reads += 1
        if len(batch.rejected):
            self.pipeline.reject(name, len(batch.rejected))
            count_reasons(reading.reasons, batch.rejected.column("reason").to_pylist())
            if self._side is not None:
                self._side.write(unreadable(self._definitions[name].name, batch.rejected))
        if self._stopwatch is not None and name in self.pipeline.inputs:
            self._stopwatch.arrive(len(batch.rows))
        if len(batch.rows):
            self._note(name, self.pipeline.push(name, batch.rows, self.clock.now()))
        came = bool(len(batch.rows) or len(batch.rejected))
        if came:
            self._spoke[name] = self.clock.now()
        if batch.ended and growing and not batch.over:
            self._look_again[name] = self.clock.now() + POLL
            return came
        if batch.ended:
            reading.complete = True
            self.pipeline.end(name)
        return True

    def _leave_idle_behind(self) -> None:
        """Streams that have been silent for their idle time do not hold back the others."""
        for name, idle in self._idle.items():
            now = self.clock.now()
            if self._look_again.get(name, now) > now and now - self._spoke[name] >= idle:
                self.pipeline.fall_idle(name)

    def _advance(self) -> bool:
        with self._stepping:
            self._leave_idle_behind()
            output, refused = self.pipeline.advance()
            for name, rows in refused.items():
                self._note(name, rows)
        if output is None:
            return False
        if self.pipeline.emit_name == "latest":
            self._latest, self._latest_is_new = output.rows, True
        else:
            (sink, *_) = self._open()
            sink.write(output.rows)
            if self._stopwatch is not None:
                self._stopwatch.leave()
        return True

    def _catch_up(self) -> bool:
        """Nothing has come: there is time for results that were put off."""
        output = self.pipeline.idle()
        if output is not None:
            self.sink.write(output.rows)
        return output is not None

    def _made(self, planned: Planned) -> Pipeline:
        assert planned.root is not None
        pipeline = Pipeline(planned.root, planned.catalogue, self._emit, home=self._home)
        pipeline.taker = lambda rows: self.sink.write(rows)
        pipeline.clock = self.clock.now
        return pipeline

    def _note(self, name: str, refused: Refused | None) -> None:
        if refused is None:
            return
        count_reasons(self._readings[name].reasons, refused.reasons)
        if self._side is not None:
            definition = self._definitions[name]
            self._side.write(refused_rows(definition.name, refused, keep_late=definition.late == "side"))

    def _open(self) -> list[Sink]:
        """The sinks; opened when they are first needed, because to open one removes what is no part of this run."""
        if self._sink is None:
            self._sink = self._open_sink(self.schema, self._parts[0])
            self._side = None if self._open_side is None else self._open_side(SIDE, self._parts[1])
        return [self._sink] if self._side is None else [self._sink, self._side]

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
        ledger = self.pipeline.ledger(name)
        return InputStatus(
            name=self._definitions[name].name,
            rows_in=ledger.rows_in,
            used=ledger.used,
            late=ledger.late,
            rejected=ledger.rejected,
            waiting=ledger.waiting,
            watermark=self.pipeline.watermark(name) if name in self.pipeline.inputs else None,
            ended=self._readings[name].complete,
            reasons=dict(self._readings[name].reasons),
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
        parts = [sink.prepare() for sink in self._open()]
        saved = {
            "pipeline": np.frombuffer(self.pipeline.snapshot(), np.uint8),
            "readings": self._readings,
            "parts": parts,
            "latest": self._latest,
            "steps": self._steps,
            "decisions": written(self._planned.decisions),
        }
        return codec.encode(saved)

    def show(self) -> None:
        """What was written until now is seen."""
        (sink, *others) = self._open()
        if self._latest is not None and self._latest_is_new:
            sink.replace(self._latest)
            self._latest_is_new = False
            if self._stopwatch is not None:
                self._stopwatch.leave()
        for each in (sink, *others):
            each.commit()
        self.pipeline.saved()

    def begin(self) -> None:
        """There is nothing to go on from; a run that died may have left something."""
        self.pipeline.begin()

    def restore(self, data: bytes) -> None:
        """Go on where `snapshot` was taken, by the same query over the same inputs."""
        saved: Any = codec.decode(data, (Reading,))
        if not isinstance(saved, dict) or set(saved.get("readings", ())) != set(self._readings):
            raise CheckpointError(
                "the checkpoint was written by another query",
                remedy="run the query that wrote it, or start with an empty checkpoint folder",
            )
        with codec.restoring():
            self._plan_as(saved.get("decisions", ""))
            self.pipeline.restore(saved["pipeline"].tobytes())
            self.abandon()
            self._sink = self._side = None
            alike(dict.fromkeys(self._readings, Reading()), saved["readings"])
            self._readings = saved["readings"]
            self._parts = [int(part) for part in (*saved["parts"], 0)][:2]
            self._latest, self._latest_is_new = saved["latest"], True
            self._steps = int(saved["steps"])

    def _plan_as(self, decisions: str) -> None:
        """As the one who wrote a checkpoint did; with other rows to look at it might be planned otherwise."""
        planned = self._planned.decided(read_decisions(decisions)) if decisions else self._planned
        if planned is not self._planned:
            self.pipeline.close()
            self._planned = planned
            self.pipeline = self._made(planned)
