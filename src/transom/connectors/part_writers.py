"""One file being written, in each of the formats, and the copying of a finished one behind it."""

from __future__ import annotations

import math
import shutil
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from transom.connectors.properties import FileProperties
from transom.connectors.row_text import csv_header, csv_text, json_text
from transom.connectors.storage import WriteFile, create_file

_GROUP_ROWS: Final = 65_536
_GROUP_BYTES: Final = 64 * 1024 * 1024

_COPIED_ROWS: Final = 4_096
"""Rows that are copied at a time within a memory budget."""

_TEXT_TIMES: Final = 16
"""Rows take so many times their bytes while they become text, about."""

_SAMPLE: Final = 2048
"""So many rows tell whether the values of a column come again."""


class PartWriter(Protocol):
    path: str
    size: int
    """How many bytes it has, when it is closed."""

    held_bytes: int
    """Of rows that were given to it and wait in memory."""
    groups: int
    """How many groups of rows it has, each of which is described in memory until it is closed."""

    def write(self, batch: pa.RecordBatch) -> None: ...

    def abort(self) -> None:
        """Lets go of the file as it is."""
        ...

    def close(self) -> None:
        """Everything is on disk afterwards."""
        ...


def open_part(
    path: str, schema: pa.Schema, properties: FileProperties, file: WriteFile | None = None, hold: int | None = None
) -> PartWriter:
    """Writes to the path, or to a file that is open already; with about `hold` bytes in memory at most."""
    file = create_file(path) if file is None else file
    if properties.format == "parquet":
        return ParquetPart(path, file, schema, hold)
    return TextPart(path, file, schema, properties, hold)


def append_part(writer: PartWriter, path: str) -> None:
    """The rows of a finished part of the same kind, without holding them all in memory."""
    if isinstance(writer, TextPart):
        writer.append(path)
    else:
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as part:
            rows = _GROUP_ROWS if not isinstance(writer, ParquetPart) or writer.hold is None else _COPIED_ROWS
            for batch in part.iter_batches(rows):
                writer.write(batch)


class TextPart:
    """CSV with a header, or JSON lines."""

    def __init__(
        self, path: str, file: WriteFile, schema: pa.Schema, properties: FileProperties, hold: int | None = None
    ) -> None:
        self.path = path
        self.size = self.held_bytes = self.groups = 0
        self._hold = hold
        self._names = schema.names
        self._delimiter = properties.delimiter_of(path) if properties.format == "csv" else None
        self._null = properties.null
        self._header = b"" if self._delimiter is None else csv_header(self._names, self._delimiter)
        self._file = file
        self._file.sink.write(self._header)

    def write(self, batch: pa.RecordBatch) -> None:
        rows = len(batch)
        if self._hold is not None:
            rows = max(self._hold * rows // (_TEXT_TIMES * max(batch.nbytes, 1)), 1)
        for first in range(0, len(batch), max(rows, 1)):
            some = batch.slice(first, rows)
            if self._delimiter is None:
                self._file.sink.write(json_text(some, self._names))
            else:
                self._file.sink.write(csv_text(some, self._delimiter, self._null))

    def abort(self) -> None:
        self._file.abort()

    def append(self, path: str) -> None:
        with open(path, "rb") as part:
            part.seek(len(self._header))
            shutil.copyfileobj(part, self._file.sink, 1024 * 1024)

    def close(self) -> None:
        self.size = self._file.close()


class ParquetPart:
    """Small batches are gathered into row groups of a size that readers like; by the first, columns are encoded."""

    def __init__(self, path: str, file: WriteFile, schema: pa.Schema, hold: int | None = None) -> None:
        self.path = path
        self.size = self.held_bytes = self.groups = 0
        self.hold = hold
        self._most = _GROUP_BYTES if hold is None else min(hold, _GROUP_BYTES)
        self._schema = schema
        self._file = file
        self._writer: pyarrow.parquet.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self.held_bytes += batch.nbytes
        if sum(len(waiting) for waiting in self._waiting) >= _GROUP_ROWS or self.held_bytes >= self._most:
            self._write_group()

    def abort(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._file.abort()

    def _write_group(self) -> pyarrow.parquet.ParquetWriter:
        group = pa.Table.from_batches(self._waiting, self._schema)
        if self._writer is None:
            self._writer = pyarrow.parquet.ParquetWriter(
                self._file.sink, self._schema, use_dictionary=_repeating(group)
            )
        if len(group):
            self._writer.write_table(group)
            self._waiting, self.held_bytes = [], 0
            self.groups += 1
        return self._writer

    def close(self) -> None:
        self._write_group().close()
        self.size = self._file.close()


def _repeating(rows: pa.Table) -> list[str] | bool:
    """The columns that are written as a dictionary, for their values come twice or more on the average.

    Where they do not, it takes three times as long to find that out while writing, and the file gets larger. Of few
    rows, or where columns have columns within, nobody asks.
    """
    count = len(rows)
    if count < _SAMPLE or any(map(pa.types.is_nested, rows.schema.types)):
        return True
    sample = rows.take(np.linspace(0, count - 1, _SAMPLE, dtype=np.int64))
    drawn = 2 * _SAMPLE / count  # of each value, if all came twice
    different = _SAMPLE * -math.expm1(-drawn) / drawn
    counts = [pc.count_distinct(values, mode="all").as_py() for values in sample.columns]
    return [name for name, distinct in zip(rows.schema.names, counts, strict=True) if distinct <= different]
