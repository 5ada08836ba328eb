"""Short ways to a running query for the tests of this room."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.run_locally import Rows, batch_of
from transom.core.time import SECOND, to_datetime
from transom.cql.statements import parse_statements
from transom.pipeline.admission import RejectedRows
from transom.pipeline.driver import Pipeline
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition, TableDefinition
from transom.planner.plan import plan

DECLARATIONS = """
CREATE STREAM s (ts TIMESTAMP INVISIBLE, k INTEGER, WATERMARK FOR ts AS ts) WITH (idle = '1 MINUTE');
CREATE STREAM t (ts TIMESTAMP INVISIBLE, k INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE STREAM f (ts TIMESTAMP INVISIBLE, k INTEGER, WATERMARK FOR ts AS ts) WITH (late = 'fail');
CREATE STREAM a (k INTEGER) WITH (time = 'arrival');
CREATE STREAM b (k INTEGER) WITH (time = 'arrival');
CREATE TABLE r (ts TIMESTAMP INVISIBLE, op VARCHAR, k INTEGER, WATERMARK FOR ts AS ts) WITH (changes = 'op');
CREATE TABLE names (k INTEGER, label VARCHAR);
"""


class Running:
    """A query; rows are (seconds, values ..), and seconds are None where a row has no time."""

    def __init__(self, text: str, emit: str = "changes", options: str = "") -> None:
        self.catalogue = Catalogue()
        statement = parse_statements(DECLARATIONS + options + text, self.catalogue)[-1]
        assert isinstance(statement, QueryStatement)
        self.query = statement.query
        self.root = plan(self.query, self.catalogue)
        self.emit = emit
        self.pipeline = Pipeline(self.root, self.catalogue, emit)

    def push(self, name: str, *rows: tuple[Any, ...], now: int | None = None) -> RejectedRows | None:
        definition = self.catalogue.relations[name]
        assert isinstance(definition, StreamDefinition | TableDefinition)
        timed: Rows = list(rows)
        if definition.time is not None and not (isinstance(definition, StreamDefinition) and definition.arrival_time):
            timed = [(None if row[0] is None else to_datetime(round(row[0] * SECOND)), *row[1:]) for row in rows]
        return self.pipeline.push(name, batch_of(definition.columns, timed), now)

    def advance(self) -> list[tuple[Any, ...]]:
        """What comes out; times as seconds."""
        output, self.rejected_rows = self.pipeline.advance()
        return [] if output is None else rows_of(output.rows)

    def fall_idle(self, name: str) -> bool:
        """It has been silent for the time that it declares, and the others have not."""
        gates = self.pipeline.gates
        idle = gates.inputs[name].definition.idle
        assert idle is not None
        gates.hear(name, 0, came=True, polled_at=idle)
        return gates.leave_idle_behind()

    def end(self, *names: str) -> list[tuple[Any, ...]]:
        for name in names:
            self.pipeline.end(name)
        return self.advance()

    def restart(self) -> None:
        saved = self.pipeline.snapshot()
        self.pipeline = Pipeline(self.root, self.catalogue, self.emit)
        self.pipeline.restore(saved)


def rows_of(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    columns = []
    for column in batch.columns:
        if pa.types.is_timestamp(column.type):
            values = column.cast(pa.int64()).to_pylist()
            columns.append([None if value is None else value / SECOND for value in values])
        else:
            columns.append(column.to_pylist())
    return list(zip(*columns, strict=True))
