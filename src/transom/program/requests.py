"""Requests to the thread of a run: work that it does between two steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future


class Requests:
    """
    >>> requests = Requests()
    >>> one, other = requests.submit(lambda: print("now")), requests.submit(lambda: None)
    >>> requests.do()
    now
    >>> one.done(), requests.submit(lambda: None).done()
    (True, False)
    >>> requests.reject()
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[[], None], Future[None]]] = deque()

    def submit(self, work: Callable[[], None]) -> Future[None]:
        """Have work done, from any thread; what it raises is raised where its result is asked for."""
        done: Future[None] = Future()
        self._waiting.append((work, done))
        return done

    def do(self) -> None:
        """Do all that was requested so far."""
        while self._waiting:
            work, done = self._waiting.popleft()
            try:
                work()
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(None)

    def reject(self) -> None:
        """Cancel all work that waits: it will not be done any more."""
        while self._waiting:
            self._waiting.popleft()[1].cancel()
