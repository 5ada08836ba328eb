"""The log of a partition in Spark's state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from transom.pipeline.frames import Buffer
from transom.pipeline.state_backend import WrittenEntry
from transom.runtimes.spark.local_shuffle import batch_number
from transom.runtimes.spark.log_names import HEADER, header_of, kept_header
from transom.runtimes.spark.state_files import StateFiles, name_of


class SparkLog:
    """The log of the partition at hand, in Spark's state; long entries are in files beside it."""

    def __init__(self, entries: Any, files: StateFiles) -> None:
        self._entries = entries
        self._files = files
        self._gone: list[str] = []

    def header(self) -> str | None:
        row = self._entries.getValue(HEADER)
        if row is None:
            return None
        header, gone = header_of(bytes(row[0]))
        self._files.remove(gone)  # the batch that has written this is committed
        return header

    def write_header(self, header: str) -> None:
        self._entries.updateValue(HEADER, (kept_header(header, self._gone),))

    def read(self, entry: int, part: int) -> bytes:
        return self._files.value(self._kept(entry, part))

    def write(self, entry: int, buffers: Iterable[Buffer]) -> WrittenEntry:
        kept, size = self._files.kept(buffers, batch_number() or 0)
        for part, blob in enumerate(kept):
            self._entries.updateValue((entry, part), (blob,))
        return WrittenEntry(len(kept), size)

    def remove(self, entry: int, part: int) -> None:
        name = name_of(self._kept(entry, part))
        if name is not None:
            self._gone.append(name)
        self._entries.removeKey((entry, part))

    def tidy(self, entries: Iterable[tuple[int, int]]) -> None:
        """Remove files that were left behind; these are the entries that there are."""
        named = {name_of(self._kept(*entry)) for entry in entries}
        self._files.tidy({name for name in named if name is not None}, batch_number() or 0)

    def _kept(self, entry: int, part: int) -> bytes:
        row = self._entries.getValue((entry, part))
        assert row is not None
        return bytes(row[0])
