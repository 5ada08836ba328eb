"""A sink that writes an epoch in one transaction, for systems that cannot hold a prepared one across a crash.

The rows of an epoch are staged in the checkpoint of the run, and go out when the checkpoint counts them: after a crash
they are there to be sent again. Where the runtime itself brings them again, or nothing is to survive the process, they
wait in memory.
"""

from __future__ import annotations

import os
import uuid
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa

from transom.connectors.connector import Opening, Sink, SinkDeclaration
from transom.connectors.file_target import sync_folder
from transom.connectors.storage import WriteFile, create_file, storage_of
from transom.core.errors import SinkError
from transom.core.location import is_remote


class StagedSink(Sink):
    """`run` is what the numbers of the epochs are to be kept by."""

    def __init__(self, declared: SinkDeclaration, opening: Opening) -> None:
        self.schema = opening.schema
        self.run = declared.run or uuid.uuid4().hex
        self._staging = None if opening.replayed else declared.staging
        self._staged_rows: list[pa.RecordBatch] = []
        self._staged_bytes = 0
        self._staged_file: tuple[str, WriteFile, pa.ipc.RecordBatchFileWriter] | None = None
        if self._staging is not None and is_remote(self._staging):
            self._tidy(self._staging, None if opening.resume is None else opening.resume.token)

    @abstractmethod
    def transact(self, epoch: int, rows: Sequence[pa.RecordBatch]) -> None:
        """Write the rows in one transaction that also writes the number of the epoch, by the run; and do nothing if
        this number, or a higher one, has been written by the run before."""

    @property
    def held_bytes(self) -> int:
        return self._staged_bytes

    def write(self, batch: pa.RecordBatch) -> None:
        if not len(batch):
            return
        if self._staging is None:
            self._staged_rows.append(batch)
            self._staged_bytes += batch.nbytes
            return
        with _errors(self._staging):
            if self._staged_file is None:
                name = "rows.new"
                if is_remote(self._staging):
                    name = f"rows-{uuid.uuid4().hex}.arrow"  # by which it stays
                else:
                    os.makedirs(self._staging, exist_ok=True)
                path = os.path.join(self._staging, name)
                file = create_file(path)
                self._staged_file = path, file, pa.ipc.new_file(file.sink, self.schema)
            self._staged_file[2].write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=self.schema))

    def prepare(self, epoch: int) -> Any:
        """Says whether the epoch has staged rows, and on a storage what their file is called."""
        if self._staged_file is None:
            return {"staged": False}
        path, file, writer = self._staged_file
        self._staged_file, staged = None, self._staged_path(epoch)
        with _errors(staged):
            writer.close()
            file.close()
            if is_remote(path):
                return {"staged": True, "file": os.path.basename(path)}
            os.replace(path, staged)
            sync_folder(os.path.dirname(staged))
        return {"staged": True}

    def commit(self, epoch: int, token: Any) -> None:
        if token["staged"]:
            path = self._staged_path(epoch, token.get("file"))
            rows = self._read_staged(path)
            if rows is not None:  # otherwise it was committed before the run resumed from there
                self.transact(epoch, rows)
                if is_remote(path):
                    with _errors(path):
                        storage_of(path).delete(path)
                else:
                    os.unlink(path)
        elif self._staged_rows:
            self.transact(epoch, self._staged_rows)
            self._staged_rows, self._staged_bytes = [], 0

    def abort(self, epoch: int) -> None:
        self._staged_rows, self._staged_bytes = [], 0
        if self._staged_file is not None:
            path, file, writer = self._staged_file
            self._staged_file = None
            writer.close()
            file.abort()
            if not is_remote(path):
                with suppress(FileNotFoundError):
                    os.unlink(path)

    def _staged_path(self, epoch: int, name: str | None = None) -> str:
        assert self._staging is not None
        return os.path.join(self._staging, name or f"epoch-{epoch:08}.arrow")

    @staticmethod
    def _tidy(staging: str, token: Any) -> None:
        """Removes what was staged for an epoch that no checkpoint counts."""
        with _errors(staging):
            storage = storage_of(staging)
            for entry in storage.entries(staging):
                if token is None or entry.name != token.get("file"):
                    storage.delete(os.path.join(staging, entry.name))

    def _read_staged(self, path: str) -> list[pa.RecordBatch] | None:
        """The rows that are staged in a file; None where there is none."""
        try:
            with storage_of(path).open(path) if is_remote(path) else pa.memory_map(path) as file:
                reader = pa.ipc.open_file(file)
                return [reader.get_batch(number) for number in range(reader.num_record_batches)]
        except FileNotFoundError:
            return None
        except (OSError, pa.ArrowException) as error:
            raise SinkError(
                f"the rows of an epoch that were staged in '{path}' cannot be read: {error}",
                remedy="put the checkpoint back from a copy, or start with an empty checkpoint folder",
            ) from None


@contextmanager
def _errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SinkError(
            f"the rows of an epoch cannot be staged in '{path}': {error.strerror or error}",
            remedy="check that the folder of the checkpoint may be written to and that the disk has room",
        ) from error
