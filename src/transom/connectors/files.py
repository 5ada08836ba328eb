"""Rows from files: a file, a folder or a pattern; Parquet, CSV or JSON lines.

Files are read in the order of their names, rows in the order of the file. Files may be added later, and lines to text
files: a later read goes on with them, wherever they sort. A position names what has been read of which file, and a
mark by which it is known again:
`{"files": {"a.csv": [bytes, lines, mark], "b.parquet": [rows, mark]}, "current": the one that is not finished}`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from transom.connectors.compressed import mark_of_compressed
from transom.connectors.conform import DeclaredRows, ParsedRows, column_index, conform, fold, reject_rows
from transom.connectors.connector import Limits, Plan, Source, Split, SplitRows
from transom.connectors.listing import Listed, cannot_read, list_files, path_of, show
from transom.connectors.parquet_rows import Footers, ParquetRows, cut_at_groups, open_parquet, reject_shorter
from transom.connectors.properties import compression_of, read_file_properties
from transom.connectors.recognise import mark_of_parquet, read_entry, reject_another
from transom.connectors.source import Chunk, Growing, Position, Rejected
from transom.connectors.splits import SPLIT_RECORDS
from transom.connectors.storage import open_file
from transom.connectors.text_rows import read_text_split, reject_replaced
from transom.connectors.text_scan import TextScan
from transom.core.errors import OptionError, SourceError
from transom.core.location import Within, absolute_path, is_remote
from transom.core.schema import Schema

_MOST_FILES: Final = 16
_SECONDS_OF_A_LISTING: Final = 1.0
"""A storage charges for being asked, so one that is followed is not asked more often."""


class FileSource(Source):
    """A source of files. `time_column` holds the instant of a row: it must be there and within the time domain.

    `stamped` is a column that no file has: it is NULL here, and whoever stamps the rows fills it in. No file is opened
    that leads outside of `within`.
    """

    distributed = True

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
        self._stamped = None if stamped is None else column_index(columns, stamped)
        in_files = Schema(tuple(column for at, column in enumerate(columns) if at != self._stamped))
        if not len(in_files):
            raise OptionError("no column is read from the files", remedy="declare at least one column that they have")
        at = None if time_column is None else column_index(in_files, time_column)
        self._declared = DeclaredRows(in_files, at, self._properties.time_unit)
        self._read: frozenset[int] | None = None  # places of the columns of which anybody reads a value
        self._last_listed: dict[str, Listed] = {}
        self._listed_at = -_SECONDS_OF_A_LISTING
        self._recognised: dict[str, tuple[int, ...]] = {}  # files that have been read to their end, as they were then
        # These save finding things again, and nothing else.
        self._parquet: ParquetRows | None = None  # open where the last read stopped
        self._scan: TextScan | None = None  # the file in which the last plan stopped
        self._footers = Footers(self._declared)

    @property
    def sampled(self) -> bool:
        path = self._properties.path
        return is_remote(path) or not os.path.exists(path) or os.path.isfile(path) or os.path.isdir(path)  # and no pipe

    @property
    def schema(self) -> pa.Schema:
        return self._columns.arrow()

    def narrow(self, columns: Collection[str]) -> None:
        wanted = set(map(fold, columns))
        indexes = {at for at, column in enumerate(self._declared.columns) if fold(column.name) in wanted}
        self._read = frozenset(indexes | {at for at in (self._declared.time_column,) if at is not None})
        self._parquet = None
        self._footers = Footers(self._declared, self._read)

    def files(self) -> dict[str, int]:
        """The first files, where there are many; the others lie beside them."""
        with suppress(SourceError):  # one that cannot be read is reported by whoever reads it
            listed = list_files(self._properties.path, may_be_empty=True, within=self._within)
            return {absolute_path(each.path): each.size for each in listed[:_MOST_FILES]}
        return {}

    def plan(self, position: Position, limits: Limits, *, growing: Growing = False) -> Plan:
        """A file counts towards the limit of files when something of it is read."""
        before: dict[str, Any] = position.get("files", {})
        files, current = dict(before), position.get("current")
        rows, count, size = (most or sys.maxsize for most in (limits.rows, limits.files, limits.bytes))
        splits: list[Split] = []
        ended = True
        for file in self._files_to_read(before, current, bool(growing)):
            if rows <= 0 or not count or size <= 0:
                ended = False
                break
            of_file, at, finished, taken = self._plan_in(file, before.get(file.name), rows, size, growing is True)
            if at is not None:
                files[file.name] = at
            splits += of_file
            rows -= sum(split.rows for split in of_file)
            size -= taken
            count -= bool(of_file)
            current = None if finished else file.name
            if not finished:  # nothing else is looked at before the rest of it
                break
        after: Position = {"files": files} if current is None else {"files": files, "current": current}
        return Plan(after, tuple(splits), ended and current is None)

    def _plan_in(
        self, file: Listed, at: Any, max_rows: int, max_bytes: int, growing: bool
    ) -> tuple[list[Split], Any, bool, int]:
        """The next splits of a file, what has been read of it then, whether that is all there is now, and its bytes."""
        if self._format_of(file.name) == "parquet":
            footer = self._footers.of(file)
            start, mark = _parquet_at(at)
            reject_shorter(file, footer.rows, start)
            reject_another(file, mark, footer.mark, f"{start} rows")
            stop = min(start + max_rows, start + 1 + max_bytes // footer.row_bytes, footer.rows)
            if stop == footer.rows:
                self._footers.forget(file)
            parts = cut_at_groups(footer, start, stop)
            splits = [Split(file.name, first, behind - first, True) for first, behind in parts]
            return splits, [stop, footer.mark], stop == footer.rows, (stop - start) * footer.row_bytes
        if self._scan is None or self._scan.file.path != file.path:
            self._scan = TextScan(file, self._declared, self._properties)
        plan = self._scan.plan(at, max_rows, max_bytes, growing and not self._is_unit(file.name))
        return plan.splits, plan.at, plan.finished, plan.bytes

    def version(self, split: Split) -> Any:
        """What tells a Parquet file from another one of its name: nothing is added to one, so its age is enough."""
        path = path_of(self._properties.path, split.partition)
        if is_remote(path) or self._format_of(split.partition) != "parquet":
            return None
        with suppress(OSError):
            status = os.stat(path)
            return status.st_ino, status.st_size, status.st_mtime_ns
        return None

    def read_split(self, split: Split) -> Iterator[SplitRows]:
        file = Listed(split.partition, path_of(self._properties.path, split.partition), 0)
        if self._within is not None:
            self._within.check(file.path)
        if self._format_of(file.name) != "parquet":
            chunk = read_text_split(file, split.at, split.rows, self._declared, self._properties)
            yield SplitRows(self._stamp(chunk.rows), chunk.rejected)
            return
        at: int = split.at
        stop = at + split.rows
        while at < stop:
            chunk = self._read_parquet(file, at, stop - at, max(stop - at, SPLIT_RECORDS))
            at = chunk.at
            reject_shorter(file, at, stop if chunk.finished else 0)
            yield SplitRows(self._stamp(chunk.rows), chunk.rejected)

    def _files_to_read(self, files: dict[str, Any], current: str | None, growing: bool) -> Iterator[Listed]:
        """The file that is not finished, then by name those of which something is unread."""
        if current is not None:
            if current not in self._last_listed:
                self._list(files, current, growing)
            if current not in self._last_listed:
                raise SourceError(
                    f"file '{show(current)}' has been read in part, and now it is not there",
                    remedy="put it back, or start the query anew",
                )
            yield self._last_listed[current]
        for file in self._list(files, current, growing):
            if file.name == current or not file.size:
                continue
            at = files.get(file.name)
            if at is None or (not self._is_unit(file.name) and read_entry(at, 2)[0][0] != file.size):
                yield file
            elif self._recognised.get(file.name) != file.state:
                self._recognise(file, at)

    def _recognise(self, file: Listed, at: Any) -> None:
        """Reject a file that has been read to its end and is another one now, of the same size or a Parquet file."""
        try:
            if self._format_of(file.name) == "parquet":
                rows, mark = _parquet_at(at)
                reject_another(file, mark, mark_of_parquet(file.path), f"{rows} rows")
            elif self._is_unit(file.name):
                (read, _), mark = read_entry(at, 2)
                reject_another(file, mark, mark_of_compressed(file.path), f"{read} bytes")
            else:
                with open_file(file.path) as handle:
                    reject_replaced(handle, file, at)
        except FileNotFoundError:
            return
        except OSError as error:
            raise cannot_read(file.path, error) from None
        self._recognised[file.name] = file.state

    def _list(self, files: dict[str, Any], current: str | None, growing: bool) -> list[Listed]:
        path, now = self._properties.path, time.monotonic()
        if growing and is_remote(path) and now - self._listed_at < _SECONDS_OF_A_LISTING:
            return list(self._last_listed.values())
        # A file that does not grow and has been read, nobody need look at again.
        units = (name for name in self._recognised if self._is_unit(name))
        done = {name for name in units if name in files and name != current}
        listed = list_files(path, may_be_empty=growing or bool(files), done=done, taken=files, within=self._within)
        self._last_listed, self._listed_at = {file.name: file for file in listed}, now
        return listed

    def _is_unit(self, name: str) -> bool:
        """Whether nothing is ever added to a file."""
        return self._format_of(name) == "parquet" or compression_of(name) is not None

    def _read_parquet(self, file: Listed, start: int, max_rows: int, batch_rows: int) -> Chunk:
        rows = self._parquet
        if rows is None or rows.file.name != file.name or rows.at != start:
            rows = self._parquet = open_parquet(file, start, batch_rows, self._declared, self._read)
        parsed = rows.take(max_rows)
        good, wrong = conform([] if parsed is None else [parsed], self._declared, show(file.name))
        rejected = [] if parsed is None else self._rejected(file, start, parsed, wrong)
        if rows.at == rows.count:
            self._parquet = None
        return Chunk(good, rejected, rows.at, rows.at == rows.count)

    def _rejected(self, file: Listed, start: int, parsed: ParsedRows, wrong: dict[int, str]) -> list[Rejected]:
        """Whole rows, whatever anybody reads of them."""
        if wrong and self._read is not None:
            count = len(parsed.origin)
            rows, columns = open_parquet(file, start, count, self._declared), []
            while count and (part := rows.take(count)) is not None:
                columns.append(part.columns)
                count -= len(part.origin)
            parsed = replace(parsed, columns=[pa.concat_arrays(parts) for parts in zip(*columns, strict=True)])
        return reject_rows(parsed, wrong, self._declared, show(file.name), start)

    def _format_of(self, name: str) -> str:
        file_format = self._properties.format_of(name)
        if file_format is None:
            raise SourceError(
                f"the name of file '{show(name)}' does not tell its format",
                remedy="write format = 'parquet', 'csv' or 'jsonl'",
            )
        return file_format

    def _stamp(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self._stamped is None:
            return rows
        columns = rows.columns
        columns.insert(self._stamped, pa.nulls(len(rows), self._columns[self._stamped].type))
        return pa.RecordBatch.from_arrays(columns, schema=self._columns.arrow())


def _parquet_at(at: Any) -> tuple[int, str | None]:
    """How many rows of a Parquet file have been read, and its mark, by its entry in a position."""
    if at is None:
        return 0, None
    (rows,), mark = read_entry(at, 1)
    return rows, mark
