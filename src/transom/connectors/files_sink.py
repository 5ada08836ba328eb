"""Answers written to files by one process, so that a reader sees a file whole or not at all.

One file is shown when the sink is closed; a folder gets numbered parts, one a commit, for readers that want rows while
the query runs.

A restart that knows how many parts there are goes on with the next number; parts with that number or a higher one are
from a run that is forgotten, and are removed when the next one is shown. A part that was prepared and not yet shown is
shown then: so whoever writes down the number between `prepare` and `commit` never loses a row and never shows one
twice. One file is made in the same way, from parts in a hidden folder.
"""

from __future__ import annotations

import os
import shutil
from typing import Any, Final

import pyarrow as pa

from transom.connectors.connector import Sink
from transom.connectors.file_target import FileTarget, commit_file, hidden
from transom.connectors.part_writers import PartWriter
from transom.connectors.sink_folder import SinkFolder, reject_lost
from transom.core.location import Within

MOST_GROUPS: Final = 512
"""Of rows in a file, within a memory budget."""


class FileSink(Sink):
    """Writes batches of `schema`. `parts` is the number of parts that are committed already, by the log of `run`.

    None is a run whose log was not found: a new one. An epoch with rows is a part; with a bound on what the sink may
    `hold` in memory a large one is several.
    """

    snapshots = True

    def __init__(
        self,
        properties: dict[str, str],
        schema: pa.Schema,
        *,
        parts: int | None = None,
        run: str | None = None,
        within: Within | None = None,
        hold: int | None = None,
    ) -> None:
        self._target = FileTarget.of(properties, schema, within, hold)
        self._folder = self._target.folder
        self._parts = parts or 0
        self._run = run
        self._writer: PartWriter | None = None
        self._written: list[str] = []
        """Files of the epoch that are whole: what is in a file is described in memory until it is."""
        self._prepared: list[str] = []
        self._staged: str | None = None
        self._replaced = False
        file = self._target.file
        with self._target.errors():
            if parts is None and file is not None:
                reject_lost(hidden(file, ".done"), run)
            self._target.finish_gathering(counts=self._parts > 0)
            if self._parts and file is None and not os.path.isdir(self._folder):
                raise self._target.miss_file(self._parts)
            self._marked = SinkFolder(self._folder, run, parts, private=file is not None)
            # After the end of a run the parts are gone, and their rows are in the file.
            first = self._restore()
            self._in_file = 0 if file is None else first
            if self._in_file and file is not None:
                if not os.path.isfile(file):
                    raise self._target.miss_file(self._parts)
                self._target.reject_another(run)

    @property
    def parts(self) -> int:
        return self._parts

    @property
    def held_bytes(self) -> int:
        return 0 if self._writer is None else self._writer.held_bytes

    def write(self, batch: pa.RecordBatch) -> None:
        batch = self._target.checked(batch)
        if not len(batch):
            return
        with self._target.errors():
            if self._prepared:
                self._commit()
            if self._writer is None:
                number = self._parts + len(self._written)
                self._writer = self._target.open(hidden(self._path(number), ".new"))
            self._writer.write(batch)
            if self._target.hold is not None and self._writer.groups >= MOST_GROUPS:
                self._finish_file()

    def prepare(self, epoch: int) -> Any:
        """Puts what was written on disk, still unseen, and says how many parts there will be after the commit."""
        self._put_on_disk()
        return {"parts": self._parts + len(self._prepared)}

    def commit(self, epoch: int, token: Any) -> None:
        """Shows what was prepared as the next part; without rows there is none.

        After a restart it has been shown when the sink was opened, by the token.
        """
        self._commit()

    def _finish_file(self) -> None:
        if self._writer is not None:
            with self._target.errors():
                self._writer.close()
            self._written.append(self._writer.path)
            self._writer = None

    def _put_on_disk(self) -> None:
        self._finish_file()
        self._prepared, self._written = [*self._prepared, *self._written], []

    def _commit(self) -> None:
        while self._prepared:
            with self._target.errors():
                self._marked.clear(kept=[os.path.basename(path) for path in self._prepared])
                commit_file(self._prepared[0], self._path(self._parts))
            del self._prepared[0]
            self._parts += 1
        if self._staged is not None:
            with self._target.errors():
                self._marked.clear(kept=[os.path.basename(self._target.snapshot)])
                commit_file(self._staged, self._target.snapshot)
            self._staged, self._replaced = None, True

    def replace(self, batch: pa.RecordBatch) -> None:
        """The rows as the one file of the sink: the path itself, or `latest` in the folder."""
        self._staged = None  # it is written over
        self._staged = self._target.stage(batch)

    def abort(self, epoch: int) -> None:
        """A snapshot comes again with the epoch that it was prepared in, so it need not stay."""
        if self._staged is not None:
            with self._target.errors():
                os.unlink(self._staged)
            self._staged = None
        if self._writer is not None:
            with self._target.errors():
                self._writer.abort()
                os.unlink(self._writer.path)
            self._writer = None
        for path in self._written:
            with self._target.errors():
                os.unlink(path)
        self._written = []

    def close(self) -> None:
        self._put_on_disk()
        self._commit()
        if not os.path.isdir(self._folder):
            return
        with self._target.errors():
            if self._target.file is None:
                self._marked.finish()
                return
            self._marked.clear()
        if self._replaced:
            with self._target.errors():
                shutil.rmtree(self._folder)
        else:
            parts = [self._name(number) for number in range(self._in_file, self._parts)]
            self._target.gather(self._folder, parts, behind=self._in_file > 0, run=self._run)

    def _restore(self) -> int:
        """Shows what was prepared and is committed; the number of the first part that is there, or of the next."""
        prepared = self._marked.prepared().items()
        ready = [name for name, number in prepared if number < self._parts and name == f".{self._name(number)}.new"]
        if ready:
            self._marked.clear(kept=ready)
        for name in ready:
            commit_file(os.path.join(self._folder, name), os.path.join(self._folder, name[1:].removesuffix(".new")))
        return min([number for number, _ in self._marked.shown().values()] + [self._parts])

    def _name(self, number: int) -> str:
        return f"part-{number:06}.{self._target.properties.format}"

    def _path(self, number: int) -> str:
        return os.path.join(self._folder, self._name(number))
