"""Where a file sink writes, and how a file gets there: whole or not at all.

A path with a known extension is one file; any other path is a folder of parts. A file is written under a hidden name in
the folder where it will stand, forced to disk, and then renamed. One file is made of parts, too, which lie in a hidden
folder beside it until the end.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pyarrow as pa

from transom.connectors.listing import show
from transom.connectors.part_writers import PartWriter, append_part, open_part
from transom.connectors.properties import FileProperties, compression_of, format_by_extension, read_file_properties
from transom.core.errors import OptionError, SinkError
from transom.core.location import Within, absolute_path, is_remote
from transom.core.schema import unique_names


@dataclass(frozen=True)
class FileTarget:
    """`file` is the one file that is wanted, if it is one; `folder` is where its parts are. It travels to tasks."""

    properties: FileProperties
    schema: pa.Schema
    file: str | None
    folder: str
    within: Within | None = None
    hold: int | None = None

    @staticmethod
    def of(
        properties: dict[str, str], schema: pa.Schema, within: Within | None = None, hold: int | None = None
    ) -> FileTarget:
        """The target of rows of `schema`, whose names become unique if they are not; for `hold` see `Opening`."""
        read = read_sink_properties(properties, within)
        names = unique_names(schema.names)
        unique = pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])
        path = absolute_path(read.path)
        if _is_folder(read.path):
            return FileTarget(read, unique, None, path, within, hold)
        if is_remote(path):
            return FileTarget(read, unique, path, os.path.dirname(path), within, hold)
        folder = hidden(path, ".parts")
        if within is not None:
            within.check(folder)
            within.check(hidden(path, ".more"))
        return FileTarget(read, unique, path, folder, within, hold)

    def checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.schema.types != self.schema.types:
            raise SinkError(f"the sink takes columns {self.schema.types} and was given {batch.schema.types}")
        return pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)

    def open(self, path: str) -> PartWriter:
        if self.within is not None:
            self.within.check(path)  # again: what is there by now may be a link
        return open_part(path, self.schema, self.properties, hold=self.hold)

    def replace(self, batch: pa.RecordBatch) -> None:
        """The rows as the one file of the sink."""
        staged = self.stage(batch)
        with self.errors():
            commit_file(staged, self.snapshot)

    def stage(self, batch: pa.RecordBatch) -> str:
        """The rows on disk, in a file that is unseen: to be shown as the one file of the sink."""
        rows = self.checked(batch)
        return self._write_whole(self.snapshot, lambda writer: writer.write(rows))

    @property
    def snapshot(self) -> str:
        """Where a snapshot goes: the path itself, or `latest` in the folder."""
        return self.file or os.path.join(self.folder, f"latest.{self.properties.format}")

    def gather(self, folder: str, parts: Sequence[str], *, behind: bool, run: str | None) -> None:
        """Makes one file of the parts in a folder, which is gone then; `behind` the rows that are in it already.

        Whose rows it has, if that run is to be known again, is written beside it first: should that be all that
        happens, the run before is rejected.
        """
        file = self.file
        assert file is not None
        done = hidden(file, ".done")

        def fill(writer: PartWriter) -> None:
            for part in ([file] if behind else []) + [os.path.join(folder, part) for part in parts]:
                append_part(writer, part)

        whole = self._write_whole(file, fill)
        with self.errors():
            if run is None:
                with suppress(FileNotFoundError):
                    os.unlink(hidden(file, ".run"))
            else:
                with open(hidden(file, ".run"), "w", encoding="utf-8") as mark:
                    mark.write(run)
                    mark.flush()
                    os.fsync(mark.fileno())
            os.replace(folder, done)
            commit_file(whole, file)
            shutil.rmtree(done)

    def finish_gathering(self, counts: bool) -> None:
        """A run ended while it made one file of its parts: the file was whole already, and perhaps not yet shown.

        `counts` says whether its rows count; they do not for a run that starts anew.
        """
        if self.file is None:
            return
        done, whole = hidden(self.file, ".done"), hidden(self.file, ".new")
        if os.path.isdir(done):
            if counts and os.path.isfile(whole):
                commit_file(whole, self.file)
            shutil.rmtree(done)

    def reject_another(self, run: str | None) -> None:
        """A run that goes on behind the rows in its file must find its own."""
        assert self.file is not None
        try:
            with open(hidden(self.file, ".run"), encoding="utf-8") as mark:
                shown = mark.read(len(run or "") + 1)
        except (FileNotFoundError, UnicodeDecodeError):
            shown = ""
        if run is not None and shown != run:
            raise SinkError(
                f"'{show(self.properties.path)}' has the answer of another run by now, and this run cannot go on",
                remedy="put the file back as it was, or start the query anew, with another file",
            )

    def miss_file(self, parts: int) -> SinkError:
        return SinkError(
            f"'{show(self.properties.path)}' is not there, and {parts} parts of it have been written before",
            remedy="put it back, or start the query anew",
        )

    def _write_whole(self, target: str, fill: Callable[[PartWriter], None]) -> str:
        """Writes a file of its own, to be shown as the target; when that fails nothing has changed."""
        with self.errors():
            writer = self.open(hidden(target, ".new"))
            try:
                fill(writer)
                writer.close()
            except BaseException:
                writer.abort()
                raise
        return writer.path

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            remedy = "check that the folder may be written to and that the disk has room"
            if is_remote(self.folder):
                remedy = "check that the environment has what the storage asks for: address, region, credentials"
            raise SinkError(
                f"'{show(self.properties.path)}' cannot be written: {error.strerror or error}", remedy=remedy
            ) from error


def read_sink_properties(given: dict[str, str], within: Within | None = None) -> FileProperties:
    """The properties of a sink, with its format; or OptionError with what to write instead."""
    properties = read_file_properties(given, source=False)
    if compression_of(properties.path) is not None:
        raise OptionError(
            f"a sink writes no compressed text, as '{show(properties.path)}' would be",
            remedy="write a path without that ending; Parquet files are compressed inside",
        )
    if within is not None:
        within.check(properties.path)
    file_format = properties.format_of(properties.path)
    if file_format is None:
        raise OptionError(
            f"the path '{show(properties.path)}' does not tell the format of the sink",
            remedy="write format = 'parquet', 'csv' or 'jsonl'",
        )
    return FileProperties(properties.path, file_format, properties.delimiter_of(properties.path), properties.null)


def hidden(path: str, ending: str) -> str:
    """A name beside the path that no reader of folders takes for a file of rows."""
    return os.path.join(os.path.dirname(path), f".{os.path.basename(path)}{ending}")


def commit_file(written: str, target: str) -> None:
    """Renames a file that is on disk, and puts the renaming there too."""
    os.replace(written, target)
    sync_folder(os.path.dirname(target))


def sync_folder(path: str) -> None:
    """Puts on disk which files there are in a folder."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _is_folder(path: str) -> bool:
    if path.endswith(("/", os.sep)) or format_by_extension(path) is None:
        return True
    return not is_remote(path) and os.path.isdir(path)
