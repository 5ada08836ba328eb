"""Rows of this process laid out for others: a folder of Arrow files that grows by one with every batch appended.

It carries tables in memory, and rows that a program makes while they are read. A file is shown whole or not at all, and
its name says which rows it holds, so planning opens none. Readers map files into memory and copy nothing. The rows lie
as they were handed over; whether they fit the declared columns is found where they are read. The position is how many
records have been read, as that of the memory and iterable sources. With its rows a file holds how far the source had
been read that they come from, so no kill can part the two.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa

from transom.connectors.connector import Declaration, Limits, Plan, Source, Split, SplitRows
from transom.connectors.row_fitter import RowFitter
from transom.connectors.source import START, Growing, Position, Rejected
from transom.connectors.splits import SPLIT_RECORDS
from transom.connectors.storage import delete, is_there, read_file, storage_of
from transom.core.errors import CheckpointError, SourceError
from transom.core.location import is_remote
from transom.core.schema import Schema

_NAME: Final = re.compile(r"(\d+)-(\d+)-(\d+)-(\d+)\.arrow")
_CLOSED: Final = "closed"
_CHUNK_ROWS: Final = 4 * SPLIT_RECORDS
_OFFSET: Final = b"offset"


@dataclass(frozen=True)
class _File:
    """A file by its number; `first` is the number of its first record: `rows`, and then `rejected` ones."""

    number: int
    first: int
    rows: int
    rejected: int

    @property
    def name(self) -> str:
        return f"{self.number:08}-{self.first:012}-{self.rows}-{self.rejected}.arrow"

    @property
    def behind(self) -> int:
        return self.first + self.rows + self.rejected


def _listed(folder: str) -> list[_File]:
    """The files of a spool in order, which is that of their names."""
    return _files_among(_names(folder))


def _files_among(names: list[str]) -> list[_File]:
    files = map(_file_of, sorted(names))
    return [file for file in files if file is not None]


def _names(folder: str) -> list[str]:
    return [entry.name for entry in storage_of(folder).entries(folder)] if is_remote(folder) else os.listdir(folder)


@contextmanager
def _opened(path: str) -> Iterator[pa.RecordBatchFileReader]:
    """The opened file: on a disk what is read of it stays valid; a storage gives all of it at once."""
    if is_remote(path):
        yield pa.ipc.open_file(pa.BufferReader(read_file(path)))
        return
    with pa.memory_map(path) as file:
        yield pa.ipc.open_file(file)


@lru_cache(maxsize=1 << 16)
def _file_of(name: str) -> _File | None:
    match = _NAME.fullmatch(name)
    return None if match is None else _File(*(int(digits) for digits in match.groups()))


class Spool:
    """The writing end; one at a time. On a folder that has rows already it goes on behind them."""

    def __init__(self, folder: str, columns: Schema, *, stamped: str | None = None) -> None:
        self._folder = folder
        self._fitter = RowFitter(columns, time_column=None, stamped=stamped, name="memory")
        if not is_remote(folder):
            os.makedirs(folder, exist_ok=True)
        names = _names(folder)
        last = _files_among(names)[-1:]
        self._number = last[0].number + 1 if last else 0
        self.rows = last[0].behind if last else 0
        """How many records have been appended, rejected ones included."""
        self._closed = _CLOSED in names
        files = [file.name for file in last]
        self.offset = self._offset_in([_CLOSED, *files] if self._closed else files)
        """How far the source has been read that the rows come from, by its own account; START: not at all."""

    @property
    def closed(self) -> bool:
        return self._closed

    def append(
        self, batch: pa.RecordBatch, rejected: pa.RecordBatch | None = None, offset: Position | None = None
    ) -> None:
        """More rows; columns are found by name. `rejected` (see REJECTED) were found among them before.

        `offset` is how far their source has been read then. Where no row came it is not kept: to read that split
        again brings none either.
        """
        if self._closed:
            raise ValueError("the spool has been closed")
        rejected_count = 0 if rejected is None else len(rejected)
        if not len(batch) and not rejected_count:
            return
        rows = pa.RecordBatch.from_arrays(self._fitter.columns_of(batch), self._fitter.given.names)
        file = _File(self._number, self.rows, len(batch), rejected_count)
        if rejected is not None and rejected_count:
            self._write(f"{file.name}.rejected", rejected)
        offset = {"rows": file.behind} if offset is None else offset
        self._write(file.name, rows, offset)
        self._number += 1
        self.rows, self.offset = file.behind, offset

    def close(self, offset: Position | None = None) -> None:
        """No rows will follow."""
        self.offset = self.offset if offset is None else offset
        self._write(_CLOSED, pa.RecordBatch.from_pylist([], pa.schema([])), self.offset)
        self._closed = True

    def forget(self, position: Position) -> None:
        """Give back the room of what lies before a position: nobody will read it again."""
        for file in _listed(self._folder)[:-1]:  # by the last one a spool knows where to go on
            if file.behind <= int(position.get("rows", 0)):
                delete(os.path.join(self._folder, file.name))
                if file.rejected:
                    delete(os.path.join(self._folder, f"{file.name}.rejected"))

    def _offset_in(self, names: list[str]) -> Position:
        """What the first of these files says that says anything: earlier versions wrote none."""
        for name in names:
            path = os.path.join(self._folder, name)
            try:
                if name == _CLOSED and not is_remote(path) and not os.path.getsize(path):
                    continue
                with _opened(path) as file:
                    stored = (file.schema.metadata or {}).get(_OFFSET)
                if stored is None:
                    continue
                offset = json.loads(stored)
                if not isinstance(offset, dict):
                    raise ValueError("no offset")
                return offset
            except (OSError, ValueError, RecursionError, pa.ArrowException) as error:
                raise CheckpointError(
                    f"'{path}' is damaged, which says how far a source had been read: {error}",
                    remedy="restore it from a copy, or start with an empty checkpoint folder",
                ) from None
        return {"rows": self.rows} if self.rows else START

    def _write(self, name: str, batch: pa.RecordBatch, offset: Position | None = None) -> None:
        schema = batch.schema if offset is None else batch.schema.with_metadata({_OFFSET: json.dumps(offset)})
        hidden, path = os.path.join(self._folder, f".{name}"), os.path.join(self._folder, name)
        try:
            if is_remote(path):
                whole = pa.BufferOutputStream()
                with pa.ipc.new_file(whole, schema) as writer:
                    writer.write_batch(batch.replace_schema_metadata(schema.metadata))
                storage_of(path).put(path, whole.getvalue())
                return
            with pa.OSFile(hidden, "wb") as file, pa.ipc.new_file(file, schema) as writer:
                writer.write_batch(batch.replace_schema_metadata(schema.metadata))
            os.replace(hidden, path)
        except OSError as error:
            raise SourceError(
                f"rows cannot be laid out for other processes in '{self._folder}': {error}",
                remedy="see that the folder can be written to and has room",
            ) from None


def open_spool(declared: Declaration, folder: str) -> SpoolSource:
    """The rows of a stream or table that lie in a folder."""
    return SpoolSource(
        declared.columns, folder, time_column=declared.time_column, stamped=declared.stamped, name=declared.name
    )


class SpoolSource(Source):
    """The reading end, in any process. `name` is what the rows are called in messages.

    `time_column` holds the instant of a row; `stamped` is a column that was not handed over, and is NULL here.
    """

    distributed = True

    def __init__(
        self,
        columns: Schema,
        folder: str,
        *,
        time_column: str | None = None,
        stamped: str | None = None,
        name: str = "memory",
    ) -> None:
        self._folder = folder
        self._fitter = RowFitter(columns, time_column=time_column, stamped=stamped, name=name)
        self._name = name
        self._mapped: tuple[str, pa.RecordBatch] | None = None  # the file that was read last

    @property
    def schema(self) -> pa.Schema:
        return self._fitter.schema

    def plan(self, position: Position, limits: Limits, *, growing: Growing = False) -> Plan:
        """While the spool is open only one that follows it is told that it has ended; others are to look again."""
        at = int(position.get("rows", 0))
        closed, files = self._listed()
        self._check(at, closed, files)
        stop = max(at, files[-1].behind if files else 0)
        total, stop = stop, stop if limits.rows is None else min(stop, at + limits.rows)
        splits: list[Split] = []
        for file in files:
            if file.behind > at and file.first < stop and (limits.files is None or len(splits) < limits.files):
                start = max(at, file.first)
                splits.append(Split(file.name, start - file.first, min(stop, file.behind) - start, True))
        after = at + sum(split.rows for split in splits)
        ended = after == total and (closed or bool(growing))
        return Plan({"rows": after}, tuple(splits), ended, ended and closed)

    def read_split(self, split: Split) -> Iterator[SplitRows]:
        """The rows stay where they are, in the mapped file."""
        file = _file_of(split.partition)
        if file is None:
            raise ValueError(f"'{split.partition}' is no file of a spool")
        at, stop = split.at, min(split.at + split.rows, file.rows)
        while at < stop:
            count = min(stop - at, _CHUNK_ROWS)
            rows = self._map(file.name).slice(at, count)
            yield self._fitter.fit(rows.columns, file.first + at)
            at += count
        rejected_count = split.at + split.rows - max(at, file.rows)
        if rejected_count > 0:
            of_log = self._map(f"{file.name}.rejected").slice(max(at, file.rows) - file.rows, rejected_count)
            rejected = [Rejected(row["position"], row["reason"], row["raw"]) for row in of_log.to_pylist()]
            yield SplitRows(pa.RecordBatch.from_pylist([], self.schema), rejected)

    def _listed(self) -> tuple[bool, list[_File]]:
        """Whether the spool was closed before these files were listed: then they are all."""
        try:
            closed = is_there(os.path.join(self._folder, _CLOSED))
            return closed, _listed(self._folder)
        except OSError as error:
            raise self._gone(str(error)) from None

    def _check(self, at: int, closed: bool, files: list[_File]) -> None:
        total = files[-1].behind if files else 0
        if closed and at > total:
            raise SourceError(
                f"'{self._name}' has {total} rows, and {at} had been read of it before",
                remedy="hand over the same rows again, or start the query anew",
            )
        if files and at < files[0].first:
            raise self._gone(f"those before row {files[0].first + 1} have been given up")

    def _map(self, name: str) -> pa.RecordBatch:
        mapped = self._mapped
        if mapped is None or mapped[0] != name:
            try:
                with _opened(os.path.join(self._folder, name)) as file:
                    mapped = self._mapped = (name, file.get_batch(0))
            except (OSError, pa.ArrowException) as error:
                raise self._gone(str(error)) from None
        return mapped[1]

    def _gone(self, why: str) -> SourceError:
        return SourceError(
            f"the rows of '{self._name}' are not there any more: {why}",
            remedy="hand them over again and start the query anew",
        )
