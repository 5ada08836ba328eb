"""A log and warm memory of a bucket that stay in the process."""

from __future__ import annotations

from transom.pipeline.bucket_state import BucketState


class MemoryLog:
    """A log in memory."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.entries: dict[tuple[int, int], bytes] = {}

    def copy(self) -> MemoryLog:
        found = MemoryLog()
        found.text, found.entries = self.text, dict(self.entries)
        return found

    def header(self) -> str | None:
        return self.text

    def write_header(self, header: str) -> None:
        self.text = header

    def read(self, entry: int, part: int) -> bytes:
        return self.entries[entry, part]

    def write(self, entry: int, part: int, blob: bytes) -> None:
        self.entries[entry, part] = blob

    def remove(self, entry: int, part: int) -> None:
        del self.entries[entry, part]


class MemoryWarm:
    """Warm memory in the process itself."""

    def __init__(self) -> None:
        self._kept: tuple[str, BucketState] | None = None

    def take(self, token: str) -> BucketState | None:
        kept, self._kept = self._kept, None
        return kept[1] if kept is not None and kept[0] == token else None

    def put(self, token: str, state: BucketState) -> None:
        self._kept = token, state
