"""The rows of an input, read from text by its declaration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from transom.core.schema import Schema
from transom.core.time import to_datetime
from transom.plan.catalogue import StreamDefinition, TableDefinition
from transom.testing.instant_text import Times
from transom.testing.written import Row, WrittenRows, show_row

Definition = StreamDefinition | TableDefinition


@dataclass(frozen=True)
class Given:
    """A row of an input in its declared columns, and its time if it has one."""

    at: int | None
    values: Row


def read_rows(definition: Definition, text: str, times: Times) -> list[Given]:
    """The rows of a text, in the order of its lines.

    >>> from transom.plan.catalogue import TimeColumn
    >>> columns = Schema.of(("room", pa.string()), ("ts", pa.timestamp("us")))
    >>> stream = StreamDefinition("s", columns, TimeColumn("ts", 0))
    >>> [row.values for row in read_rows(stream, "4 hall", Times())]
    [('hall', datetime.datetime(1970, 1, 1, 0, 0, 4))]
    """
    written = WrittenRows(text, f"the rows of '{definition.name}'", times)
    change = definition.change_column if isinstance(definition, TableDefinition) else None
    time = _time_column(definition)
    stamped = isinstance(definition, StreamDefinition) and definition.arrival_time
    others = Schema(tuple(column for column in definition.columns if column.name not in (time, change)))
    given = []
    for line in written.lines():
        values: dict[str | None, object] = {}
        at, begin = None, 0
        if time is not None:
            begin = 1
            if stamped or not line[0].is_null:
                at = written.instant(line[0])
            values[time] = None if at is None or stamped else to_datetime(at)
        if change is not None:
            values[change] = "+" if written.sign(line, begin) > 0 else "-"
            begin += 1
        values.update(zip(others.names, written.row(line, line[begin:], others), strict=True))
        given.append(Given(at, tuple(values[column.name] for column in definition.columns)))
    return given


def batch_of(columns: Schema, rows: Sequence[Given]) -> pa.RecordBatch:
    arrays = [pa.array([row.values[i] for row in rows], column.type) for i, column in enumerate(columns)]
    return pa.RecordBatch.from_arrays(arrays, schema=columns.arrow())


def show_rejected(definition: Definition, values: pa.RecordBatch, reasons: list[str], times: Times) -> list[str]:
    """Rows that were not admitted, each with its reason."""
    time = _time_column(definition)
    change = definition.change_column if isinstance(definition, TableDefinition) else None
    names = [column.name for column in definition.columns]
    order = sorted(range(len(names)), key=lambda i: (names[i] != time, names[i] != change))
    rows = list(zip(*(values.column(i).to_pylist() for i in order), strict=True))
    return [f"{definition.name}: {show_row(row, times)} ({reason})" for row, reason in zip(rows, reasons, strict=True)]


def _time_column(definition: Definition) -> str | None:
    """The time column as it is spelled among the columns."""
    if definition.time is None:
        return None
    spelled = {column.name.lower(): column.name for column in definition.columns}
    return spelled[definition.time.column.lower()]
