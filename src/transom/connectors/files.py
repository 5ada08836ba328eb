"""Rows from files: a file, a folder or a pattern; Parquet, CSV or JSON lines.

Files are read in the order of their names, rows in the order of the file. Files may be added later, and lines to text
files: a later read goes on with them, wherever they sort. A position names what has been read of which file:
`{"files": {"a.csv": [bytes, lines], "b.parquet": rows}, "current": the one that is not finished}`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from transom.connectors.conform import Declared, conform, place_of, reject_rows
from transom.connectors.lines import BLOCK_BYTES
from transom.connectors.listing import Listed, list_files, show
from transom.connectors.parquet_rows import ParquetRows, open_parquet
from transom.connectors.properties import read_file_properties
from transom.connectors.source import Chunk, Position, Rejected, SourceBatch, rejected_batch
from transom.connectors.text_rows import read_text
from transom.core.errors import OptionError, SourceError
from transom.core.schema import Schema


class FileSource:
    """A source of files. `time_column` holds the instant of a row: it must be there and within the time domain.

    `stamped` is a column that no file has: it is NULL here, and whoever stamps the rows fills it in.
    """

    def __init__(
        self,
        columns: Schema,
        properties: dict[str, str],
        *,
        time_column: str | None,
        stamped: str | None = None,
    ) -> None:
        self._properties = read_file_properties(properties, source=True)
        self._columns = columns
        self._stamped = None if stamped is None else place_of(columns, stamped)
        in_files = Schema(tuple(column for at, column in enumerate(columns) if at != self._stamped))
        if not len(in_files):
            raise OptionError("no column is read from the files", remedy="declare at least one column that they have")
        at = None if time_column is None else place_of(in_files, time_column)
        self._declared = Declared(in_files, at, self._properties.time_unit)
        self._known: dict[str, Listed] = {}
        self._parquet: ParquetRows | None = None  # open where the last read stopped; only saves finding the place again

    def read(self, position: Position, max_rows: int, *, growing: bool = False) -> SourceBatch:
        """See `Source.read`. A batch may be shorter than asked for where rows are large."""
        if max_rows < 1:
            raise ValueError("max_rows must be at least 1")
        files: dict[str, Any] = position.get("files", {})
        current: str | None = position.get("current")
        batches: list[pa.RecordBatch] = []
        rejected: list[Rejected] = []
        left, size = max_rows, 0
        ended = True
        for file in self._files_to_read(files, current, growing):
            if left <= 0 or size >= BLOCK_BYTES:
                ended = False
                break
            finished = False
            while not finished and left > 0 and size < BLOCK_BYTES:
                chunk = self._read_chunk(file, files.get(file.name), left, growing)
                if chunk.at is not None:
                    files = {**files, file.name: chunk.at}
                batches.append(chunk.rows)
                rejected += chunk.rejected
                left -= len(chunk.rows) + len(chunk.rejected)
                size += chunk.rows.nbytes + sum(len(row.raw) for row in chunk.rejected)
                finished = chunk.finished
            current = None if finished else file.name
        after: Position = {"files": files} if current is None else {"files": files, "current": current}
        return SourceBatch(self._rows(batches), rejected_batch(rejected), after, ended and current is None)

    def _files_to_read(self, files: dict[str, Any], current: str | None, growing: bool) -> Iterator[Listed]:
        """The file that is not finished, then by name those of which something is unread."""
        if current is not None:
            if current not in self._known:
                self._list(files, growing)
            if current not in self._known:
                raise SourceError(
                    f"file '{show(current)}' has been read in part, and now it is not there",
                    remedy="put it back, or start the query anew",
                )
            yield self._known[current]
        for file in self._list(files, growing):
            if file.name == current or not file.size:
                continue
            at = files.get(file.name)
            if at is None or (isinstance(at, list) and at[0] != file.size):
                yield file

    def _list(self, files: dict[str, Any], growing: bool) -> list[Listed]:
        listed = list_files(self._properties.path, may_be_empty=growing or bool(files))
        self._known = {file.name: file for file in listed}
        return listed

    def _read_chunk(self, file: Listed, at: Any, max_rows: int, growing: bool) -> Chunk:
        file_format = self._properties.format_of(file.name)
        if file_format is None:
            raise SourceError(
                f"the name of file '{show(file.name)}' does not tell its format",
                remedy="write format = 'parquet', 'csv' or 'jsonl'",
            )
        if file_format != "parquet":
            return read_text(file, at, max_rows, self._declared, self._properties, growing)
        start = at or 0
        rows = self._parquet
        if rows is None or rows.file.name != file.name or rows.at != start:
            rows = self._parquet = open_parquet(file, start, max_rows, self._declared)
        piece = rows.take(max_rows)
        good, wrong = conform([] if piece is None else [piece], self._declared, show(file.name))
        rejected = [] if piece is None else reject_rows(piece, wrong, self._declared, show(file.name), start)
        if rows.at == rows.count:
            self._parquet = None
        return Chunk(good, rejected, rows.at, rows.at == rows.count)

    def _rows(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        whole = [batch for batch in batches if len(batch)]
        if not whole:
            return pa.RecordBatch.from_pylist([], self._columns.arrow())
        rows = whole[0] if len(whole) == 1 else pa.concat_batches(whole)
        if self._stamped is None:
            return rows
        empty = pa.nulls(len(rows), self._columns[self._stamped].type)
        columns = rows.columns
        columns.insert(self._stamped, empty)
        return pa.RecordBatch.from_arrays(columns, schema=self._columns.arrow())
