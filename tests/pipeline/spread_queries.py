"""Short ways to a query in partitions for the tests of this room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.pipeline.queries import rows_of
from tests.run_in_partitions import Cluster
from tests.run_locally import Push
from transom.core.time import SECOND, to_datetime
from transom.cql.statements import parse_statements
from transom.pipeline.layout import Layout
from transom.pipeline.merge import merged
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition
from transom.planner.plan import plan

DECLARATIONS = """
CREATE STREAM s (ts TIMESTAMP INVISIBLE, k INTEGER, x INTEGER, WATERMARK FOR ts AS ts) WITH (idle = '1 MINUTE');
CREATE STREAM t (ts TIMESTAMP INVISIBLE, k INTEGER, x INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
  WITH (late = 'dead_letter');
CREATE STREAM d (ts TIMESTAMP INVISIBLE, k INTEGER, x INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE STREAM f (ts TIMESTAMP INVISIBLE, k INTEGER, x INTEGER, WATERMARK FOR ts AS ts) WITH (late = 'fail');
CREATE STREAM a (k INTEGER, x INTEGER) WITH (time = 'arrival');
CREATE STREAM b (k INTEGER, x INTEGER) WITH (time = 'arrival');
CREATE TABLE r (ts TIMESTAMP INVISIBLE, op VARCHAR, k INTEGER, WATERMARK FOR ts AS ts) WITH (changes = 'op');
CREATE TABLE p (ts TIMESTAMP INVISIBLE, k INTEGER PRIMARY KEY, x INTEGER, WATERMARK FOR ts AS ts);
CREATE TABLE names (k INTEGER, label VARCHAR);
"""

Row = tuple[Any, ...]


def laid_out(text: str, partitions: int = 3, emit: str = "changes", unordered: frozenset[str] = frozenset()) -> Layout:
    catalogue = Catalogue()
    statement = parse_statements(DECLARATIONS + text, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    return Layout(plan(statement.query, catalogue), catalogue, emit, partitions, unordered)


def rows(layout: Layout, name: str, *given: Row) -> Push:
    """Rows are (seconds, values ..); those of arrival streams and static tables have no seconds."""
    definition = layout.sources[name]
    stamped = isinstance(definition, StreamDefinition) and definition.arrival_time
    if definition.time is None:
        return Push(name, list(given))
    if stamped:
        return Push(name, [(*row, None) for row in given])
    return Push(name, [(None if t is None else to_datetime(round(t * SECOND)), *values) for t, *values in given])


class Spread:
    """A query in partitions; every task of a batch is a list of pushes."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.cluster = Cluster(layout)

    def batch(self, *tasks: list[Push], now: float | None = None, at_end: Sequence[str] | None = None) -> list[Row]:
        """What comes out; times as seconds."""
        reported = self.cluster.batch(tasks, None if now is None else round(now * SECOND), at_end)
        return rows_of(merged(reported, self.layout.emit_name, self.layout.output_schema))

    def push(self, name: str, *given: Row, now: float | None = None) -> list[Row]:
        """A batch of one task with rows of one input."""
        return self.batch([rows(self.layout, name, *given)], now=now)

    def end(self, *names: str) -> list[Row]:
        return self.batch([Push(name, [], end=True) for name in names])

    def ledger(self, name: str) -> tuple[int, int, int]:
        """Rows used, late and rejected."""
        used, late, rejected = (self.cluster.counts(what)[name] for what in ("used", "late", "rejected"))
        return used, late, rejected

    def frontier(self) -> float | None:
        return None if self.cluster.frontier is None else self.cluster.frontier / SECOND

    def side(self) -> list[tuple[str, str]]:
        """Reason and row of what was rejected and is shown."""
        found = [row for batch in self.cluster.side for row in batch.to_pylist()]
        return sorted((row["reason"], row["row"]) for row in found)
