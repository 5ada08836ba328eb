"""Between Spark and what is done with a batch: keeps errors as they were, and lets no batch begin after a stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

Batch = Callable[[Any, int], None]

# It would print every error of a batch before we can tell it in our own words.
logging.getLogger("py4j").addHandler(logging.NullHandler())


class Stopped(Exception):
    """A batch was not begun, because the query is to end; Spark does it first thing when it goes on."""


class Guard:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = False
        self.busy = False
        self.stopped = False
        self.error: BaseException | None = None
        """What went wrong in a batch on our side, before Spark has made a text of it."""
        self.after: Callable[[int, float], None] = lambda number, seconds: None
        """Told of every batch that is written: its number, and the seconds since its rows were asked for."""

    def around(self, batch: Batch) -> Batch:
        def guarded(frame: Any, number: int) -> None:
            with self._lock:
                if self._asked:
                    self.stopped = True
                    raise Stopped
                self.busy = True
            began = time.perf_counter()
            try:
                batch(frame, number)
                self.after(number, time.perf_counter() - began)
            except BaseException as error:
                self.error = _ours(error)
                raise
            finally:
                self.busy = False

        return guarded

    def ask(self) -> None:
        """Let no further batch begin."""
        with self._lock:
            self._asked = True


def _ours(error: BaseException) -> BaseException | None:
    """None if it is Spark that speaks through it: what a worker had to tell is found in Spark's own text."""
    return None if type(error).__module__.partition(".")[0] in ("pyspark", "py4j") else error
