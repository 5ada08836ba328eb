"""Rows that are read before the batch that they are in has begun, while its process has nothing else to do.

Between two batches Spark commits the one and plans the other, for as long as the work of a small batch takes, and on
one core. The source says what it will probably plan to read next, and the process that will read it does so
meanwhile. What turns out otherwise is dropped; nothing but time depends on it. Of each split is known what its rows
depend on (`Source.version`), and they count only if that is as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from transom.connectors.connector import Split, SplitRows
from transom.runtimes.spark.task_split import TaskInputs, TaskReading

MOST_BYTES: Final = 1 << 27
"""So much is held for later; the rest is read when it is asked for."""

MOST_LEFT_OUT: Final = 64
"""So many batches at most nothing is read ahead where it had been for nothing."""

_KNOWN: Final[dict[str, ReadAhead]] = {}
"""Of the run that this process works for."""


def of(run: str, reading: TaskReading) -> ReadAhead:
    """What this process has read ahead in a run; of others it forgets."""
    if run not in _KNOWN:
        for other in list(_KNOWN):
            _KNOWN.pop(other).drop()
        _KNOWN[run] = ReadAhead(reading)
    return _KNOWN[run]


class ReadAhead:
    def __init__(self, reading: TaskReading) -> None:
        self._inputs = TaskInputs(reading)  # its own: a source is read by one thread at a time
        self._pool = ThreadPoolExecutor(1, "transom-read-ahead")
        self._futures: dict[tuple[str, str], Future[_Read | None]] = {}
        self._bytes = 0
        self._used = True
        self._left_out = self._to_leave_out = 0

    def begin(self, splits: Iterable[tuple[str, Iterable[Split]]]) -> None:
        """Read these, which come next, in another thread; what is left of those before them is dropped."""
        if not self._used and self._futures:  # inputs take turns, or change: it costs more than it gives
            self._to_leave_out = min(MOST_LEFT_OUT, max(1, 2 * self._to_leave_out))
            self._left_out = self._to_leave_out
        elif self._futures:
            self._to_leave_out = 0
        self.drop()
        self._used = False
        if self._left_out:
            self._left_out -= 1
            return
        for name, some in splits:
            for split in some:
                self._futures[name, _id(split)] = self._pool.submit(self._read, name, split)

    def take(self, name: str, split: Split) -> list[SplitRows] | None:
        """The rows of a split, if they are here; a split that is being read is waited for."""
        future = self._futures.get((name, _id(split)))
        if future is None:
            return None
        self._used = True  # it was foreseen, and next time there may be time for it
        if future.cancel():
            return None
        versioned = future.result()
        if versioned is None or versioned[0] != self._inputs.source(name).version(split):
            return None
        return versioned[1]

    def drop(self) -> None:
        for future in self._futures.values():
            future.cancel()
        self._futures = {}
        self._bytes = 0

    def _read(self, name: str, split: Split) -> _Read | None:
        if self._bytes >= MOST_BYTES:
            return None
        try:
            source = self._inputs.source(name)
            version = source.version(split)
            rows = [] if version is None else list(source.read_split(split))
        except Exception:  # whoever asks for it reads it again, and reports what is wrong
            return None
        self._bytes += sum(part.rows.nbytes for part in rows)
        return None if version is None else (version, rows)


_Read = tuple[Any, list[SplitRows]]
"""The version of a split, and its rows."""


def _id(split: Split) -> str:
    return repr(split.packed())
