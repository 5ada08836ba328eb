"""The newest rows of an answer, kept on their way to its sink for whoever looks at it while it comes.

What is kept is bounded, and nothing is kept until somebody wants to look: then a write costs one comparison.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from transom.connectors.answer_view import AnswerView
from transom.connectors.connector import Opening, OpenSink, Sink, TaskWriter

ReadBack = Callable[[int], list[pa.RecordBatch]]

MOST_ROWS: Final = 1_000
"""So many rows of an answer are kept."""


@dataclass(frozen=True)
class Newest:
    """What a tap has kept. `passed` counts the rows that went by, `missed` says that some of them are not here;
    `snapshot` is there of an answer that is shown whole. `by_tasks`: rows go to the sink without coming by, and those
    that are here were read back."""

    opening: Opening
    rows: tuple[pa.RecordBatch, ...]
    passed: int
    missed: bool
    snapshot: pa.RecordBatch | None
    by_tasks: bool


class AnswerTap:
    """Written by the thread of a run, read by any other. `version` is another number whenever there is more.

    >>> tap = AnswerTap(most=3)
    >>> tap.watch()
    >>> tap.opened(Opening(pa.schema([("a", pa.int64())]), form="stream"))
    >>> for first in (0, 2):
    ...     tap.write(pa.record_batch({"a": [first, first + 1]}))
    >>> [batch.column(0).to_pylist() for batch in tap.newest().rows], tap.newest().passed, tap.newest().missed
    ([[1], [2, 3]], 4, True)
    """

    def __init__(self, view: AnswerView | None = None, most: int = MOST_ROWS) -> None:
        self.view = view or AnswerView()
        self.version = 0
        self._most = most
        self._watched = False
        self._lock = threading.Lock()
        self._opening = Opening(pa.schema([]))
        self._rows: deque[pa.RecordBatch] = deque()
        self._kept = 0
        self._passed = 0
        self._missed = False
        self._snapshot: pa.RecordBatch | None = None
        self._by_tasks: ReadBack | None = None

    def watch(self) -> None:
        """Keep the rows from now on."""
        if not self._watched:
            with self._lock:
                self._watched, self._missed = True, self._passed > 0

    def newest(self) -> Newest:
        with self._lock:
            rows, surplus = list(self._rows), self._kept - self._most
            if surplus > 0:
                rows[0] = rows[0].slice(surplus)
            missed = self._missed or surplus > 0
            kept = Newest(self._opening, tuple(rows), self._passed, missed, self._snapshot, False)
            read_back = self._by_tasks
        return (
            kept if read_back is None else replace(kept, rows=tuple(read_back(self._most)), missed=True, by_tasks=True)
        )

    @property
    def by_tasks(self) -> bool:
        return self._by_tasks is not None

    # --- by the run --------------------------------------------------------------------------------------------------

    def opened(self, opening: Opening) -> None:
        with self._lock:
            self._opening = opening
            self._missed = self._missed or opening.resume is not None
            self.version += 1

    def write(self, batch: pa.RecordBatch) -> None:
        self._passed += len(batch)
        if not self._watched or not len(batch):
            return
        with self._lock:
            if len(batch) > self._most:  # copied, or the whole of it would stay for the sake of its end
                at = pa.array(range(len(batch) - self._most, len(batch)), pa.int64())
                batch, self._missed = batch.take(at), True
            self._rows.append(batch)
            self._kept += len(batch)
            while self._kept - len(self._rows[0]) >= self._most:  # who looks leaves out what is too much of the first
                self._kept -= len(self._rows.popleft())
                self._missed = True
            self.version += 1

    def replace(self, batch: pa.RecordBatch) -> None:
        self._passed += 1
        if self._watched:
            with self._lock:
                self._snapshot = batch
                self.version += 1

    def passed_by(self, read_back: ReadBack) -> None:
        """Tasks have written rows themselves; who wants to see some of them has them `read_back`."""
        with self._lock:
            self._by_tasks = read_back
            self.version += 1


class TappedSink(Sink):
    """A sink that is as it was, and a tap before it."""

    def __init__(self, sink: Sink, tap: AnswerTap) -> None:
        self._sink = sink
        self._tap = tap
        self._parts = False
        self.snapshots = sink.snapshots  # type: ignore[misc]  # of this one, as the sink behind it says

    @property
    def full(self) -> bool:
        return self._sink.full

    @property
    def held_bytes(self) -> int:
        return self._sink.held_bytes

    @property
    def tasks(self) -> TaskWriter | None:
        return self._sink.tasks

    def write(self, batch: pa.RecordBatch) -> None:
        self._sink.write(batch)
        self._tap.write(batch)

    def add_parts(self, parts: Iterable[tuple[int, Any]]) -> None:
        self._sink.add_parts(parts)
        self._parts = True

    def replace(self, batch: pa.RecordBatch) -> None:
        self._sink.replace(batch)
        self._tap.replace(batch)

    def prepare(self, epoch: int) -> Any:
        return self._sink.prepare(epoch)

    def commit(self, epoch: int, token: Any) -> None:
        self._sink.commit(epoch, token)
        if self._parts:
            self._parts = False
            self._tap.passed_by(self._sink.newest)

    def abort(self, epoch: int) -> None:
        self._sink.abort(epoch)

    def close(self) -> None:
        self._sink.close()
        if self._tap.by_tasks:
            self._tap.passed_by(self._sink.newest)  # it may be elsewhere now

    def newest(self, most: int) -> list[pa.RecordBatch]:
        return self._sink.newest(most)

    def collected(self) -> pa.Table | None:
        return self._sink.collected()


def tapped(open_sink: OpenSink, tap: AnswerTap) -> OpenSink:
    """The same sink, with a tap before it."""

    def opens(opening: Opening) -> Sink:
        sink = TappedSink(open_sink.opens(opening), tap)
        tap.opened(opening)
        return sink

    return replace(open_sink, opens=opens)
