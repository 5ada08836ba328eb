"""A log and cached state of a partition that stay in the process."""

from __future__ import annotations

from collections.abc import Iterable

from transom.pipeline.frames import Buffer
from transom.pipeline.partition_state import PartitionState
from transom.pipeline.state_backend import WrittenEntry


class MemoryLog:
    """A log in memory."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.entries: dict[tuple[int, int], bytes] = {}
        self.part_bytes = 1 << 30

    def copy(self) -> MemoryLog:
        copied = MemoryLog()
        copied.text, copied.entries, copied.part_bytes = self.text, dict(self.entries), self.part_bytes
        return copied

    def header(self) -> str | None:
        return self.text

    def write_header(self, header: str) -> None:
        self.text = header

    def read(self, entry: int, part: int) -> bytes:
        return self.entries[entry, part]

    def write(self, entry: int, buffers: Iterable[Buffer]) -> WrittenEntry:
        data = b"".join(buffers)
        parts = [data[at : at + self.part_bytes] for at in range(0, len(data), self.part_bytes)]
        self.entries |= {(entry, part): blob for part, blob in enumerate(parts)}
        return WrittenEntry(len(parts), len(data))

    def remove(self, entry: int, part: int) -> None:
        del self.entries[entry, part]


class MemoryCache:
    """Cached state in the process itself."""

    def __init__(self) -> None:
        self._kept: tuple[str, PartitionState] | None = None

    def take(self, token: str) -> PartitionState | None:
        kept, self._kept = self._kept, None
        return kept[1] if kept is not None and kept[0] == token else None

    def put(self, token: str, state: PartitionState) -> None:
        self._kept = token, state
