"""The handle of a query that runs in the background, by itself or among others, in this process or on Spark."""

from __future__ import annotations

from datetime import datetime
from types import TracebackType

import pyarrow as pa

from transom.core.errors import OptionError
from transom.core.schema import TIMESTAMP
from transom.core.time import from_datetime
from transom.planner.statistics import Where
from transom.program.background import BackgroundRun
from transom.program.explained import Explained, Reader, explained
from transom.program.planned import Planned
from transom.program.progress import Listener, Progress
from transom.program.result import Result
from transom.program.run import QueryInRun
from transom.program.status import Status


class StreamingQuery:
    """A query that runs in the background: made by `start` and by `Session.add`.

    Used in a `with` block, it is stopped at the end of the block, and what went wrong is raised there. A query that
    neither its session nor anybody else holds any more is stopped as well.

    >>> from transom import Session
    >>> session = Session()
    >>> _ = session.execute('''CREATE STREAM s (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts)
    ...     WITH (connector = 'generator', rows = 1000, column.a = 'sequence')''')
    >>> with session.start("SELECT MAX(a) AS a FROM s", emit="latest") as query:
    ...     ended = query.await_termination(timeout=60)
    >>> ended, query.is_active, query.exception(), query.result.to_pylist()
    (True, False, None, [{'a': 999}])
    >>> query.last_progress.query, sum(each.rows_in for each in query.recent_progress)
    ('query-1', 1000)
    """

    def __init__(
        self, query: QueryInRun, background: BackgroundRun, planned: Planned, where: Where, reader: Reader
    ) -> None:
        self._query = query
        self._background = background
        self._planned = planned
        self._where, self._reader = where, reader
        self._last_status: tuple[int, Status] | None = None
        """How it was doing, after so many steps."""

    @property
    def name(self) -> str:
        """What it is called, in its session and in what it reports."""
        return self._query.name

    @property
    def statement(self) -> str:
        """The text of the query."""
        return self._planned.statement.text

    @property
    def is_active(self) -> bool:
        """Whether it goes on: it has neither come to the end of its input, nor been stopped, nor failed."""
        return self._background.is_active(self._query)

    @property
    def status(self) -> Status:
        """How it was doing after its last step."""
        steps = self._background.steps  # before it is looked at: a step that ends meanwhile makes it stale
        if self._last_status is None or self._last_status[0] != steps:
            self._last_status = steps, self._query.status()
        return self._last_status[1]

    @property
    def recent_progress(self) -> list[Progress]:
        """What it did of late, the last hundred batches: on Spark each is one, in this process about a second."""
        return list(self._background.run.recent(self.name))

    @property
    def last_progress(self) -> Progress | None:
        """The last of them, if there is one yet."""
        return next(reversed(self.recent_progress), None)

    def exception(self) -> BaseException | None:
        """What went wrong, if anything did. What fails in one query ends all that it runs with."""
        return self._background.error

    def explain(self) -> Explained:
        """How it runs, by itself."""
        return explained(self._planned, None, self._where, self._reader)

    @property
    def result(self) -> Result:
        """The answer so far, if it stays in memory."""
        return Result.so_far(self._planned.statement.text, self._query.sink, self.status)

    def on_progress(self, callback: Listener) -> None:
        """Have a function called with every batch from now on, in the thread of the query."""

        def of_this_query(progress: Progress) -> None:
            if progress.query == self.name:
                callback(progress)

        self._background.run.listeners.append(of_this_query)

    def stop(self, timeout: float | None = None) -> Status:
        """End it after the step that is under way; what it has written is complete then.

        An input that is a Python iterable may keep it waiting for the next row. After `timeout` seconds of that an
        error is raised; the query ends when the row comes.
        """
        self._background.remove(self._query, timeout)
        return self.status

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait for its end, at most so many seconds; whether it has come. What went wrong is raised."""
        return self._background.wait_until(lambda: not self.is_active, timeout)

    def await_progress(self, instant: datetime | str | int, timeout: float | None = None) -> bool:
        """Wait until everything up to `instant` is final and written, at most so many seconds; whether it is.

        An instant is a datetime, a text such as '2024-05-01 10:00:00', or microseconds since 1970. What went wrong is
        raised; of a query that ended or was stopped before, the answer is False.
        """
        micros = _micros_of(instant)
        self._background.wait_until(lambda: not self.is_active or self.status.progress > micros, timeout)
        return self.status.progress > micros

    def __enter__(self) -> StreamingQuery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        failure = self.exception()
        if kind is None and failure is not None:
            raise failure

    def __repr__(self) -> str:
        state = "active" if self.is_active else "failed" if self.exception() is not None else "ended"
        return f"<StreamingQuery {self.name}: {state}, {self.status.rows_out:,} rows out>"

    def _repr_html_(self) -> str:
        return self.status._repr_html_()


def glance(query: StreamingQuery, lately: float) -> Status:
    """Its status, for whoever looks again and again: sizes of states may be so many seconds old."""
    return query._query.status(lately)


def _micros_of(instant: datetime | str | int) -> int:
    if isinstance(instant, datetime):
        return from_datetime(instant)
    if isinstance(instant, int):
        return instant
    try:
        return int(pa.scalar(instant).cast(TIMESTAMP).value)
    except (pa.ArrowException, TypeError):
        raise OptionError(f"'{instant}' is no instant", remedy="write it as 2024-05-01 10:00:00") from None
