"""A run in a thread of its own: those who hold its queries wait for it, and have things done between two steps."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress

from transom.core.errors import QueryError, SourceError
from transom.program.run import QueryInRun, QuerySpec, Run

_SECONDS_TO_END = 5.0


class _Worker:
    """What the thread and its owners both see. The thread does not know them, so that a forgotten run can go.

    To say how a query is doing takes longer than a step with few rows, so it is said when somebody asks. `steps` counts
    what might have changed it; `awaited` counts those who wait for what a step brings.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.changed = threading.Condition()
        self.steps = 0
        self.awaited = 0
        self.error: BaseException | None = None
        self.over = False

    def work(self) -> None:
        try:
            self.run.run(self._watch)
        except BaseException as error:  # reported to whoever asks: nobody stands above a thread to catch it
            self.error = error
        finally:
            with self.changed:
                self.steps += 1
                self.over = True
                self.run.reject_requests()
                self.changed.notify_all()

    def _watch(self, run: Run) -> None:
        self.steps += 1
        if self.awaited:
            with self.changed:
                self.changed.notify_all()


class BackgroundRun:
    """Held by the handles of its queries: when nobody holds one any more, the run is stopped."""

    def __init__(self, run: Run, name: str) -> None:
        self._worker = _Worker(run)
        self._active = {id(query): query for query in run.queries}
        self._thread = threading.Thread(target=self._worker.work, name=f"transom {name}", daemon=True)
        self._forgotten = weakref.finalize(self, _end, run.stop, self._thread)

    @property
    def run(self) -> Run:
        return self._worker.run

    @property
    def over(self) -> bool:
        """Whether it has come to its end, was stopped, or has failed."""
        return self._worker.over

    @property
    def error(self) -> BaseException | None:
        return self._worker.error

    @property
    def steps(self) -> int:
        """Another number after every step."""
        return self._worker.steps

    def is_active(self, query: QueryInRun) -> bool:
        return not self.over and id(query) in self._active

    def start(self) -> None:
        self._thread.start()

    def abandon(self, error: BaseException | None) -> None:
        """Give up a run that does not start after all."""
        self._worker.error, self._worker.over = error, True
        self.run.abort()
        self._forgotten.detach()

    def add(self, spec: QuerySpec) -> QueryInRun:
        """Between two steps. Raises CancelledError if the run is over before that."""
        if self._is_here:
            raise QueryError(
                "a query is added between two steps of the others, not by a function that takes their rows",
                remedy="add it from another thread",
            )
        made: list[QueryInRun] = []

        def come() -> None:
            made.append(self.run.add(spec))
            self._active[id(made[0])] = made[0]

        self._between_steps(come, None)
        return made[0]

    def remove(self, query: QueryInRun, timeout: float | None) -> None:
        """A query goes, after the step that is under way; with the last one the run ends."""
        if self.over or self._active.keys() == {id(query)}:
            self.stop(timeout)
            return
        if id(query) not in self._active:
            return

        def go() -> None:
            self.run.remove(query.name)
            del self._active[id(query)]

        with suppress(CancelledError):  # if all has ended by itself
            self._between_steps(go, timeout)
        with self._worker.changed:
            self._worker.steps += 1
            self._worker.changed.notify_all()

    def stop(self, timeout: float | None = None) -> None:
        """End after the step that is under way; what was written is complete then, and the thread is gone."""
        self.run.stop()
        if self._thread.ident and not self._is_here:
            self._thread.join(timeout)
            if self._thread.is_alive():
                raise _waits_for_input()
        self._forgotten.detach()

    def wait_until(self, happened: Callable[[], bool], timeout: float | None) -> bool:
        """Until something has happened or all is over, at most so many seconds; whether it is. Errors are raised."""
        worker = self._worker
        end = None if timeout is None else time.monotonic() + timeout
        with worker.changed:
            worker.awaited += 1
        try:
            while True:
                seen = worker.steps  # before it is looked at: a step that ends meanwhile is another look worth
                if worker.over or happened():
                    break
                with worker.changed:
                    while worker.steps == seen:
                        left = None if end is None else end - time.monotonic()
                        if left is not None and left <= 0:
                            return False
                        worker.changed.wait(left)
        finally:
            with worker.changed:
                worker.awaited -= 1
        if worker.error is not None:
            raise worker.error
        return True

    @property
    def _is_here(self) -> bool:
        """Whether it is the run itself that asks, by a function that takes rows or hears of progress."""
        return self._thread is threading.current_thread()

    def _between_steps(self, work: Callable[[], None], timeout: float | None) -> None:
        if not self._thread.ident:
            work()
            return
        with self._worker.changed:
            if self._worker.over:
                raise CancelledError
            request = self.run.submit(work)
        if self._is_here:
            return  # it is done when the step is over that is under way here
        try:
            request.result(timeout)
        except TimeoutError:
            raise _waits_for_input() from None


def _waits_for_input() -> SourceError:
    return SourceError(
        "the query waits for its input, and ends when the next row comes",
        remedy="let the iterable come to an end, or wait longer",
    )


def _end(stop: Callable[[], None], thread: threading.Thread) -> None:
    stop()
    if thread.ident and thread is not threading.current_thread():
        thread.join(_SECONDS_TO_END)
