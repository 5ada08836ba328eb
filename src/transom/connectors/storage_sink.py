"""Answers written to files on a storage, where nothing can be renamed: each row once, whatever dies.

A file is written under a name of chance, by which it stays, and counts when a commit of the folder's log says so
(commit_log): one file, put at once. So Spark, Transom and whoever else reads the log sees the rows of an epoch together
or not at all. What was written and never counted is removed when the sink is opened or closed the next time.

Whose files are in a folder says a mark, as in a folder on a disk (sink_folder). The answer of another run is there
until the first commit of this one, which names no file of that run any more.
"""

from __future__ import annotations

import os
import re
import secrets
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from transom.connectors.batch_files import write_shares
from transom.connectors.commit_log import CommitLog, CommittedFile, delete_log, read_log, write_log
from transom.connectors.connector import Resume, Sink
from transom.connectors.file_target import FileTarget
from transom.connectors.listing import show
from transom.connectors.part_writers import PartWriter, open_part
from transom.connectors.sink_folder import MARK, SNAPSHOT, Mark, reject_foreign
from transom.connectors.storage import MemoryWrite, Storage, storage_of
from transom.core.errors import OptionError, SinkError

_PART: Final = re.compile(r"part-[0-9a-f]{32}\.[a-z]+")

_Written = list[Any]
"""A file as a checkpoint can keep it: its name, its size, and when it was written, in milliseconds."""


@dataclass(frozen=True)
class StorageParts:
    """Where tasks write, and how: a `TaskWriter`."""

    target: FileTarget

    def write(self, rows: Iterable[pa.RecordBatch]) -> list[_Written]:
        """Files that are safe, and that nobody counts yet, in the order of the rows."""
        return write_shares(rows, self._write, self._remove)

    def open(self) -> PartWriter:
        target = self.target
        name = f"part-{secrets.token_hex(16)}.{target.properties.format}"
        return open_part(f"{target.folder}/{name}", target.schema, target.properties)

    def _write(self, rows: Iterable[pa.RecordBatch]) -> _Written:
        with self.target.errors():
            writer = self.open()
            try:
                for batch in rows:
                    writer.write(self.target.checked(batch))
            except BaseException:
                writer.abort()
                raise
            return closed(writer)

    def _remove(self, written: _Written) -> None:
        storage_of(self.target.folder).delete(f"{self.target.folder}/{written[0]}")


def closed(writer: PartWriter) -> _Written:
    writer.close()
    return [os.path.basename(writer.path), writer.size, time.time_ns() // 1_000_000]


class StorageFiles(Sink):
    """The files of all epochs. `resume` None: there is no log of the run, it begins. `snapshots` says that the answer
    is one file that is replaced as a whole."""

    snapshots = True

    def __init__(self, target: FileTarget, run: str | None, resume: Resume | None, snapshots: bool) -> None:
        if target.file is not None and not snapshots:
            raise OptionError(
                f"'{show(target.properties.path)}' is one file, to which a storage can add no rows",
                remedy=f"name a folder: path = '{show(target.properties.path.rpartition('.')[0])}/'"
                f" with format = '{target.properties.format}'",
            )
        self._target = target
        self._parts = StorageParts(target)
        self._storage = storage_of(target.folder)
        self._snapshots = snapshots
        self._writer: PartWriter | None = None
        self._written: list[tuple[int, _Written]] = []
        self._staged: bytes | None = None
        self._log = CommitLog()
        self._run = run or uuid.uuid4().hex
        self._mark = Mark(self._run)
        with target.errors():
            if target.file is None:
                self._open(resume)

    def _open(self, resume: Resume | None) -> None:
        """Claims the folder, and removes what this run has left there and does not count."""
        target, begun = self._target, resume is not None and resume.begun > 0
        mark, self._log = check_folder(target)
        if mark is None:
            if begun:
                raise target.miss_file(0 if resume is None else resume.done)
            self._mark = Mark(self._run)
        else:
            self._mark = mark.claimed(self._run, target.folder, committed=begun)
        token = {} if resume is None or resume.token is None else resume.token
        if token.get("logged") and self._log.run != self._run:
            raise target.miss_file(token["logged"])
        if self._mark != mark:
            self._put_mark(self._mark)
        if resume is None and self._log.run == self._run:
            raise SinkError(
                f"'{show(target.folder)}' was written by the run that this checkpoint is of, and there is no log of it"
                " any more",
                remedy="put the checkpoint back as it was; or start anew: remove the checkpoint folder as a whole",
            )
        if self._ours:
            self._tidy({name for _, (name, *_) in token.get("files", ())})

    @property
    def _ours(self) -> bool:
        """Whether the files that count are those of this run."""
        return self._mark.run == self._run

    @property
    def tasks(self) -> StorageParts | None:
        """Snapshots are put together in the driver."""
        return None if self._snapshots else self._parts

    def write(self, batch: pa.RecordBatch) -> None:
        if not len(batch):
            return
        with self._target.errors():
            if self._writer is None:
                self._writer = self._parts.open()
            self._writer.write(self._target.checked(batch))

    def add_parts(self, parts: Iterable[tuple[int, Any]]) -> None:
        self._written += [(partition, written) for partition, several in parts for written in several]

    def prepare(self, epoch: int) -> Any:
        """The files are safe; which they are, and how many commits there were before."""
        if self._writer is not None:
            with self._target.errors():
                self._written.append((0, closed(self._writer)))
            self._writer = None
        written, self._written = self._written, []
        logged = sum(1 for file in self._log.files if file.run == self._run)
        return {"files": written, "logged": logged}

    def commit(self, epoch: int, token: Any) -> None:
        """Lets the files of an epoch count, unless those of an earlier attempt do."""
        if self._staged is not None:
            self._replace(self._staged)
            self._staged = None
        files = [written for _, written in sorted(token["files"], key=lambda file: int(file[0]))]
        if not files:
            return
        with self._target.errors():
            if self._log.run == self._run and self._log.epoch >= epoch:
                counted = {file.name for file in self._log.files}
                self._remove(name for name, *_ in files if name not in counted)
                return
            added = tuple(CommittedFile(name, size, modified, self._run, epoch) for name, size, modified in files)
            log = self._log.after(added, instead=not self._ours)
            write_log(self._storage, self._target.folder, log, len(added))
            self._log = log
            if not self._ours:
                self._put_mark(Mark(self._run))
                self._tidy(set())

    def replace(self, batch: pa.RecordBatch) -> None:
        memory = MemoryWrite()
        writer = open_part(self._target.snapshot, self._target.schema, self._target.properties, memory)
        writer.write(self._target.checked(batch))
        writer.close()
        self._staged = memory.sink.getvalue()

    def abort(self, epoch: int) -> None:
        self._staged = None
        with self._target.errors():
            if self._writer is not None:
                self._writer.abort()
                self._writer = None
            self._remove(name for _, (name, *_) in self._written)
        self._written = []

    def close(self) -> None:
        with self._target.errors():
            if self._snapshots and self._storage.entry(self._target.snapshot) is None:
                self.replace(pa.RecordBatch.from_pylist([], self._target.schema))
                self._replace(self._staged or b"")
            elif self._target.file is None and self._ours:
                self._tidy(set())

    def _replace(self, snapshot: bytes) -> None:
        with self._target.errors():
            if not self._ours:
                self._put_mark(Mark(None, self._run))  # nobody goes on with what is removed now
                delete_log(self._storage, self._target.folder)
                self._log = CommitLog()
                self._tidy(set())
                self._put_mark(Mark(self._run))
            self._storage.put(self._target.snapshot, snapshot)

    def _put_mark(self, mark: Mark) -> None:
        self._storage.put(f"{self._target.folder}/{MARK}", mark.text().encode())
        self._mark = mark

    def _tidy(self, kept: set[str]) -> None:
        """Removes what is here and does not count, but for what is kept."""
        needed = kept | {file.name for file in self._log.files}
        snapshot = os.path.basename(self._target.snapshot) if self._snapshots else None
        names = [entry.name for entry in self._storage.entries(self._target.folder) if not entry.folder]
        ours = (name for name in names if _PART.fullmatch(name) or (SNAPSHOT.fullmatch(name) and name != snapshot))
        self._remove(name for name in ours if name not in needed)

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            self._storage.delete(f"{self._target.folder}/{name}")


def check_folder(target: FileTarget) -> tuple[Mark | None, CommitLog]:
    """Rejects a folder that is somebody else's; its mark and its log. Whose files the log counts, that is whose they
    are, though a run may have died before it marked the folder."""
    if target.file is not None:
        return None, CommitLog()
    storage: Storage = storage_of(target.folder)
    text = storage.read(f"{target.folder}/{MARK}")
    mark = None if text is None else Mark.read(text, target.folder)
    try:
        log = read_log(storage, target.folder) or CommitLog()
    except ValueError as error:
        raise SinkError(
            f"the log of '{show(target.folder)}' cannot be read, so nobody knows which of its files count: {error}",
            remedy="choose another folder, or empty this one",
        ) from None
    if mark is None:
        names = (entry.name for entry in storage.entries(target.folder))
        reject_foreign(target.folder, (name for name in names if name.startswith(("part-", "latest."))))
    elif log.run is not None and log.run == mark.next:
        mark = Mark(log.run)
    return mark, log
