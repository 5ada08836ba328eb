"""The Spark session that Transom starts for itself: one a process, shared by all who hold a lease of it.

It is started in a thread, so that a program can go on meanwhile, and Ctrl-C finds it waiting, not half-way through a
talk with the JVM. It is stopped when the last lease is given back.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Final

from pyspark.sql import SparkSession

from transom.core.errors import OptionError
from transom.runtimes.spark import launch

_SECONDS_TO_STOP: Final = 20.0


class _SharedSession:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spark: SparkSession | None = None
        self._leases: weakref.WeakSet[Lease] = weakref.WeakSet()

    def take(self, lease: Lease, cores: int | None, brief: bool) -> SparkSession:
        with self._lock:
            # It may have been stopped by somebody who got hold of it.
            if self._spark is None or self._spark.sparkContext._jsc is None:
                self._spark = launch.start("*" if cores is None else cores, lasting=not brief)
                launch.warm(self._spark)
            self._leases.add(lease)
            return self._spark

    def give_back(self, lease: Lease) -> None:
        with self._lock:
            held = lease in self._leases
            self._leases.discard(lease)
            spark, last = self._spark, held and not self._leases
            if last:
                self._spark = None
        if last and spark is not None:
            aside(spark.stop)


_SHARED: Final = _SharedSession()


class Lease:
    """A share in the session, from `begin` or the first use of `spark` on. `cores` count if it is the first share."""

    def __init__(self, cores: int | None) -> None:
        if cores is not None and (not isinstance(cores, int) or cores < 1):
            raise OptionError(f"cores cannot be '{cores}'", remedy="write how many there may be, or leave it out")
        self._cores = cores
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._spark: SparkSession | None = None
        self._error: BaseException | None = None
        self._over = False

    @property
    def cores(self) -> int:
        """How many it would be started with."""
        return self._cores or os.cpu_count() or 1

    def begin(self, brief: bool = False) -> None:
        with self._lock:
            if self._thread is None:
                self._over = False
                self._thread = threading.Thread(target=self._start, args=(brief,), name="transom-spark", daemon=True)
                self._thread.start()

    @property
    def spark(self) -> SparkSession:
        self.begin()
        thread = self._thread
        assert thread is not None
        thread.join()
        if self._error is not None:
            raise self._error
        assert self._spark is not None
        return self._spark

    def release(self) -> None:
        with self._lock:
            self._over = True
            starting = self._thread is not None and self._thread.is_alive()
            self._thread = self._spark = self._error = None
        if not starting:  # otherwise nobody waits for it: it is given back as soon as it is there
            _SHARED.give_back(self)

    def _start(self, brief: bool) -> None:
        try:
            spark = _SHARED.take(self, self._cores, brief)
        except BaseException as error:  # raised where the session is asked for
            self._error = error
            return
        with self._lock:
            self._spark = spark
            over = self._over
        if over:
            _SHARED.give_back(self)


def aside(work: Callable[[], None]) -> None:
    """Speak with the JVM from another thread: what an interrupt cut short in this one would be heard as the answer."""
    thread = threading.Thread(target=work, name="transom-aside", daemon=True)
    thread.start()
    thread.join(_SECONDS_TO_STOP)
