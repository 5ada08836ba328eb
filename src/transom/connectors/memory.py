"""Rows and answers that never leave the process."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from transom.connectors.answer_view import AnswerView
from transom.connectors.connector import Limits, Plan, Sink, Source, Split, SplitRows
from transom.connectors.row_fitter import RowFitter
from transom.connectors.source import Growing, Position
from transom.core.schema import Schema


class MemorySource(Source):
    """Rows that the program itself appends, all of them kept; its position is how many have been read.

    `given` are the columns that are appended: all but the one that is stamped.
    """

    def __init__(
        self, columns: Schema, *, time_column: str | None, stamped: str | None = None, time_unit: int | None = None
    ) -> None:
        self._fitter = RowFitter(columns, time_column=time_column, stamped=stamped, name="memory", time_unit=time_unit)
        self._batches: list[list[pa.Array]] = []
        self._starts = [0]

    @property
    def sampled(self) -> bool:
        return True

    @property
    def schema(self) -> pa.Schema:
        return self._fitter.schema

    @property
    def given(self) -> Schema:
        return self._fitter.given

    def append(self, batch: pa.RecordBatch) -> None:
        """More rows; columns are found by name."""
        self._batches.append(self._fitter.columns_of(batch))
        self._starts.append(self._starts[-1] + len(batch))

    def plan(self, position: Position, limits: Limits, *, growing: Growing = False) -> Plan:
        at, behind = int(position.get("rows", 0)), self._starts[-1]
        stop = max(at, behind if limits.rows is None else min(at + limits.rows, behind))
        splits = (Split("memory", at, stop - at, True),) if stop > at else ()
        return Plan({"rows": stop}, splits, stop >= behind)

    def read_split(self, split: Split) -> Iterator[SplitRows]:
        at, stop = split.at, split.at + split.rows
        while at < stop:
            number = bisect_right(self._starts, at) - 1
            first, count = at - self._starts[number], min(stop, self._starts[number + 1]) - at
            yield self._fitter.fit([values.slice(first, count) for values in self._batches[number]], at)
            at += count


class MemorySink(Sink):
    """Collects what is written, in `batches`; with `replace` the last snapshot alone; of both what `view` shows."""

    snapshots = True

    def __init__(self, schema: pa.Schema, view: AnswerView | None = None) -> None:
        self.schema = schema
        self._view = view or AnswerView()
        self.batches: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        batch = self._view.first(batch)
        if len(batch):
            self.batches.append(batch)

    def replace(self, batch: pa.RecordBatch) -> None:
        self.batches = [self._view.snapshot(batch)]

    @property
    def full(self) -> bool:
        return self._view.full

    def commit(self, epoch: int, token: Any) -> None:
        """What was written has been seen already."""

    def table(self) -> pa.Table:
        return pa.Table.from_batches(list(self.batches), self.schema)

    def collected(self) -> pa.Table:
        return self.table()
