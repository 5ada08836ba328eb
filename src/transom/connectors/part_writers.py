"""One file being written, in each of the formats, and the copying of a finished one behind it."""

from __future__ import annotations

import os
import shutil
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.parquet

from transom.connectors.properties import FileProperties
from transom.connectors.row_text import csv_header, csv_text, json_text

_GROUP_ROWS: Final = 65_536
_GROUP_BYTES: Final = 64 * 1024 * 1024


class PartWriter(Protocol):
    path: str

    def write(self, batch: pa.RecordBatch) -> None: ...

    def abort(self) -> None:
        """Lets go of the file as it is."""
        ...

    def close(self) -> None:
        """Everything is on disk afterwards."""
        ...


def open_part(path: str, schema: pa.Schema, properties: FileProperties) -> PartWriter:
    if properties.format == "parquet":
        return ParquetPart(path, schema)
    return TextPart(path, schema, properties)


def append_part(writer: PartWriter, path: str) -> None:
    """The rows of a finished part of the same kind, without holding them all in memory."""
    if isinstance(writer, TextPart):
        writer.append(path)
    else:
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as part:
            for batch in part.iter_batches(_GROUP_ROWS):
                writer.write(batch)


class TextPart:
    """CSV with a header, or JSON lines."""

    def __init__(self, path: str, schema: pa.Schema, properties: FileProperties) -> None:
        self.path = path
        self._names = schema.names
        self._delimiter = properties.delimiter_of(path) if properties.format == "csv" else None
        self._null = properties.null
        self._header = b"" if self._delimiter is None else csv_header(self._names, self._delimiter)
        self._file = open(path, "wb")  # noqa: SIM115 (closed by close)
        self._file.write(self._header)

    def write(self, batch: pa.RecordBatch) -> None:
        if self._delimiter is None:
            self._file.write(json_text(batch, self._names))
        else:
            self._file.write(csv_text(batch, self._delimiter, self._null))

    def abort(self) -> None:
        self._file.close()

    def append(self, path: str) -> None:
        with open(path, "rb") as part:
            part.seek(len(self._header))
            shutil.copyfileobj(part, self._file, 1024 * 1024)

    def close(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


class ParquetPart:
    """Small batches are gathered into row groups of a size that readers like."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self.path = path
        self._file = open(path, "wb")  # noqa: SIM115 (closed by close)
        self._writer = pyarrow.parquet.ParquetWriter(self._file, schema)
        self._waiting: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        if (
            sum(len(waiting) for waiting in self._waiting) >= _GROUP_ROWS
            or sum(waiting.nbytes for waiting in self._waiting) >= _GROUP_BYTES
        ):
            self._write_group()

    def abort(self) -> None:
        self._writer.close()
        self._file.close()

    def _write_group(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting))
            self._waiting = []

    def close(self) -> None:
        self._write_group()
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
