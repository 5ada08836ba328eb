"""Answers written to files by one process, so that a reader sees a file whole or not at all.

One file is shown when the sink is closed; a folder gets numbered parts, one a commit, for readers that want rows while
the query runs.

A restart that knows how many parts there are goes on with the next number; parts with that number or a higher one are
from a run that is forgotten, and are removed. A part that was prepared and not yet shown is shown then: so whoever
writes down the number between `prepare` and `commit` never loses a row and never shows one twice. One file is made in
the same way, from parts in a hidden folder.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass

import pyarrow as pa

from transom.connectors.file_target import PART, FileTarget, hidden, show_file
from transom.connectors.part_writers import PartWriter


class FileSink:
    """Writes batches of `schema`. `parts` is the number of parts that are committed already."""

    def __init__(self, properties: dict[str, str], schema: pa.Schema, *, parts: int = 0) -> None:
        self._target = FileTarget.of(properties, schema)
        self._folder = self._target.folder
        self._parts = parts
        self._writer: PartWriter | None = None
        self._prepared: str | None = None
        self._replaced = False
        file = self._target.file
        with self._target.errors():
            self._target.finish_gathering(known=parts > 0)
            if parts and file is None and not os.path.isdir(self._folder):
                raise self._target.miss_file(parts)
            os.makedirs(self._folder, exist_ok=True)
            # After the end of a run the parts are gone, and their rows are in the file.
            first = _restore(self._folder, parts)
            self._in_file = 0 if file is None else first
            if self._in_file and file is not None and not os.path.isfile(file):
                raise self._target.miss_file(parts)

    @property
    def parts(self) -> int:
        return self._parts

    def write(self, batch: pa.RecordBatch) -> None:
        batch = self._target.checked(batch)
        if not len(batch):
            return
        with self._target.errors():
            if self._prepared is not None:
                self.commit()
            if self._writer is None:
                self._writer = self._target.open(hidden(self._path(self._parts), ".new"))
            self._writer.write(batch)

    def prepare(self) -> int:
        """Puts what was written on disk, still unseen, and tells how many parts there will be after the commit."""
        if self._writer is not None:
            with self._target.errors():
                self._writer.close()
            self._prepared, self._writer = self._writer.path, None
        return self._parts + (self._prepared is not None)

    def commit(self) -> int:
        """Shows what was written since the last commit as the next part; without rows there is none."""
        self.prepare()
        if self._prepared is not None:
            with self._target.errors():
                show_file(self._prepared, self._path(self._parts))
            self._prepared = None
            self._parts += 1
        return self._parts

    def replace(self, batch: pa.RecordBatch) -> None:
        """The rows as the one file of the sink: the path itself, or `latest` in the folder."""
        self._target.replace(batch)
        self._replaced = True

    def abandon(self) -> None:
        if self._writer is not None:
            with self._target.errors():
                self._writer.abandon()
                os.unlink(self._writer.path)
            self._writer = None

    def close(self) -> None:
        self.commit()
        if self._target.file is None or not os.path.isdir(self._folder):
            return
        if self._replaced:
            with self._target.errors():
                shutil.rmtree(self._folder)
        else:
            parts = [self._name(number) for number in range(self._in_file, self._parts)]
            self._target.gather(self._folder, parts, behind=self._in_file > 0)

    def _name(self, number: int) -> str:
        return f"part-{number:06}.{self._target.properties.format}"

    def _path(self, number: int) -> str:
        return os.path.join(self._folder, self._name(number))


@dataclass(frozen=True)
class OpenFiles:
    """Opens a file sink. A runtime whose tasks write their files themselves takes the properties alone."""

    properties: dict[str, str]

    def __call__(self, schema: pa.Schema, parts: int) -> FileSink:
        return FileSink(self.properties, schema, parts=parts)


def _restore(folder: str, parts: int) -> int:
    """Leaves the parts before the given number, shown; the number of the first that is there, `parts` if none is."""
    first = parts
    for name in os.listdir(folder):
        shown = name.removeprefix(".").removesuffix(".new")
        part = PART.fullmatch(shown)
        if part is None:
            continue
        if int(part["number"]) >= parts:
            os.unlink(os.path.join(folder, name))
            continue
        first = min(first, int(part["number"]))
        if shown != name:
            show_file(os.path.join(folder, name), os.path.join(folder, shown))
    return first
