"""The queries of a trial as the local runtime runs them: its jobs, its checkpoints, over sources that the test fills.

It is a run with a checkpoint that waits for more (`transom run --runtime local --follow --checkpoint`): what shares a
join shares it here, and partitions, schedules and memory budgets are those that the text sets. Only what is outside is
replaced: sources, sinks and the clock.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from transom.connectors.connector import Limits, OpenSink, Plan, Sink, Source
from transom.connectors.memory import MemorySource
from transom.connectors.open import declaration_of
from transom.connectors.row_fitter import RowFitter
from transom.connectors.source import Growing, Position
from transom.core.errors import SourceError
from transom.plan.algebra import Stream
from transom.plan.no_from import ONE_ROW
from transom.program.clock import Clock
from transom.program.planned import Planned
from transom.program.run import QuerySpec, RunOptions
from transom.program.status import Status
from transom.runtimes.local.job import LocalJob
from transom.runtimes.local.runtime import LocalRuntime
from transom.state.scratch import Scratch, in_memory
from transom.testing.answer import Answer
from transom.testing.instant_text import Times
from transom.testing.rows import Definition, show_rejected
from transom.testing.written import Row, frozen


class FedSource(MemorySource):
    """Rows that a test sends, until it says that there are no more. Times are left to the query to judge."""

    def __init__(self, definition: Definition) -> None:
        super().__init__(definition.columns, time_column=None, stamped=declaration_of(definition).stamped)
        self.over = False

    def plan(self, position: Position, limits: Limits, *, growing: Growing = False) -> Plan:
        plan = super().plan(position, limits, growing=growing)
        return replace(plan, over=plan.ended and self.over)


class CommittedRows(Sink):
    """What a query writes, from the commit on that shows it."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self._written: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self._written.append(batch)

    def commit(self, epoch: int, token: Any) -> None:
        self.batches += self._written
        self._written = []

    def abort(self, epoch: int) -> None:
        self._written = []


class FedQuery:
    """A query and what it has shown: its answer, as changes whatever its sink would have, and the rows it rejected."""

    def __init__(self, planned: Planned, name: str) -> None:
        assert planned.root is not None
        self._rows, self._dead_letters = CommittedRows(), CommittedRows()
        self._schema = planned.root.schema
        self._stream = isinstance(planned.root.node, Stream)
        self.spec = QuerySpec(
            planned, name, "changes", OpenSink(lambda opening: self._rows), OpenSink(lambda opening: self._dead_letters)
        )

    def answer(self, definitions: Mapping[str, Definition], times: Times) -> Answer:
        changes = [change for batch in self._rows.batches for change in self._changes(batch)]
        rejected = [row for batch in self._dead_letters.batches for row in _dead_letters(batch, definitions, times)]
        return Answer(self._schema, self._stream, tuple(changes), times, tuple(rejected))

    def _changes(self, batch: pa.RecordBatch) -> list[tuple[int, int, Row]]:
        if self._stream:
            at, *values = batch.columns
            signs = [1] * len(batch)
        else:
            change, at, *values = batch.columns
            signs = [1 if sign == "+" else -1 for sign in change.to_pylist()]
        instants = at.cast(pa.int64()).to_pylist()
        columns = [[frozen(value) for value in column.to_pylist()] for column in values]
        rows = zip(*columns, strict=True) if columns else [()] * len(batch)
        return list(zip(instants, signs, rows, strict=True))


class FedRun:
    """Goes on as far as the sources allow, and saves that in a checkpoint, whenever it is drained.

    A query begins once the tables that it reads and that never change have their rows.
    """

    def __init__(self, queries: Sequence[FedQuery], definitions: Mapping[str, Definition], clock: Clock) -> None:
        self._definitions = definitions
        self._sources = {name: FedSource(definition) for name, definition in definitions.items()}
        self._given: set[str] = set()
        self._folder = Scratch("trial", in_memory())
        self._runtime = LocalRuntime(self)
        self._specs = [query.spec for query in queries]
        self._run_options = RunOptions("stopped", self._folder.path, clock=clock)
        self._run = self._runtime.assemble(self._specs, self._run_options)
        self._over = False
        """Whether everything has ended, and the run is closed."""
        if ONE_ROW in definitions:
            columns = definitions[ONE_ROW].columns
            self.push(ONE_ROW, pa.record_batch([pa.array([1], column.type) for column in columns], columns.names))

    def open(self, definition: Definition) -> Source:
        """What the run reads in place of what is declared."""
        return self._sources[definition.name.lower()]

    def push(self, name: str, batch: pa.RecordBatch) -> None:
        """Rows of an input have come."""
        definition, source = self._definitions[name], self._sources[name]
        if definition.time is None and name in self._given:
            raise SourceError(f"the rows of '{definition.name}' are given already", remedy="it never changes")
        if source.over:
            raise SourceError(f"'{definition.name}' has ended", remedy="send its rows before end()")
        if definition.time is not None:
            self._require_tables([job for job in self._run.jobs if name in job.engine.subplan.inputs])
        source.append(batch)
        self._given.add(name)
        self.drain()

    def end(self, names: Sequence[str]) -> None:
        """Say that nothing more will come of these inputs; without names, of all."""
        self._require_tables(self._run.jobs)
        for name in names or self._sources:
            self._sources[name].over = True
        self.drain()

    def drain(self) -> None:
        """Everything that has come is read, and all that follows from it is in the checkpoint."""
        if self._over:
            return
        for job in self._run.jobs:
            if not self._missing(job):
                job.wake()
                while job.step():
                    pass
        self._over = self._run.finished
        if self._over:
            self._run.close()
        else:
            self._run.commit()

    def restart(self) -> None:
        """What is not in the checkpoint is forgotten, and another run resumes from there."""
        self._run.abort()
        self._run, self._over = self._runtime.assemble(self._specs, self._run_options), False

    def statuses(self) -> dict[str, Status]:
        """How the queries are doing, by their names."""
        return {query.name: query.status() for query in self._run.queries}

    def close(self) -> None:
        """Close the run and leave nothing behind: no thread, no file."""
        self._run.abort()
        self._folder.remove()

    def _missing(self, job: LocalJob) -> list[str]:
        """The tables that never change, and whose rows are not there yet."""
        return sorted(name for name in job.engine.subplan.statics if name not in self._given)

    def _require_tables(self, jobs: Sequence[LocalJob]) -> None:
        for name in [name for job in jobs for name in self._missing(job)]:
            raise SourceError(
                f"the rows of the table '{self._definitions[name].name}' are not given",
                remedy="give them before anything else arrives; '' if it has none",
            )


def _dead_letters(side: pa.RecordBatch, definitions: Mapping[str, Definition], times: Times) -> list[str]:
    """Rows of the dead-letter table, as a test writes them."""
    shown = []
    for row in side.to_pylist():
        definition = definitions[row["stream"].lower()]
        values = json.loads(row["row"], parse_int=str, parse_float=str)
        texts = {name: [_text(value)] for name, value in values.items()}
        fitter = RowFitter(definition.columns, time_column=None, name=definition.name)
        written = pa.record_batch({name: pa.array(text, pa.string()) for name, text in texts.items()})
        fitted = fitter.fit(fitter.columns_of(written), 0).rows
        shown += show_rejected(definition, fitted, [row["reason"]], times)
    return shown


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else str(value).lower()
