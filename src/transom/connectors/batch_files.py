"""Answers written to files by the tasks that made them, each row once whatever dies.

A task writes the rows of its partition to hidden files of random names and reports them to the driver. When all tasks
of the batch are through, the driver shows their files under names made of the batch and a number. A batch that is run
again, after a restart, makes the same rows and puts them in the place of those that were shown before; and what
attempts left behind that nobody counts is hidden, and removed at the next occasion.

One file is made of such parts at the end. The parts are in a hidden folder meanwhile: `.parts`, or `.more` where the
file is there from a run that had ended and has been resumed.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pyarrow as pa

from transom.connectors.connector import Sink
from transom.connectors.file_target import FileTarget, hidden, sync_folder
from transom.connectors.read_back import last_rows
from transom.connectors.sink_folder import SinkFolder, read_mark, reject_lost
from transom.core.location import Within

MANY_ROWS: Final = 1 << 18
"""So many rows of a partition are written to several files."""

WRITERS: Final = 2

Part = TypeVar("Part")

_UNSEEN: Final = re.compile(r"\.part-[0-9a-f]{32}\.new")


@dataclass(frozen=True)
class PartFiles:
    """Where tasks write, and how: a `TaskWriter`."""

    target: FileTarget
    folder: str

    def write(self, rows: Iterable[pa.RecordBatch]) -> list[str]:
        """Files that are on disk, and that nobody sees yet; their names, in the order of the rows.

        Many rows are written by several threads at once: a file has one writer, which takes longer than what made them.
        """
        return write_shares(rows, self._write, lambda name: os.unlink(os.path.join(self.folder, name)))

    def _write(self, rows: Iterable[pa.RecordBatch]) -> str:
        name = f".part-{secrets.token_hex(16)}.new"
        with self.target.errors():
            writer = self.target.open(os.path.join(self.folder, name))
            try:
                for batch in rows:
                    writer.write(self.target.checked(batch))
                writer.close()
            except BaseException:
                writer.abort()
                os.unlink(writer.path)
                raise
        return name


def write_shares(
    rows: Iterable[pa.RecordBatch], write: Callable[[list[pa.RecordBatch]], Part], remove: Callable[[Part], None]
) -> list[Part]:
    """What `write` gives for every share of the rows; when one fails the others are removed."""
    shares = _shares(list(rows))
    if len(shares) == 1:
        return [write(shares[0])]
    with ThreadPoolExecutor(len(shares), "transom-parts") as pool:
        writing = [pool.submit(write, share) for share in shares]
    if any(each.exception() is not None for each in writing):
        for each in writing:
            if each.exception() is None:
                remove(each.result())
    return [each.result() for each in writing]


def _shares(rows: list[pa.RecordBatch]) -> list[list[pa.RecordBatch]]:
    """All batches in order, in as many parts of about the same size as there are to be files."""
    count = sum(map(len, rows))
    if count < MANY_ROWS:
        return [rows]
    shares: list[list[pa.RecordBatch]] = [[] for _ in range(WRITERS)]
    at = 0
    for batch in rows:
        for share, first in enumerate(range(0, count, -(-count // WRITERS))):
            begin, end = max(first - at, 0), min(first + -(-count // WRITERS) - at, len(batch))
            if begin < end:
                shares[share].append(batch.slice(begin, end - begin))
        at += len(batch)
    return shares


class BatchFiles(Sink):
    """The parts of all batches, in the driver. `done` batches are committed, of `planned` ones parts may be shown.

    Where no batch is planned there is no log: a new run. `snapshots` says that the answer is one file that is replaced
    as a whole.
    """

    snapshots = True

    def __init__(
        self,
        properties: dict[str, str],
        schema: pa.Schema,
        *,
        done: int,
        planned: int,
        snapshots: bool = False,
        run: str | None = None,
        within: Within | None = None,
    ) -> None:
        self._target = FileTarget.of(properties, schema, within)
        self._schema = schema
        self._snapshots = snapshots
        self._shown_before = planned > done
        self._written: list[tuple[int, str]] = []
        self._newest: str | None = None
        self._run = run
        self._marked: SinkFolder | None = None
        file = self._target.file
        with self._target.errors():
            for forgotten in (".done", ".more") if file is not None and not planned else ():
                reject_lost(hidden(file or "", forgotten), run)
            self._target.finish_gathering(counts=done > 0)
            self._folder, self._behind = self._folder_of(done, planned, run)
            if self._behind:
                self._target.reject_another(run)
            if snapshots and file is not None:
                os.makedirs(os.path.dirname(file), exist_ok=True)
                return
            self._marked = SinkFolder(self._folder, run, planned or None, private=file is not None)
            if self._marked.ours:
                self._tidy()

    @property
    def tasks(self) -> PartFiles | None:
        """Snapshots are put together in the driver."""
        return None if self._snapshots else PartFiles(self._target, self._folder)

    def add_parts(self, parts: Iterable[tuple[int, Any]]) -> None:
        self._written += [(partition, name) for partition, names in parts for name in names]

    def prepare(self, epoch: int) -> Any:
        """The files are on disk; which they are: (partition, name) each."""
        written, self._written = self._written, []
        return {"files": written}

    def commit(self, epoch: int, token: Any) -> None:
        """Shows the files of a batch in the place of all that were shown of it before."""
        if self._snapshots:
            return
        assert self._marked is not None
        written = sorted(token["files"], key=lambda file: int(file[0]))
        with self._target.errors():
            shown = set()
            if written:
                self._marked.clear(kept=[name for _, name in written])
            for number, (_, name) in enumerate(written):
                part = f"part-{epoch:06}-{number:04}.{self._target.properties.format}"
                written_to, seen = (os.path.join(self._folder, each) for each in (name, part))
                if os.path.exists(written_to) or not os.path.exists(seen):  # otherwise it has been shown before
                    os.replace(written_to, seen)
                shown.add(part)
                self._newest = seen
            if self._shown_before:  # perhaps: the first batch of this run was begun by an earlier one
                parts = self._marked.shown()
                self._remove(name for name, index in parts.items() if index[0] == epoch and name not in shown)
                self._shown_before = False
            if shown:
                sync_folder(self._folder)

    def newest(self, most: int) -> list[pa.RecordBatch]:
        """The last rows of the last part, or of the file that all parts have become."""
        paths = [path for path in (self._newest, self._target.file) if path is not None and os.path.isfile(path)]
        return last_rows(paths[0], self._target.properties, self._schema, most) if paths else []

    def write(self, batch: pa.RecordBatch) -> None:
        """Rows that are here in the driver."""
        if len(batch):
            self.add_parts([(0, PartFiles(self._target, self._folder).write([batch]))])

    def replace(self, batch: pa.RecordBatch) -> None:
        if self._marked is not None:
            with self._target.errors():
                self._marked.clear(kept=[os.path.basename(self._target.snapshot)])
        self._target.replace(batch)

    def abort(self, epoch: int) -> None:
        """What was shown stays: the batch is either committed, or will be run again."""
        self._tidy()

    def close(self) -> None:
        """Make one file of all parts; a folder has them already."""
        self._tidy()
        if self._snapshots:
            if not os.path.exists(self._target.snapshot):
                self.replace(pa.RecordBatch.from_pylist([], self._schema))
        elif self._marked is not None and os.path.isdir(self._folder):
            with self._target.errors():
                self._end(self._marked)

    def _end(self, marked: SinkFolder) -> None:
        file = self._target.file
        if file is None:
            marked.finish()
            return
        marked.clear()
        parts = marked.shown()
        in_order = sorted(parts, key=lambda name: parts[name])
        if in_order or not self._behind:
            self._target.gather(self._folder, in_order, behind=self._behind, run=self._run)
        else:
            shutil.rmtree(self._folder)
        if not self._behind:  # of a run that is forgotten, whose file has just been replaced
            shutil.rmtree(hidden(file, ".more"), ignore_errors=True)

    def _folder_of(self, done: int, planned: int, run: str | None) -> tuple[str, bool]:
        """The folder of the parts, and whether the file has rows that come before them."""
        file = self._target.file
        if done and not (os.path.isfile(self._target.snapshot) if self._snapshots else self._is_there()):
            raise self._target.miss_file(done)
        if file is None:
            return self._target.folder, False
        folder, more = self._target.folder, hidden(file, ".more")
        if self._snapshots:
            return folder, False
        mark = read_mark(more) if planned else None  # without a log it is of a run that is forgotten
        if mark is not None and run in (None, mark.run, mark.next):
            return more, True
        if os.path.isdir(folder) or not done:
            return folder, False
        return more, True

    def _is_there(self) -> bool:
        """Whether there is anything of what was written before: the file, or the folder of its parts."""
        target = self._target
        if target.file is None:
            return os.path.isdir(target.folder)
        return os.path.isfile(target.file) or any(map(os.path.isdir, (target.folder, hidden(target.file, ".more"))))

    def _tidy(self) -> None:
        """Removes what attempts left behind that nobody counts."""
        with self._target.errors():
            if os.path.isdir(self._folder):
                self._remove(name for name in os.listdir(self._folder) if _UNSEEN.fullmatch(name))

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            os.unlink(os.path.join(self._folder, name))
