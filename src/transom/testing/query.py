"""One query under trial: a pipeline that is fed by hand, and what has come out of it."""

from __future__ import annotations

import pyarrow as pa

from transom.core.errors import SourceError
from transom.pipeline.admission import Refused
from transom.pipeline.driver import Pipeline
from transom.plan.catalogue import StreamDefinition, TableDefinition
from transom.program.clock import HeldClock
from transom.program.planned import Planned
from transom.testing.answer import Answer
from transom.testing.rows import Definition, show_refused
from transom.testing.times import Times
from transom.testing.written import Row, one_nan


class FedQuery:
    """Goes on after every push as far as its inputs allow, once the tables that never change have their rows."""

    def __init__(self, planned: Planned, clock: HeldClock, times: Times) -> None:
        assert planned.root is not None
        self._root, self._catalogue = planned.root, planned.catalogue
        self._clock, self._times = clock, times
        self.pipeline = Pipeline(self._root, self._catalogue)
        self.missing = set(self.pipeline.statics)
        for name in self.pipeline.inputs:
            self.pipeline.doors.hear(name, clock.now(), came=False, looked=clock.now())
        self._changes: list[tuple[int, int, Row]] = []
        self._refused: list[str] = []

    def push(self, definition: Definition, batch: pa.RecordBatch) -> None:
        name = definition.name.lower()
        if name in self.pipeline.statics:
            if name not in self.missing:
                raise SourceError(f"the rows of '{definition.name}' are given already", remedy="it never changes")
            self.missing.remove(name)
            self.pipeline.push(name, batch)
        elif name in self.pipeline.inputs:
            self._require_tables()
            if self.pipeline.state.doors.inputs[name].ended:
                raise SourceError(f"'{definition.name}' has ended", remedy="send its rows before end()")
            self._note(name, self.pipeline.push(name, batch, self._clock.now()))
            self.pipeline.doors.hear(name, self._clock.now(), came=len(batch) > 0, looked=self._clock.now())
        self.go_on()

    def end(self, names: list[str]) -> None:
        self._require_tables()
        for name in names or self.pipeline.inputs:
            self.pipeline.end(name)
        self.go_on()

    def look(self) -> None:
        """The clock has gone on, and all that has arrived has been read."""
        self.pipeline.doors.follow(self._clock.now(), list(self.pipeline.inputs))
        self.go_on()

    def go_on(self) -> None:
        if self.missing:
            return
        now = self._clock.now()
        for name in self.pipeline.inputs:
            self.pipeline.doors.hear(name, now, came=False, looked=now)
        self.pipeline.doors.leave_idle_behind()
        output, refused = self.pipeline.advance()
        for name, rows in refused.items():
            self._note(name, rows)
        if output is not None:
            self._take(output.rows)
        if self.pipeline.finished:
            self.pipeline.close()

    def restart(self) -> None:
        saved = self.pipeline.snapshot()
        self.pipeline.close()
        self.pipeline = Pipeline(self._root, self._catalogue)
        self.pipeline.restore(saved)

    def answer(self) -> Answer:
        stream = self.pipeline.emit_name == "stream"
        return Answer(self._root.schema, stream, tuple(self._changes), self._times, tuple(self._refused))

    # --- inside ------------------------------------------------------------------------------------------------------

    def _require_tables(self) -> None:
        for name in sorted(self.missing):
            raise SourceError(
                f"the rows of the table '{self._definition(name).name}' are not given",
                remedy="give them before anything else arrives; '' if it has none",
            )

    def _take(self, rows: pa.RecordBatch) -> None:
        if self.pipeline.emit_name == "stream":
            at, *values = rows.columns
            signs = [1] * len(rows)
        else:
            change, at, *values = rows.columns
            signs = [1 if sign == "+" else -1 for sign in change.to_pylist()]
        columns = [column.to_pylist() for column in values]
        for i, instant in enumerate(at.cast(pa.int64()).to_pylist()):
            self._changes.append((instant, signs[i], tuple(one_nan(column[i]) for column in columns)))

    def _note(self, name: str, refused: Refused | None) -> None:
        if refused is not None:
            self._refused += show_refused(self._definition(name), refused.values, refused.reasons, self._times)

    def _definition(self, name: str) -> Definition:
        definition = self._catalogue.relations[name]
        assert isinstance(definition, StreamDefinition | TableDefinition)
        return definition
