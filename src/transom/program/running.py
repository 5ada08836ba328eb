"""A query that runs by itself, in a thread of its own, while the program goes on."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from datetime import datetime
from types import TracebackType

import pyarrow as pa

from transom.core.errors import OptionError, SourceError
from transom.core.schema import TIMESTAMP
from transom.core.time import from_datetime
from transom.program.progress import Listener
from transom.program.result import Result
from transom.program.run import Run
from transom.program.status import Status

_SECONDS_TO_END = 5.0


class _Shared:
    """What the thread and its owner both see. The thread does not know the owner, so that a forgotten one can go.

    To tell how a query is doing takes longer than a step with few rows, so it is told when somebody asks, not after
    every step: `stale` says that there was a step since. `awaited` counts those who wait for what a step brings.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.changed = threading.Condition()
        self._status = run.status()[0]
        self._stale = False
        self.awaited = 0
        self.error: BaseException | None = None
        self.over = False

    @property
    def status(self) -> Status:
        """How it was doing after its last step; for those who hold `changed`."""
        if self._stale:
            self._stale = False  # before it is told: a step that ends meanwhile makes it stale again
            (self._status,) = self.run.status()
        return self._status

    def work(self) -> None:
        try:
            self.run.run(self._watch)
        except BaseException as error:  # told to whoever asks: nobody stands above a thread to catch it
            self.error = error
        finally:
            with self.changed:
                self._stale = True
                self.over = True
                self.changed.notify_all()

    def _watch(self, run: Run) -> None:
        self._stale = True
        if self.awaited:
            with self.changed:
                self.changed.notify_all()


class RunningQuery:
    """A query that runs in the background: made by `Session.start`.

    Used in a `with` block, it is stopped at the end of the block, and what went wrong is raised there. A query that
    nobody holds any more is stopped as well.

    >>> from transom import Session
    >>> session = Session()
    >>> _ = session.sql('''CREATE STREAM s (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts)
    ...     WITH (connector = 'generator', rows = 1000, column.a = 'sequence')''')
    >>> with session.start("SELECT MAX(a) AS a FROM s", emit="latest") as query:
    ...     ended = query.wait(timeout=60)
    >>> ended, query.status.finished, query.result.to_pylist()
    (True, True, [{'a': 999}])
    """

    def __init__(self, run: Run, statement: str) -> None:
        (query,) = run.queries
        self._sink = query.sink
        self._shared = _Shared(run)
        self._statement = statement
        self._thread = threading.Thread(target=self._shared.work, name=f"transom {query.name}", daemon=True)
        self._thread.start()
        self._forgotten = weakref.finalize(self, _end, run.stop, self._thread)

    @property
    def status(self) -> Status:
        """How it was doing after its last step."""
        with self._shared.changed:
            return self._shared.status

    @property
    def running(self) -> bool:
        """Whether it goes on: it has neither come to the end of its input, nor been stopped, nor failed."""
        return not self._shared.over

    @property
    def error(self) -> BaseException | None:
        """What went wrong, if anything did."""
        return self._shared.error

    def on_progress(self, callback: Listener) -> None:
        """Have a function told of every batch from now on, in the thread of the query."""
        self._shared.run.listeners.append(callback)

    @property
    def result(self) -> Result:
        """The answer so far, if it stays in memory."""
        return Result.so_far(self._statement, self._sink, self.status)

    def stop(self, timeout: float | None = None) -> Status:
        """End it after the step that is under way; what it has written is complete then, and its thread is gone.

        An input that is a Python iterable may keep it waiting for the next row. After `timeout` seconds of that an
        error is raised; the query ends when the row comes.
        """
        self._shared.run.stop()
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise SourceError(
                "the query waits for its input, and ends when the next row comes",
                remedy="let the iterable come to an end, or wait longer",
            )
        self._forgotten.detach()
        return self.status

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for its end, at most so many seconds; whether it has come. What went wrong is raised."""
        return self._until(lambda shared: shared.over, timeout)

    def await_progress(self, instant: datetime | str | int, timeout: float | None = None) -> bool:
        """Wait until everything up to `instant` is final and written, at most so many seconds; whether it is.

        An instant is a datetime, a text such as '2024-05-01 10:00:00', or microseconds since 1970. What went wrong is
        raised; of a query that ended or was stopped before, the answer is False.
        """
        micros = micros_of(instant)
        shared = self._shared
        with shared.changed:
            shared.awaited += 1
        try:
            self._until(lambda shared: shared.over or shared.status.progress > micros, timeout)
        finally:
            with shared.changed:
                shared.awaited -= 1
        return self.status.progress > micros

    def _until(self, condition: Callable[[_Shared], bool], timeout: float | None) -> bool:
        shared = self._shared
        end = None if timeout is None else time.monotonic() + timeout
        with shared.changed:
            while not condition(shared):
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    return False
                shared.changed.wait(left)
        if shared.error is not None:
            raise shared.error
        return True

    def __enter__(self) -> RunningQuery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if kind is None and self.error is not None:
            raise self.error

    def __repr__(self) -> str:
        state = "running" if self.running else "failed" if self.error is not None else "ended"
        return f"<{self.status.name}: {state}, {self.status.rows_out:,} rows out>"

    def _repr_html_(self) -> str:
        return self.status._repr_html_()


def _end(stop: Callable[[], None], thread: threading.Thread) -> None:
    stop()
    if thread is not threading.current_thread():
        thread.join(_SECONDS_TO_END)


def micros_of(instant: datetime | str | int) -> int:
    if isinstance(instant, datetime):
        return from_datetime(instant)
    if isinstance(instant, int):
        return instant
    try:
        return int(pa.scalar(instant).cast(TIMESTAMP).value)
    except (pa.ArrowException, TypeError):
        raise OptionError(f"'{instant}' is no instant", remedy="write it as 2024-05-01 10:00:00") from None
