"""Between Spark and what is done with a batch: keeps errors as they were, and lets no batch begin after a stop.

Whoever listens to the queries of a SparkSession knows one of ours by its name, and sees that it was stopped.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Any, Final, NoReturn

from py4j.clientserver import ClientServer
from pyspark.sql import SparkSession

Batch = Callable[[Any, int], None]

# It would print every error of a batch before we can tell it in our own words.
logging.getLogger("py4j").addHandler(logging.NullHandler())

_NAP_MS: Final = 50


class Stopped(Exception):
    """A batch was not begun, because the query is to end."""


def free_name(spark: SparkSession, name: str) -> str:
    """What a query is called on Spark: the same at every start, unless another one that runs is called so."""
    taken = [query.name for query in spark.streams.active]
    names = (name if number == 1 else f"{name} {number}" for number in count(1))
    return next(each for each in names if each not in taken)


class Guard:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stop_requested = False
        self.busy = False
        self.holding = False
        """Whether a batch waits here that is not to begin; Spark does it first thing when it goes on."""
        self.error: BaseException | None = None
        """What went wrong in a batch on our side, before Spark has made a text of it."""
        self.before: Callable[[], None] = lambda: None
        """Called before a batch is written, which it may reject."""
        self.after: Callable[[int, float], None] = lambda number, seconds: None
        """Notified of every batch that is written: its number, and the seconds since its rows were asked for."""

    def around(self, batch: Batch) -> Batch:
        def guarded(frame: Any, number: int) -> None:
            with self._lock:
                self.holding = self._stop_requested
                self.busy = not self._stop_requested
            if self.holding:
                _wait_for_the_stop(frame)
            began = time.perf_counter()
            try:
                self.before()
                batch(frame, number)
                self.after(number, time.perf_counter() - began)
            except BaseException as error:
                self.error = _ours(error)
                raise
            finally:
                self.busy = False

        return guarded

    def request_stop(self) -> None:
        """Let no further batch begin."""
        with self._lock:
            self._stop_requested = True


def _wait_for_the_stop(frame: Any) -> NoReturn:
    """Sleep in the thread of the JVM that runs the query, where a stop of the query interrupts it.

    Spark knows that for a stop, and tells its listeners so; any other error would be a failure of the query to them.
    """
    context = frame.sparkSession.sparkContext
    while isinstance(context._gateway, ClientServer):  # otherwise calls run in other threads than the one that asks
        context._jvm.java.lang.Thread.sleep(_NAP_MS)
    raise Stopped


def _ours(error: BaseException) -> BaseException | None:
    """An error of ours; None if it is Spark's: what a worker had to say is found in Spark's own text."""
    return None if type(error).__module__.partition(".")[0] in ("pyspark", "py4j") else error
