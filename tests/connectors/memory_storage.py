"""A storage in the memory of this process, which may fail at any of its steps; URIs lead there as to any other."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from transom.connectors import storage
from transom.connectors.storage import Entry, Storage, WriteFile

_numbers = itertools.count()


class Died(OSError):
    """What a process that is killed would not say."""


class MemoryStorage(Storage):
    """`fails` steps from now on it dies: before that step, or behind it. A step changes something."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[bytes, int]] = {}
        self.steps = 0
        self.fails: int | None = None
        self.behind = False
        self._time = 0

    def _step(self, change: Any) -> None:
        if self.fails is not None and self.steps > self.fails:
            raise Died("it is dead")
        self.steps += 1
        dies = self.fails is not None and self.steps > self.fails
        if not dies or self.behind:
            change()
        if dies:
            raise Died("it dies")

    def entry(self, path: str) -> Entry | None:
        path = path.rstrip("/")
        name = path.rpartition("/")[2]
        if path in self.files:
            data, time = self.files[path]
            return Entry(name, False, len(data), time)
        return Entry(name, True, 0, 0) if any(file.startswith(f"{path}/") for file in self.files) else None

    def entries(self, folder: str) -> list[Entry]:
        folder = folder.rstrip("/") + "/"
        names = {file[len(folder) :].partition("/")[0] for file in self.files if file.startswith(folder)}
        return [entry for name in sorted(names) if (entry := self.entry(folder + name)) is not None]

    def open(self, path: str) -> pa.NativeFile:
        if path not in self.files:
            raise FileNotFoundError(path)
        return pa.BufferReader(self.files[path][0])

    def create(self, path: str) -> WriteFile:
        return _Write(self, path)

    def delete(self, path: str) -> None:
        self._step(lambda: self.files.pop(path, None))

    def keep(self, path: str, data: bytes) -> None:
        self._time += 1
        self._step(lambda: self.files.__setitem__(path, (data, self._time)))


class _Write:
    def __init__(self, where: MemoryStorage, path: str) -> None:
        self._where = where
        self._path = path
        self.sink = io.BytesIO()

    def close(self) -> int:
        self._where.keep(self._path, self.sink.getvalue())
        return len(self.sink.getvalue())

    def abort(self) -> None:
        pass


@contextmanager
def memory_storage() -> Iterator[tuple[str, MemoryStorage]]:
    """Its URI, and the storage."""
    key = ("s3", f"memory-{next(_numbers)}")
    kept = MemoryStorage()
    storage._opened[key] = kept
    try:
        yield "://".join(key), kept
    finally:
        del storage._opened[key]
