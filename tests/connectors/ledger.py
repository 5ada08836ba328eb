"""A connector as a third party would write it: partitions of lines, and a database with one transaction an epoch.

A folder holds a log of lines `instant,value` for every partition. Answers go to an SQLite database, which knows by run
which epochs it has.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from transom.connectors import (
    Connector,
    Declaration,
    Growing,
    Limits,
    Opening,
    Plan,
    Position,
    RowFitter,
    Sink,
    SinkDeclaration,
    Source,
    Split,
    SplitRows,
    StagedSink,
    register,
)

PARTITIONS = ("north", "south")


class LedgerSource(Source):
    """Its offset is how many lines of each partition have been read. They follow each other, or are written `side_by`
    side."""

    distributed = True

    def __init__(self, declared: Declaration) -> None:
        self._folder = declared.properties["folder"]
        self._side_by_side = "side_by" in declared.properties
        self._fitter = RowFitter(
            declared.columns, time_column=declared.time_column, stamped=declared.stamped, name=declared.name
        )

    @property
    def schema(self) -> pa.Schema:
        return self._fitter.schema

    def plan(self, position: Position, limits: Limits, *, growing: Growing = False) -> Plan:
        after, splits, ended = dict(position), [], True
        for partition in PARTITIONS:
            at, stop = int(position.get(partition, 0)), len(self._lines(partition))
            count = stop - at if limits.rows is None else min(stop - at, limits.rows // len(PARTITIONS) or 1)
            if count:
                splits.append(Split(partition, at, count, divisible=True))
            after[partition] = at + count
            ended = ended and at + count == stop
        live = {partition: after[partition] == len(self._lines(partition)) for partition in PARTITIONS}
        return Plan(after, tuple(splits), ended, live=live if self._side_by_side else None)

    def read_split(self, split: Split) -> Iterator[SplitRows]:
        with open(os.path.join(self._folder, f"read-by-{os.getpid()}"), "a") as readers:
            readers.write(f"{split.partition}\n")
        lines = [line.split(",") for line in self._lines(split.partition)[split.at : split.at + split.rows]]
        rows = pa.record_batch({"ts": [line[0] for line in lines], "v": [line[1] for line in lines]})
        yield self._fitter.fit(self._fitter.columns_of(rows), split.at)

    def _lines(self, partition: str) -> list[str]:
        with open(os.path.join(self._folder, partition)) as log:
            return log.read().splitlines()


class LedgerSink(StagedSink):
    def __init__(self, declared: SinkDeclaration, opening: Opening) -> None:
        super().__init__(declared, opening)
        self._path = declared.properties["database"]

    def transact(self, epoch: int, rows: Sequence[pa.RecordBatch]) -> None:
        with sqlite3.connect(self._path) as database:  # which commits at the end, or not at all
            database.execute("CREATE TABLE IF NOT EXISTS epochs (run TEXT, epoch INTEGER, PRIMARY KEY (run, epoch))")
            database.execute("CREATE TABLE IF NOT EXISTS answers (v INTEGER, epoch INTEGER)")
            committed = database.execute("SELECT 1 FROM epochs WHERE run = ? AND epoch >= ?", (self.run, epoch))
            if committed.fetchone() is None:
                database.execute("INSERT INTO epochs VALUES (?, ?)", (self.run, epoch))
                for batch in rows:
                    values = [(value, epoch) for value in batch.column("v").to_pylist()]
                    database.executemany("INSERT INTO answers VALUES (?, ?)", values)
        database.close()


class LatestSink(Sink):
    """Keeps the last snapshot; what is prepared goes into the checkpoint as it is."""

    snapshots = True

    def __init__(self, declared: SinkDeclaration, opening: Opening) -> None:
        self._path = declared.properties["database"]
        self._run = declared.run
        self._rows: list[int] | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        raise AssertionError("every epoch brings the whole answer")

    def replace(self, batch: pa.RecordBatch) -> None:
        self._rows = batch.column("v").to_pylist()

    def prepare(self, epoch: int) -> Any:
        return {"rows": self._rows}

    def commit(self, epoch: int, token: Any) -> None:
        with sqlite3.connect(self._path) as database:
            database.execute("CREATE TABLE IF NOT EXISTS epochs (run TEXT, epoch INTEGER, PRIMARY KEY (run, epoch))")
            database.execute("CREATE TABLE IF NOT EXISTS answers (v INTEGER)")
            committed = database.execute("SELECT 1 FROM epochs WHERE run = ? AND epoch >= ?", (self._run, epoch))
            if committed.fetchone() is None:
                database.execute("INSERT INTO epochs VALUES (?, ?)", (self._run, epoch))
                if token["rows"] is not None:
                    database.execute("DELETE FROM answers")
                    database.executemany("INSERT INTO answers VALUES (?)", [(value,) for value in token["rows"]])
        database.close()
        self._rows = None  # those of the next epoch come with it


def answers(path: str) -> list[int]:
    database = sqlite3.connect(path)
    values = [value for (value,) in database.execute("SELECT v FROM answers ORDER BY v")]
    database.close()
    return values


LEDGER = Connector(source=LedgerSource, sink=LedgerSink)
register("ledger", LEDGER)
register("latest", Connector(sink=LatestSink))
