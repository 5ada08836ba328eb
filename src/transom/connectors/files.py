"""Rows from files: a file, a folder or a pattern; Parquet, CSV or JSON lines.

Files are read in the order of their names, rows in the order of the file. Files may be added later, and lines to text
files: a later read goes on with them, wherever they sort. A position names what has been read of which file, and a
mark by which it is known again:
`{"files": {"a.csv": [bytes, lines, mark], "b.parquet": [rows, mark]}, "current": the one that is not finished}`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from transom.connectors.conform import Declared, conform, place_of, reject_rows
from transom.connectors.lines import BLOCK_BYTES
from transom.connectors.listing import Listed, cannot_read, list_files, path_of, show
from transom.connectors.parquet_rows import Footers, ParquetRows, cut_at_groups, open_parquet, refuse_shorter
from transom.connectors.pieces import PIECE_RECORDS, Piece, PieceRows, Reach
from transom.connectors.properties import read_file_properties
from transom.connectors.recognise import mark_of_parquet, read_entry, refuse_another
from transom.connectors.source import Chunk, Growing, Position, Rejected, SourceBatch, rejected_batch
from transom.connectors.text_rows import read_text, read_text_piece, refuse_replaced
from transom.connectors.text_scan import TextScan
from transom.core.errors import OptionError, SourceError
from transom.core.location import Within
from transom.core.schema import Schema


class FileSource:
    """A source of files. `time_column` holds the instant of a row: it must be there and within the time domain.

    `stamped` is a column that no file has: it is NULL here, and whoever stamps the rows fills it in. No file is opened
    that leads outside of `within`.
    """

    def __init__(
        self,
        columns: Schema,
        properties: dict[str, str],
        *,
        time_column: str | None,
        stamped: str | None = None,
        within: Within | None = None,
    ) -> None:
        self._properties = read_file_properties(properties, source=True)
        self._within = within
        if within is not None:
            within.check_pattern(self._properties.path)
        self._columns = columns
        self._stamped = None if stamped is None else place_of(columns, stamped)
        in_files = Schema(tuple(column for at, column in enumerate(columns) if at != self._stamped))
        if not len(in_files):
            raise OptionError("no column is read from the files", remedy="declare at least one column that they have")
        at = None if time_column is None else place_of(in_files, time_column)
        self._declared = Declared(in_files, at, self._properties.time_unit)
        self._known: dict[str, Listed] = {}
        self._recognised: dict[str, tuple[int, ...]] = {}  # files that have been read to their end, as they were then
        # These save finding things again, and nothing else.
        self._parquet: ParquetRows | None = None  # open where the last read stopped
        self._scan: TextScan | None = None  # the file in which the last reach stopped
        self._footers = Footers(self._declared)

    def read(self, position: Position, max_rows: int, *, growing: Growing = False) -> SourceBatch:
        """See `Source.read`. A batch may be shorter than asked for where rows are large."""
        if max_rows < 1:
            raise ValueError("max_rows must be at least 1")
        files: dict[str, Any] = position.get("files", {})
        current: str | None = position.get("current")
        batches: list[pa.RecordBatch] = []
        rejected: list[Rejected] = []
        left, size = max_rows, 0
        ended = True
        for file in self._files_to_read(files, current, bool(growing)):
            if left <= 0 or size >= BLOCK_BYTES:
                ended = False
                break
            finished = False
            while not finished and left > 0 and size < BLOCK_BYTES:
                chunk = self._read_chunk(file, files.get(file.name), left, growing is True)
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

    def reach(
        self, position: Position, *, max_rows: int | None, max_files: int | None = None, growing: Growing = False
    ) -> Reach:
        """See `PiecewiseSource.reach`. A file counts towards `max_files` when something of it is read."""
        if any(most is not None and most < 1 for most in (max_rows, max_files)):
            raise ValueError("max_rows and max_files must be at least 1")
        before: dict[str, Any] = position.get("files", {})
        files, current = dict(before), position.get("current")
        rows_left = sys.maxsize if max_rows is None else max_rows
        files_left = sys.maxsize if max_files is None else max_files
        pieces: list[Piece] = []
        ended = True
        for file in self._files_to_read(before, current, bool(growing)):
            if not rows_left or not files_left:
                ended = False
                break
            found, at, finished = self._reach_in(file, before.get(file.name), rows_left, growing is True)
            if at is not None:
                files[file.name] = at
            pieces += found
            rows_left -= sum(piece.rows for piece in found)
            files_left -= bool(found)
            current = None if finished else file.name
            if not finished:  # nothing else is looked at before the rest of it
                break
        after: Position = {"files": files} if current is None else {"files": files, "current": current}
        return Reach(after, tuple(pieces), ended and current is None)

    def _reach_in(self, file: Listed, at: Any, max_rows: int, growing: bool) -> tuple[list[Piece], Any, bool]:
        """The next pieces of a file, what has been read of it then, and whether that is all there is now."""
        if self._format_of(file.name) == "parquet":
            footer = self._footers.of(file)
            start, mark = _parquet_at(at)
            refuse_shorter(file, footer.rows, start)
            refuse_another(file, mark, footer.mark, f"{start} rows")
            stop = min(start + max_rows, footer.rows)
            if stop == footer.rows:
                self._footers.forget(file)
            parts = cut_at_groups(footer, start, stop)
            pieces = [Piece(file.name, first, behind - first) for first, behind in parts]
            return pieces, [stop, footer.mark], stop == footer.rows
        if self._scan is None or self._scan.file.path != file.path:
            self._scan = TextScan(file, self._declared, self._properties)
        found = self._scan.reach(at, max_rows, growing)
        return found.pieces, found.at, found.finished

    def read_piece(self, piece: Piece) -> Iterator[PieceRows]:
        """See `PiecewiseSource.read_piece`."""
        file = Listed(piece.file, path_of(self._properties.path, piece.file), 0)
        if self._within is not None:
            self._within.check(file.path)
        if self._format_of(piece.file) != "parquet":
            chunk = read_text_piece(file, piece.at, piece.rows, self._declared, self._properties)
            yield PieceRows(self._rows([chunk.rows]), chunk.rejected)
            return
        at: int = piece.at
        stop = at + piece.rows
        while at < stop:
            chunk = self._read_parquet(file, [at, None], stop - at, max(stop - at, PIECE_RECORDS))
            at, _ = _parquet_at(chunk.at)
            refuse_shorter(file, at, stop if chunk.finished else 0)
            yield PieceRows(self._rows([chunk.rows]), chunk.rejected)

    def _files_to_read(self, files: dict[str, Any], current: str | None, growing: bool) -> Iterator[Listed]:
        """The file that is not finished, then by name those of which something is unread."""
        if current is not None:
            if current not in self._known:
                self._list(files, current, growing)
            if current not in self._known:
                raise SourceError(
                    f"file '{show(current)}' has been read in part, and now it is not there",
                    remedy="put it back, or start the query anew",
                )
            yield self._known[current]
        for file in self._list(files, current, growing):
            if file.name == current or not file.size:
                continue
            at = files.get(file.name)
            if at is None or (self._format_of(file.name) != "parquet" and read_entry(at, 2)[0][0] != file.size):
                yield file
            elif self._recognised.get(file.name) != file.state:
                self._recognise(file, at)

    def _recognise(self, file: Listed, at: Any) -> None:
        """Refuse a file that has been read to its end and is another one now, of the same size or a Parquet file."""
        try:
            if self._format_of(file.name) == "parquet":
                rows, mark = _parquet_at(at)
                refuse_another(file, mark, mark_of_parquet(file.path), f"{rows} rows")
            else:
                with open(file.path, "rb") as handle:
                    refuse_replaced(handle, file, at)
        except FileNotFoundError:
            return
        except OSError as error:
            raise cannot_read(file.path, error) from None
        self._recognised[file.name] = file.state

    def _list(self, files: dict[str, Any], current: str | None, growing: bool) -> list[Listed]:
        # A Parquet file that has been read does not grow, so nobody need look at it again.
        parquet = (name for name in self._recognised if self._format_of(name) == "parquet")
        settled = {name for name in parquet if name in files and name != current}
        listed = list_files(
            self._properties.path,
            may_be_empty=growing or bool(files),
            settled=settled,
            known=files,
            within=self._within,
        )
        self._known = {file.name: file for file in listed}
        return listed

    def _read_chunk(self, file: Listed, at: Any, max_rows: int, growing: bool) -> Chunk:
        file_format = self._format_of(file.name)
        if file_format != "parquet":
            return read_text(file, at, max_rows, self._declared, self._properties, growing)
        return self._read_parquet(file, at, max_rows, max_rows)

    def _read_parquet(self, file: Listed, at: Any, max_rows: int, batch_rows: int) -> Chunk:
        start, mark = _parquet_at(at)
        rows = self._parquet
        if rows is None or rows.file.name != file.name or rows.at != start:
            rows = self._parquet = open_parquet(file, start, batch_rows, self._declared, mark)
        piece = rows.take(max_rows)
        good, wrong = conform([] if piece is None else [piece], self._declared, show(file.name))
        rejected = [] if piece is None else reject_rows(piece, wrong, self._declared, show(file.name), start)
        if rows.at == rows.count:
            self._parquet = None
        return Chunk(good, rejected, [rows.at, rows.mark], rows.at == rows.count)

    def _format_of(self, name: str) -> str:
        file_format = self._properties.format_of(name)
        if file_format is None:
            raise SourceError(
                f"the name of file '{show(name)}' does not tell its format",
                remedy="write format = 'parquet', 'csv' or 'jsonl'",
            )
        return file_format

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


def _parquet_at(at: Any) -> tuple[int, str | None]:
    """How many rows of a Parquet file have been read, and its mark, by its entry in a position."""
    if at is None:
        return 0, None
    (rows,), mark = read_entry(at, 1)
    return rows, mark
