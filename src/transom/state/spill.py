"""Batches that do not fit into memory, in files on a local disk: Arrow IPC, a file for what is written together.

A store has a folder of its own. Without a `home` it makes one in the folder for temporary files (or wherever it is
reported) and removes it in the end (`scratch.py`). With a `home` the files belong to a checkpoint: `hold` names those
that the checkpoint to be written refers to, and what was given up stays until `release` says that this checkpoint is in
its place. Such a store is `durable`. One that is not `referred` to by checkpoints has its home for the sake of other
processes that go on with its files.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from transom.core.errors import CheckpointError, SpillError
from transom.state.scratch import Scratch

_BLOCK: Final = 1 << 20
_MOST_OPEN: Final = 64
_LEAST_WAIT: Final = 0.005


@dataclass
class SpillFile:
    """`name` is that of a file in the folder of the store. `rows[i]` is how many rows batch i has."""

    name: str
    bytes: int
    digest: str
    rows: list[int]


class SpillStore:
    """Files of batches. `speed` is that of the disk in bytes a second, where one is declared.

    >>> store = SpillStore()
    >>> file = store.write([pa.record_batch({"a": [1, 2]}), pa.record_batch({"a": [3]})])
    >>> store.read(file, 1).to_pylist(), file.rows, store.written == file.bytes
    ([{'a': 3}], [2, 1], True)
    >>> store.close()
    """

    def __init__(
        self,
        where: str | None = None,
        *,
        home: str | None = None,
        referred: bool = True,
        speed: int | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._where = where
        self._home = home
        self.durable = home is not None and referred
        self._speed = speed
        self._sleep = sleep
        self._owed = 0.0
        self._folder: str | None = None
        self._scratch: Scratch | None = None
        self._readers: dict[str, pa.RecordBatchFileReader] = {}
        self._given_up: list[str] = []
        self._releasable: list[str] = []
        self.written = 0
        self.read_back = 0
        self.write_seconds = 0.0
        self.read_seconds = 0.0

    @property
    def folder(self) -> str:
        if self._folder is None:
            self._folder = self._made() if self._home is None else self._home
            with _disk_errors(self._folder):
                os.makedirs(self._folder, exist_ok=True)
        return self._folder

    # --- files -------------------------------------------------------------------------------------------------------

    def write(self, batches: Sequence[pa.RecordBatch]) -> SpillFile:
        """All batches into one file; whole or not at all."""
        started = time.perf_counter()
        path = os.path.join(self.folder, f"{secrets.token_hex(8)}.arrow")
        try:
            with _disk_errors(self.folder), open(path, "wb") as file:
                summed = _Summed(file)
                with pa.ipc.new_file(summed, batches[0].schema) as writer:
                    for batch in batches:
                        writer.write_batch(batch)
                if self.durable:
                    file.flush()
                    os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):
                os.unlink(path)
            raise
        self.written += summed.bytes
        self.write_seconds += self._waited(summed.bytes, started)
        return SpillFile(os.path.basename(path), summed.bytes, summed.digest, [len(batch) for batch in batches])

    def read(self, file: SpillFile, number: int) -> pa.RecordBatch:
        """One batch of a file."""
        started = time.perf_counter()
        path = os.path.join(self.folder, file.name)
        try:
            if file.name not in self._readers:
                while len(self._readers) >= _MOST_OPEN:
                    del self._readers[next(iter(self._readers))]
                self._readers[file.name] = pa.ipc.open_file(pa.OSFile(path))
            batch = self._readers[file.name].get_batch(number)
        except (OSError, pa.ArrowException) as error:
            raise SpillError(
                f"the spill file '{path}' cannot be read: {error}",
                remedy="leave the folder of SET spill alone while queries run; then start again from the checkpoint",
            ) from None
        self.read_back += batch.nbytes
        self.read_seconds += self._waited(batch.nbytes, started)
        return batch

    def give_up(self, file: SpillFile) -> None:
        """Nobody needs the file any more, except a checkpoint that may refer to it."""
        if self.durable:
            self._given_up.append(file.name)
        else:
            self._unlink(file.name)

    # --- with a checkpoint -------------------------------------------------------------------------------------------

    def hold(self) -> None:
        """A checkpoint is being written that refers to no file that was given up until now."""
        self._releasable, self._given_up = [*self._releasable, *self._given_up], []

    def release(self) -> None:
        """It is in its place."""
        for name in self._releasable:
            self._unlink(name)
        self._releasable = []

    def adopt(self, files: Iterable[SpillFile]) -> None:
        """Go on with the files of a checkpoint, as they were written; whatever else is there is left over."""
        self._given_up, self._releasable = [], []
        by_name = {file.name: file for file in files}
        if not by_name and not os.path.isdir(self._home or ""):
            return
        for name in os.listdir(self.folder):
            if name not in by_name:
                self._unlink(name)
        for file in by_name.values():
            path = os.path.join(self.folder, file.name)
            if _digest_of(path) != file.digest:
                raise CheckpointError(
                    f"the spill file '{path}' is missing or damaged, and the checkpoint refers to it",
                    remedy="restore it from a copy, or start without the checkpoint",
                )

    # --- the end -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Remove the folder, unless a checkpoint needs what is in it."""
        self._readers = {}
        if self._scratch is not None:
            self._scratch.remove()
            self._folder = self._scratch = None
        elif self._home is not None:
            with suppress(OSError):
                os.rmdir(self._home)

    def _made(self) -> str:
        parent = self._where or tempfile.gettempdir()
        with _disk_errors(parent):
            os.makedirs(parent, exist_ok=True)
            self._scratch = Scratch("spill", parent)
            weakref.finalize(self, self._scratch.remove)  # nobody has to close a store
        return self._scratch.path

    def _unlink(self, name: str) -> None:
        self._readers.pop(name, None)
        folder = self._folder or self._home
        if folder is not None:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, name))

    def _waited(self, count: int, started: float) -> float:
        """The seconds that it took, which are at least as many as the declared disk would have taken.

        Short waits are made together: each of them would last longer than it should.
        """
        took = time.perf_counter() - started
        if self._speed is None:
            return took
        more = max(count / self._speed - took, 0.0)
        self._owed += more
        if self._owed >= _LEAST_WAIT:
            began = time.perf_counter()
            self._sleep(self._owed)
            self._owed -= max(time.perf_counter() - began, self._owed)  # what was slept too long is taken off the next
        return took + more


class _Summed:
    """A file that knows the digest and the length of what was written to it."""

    def __init__(self, file: object) -> None:
        self._file = file
        self._hash = hashlib.blake2b(digest_size=16)
        self.bytes = 0

    def write(self, data: object) -> int:
        view = memoryview(data)  # type: ignore[arg-type]
        self._file.write(view)  # type: ignore[attr-defined]
        self._hash.update(view)
        self.bytes += view.nbytes
        return view.nbytes

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def tell(self) -> int:
        return self.bytes

    def flush(self) -> None: ...

    def close(self) -> None: ...

    closed = False

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def _digest_of(path: str) -> str | None:
    digest = hashlib.blake2b(digest_size=16)
    try:
        with open(path, "rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError:
        return None
    return digest.hexdigest()


class _disk_errors:
    """What goes wrong with the disk is reported to the user."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise SpillError(
                f"what does not fit into memory cannot be written to '{self._folder}': {error.strerror or error}",
                remedy="make room there, SET spill to a folder on a larger disk, or SET memory to more",
            ) from None
