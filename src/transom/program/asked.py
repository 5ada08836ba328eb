"""What others want to have done by the thread of a run, between two steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future


class Asked:
    """
    >>> asked = Asked()
    >>> one, other = asked.ask(lambda: print("now")), asked.ask(lambda: None)
    >>> asked.do()
    now
    >>> one.done(), asked.ask(lambda: None).done()
    (True, False)
    >>> asked.refuse()
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[[], None], Future[None]]] = deque()

    def ask(self, work: Callable[[], None]) -> Future[None]:
        """From any thread; what the work raises is raised where its result is asked for."""
        done: Future[None] = Future()
        self._waiting.append((work, done))
        return done

    def do(self) -> None:
        """All that was asked for so far."""
        while self._waiting:
            work, done = self._waiting.popleft()
            try:
                work()
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(None)

    def refuse(self) -> None:
        """It will not be done any more."""
        while self._waiting:
            self._waiting.popleft()[1].cancel()
