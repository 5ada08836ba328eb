"""State that any process of a machine can attach to: its arrays lie in a file that is mapped into memory.

Arrays are changed where they lie. Saving writes down where everything is, and copies into the file what was made anew;
what nothing refers to any more is room for it. So a save costs as much as what is new, and an attach next to nothing,
however large the state is.

An arena is for one user at a time, and is worth nothing while it is used: it is marked so before anything changes, and
carries the token of its state only when all of it is in place. Whoever finds another token than he knows to be right,
or finds it locked by a worker that was given up and still goes on, makes a new file and puts it in its place. Where
there is no room for it another place may do instead.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
from bisect import insort
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

import numpy as np

from transom.core.errors import CheckpointError
from transom.state import codec

_HEAD: Final = 4096
_TOKEN: Final = 32
_ALIGN: Final = 64
_GROWTH: Final = 1 << 20


class Arena:
    """One state in one file.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> arena = Arena(os.path.join(folder, "s"), [])
    >>> arena.put("one", {"a": np.arange(3)})
    >>> state = Arena(os.path.join(folder, "s"), []).take("one")
    >>> state["a"].tolist(), Arena(os.path.join(folder, "s"), []).take("one")
    ([0, 1, 2], None)
    """

    def __init__(self, path: str, classes: Iterable[type], instead: str | None = None) -> None:
        self._paths = [path] if instead is None else [path, instead]
        self._path = path
        self._classes = tuple(classes)
        self._file: int | None = None
        self._map: mmap.mmap | None = None

    def take(self, token: str) -> Any:
        """The state of this token, to be changed where it lies, or None; from here on the file counts as used up."""
        for path in self._paths:
            state = self._take(path, token)
            if state is not None:
                self._path = path
                return state
        return None

    def _take(self, path: str, token: str) -> Any:
        self.release()
        try:
            self._file = os.open(path, os.O_RDWR)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            size = os.fstat(self._file).st_size
            self._map = mmap.mmap(self._file, size) if size >= _HEAD else None
        except (FileNotFoundError, BlockingIOError):
            self.release()
            return None
        if self._map is None or self._map[:_TOKEN].rstrip(b"\0") != token.encode():
            self.release()
            return None
        self._map[:_TOKEN] = bytes(_TOKEN)
        at, length = (int.from_bytes(self._map[i : i + 8], "little") for i in (_TOKEN, _TOKEN + 8))
        tree = json.loads(self._map[at : at + length])
        view = memoryview(self._map)
        return codec.rebuild(tree, lambda part: self._got(part, view), self._classes)

    def put(self, token: str, state: Any) -> None:
        """Lay down the state, all of it, and then its token."""
        try:
            self._put(token, state)
        except CheckpointError:
            self.release()
            if self._path == self._paths[-1]:
                raise
            self._path = self._paths[self._paths.index(self._path) + 1]
            self.put(token, state)

    def _put(self, token: str, state: Any) -> None:
        if self._map is None:
            self._begin()
        assert self._map is not None and self._file is not None
        placing = _Placing(self._map)
        tree = codec.describe(state, placing.put, whole=True)
        text = _patched(tree, placing)
        size = placing.size
        if size > len(self._map):
            self._grow(size)
        for at, blob in placing.new:
            self._map[at : at + len(blob)] = memoryview(blob).cast("B") if blob.nbytes else b""
        self._map[placing.tree_at : placing.tree_at + len(text)] = text
        self._map[_TOKEN : _TOKEN + 16] = placing.tree_at.to_bytes(8, "little") + len(text).to_bytes(8, "little")
        self._map[:_TOKEN] = token.encode().ljust(_TOKEN, b"\0")
        self.release()

    def release(self) -> None:
        """Let go of the file; arrays that were taken from it stay readable until nobody holds them."""
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)  # the map holds on to the file as well, and with it to the lock
            os.close(self._file)
        self._file = self._map = None

    def _got(self, part: dict[str, Any], view: memoryview) -> Any:
        at, length = part["at"]
        if "batch" in part:
            return bytes(view[at : at + length])  # a batch is never changed, and its place may be given to others
        return codec.array_of(part, view[at : at + length])

    def _begin(self) -> None:
        """A file of our own, in the place of what is there."""
        with suppress(FileExistsError):
            os.mkdir(os.path.dirname(self._path))
        fresh = f"{self._path}.{os.getpid()}.new"
        self._file = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            self._grow(_GROWTH)
        except CheckpointError:
            os.unlink(fresh)
            raise
        os.replace(fresh, self._path)

    def _grow(self, size: int) -> None:
        """Room on disk first: a map of a file that the disk has no room for kills the process without a word."""
        assert self._file is not None
        wanted = -(-max(size, 2 * (len(self._map) if self._map is not None else 0)) // _GROWTH) * _GROWTH
        try:
            os.posix_fallocate(self._file, 0, wanted)
        except OSError as error:
            with suppress(OSError):
                os.unlink(self._path)
            folder = os.path.dirname(self._path)
            raise CheckpointError(
                f"there is no room for the working memory of a query in '{folder}': {error.strerror}",
                remedy="make room there, or set spark.local.dir to a larger disk",
            ) from None
        self._map = mmap.mmap(self._file, wanted)


class _Placing:
    """Where the arrays of a state go: they stay where they are, or get a place among those that are free."""

    def __init__(self, mapped: mmap.mmap) -> None:
        self._base = np.frombuffer(mapped, dtype=np.uint8).__array_interface__["data"][0]
        self._length = len(mapped)
        self._kept: list[tuple[int, int]] = [(0, _HEAD)]
        self._waiting: list[tuple[list[int], Any]] = []
        self.new: list[tuple[int, Any]] = []
        self.tree_at = 0
        self.size = 0

    def put(self, blob: Any) -> list[int]:
        """[offset, length], filled in by `settle` for what is not in the file yet."""
        if isinstance(blob, np.ndarray):
            start = blob.__array_interface__["data"][0] - self._base
            if start >= 0 and start + blob.nbytes <= self._length and blob.flags.c_contiguous:
                insort(self._kept, (start, start + blob.nbytes))
                return [start, blob.nbytes]
            blob = np.ascontiguousarray(blob).reshape(-1).view(np.uint8)
        else:
            blob = np.frombuffer(blob(), dtype=np.uint8)
        index = [0, blob.nbytes]
        self._waiting.append((index, blob))
        return index

    def settle(self, tree_bytes: int) -> None:
        """Places for all that is new, largest first, and for the tree."""
        gaps = self._gaps()
        for index, blob in sorted(self._waiting, key=lambda each: -each[1].nbytes):
            index[0] = self._room(gaps, blob.nbytes)
            self.new.append((index[0], blob))
        self.tree_at = self._room(gaps, tree_bytes)

    def _gaps(self) -> list[list[int]]:
        gaps = []
        behind = 0
        for start, end in self._kept:
            at = -(-behind // _ALIGN) * _ALIGN
            if start > at:
                gaps.append([at, start])
            behind = max(behind, end)
        self.size = -(-behind // _ALIGN) * _ALIGN
        return gaps

    def _room(self, gaps: list[list[int]], length: int) -> int:
        for gap in gaps:
            if gap[1] - gap[0] >= length:
                at = gap[0]
                gap[0] += -(-length // _ALIGN) * _ALIGN
                return at
        at = self.size
        self.size += -(-max(length, 1) // _ALIGN) * _ALIGN
        return at


def _patched(tree: Any, placing: _Placing) -> bytes:
    """The tree as text, once all places are known; with them it is a little longer than without."""
    slack = 20 * (1 + len(placing._waiting))
    placing.settle(len(json.dumps(tree)) + slack)
    return json.dumps(tree).encode()
