"""Queries that come and go: they run in the background together, and those on the same join share it."""

from __future__ import annotations

import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from datetime import datetime

from transom.core.emits import Emit
from transom.core.errors import OptionError, QueryError
from transom.program.arguments import require_text
from transom.program.orders import OnRows
from transom.program.planned import Planned
from transom.program.result import Result
from transom.program.run import OpenRun, Order, Query, Run
from transom.program.running import micros_of
from transom.program.status import Status


class StandingQuery:
    """A query among others in the background: made by `Session.add`."""

    def __init__(self, query: Query, standing: _Standing, statement: str) -> None:
        self.name = query.name
        self._query = query
        self._sink = query.sink
        self._standing = standing
        self._statement = statement
        self.removed = False

    @property
    def status(self) -> Status:
        """How it is doing; after it was removed, how it was then."""
        return self._query.status()

    @property
    def running(self) -> bool:
        """Whether it goes on: neither was it removed, nor has the input ended or anything failed."""
        return not self.removed and not self._standing.over

    @property
    def error(self) -> BaseException | None:
        """What went wrong, if anything did: what fails in one query ends all of them."""
        return self._standing.error

    @property
    def result(self) -> Result:
        """The answer so far, if it stays in memory."""
        return Result.so_far(self._statement, self._sink, self.status)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the input, at most so many seconds; whether it has come. What went wrong is raised."""
        return self._standing.wait(lambda: False, timeout)

    def await_progress(self, instant: datetime | str | int, timeout: float | None = None) -> bool:
        """Wait until everything up to `instant` is final and written, at most so many seconds; whether it is."""
        micros = micros_of(instant)
        self._standing.wait(lambda: self.status.progress > micros, timeout)
        return self.status.progress > micros


class _Standing:
    """The run of the queries that are there, and its thread."""

    def __init__(self, run: OpenRun) -> None:
        self.run = run
        self.queries: dict[str, StandingQuery] = {}
        self.error: BaseException | None = None
        self.over = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="transom standing queries", daemon=True)

    def add(self, order: Order) -> StandingQuery:
        """Raises CancelledError if the run is over before it could be."""
        made: list[Query] = []
        self._between_steps(lambda: made.append(self.run.add(order)))
        query = StandingQuery(made[0], self, order.planned.statement.text)
        self.queries[order.name] = query
        if not self._thread.ident:
            self._thread.start()
        return query

    def remove(self, name: str) -> StandingQuery:
        query = self.queries.pop(name)
        with suppress(CancelledError):  # if it has ended by itself
            self._between_steps(lambda: self.run.remove(name))
        query.removed = True
        return query

    def stop(self) -> None:
        self.run.stop()
        if self._thread.ident and self._thread is not threading.current_thread():
            self._thread.join()

    def wait(self, happened: Callable[[], bool], timeout: float | None) -> bool:
        """Until something has happened or all is over; False if it takes longer."""
        end = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not self.over and not happened():
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._changed.wait(left)
        if self.error is not None:
            raise self.error
        return True

    def _between_steps(self, work: Callable[[], None]) -> None:
        if not self._thread.ident:
            work()
            return
        with self._changed:
            if self.over:
                raise CancelledError
            asked = self.run.ask(work)
        asked.result()

    def _work(self) -> None:
        try:
            self.run.run(self._watch)
        except BaseException as error:  # told to whoever asks: nobody stands above a thread to catch it
            self.error = error
        finally:
            with self._changed:
                self.over = True
                self.run.refuse_asked()
                self._changed.notify_all()

    def _watch(self, run: Run) -> None:
        with self._changed:
            self._changed.notify_all()


class StandingQueries(ABC):
    """The part of a session that knows the queries which come and go."""

    _standing: _Standing | None = None
    _follow = False

    @abstractmethod
    def _only(self, text: str) -> Planned: ...

    @abstractmethod
    def _ordered(self, one: Planned, name: str, emit: Emit, on_rows: OnRows | None) -> Order: ...

    @abstractmethod
    def _open_run(self, follow: bool) -> OpenRun: ...

    def add(
        self,
        text: str,
        *,
        name: str | None = None,
        emit: Emit = "changes",
        on_rows: OnRows | None = None,
        follow: bool = False,
    ) -> StandingQuery:
        """A query that joins those which run in the background already, between two steps of theirs.

        If one of them has the same join, the two share it (SET sharing): the new query begins at the progress that the
        others have reached, and its answer is that of the query alone with its origin set to there. Otherwise it reads
        its inputs from their beginning. Its rows are handed to `on_rows`, in the thread of the queries, or kept in
        memory. With the first query `follow` is decided for all: whether they wait for more rows at the end of an
        input. An input that is a Python iterable may keep whoever adds a query waiting for the next row.

        >>> from transom import Session
        >>> session = Session()
        >>> for name in "ab":
        ...     rows = [{"t": "2024-05-01 10:00:00", "k": 1}, {"t": "2024-05-01 10:00:05", "k": 2}]
        ...     session.stream(name, rows, time="t")
        >>> join = "ISTREAM(SELECT a.k FROM a [RANGE {0} SECONDS] JOIN b [RANGE {0} SECONDS] ON a.k = b.k)"
        >>> first = session.add(join.format(1), follow=True)
        >>> first.await_progress("2024-05-01 10:00:04", timeout=60)
        True
        >>> second = session.add(join.format(9), name="wider", follow=True)
        >>> for name in "ab":
        ...     session.append(name, [{"t": "2024-05-01 10:00:09", "k": 1}])
        >>> second.await_progress("2024-05-01 10:00:08", timeout=60)
        True
        >>> [row["k"] for row in first.result.to_pylist()], [row["k"] for row in second.result.to_pylist()]
        ([1, 2], [2])
        >>> session.remove("wider").running, first.running
        (False, True)
        >>> session.close()
        """
        one = self._only(text)
        if name is not None:
            require_text(name, "the name of a query")
        if on_rows is not None and one.sink is not None:
            raise OptionError(
                f"the rows go to the sink '{one.sink.name}', and on_rows would get none",
                remedy="leave on_rows out, or write the query without INSERT INTO",
            )
        while True:
            if self._standing is None or self._standing.over:
                self._standing, self._follow = _Standing(self._open_run(follow)), follow
                weakref.finalize(self, self._standing.run.stop)  # nobody is left who could
            if follow != self._follow:
                raise OptionError(
                    f"the queries that run {'' if self._follow else 'do not '}follow their inputs",
                    remedy=f"write follow={self._follow}, or remove them first",
                )
            known = self._standing.queries
            called = name or next(f"query-{i}" for i in range(1, len(known) + 2) if f"query-{i}" not in known)
            if called in known:
                raise QueryError(f"a query '{called}' is there already", remedy="give another name, or remove() it")
            try:
                return self._standing.add(self._ordered(one, called, emit, on_rows))
            except CancelledError:
                continue  # the others have just come to the end of their input

    def remove(self, name: str) -> StandingQuery:
        """Let a query of `add` go, after the step that is under way; what it has written is complete then."""
        if self._standing is None or name not in self._standing.queries:
            known = ", ".join(self._standing.queries) if self._standing is not None else ""
            raise QueryError(f"there is no query '{name}'", remedy=f"there is {known}" if known else "add() one first")
        return self._standing.remove(name)

    def _stop_standing(self) -> None:
        if self._standing is not None:
            self._standing.stop()
