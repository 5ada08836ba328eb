"""Answers written to files, so that a reader sees a file whole or not at all.

A path with a known extension is one file, shown when the sink is closed. Any other path is a folder of numbered parts,
one a commit, for readers that want rows while the query runs. A file is written under a hidden name in the folder where
it will stand, forced to disk, and then renamed.

A restart that knows how many parts there are goes on with the next number; parts with that number or a higher one are
from a run that is forgotten, and are removed. A part that was prepared and not yet shown is shown then: so whoever
writes down the number between `prepare` and `commit` never loses a row and never shows one twice. One file is made in
the same way, from parts in a hidden folder.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from transom.connectors.listing import show
from transom.connectors.part_writers import PartWriter, append_part, open_part
from transom.connectors.properties import FileProperties, format_by_extension, read_file_properties
from transom.core.errors import OptionError, SinkError
from transom.core.schema import unique_names

_PART: Final = re.compile(r"part-(\d{6,})\.[a-z]+")


class FileSink:
    """Writes batches of `schema`. `parts` is the number of parts that are committed already."""

    def __init__(self, properties: dict[str, str], schema: pa.Schema, *, parts: int = 0) -> None:
        self._properties = read_sink_properties(properties)
        self._schema = pa.schema(
            [field.with_name(name) for field, name in zip(schema, unique_names(schema.names), strict=True)]
        )
        path = os.path.abspath(self._properties.path)
        self._file = None if _is_folder(self._properties.path) else path
        self._folder = path if self._file is None else _hidden(path, ".parts")
        self._parts = parts
        self._writer: PartWriter | None = None
        self._prepared: str | None = None
        self._replaced = False
        with self._errors():
            if self._file is not None:
                _finish_closing(self._file, parts)
            os.makedirs(self._folder, exist_ok=True)
            # After the end of a run the parts are gone, and their rows are in the file.
            first = _restore(self._folder, parts)
            self._in_file = 0 if self._file is None else first
            if self._in_file and not os.path.isfile(path):
                raise SinkError(
                    f"'{show(self._properties.path)}' is not there, and {parts} parts of it have been written before",
                    remedy="put it back, or start the query anew",
                )

    @property
    def parts(self) -> int:
        return self._parts

    def write(self, batch: pa.RecordBatch) -> None:
        batch = self._checked(batch)
        if not len(batch):
            return
        with self._errors():
            if self._prepared is not None:
                self.commit()
            if self._writer is None:
                self._writer = open_part(_hidden(self._part(self._parts), ".new"), self._schema, self._properties)
            self._writer.write(batch)

    def prepare(self) -> int:
        """Puts what was written on disk, still unseen, and tells how many parts there will be after the commit."""
        if self._writer is not None:
            with self._errors():
                self._writer.close()
            self._prepared, self._writer = self._writer.path, None
        return self._parts + (self._prepared is not None)

    def commit(self) -> int:
        """Shows what was written since the last commit as the next part; without rows there is none."""
        self.prepare()
        if self._prepared is not None:
            with self._errors():
                _show(self._prepared, self._part(self._parts))
            self._prepared = None
            self._parts += 1
        return self._parts

    def replace(self, batch: pa.RecordBatch) -> None:
        """The rows as the one file of the sink: the path itself, or `latest` in the folder."""
        target = self._file or os.path.join(self._folder, f"latest.{self._properties.format}")
        rows = self._checked(batch)
        self._write_whole(target, lambda writer: writer.write(rows))
        self._replaced = True

    def abandon(self) -> None:
        if self._writer is not None:
            with self._errors():
                self._writer.abandon()
                os.unlink(self._writer.path)
            self._writer = None

    def close(self) -> None:
        self.commit()
        if self._file is None or not os.path.isdir(self._folder):
            return
        with self._errors():
            done = _hidden(self._file, ".done")
            if not self._replaced:
                self._write_whole(self._file, self._gather, before=lambda: os.replace(self._folder, done))
            shutil.rmtree(self._folder if self._replaced else done)

    def _gather(self, writer: PartWriter) -> None:
        if self._file is not None and self._in_file:
            append_part(writer, self._file)
        for number in range(self._in_file, self._parts):
            append_part(writer, self._part(number))

    def _write_whole(
        self, target: str, fill: Callable[[PartWriter], None], before: Callable[[], None] = lambda: None
    ) -> None:
        """Writes a file of its own and then shows it; when that fails nothing has changed."""
        with self._errors():
            writer = open_part(_hidden(target, ".new"), self._schema, self._properties)
            try:
                fill(writer)
                writer.close()
                before()
                _show(writer.path, target)
            except BaseException:
                writer.abandon()
                raise

    def _part(self, number: int) -> str:
        return os.path.join(self._folder, f"part-{number:06}.{self._properties.format}")

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.schema.types != self._schema.types:
            raise SinkError(f"the sink takes columns {self._schema.types} and was given {batch.schema.types}")
        return pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SinkError(
                f"'{show(self._properties.path)}' cannot be written: {error.strerror or error}",
                remedy="check that the folder may be written to and that the disk has room",
            ) from error


def read_sink_properties(given: dict[str, str]) -> FileProperties:
    """The properties of a sink, with its format; or OptionError with what to write instead."""
    properties = read_file_properties(given, source=False)
    file_format = properties.format_of(properties.path)
    if file_format is None:
        raise OptionError(
            f"the path '{show(properties.path)}' does not tell the format of the sink",
            remedy="write format = 'parquet', 'csv' or 'jsonl'",
        )
    return FileProperties(properties.path, file_format, properties.delimiter_of(properties.path), properties.null)


def _is_folder(path: str) -> bool:
    return path.endswith(("/", os.sep)) or format_by_extension(path) is None or os.path.isdir(path)


def _hidden(path: str, ending: str) -> str:
    """A name beside the path that no reader of folders takes for a file of rows."""
    return os.path.join(os.path.dirname(path), f".{os.path.basename(path)}{ending}")


def _restore(folder: str, parts: int) -> int:
    """Leaves the parts before the given number, shown; the number of the first that is there, `parts` if none is."""
    first = parts
    for name in os.listdir(folder):
        shown = name.removeprefix(".").removesuffix(".new")
        part = _PART.fullmatch(shown)
        if part is None:
            continue
        if int(part[1]) >= parts:
            os.unlink(os.path.join(folder, name))
            continue
        first = min(first, int(part[1]))
        if shown != name:
            _show(os.path.join(folder, name), os.path.join(folder, shown))
    return first


def _finish_closing(path: str, parts: int) -> None:
    """A run ended while it made one file of its parts: the file was whole already, and perhaps not yet shown."""
    done, whole = _hidden(path, ".done"), _hidden(path, ".new")
    if os.path.isdir(done):
        if parts and os.path.isfile(whole):
            _show(whole, path)
        shutil.rmtree(done)


def _show(written: str, target: str) -> None:
    """Renames a file that is on disk, and puts the renaming there too."""
    os.replace(written, target)
    folder = os.open(os.path.dirname(target), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
