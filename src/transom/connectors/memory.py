"""Rows and answers that never leave the process."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from transom.connectors.conform import Declared, Piece, conform, find_columns, place_of, reject_rows
from transom.connectors.source import Growing, Position, Rejected, SourceBatch, rejected_batch
from transom.core.schema import Schema


class MemorySource:
    """Rows that the program itself appends, all of them kept; its position is how many have been read.

    `given` are the columns that are appended: all but the one that is stamped.
    """

    def __init__(self, columns: Schema, *, time_column: str | None, stamped: str | None = None) -> None:
        self._columns = columns
        self._stamped = None if stamped is None else place_of(columns, stamped)
        self._declared = Declared(columns, None if time_column is None else place_of(columns, time_column))
        self.given = Schema(tuple(column for at, column in enumerate(columns) if at != self._stamped))
        self._pieces: list[list[pa.Array]] = []
        self._starts = [0]

    def append(self, batch: pa.RecordBatch) -> None:
        """More rows; columns are found by name."""
        columns = [batch.column(place) for place in find_columns(self.given, batch.schema.names, "memory")]
        if self._stamped is not None:
            columns.insert(self._stamped, pa.nulls(len(batch), self._columns[self._stamped].type))
        self._pieces.append(columns)
        self._starts.append(self._starts[-1] + len(batch))

    def read(self, position: Position, max_rows: int, *, growing: Growing = False) -> SourceBatch:
        if max_rows < 1:
            raise ValueError("max_rows must be at least 1")
        at = start = int(position.get("rows", 0))
        stop = min(start + max_rows, self._starts[-1])
        batches: list[pa.RecordBatch] = []
        rejected: list[Rejected] = []
        while at < stop:
            number = int(np.searchsorted(self._starts, at, side="right")) - 1
            first, count = at - self._starts[number], min(stop, self._starts[number + 1]) - at
            piece = Piece(np.arange(count), [values.slice(first, count) for values in self._pieces[number]])
            rows, wrong = conform([piece], self._declared, "memory")
            batches.append(rows)
            rejected += reject_rows(piece, wrong, self._declared, "memory", at)
            at += count
        rows = pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], self._columns.arrow())
        return SourceBatch(rows, rejected_batch(rejected), {"rows": at}, at == self._starts[-1])


class MemorySink:
    """Collects what is written, in `batches`; with `replace` the last snapshot alone."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.batches: list[pa.RecordBatch] = []
        self._parts = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if len(batch):
            self.batches.append(batch)

    def replace(self, batch: pa.RecordBatch) -> None:
        self.batches = [batch]

    def prepare(self) -> int:
        return self._parts + 1

    def commit(self) -> int:
        self._parts += 1
        return self._parts

    def abandon(self) -> None:
        """What was written has been seen already."""

    def close(self) -> None:
        """Nothing is held that would have to be let go."""

    def table(self) -> pa.Table:
        return pa.Table.from_batches(self.batches, self.schema)
