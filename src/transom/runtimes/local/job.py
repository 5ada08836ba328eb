"""Standing queries that step together in this process: one by itself, or several that share a join.

A step reads one batch of the input that holds progress back, and takes all of the queries as far as that allows.
Between two steps the job can be saved: what its engine remembers, how far each source has been read, and the epochs of
its sinks. Queries that share a join come and go then as well.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from transom.connectors.connector import Source
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.slide_join.budget import RunBudget, sink_part
from transom.pipeline.answer import output_form, output_schema
from transom.pipeline.consumer import ConsumerSpec
from transom.pipeline.driver import Pipeline
from transom.pipeline.engine import Alone, Engine
from transom.pipeline.group import GroupPipeline
from transom.pipeline.scheduled import ScheduledGroup
from transom.plan.catalogue import StreamDefinition, TableDefinition
from transom.plan.options import MOST_PARTITIONS, OPTIONS, partitions_of
from transom.planner.fingerprint import of_another_plan
from transom.planner.multiway_choice import read_decisions, written
from transom.planner.scheduling import Schedule, schedule_of
from transom.planner.sharing import Request
from transom.planner.sharing_shape import Sharable
from transom.program.clock import Clock, RealClock
from transom.program.inputs import Definition
from transom.program.latency import Stopwatch
from transom.program.planned import Planned
from transom.program.run import Ending, QuerySpec
from transom.program.sink_epochs import Saved
from transom.program.status import Status
from transom.runtimes.local.intake import InputReading, Intake
from transom.runtimes.local.job_statuses import JobStatuses
from transom.runtimes.local.output import QueryOutput
from transom.runtimes.local.overload import overload_of
from transom.runtimes.local.query import LocalQuery
from transom.state import codec
from transom.state.checks import alike, need

OpenSource = Callable[[Definition], Source]

Left = tuple[list[Saved], pa.RecordBatch | None]
"""What is kept of a query that has left, which may come back: the epochs of its sinks, and its last snapshot."""

NOBODY: Final[Mapping[str, Left]] = MappingProxyType({})


class LocalJob:
    """`specs` are to be run; `requests` are what each wants of the join that they share; a query by itself has none.

    Unless it is to end with its inputs they may grow, and streams that are idle are left behind. `home` is where files
    lie that a checkpoint refers to. `budget` is that of the run; where no checkpoint counts epochs (it is not
    `lasting`), one ends when a sink has too much of it in memory.
    """

    def __init__(
        self,
        specs: Sequence[QuerySpec],
        open_source: OpenSource,
        *,
        requests: Sequence[Request] = (),
        ending: Ending = "end",
        clock: Clock | None = None,
        home: str | None = None,
        budget: RunBudget | None = None,
        lasting: bool = False,
    ) -> None:
        self.join = requests[0].join if requests and isinstance(requests[0], Sharable) else None
        """What queries that come have to share; None: none can come."""
        self._clock: Clock = clock or RealClock()
        self._home = home
        self._budget = budget or RunBudget()
        self._lasting = lasting
        self.planned = specs[0].planned
        self._emit = specs[0].emit
        catalogue = self.planned.catalogue
        self._partitions = partitions_of(catalogue)
        rows: int = catalogue.options.get("batch_rows", OPTIONS["batch_rows"].default)
        self.engine: Engine
        if requests:
            self.engine = self._together(specs, requests)
            if isinstance(self.engine, ScheduledGroup):
                rows = min(rows, self.engine.schedule.buffer)
        else:
            self.engine = self._alone(self.planned)
        definitions: dict[str, Definition] = {}
        for name in self.engine.subplan.names:
            definition = catalogue.relations[name]
            assert isinstance(definition, StreamDefinition | TableDefinition)
            definitions[name] = definition
        self._intake = Intake(definitions, open_source, self._reject, rows=rows, ending=ending, clock=self._clock)
        self._shared = bool(requests)
        if self.join is None:
            self._intake.narrow(self.engine.subplan.root, catalogue)
        self.queries = [self._query(spec) for spec in specs]
        self._away: dict[str, Left] = {}
        """What is kept of queries that have left the join: they may come back, and go on with their epochs."""
        self._steps = 0
        self._changed = False
        self._stepping = threading.RLock() if catalogue.options.get("memory") is None else self._budget.lock
        self._statuses = JobStatuses(self._intake)
        self._written_progress = FOREVER
        """Within a step, what was final before it: what follows is not with the sinks yet."""
        stamped = any(self.engine.subplan.gates.stamped(name) for name in self.engine.subplan.inputs)
        self._stopwatch = Stopwatch() if stamped else None

    def _alone(self, planned: Planned) -> Alone:
        assert planned.root is not None
        pipeline = Pipeline(
            planned.root,
            planned.catalogue,
            self._emit,
            home=self._home,
            partitions=self._partitions,
            budget=self._budget,
        )
        pipeline.taker = self._take
        pipeline.clock = self._clock.now
        return Alone(pipeline)

    def _together(self, specs: Sequence[QuerySpec], requests: Sequence[Request]) -> GroupPipeline:
        consumers = [ConsumerSpec(spec.name, request, spec.emit) for spec, request in zip(specs, requests, strict=True)]
        catalogue = self.planned.catalogue
        schedule = schedule_of(requests[0], catalogue) if isinstance(requests[0], Sharable) else None
        if isinstance(schedule, Schedule):
            return ScheduledGroup(consumers, catalogue, schedule, self._clock.now)
        return GroupPipeline(consumers, catalogue)

    def _query(self, spec: QuerySpec) -> LocalQuery:
        assert spec.planned.root is not None
        form = output_form(spec.planned.root, spec.emit)
        schema = output_schema(form, spec.planned.root.schema)
        output = QueryOutput(spec, schema, form, lambda: self.engine.output_key(spec.name), self._hold)
        if self._hold is not None:
            self._budget.sinks.append(output.held)
        return LocalQuery(spec, self, output)

    @property
    def _hold(self) -> int | None:
        """What a sink is to have in memory at most."""
        memory = self.planned.catalogue.options.get("memory")
        return None if memory is None else sink_part(memory)

    # --- running -----------------------------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """All input has been read to its end, and everything that follows from it is out."""
        return self.engine.finished or (self._intake.complete and self.engine.at_rest)

    @property
    def done(self) -> bool:
        """Whether there is nothing more for this run to do, once a step has found nothing."""
        return self.finished or (self._intake.exhausted and self.engine.at_rest)

    def wake(self) -> None:
        """Somebody knows that there is more to read: the next step does not wait for the time to look again."""
        self._intake.wake()

    def step(self) -> bool:
        """Read one batch and go on; False when there is nothing to do: for good, or for now."""
        if self.finished:
            return False
        for query in self.queries:
            query.output.open()
        self._written_progress = self.engine.subplan.progress
        try:
            return self._step()
        finally:
            self._written_progress = FOREVER

    def _step(self) -> bool:
        read = self.engine.full  # then there is work enough
        while not read and (name := self._intake.next_input(self.engine.subplan)) is not None:
            batch = self._intake.read(name)
            with self._stepping:
                read = self._intake.take(name, batch, self.engine.subplan, self._stopwatch)
        went_on = self._intake.tables_read and self._advance(read)
        went_on = went_on or (not read and self._catch_up())
        self._steps += read or went_on
        return read or went_on

    def _advance(self, read: bool) -> bool:
        """Whether there is something to make sure of: not where silence has only let things be forgotten."""
        with self._stepping:
            came = self._intake.leave_idle_behind(self.engine.subplan) or read or not self.engine.at_rest
            if not came and not self.engine.timer_passed:
                return False
            self._changed = False
            went_on = self.engine.advance(self._write)
            self._changed = self._changed or self.engine.holds_rows
            for name, rows in self.engine.rejected_rows.items():
                self._intake.note(name, rows)
                self._changed = True
        if went_on and self._stopwatch is not None and self.engine.at_rest and not self._leave_when_committed:
            self._stopwatch.leave()
        return went_on and (self._changed or came)

    @property
    def _leave_when_committed(self) -> bool:
        """Whether all answers leave when a batch is over: snapshots and net changes."""
        return all(query.output.at_the_end_of_a_batch for query in self.queries)

    def _flush(self) -> None:
        """The batch is over."""
        with self._stepping:
            self.engine.flush(self._write)

    def _catch_up(self) -> bool:
        with self._stepping:
            return self.engine.catch_up(self._write)

    def _write(self, index: int, rows: pa.RecordBatch) -> None:
        """Write rows amid a step, when nobody works on the states: whoever asks does not wait for a sink."""
        self._stepping.release()
        try:
            self._put(self.queries[index], rows)
        finally:
            self._stepping.acquire()

    def _take(self, rows: pa.RecordBatch) -> None:
        """Take rows from within an operator, whose state is being worked on."""
        self._put(self.queries[0], rows)

    def _put(self, query: LocalQuery, rows: pa.RecordBatch) -> None:
        self._changed = query.output.write(rows) or self._changed
        if self._hold is not None and not self._lasting and query.output.held() > self._hold:
            query.output.commit()

    def _reject(self, rows: pa.RecordBatch) -> None:
        """Write rows to the dead letters of every query; once to a sink that several queries have."""
        sinks = [query.output.dead_letters for query in self.queries if query.output.dead_letters is not None]
        for sink in {id(sink.sink): sink for sink in sinks}.values():
            sink.write(rows)

    def close(self) -> None:
        """Everything that was written is seen."""
        try:
            self.engine.drain()
        finally:
            self.engine.close()
        self.commit()
        for query in self.queries:
            query.output.close()
        self._let_go()

    def _let_go(self) -> None:
        """The sinks count no more."""
        for query in self.queries:
            if query.output.held in self._budget.sinks:
                self._budget.sinks.remove(query.output.held)

    def abort(self) -> None:
        """What was written since it was last shown is forgotten."""
        self.engine.close()
        for query in self.queries:
            query.output.abort()
        self._let_go()

    # --- coming and going --------------------------------------------------------------------------------------------

    def add(self, spec: QuerySpec, request: Sharable) -> LocalQuery:
        """A query on the same join, between two steps: it sees rows from the progress on that has been reached."""
        assert isinstance(self.engine, GroupPipeline)
        with self._stepping:
            self.engine.add(ConsumerSpec(spec.name, request, spec.emit))
            query = self._query(spec)
            self.queries.append(query)
        return query

    def remove(self, name: str) -> LocalQuery:
        """Let one of several queries go; once its output is closed, what it has written is complete."""
        assert isinstance(self.engine, GroupPipeline)
        with self._stepping:
            query = next(each for each in self.queries if each.name == name)
            self.engine.flush(self._write, name)
            query.last = self.status(query)
            self.queries.remove(query)
            self.engine.remove(name)
            self._statuses.forget(name)
        return query

    # --- status ------------------------------------------------------------------------------------------------------

    def status(self, query: LocalQuery, lately: float = 0.0) -> Status:
        """How a query is doing; any thread may ask, and waits for a step that is under way, but not for a source."""
        with self._stepping:
            engine, subplan = self.engine, self.engine.subplan
            engine.drain()
            progress = engine.progress_of(query.name)
            return Status(
                name=query.name,
                inputs=self._statuses.inputs(engine, query.name),
                operators=self._statuses.operators(engine, query.name, lately),
                progress=BEGINNING if progress is None else min(progress, self._written_progress),
                held_back_by=None if self.finished or not subplan.inputs else subplan.held_back_by,
                rows_out=engine.rows_out(query.name),
                steps=self._steps,
                finished=self.finished,
                latency=None if self._stopwatch is None else self._stopwatch.latency,
                overload=overload_of(engine, query.name),
            )

    # --- saving ------------------------------------------------------------------------------------------------------

    def prepare_checkpoint(self) -> bytes:
        """Has the sinks prepare their epoch, and gives all that another process needs to resume; `commit` follows."""
        self._flush()
        here = {query.name: (query.output.prepare(), query.output.latest) for query in self.queries}
        outputs = self._away | here
        saved = {
            "sinks": {name: sinks for name, (sinks, _) in outputs.items()},
            "engine": np.frombuffer(self.engine.snapshot(), np.uint8),
            "readings": self._intake.readings,
            "latest": {name: latest for name, (_, latest) in outputs.items()},
            "steps": self._steps,
            "decisions": "" if self._shared else written(self.planned.decisions),
            "partitions": self._partitions,
            "shown": json.dumps(self._statuses.shown(self.engine, [query.name for query in self.queries])),
        }
        return codec.encode(saved)

    def commit(self) -> None:
        """What was written until now is seen."""
        self._flush()
        for query in self.queries:
            if query.output.commit() and self._stopwatch is not None:
                self._stopwatch.leave()
        self.engine.saved()
        self._intake.settle()

    def begin(self) -> None:
        """Begin with nothing to resume from; a run that died may have left something."""
        self.engine.begin()

    def restore(self, data: bytes, away: Mapping[str, Left] = NOBODY) -> None:
        """Go on where `prepare_checkpoint` was called, by the same queries over the same inputs.

        Of those that share a join new ones come in there, and others have left; `away` had left before.
        """
        saved: Any = codec.decode(data, (InputReading,))
        if not isinstance(saved, dict) or set(saved.get("readings", ())) != set(self._intake.readings):
            raise of_another_plan()
        with codec.restoring():
            self._plan_as(saved["decisions"], int(saved["partitions"]))
            self.engine.restore(saved["engine"].tobytes())
            alike(dict.fromkeys(self._intake.readings, InputReading()), saved["readings"])
            self._intake.resume(saved["readings"])
            self._steps = int(saved["steps"])
            self._away = {**away, **_sinks_of(saved)}
            for query in self.queries:
                query.output.resume(*self._away.pop(query.name, (None, None)))

    def release_away(self) -> dict[str, Left]:
        """Queries that have left, from now on the business of whoever asks."""
        away, self._away = self._away, {}
        return away

    def _plan_as(self, decisions: str, partitions: int) -> None:
        """Plan as whoever wrote the checkpoint did; with other rows to look at it might be planned otherwise."""
        planned = self.planned.decided(read_decisions(decisions)) if decisions else self.planned
        need(1 <= partitions <= MOST_PARTITIONS)
        if not self._shared and (planned is not self.planned or partitions != self._partitions):
            self.engine.close()
            self.planned, self._partitions = planned, partitions
            self.engine = self._alone(planned)
            self._intake.narrow(self.engine.subplan.root, planned.catalogue)


def left_in(data: bytes) -> dict[str, Left]:
    """What a job that nobody goes on with had kept of its queries."""
    saved: Any = codec.decode(data, (InputReading,))
    with codec.restoring():
        return _sinks_of(saved)


def _sinks_of(saved: Any) -> dict[str, Left]:
    return {name: (sinks, saved["latest"][name]) for name, sinks in saved["sinks"].items()}
