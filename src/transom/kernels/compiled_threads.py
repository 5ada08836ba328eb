"""Threads that wait within a compiled loop, for work that is handed over without the interpreter.

A thread of `worker_pool.py` needs the interpreter before and behind every task, and one thread after the other gets it.
These need it when they begin and when they end. Whoever has work writes down what it is on a **sheet**, an array that
all of them see, and posts a semaphore; they take the numbers of its jobs by counting down. Nobody polls.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from functools import cache
from statistics import median
from threading import Lock, Thread
from typing import Any, Final

import numpy as np
from numba.core import types

from transom.core.delta import Int64s
from transom.kernels.address import add_atomic, exchange_atomic, of_the_system
from transom.kernels.jit import inlined, jit

# Words of a sheet. A semaphore of the system has up to 64 bytes, and what many write to has a cache line of its own.
INBOX, FINISHED, LEFT, ENDED, COUNT, JOBS, CLOSING, REQUEST = 0, 8, 16, 24, 32, 33, 34, 40
"""COUNT is one more than the number of the last job, JOBS how many there are; what they are is from REQUEST on."""
WORDS: Final = 64

_initialise: Final = of_the_system("sem_init", types.int32, types.int64, types.int32, types.uint32)
_post: Final = of_the_system("sem_post", types.int32, types.int64)
_wait: Final = of_the_system("sem_wait", types.int32, types.int64)

Loop = Callable[[Int64s], Any]
"""`while wait(sheet): ..`, with `take` for a job and `ended` behind it for as long as there are any."""


def blank_sheet() -> Int64s:
    """For whoever does all jobs himself."""
    return np.zeros(WORDS, dtype=np.int64)


class CompiledThreads:
    """At most `workers` threads within `loop`, begun when they are first needed."""

    def __init__(self, loop: Loop, workers: int) -> None:
        self.sheet = blank_sheet()
        self.workers = workers if initialise(self.sheet) else 0  # not every system has such semaphores
        self.leading = Lock()
        """Held by whoever has jobs on the sheet."""
        self._loop = loop
        self._threads: list[Thread] = []
        # Not at the end of the process: who wakes up then would want an interpreter that is gone.
        weakref.finalize(self, _dismiss, self.sheet, self._threads).atexit = False

    def begin(self, wanted: int) -> int:
        """See that there are so many threads, if there may be; how many can be called."""
        wanted = min(wanted, self.workers)
        while len(self._threads) < wanted:
            thread = Thread(target=self._loop, args=(self.sheet,), name="transom-worker", daemon=True)
            self._threads.append(thread)
            thread.start()
        return wanted

    def close(self) -> None:
        """No thread is left, and none can be begun."""
        threads = self._threads.copy()
        self.workers = 0
        _dismiss(self.sheet, self._threads)
        for thread in threads:
            thread.join()


def _dismiss(sheet: Int64s, threads: list[Thread]) -> None:
    sheet[CLOSING] = 1
    call(sheet, len(threads))
    threads.clear()


@jit
def initialise(sheet):  # type: ignore[no-untyped-def]
    """Make the semaphores; whether there are such."""
    address = sheet.ctypes.data
    return _initialise(address + 8 * INBOX, 0, 0) == 0 and _initialise(address + 8 * FINISHED, 0, 0) == 0


@jit
def call(sheet, threads):  # type: ignore[no-untyped-def]
    """Wake so many threads."""
    for _ in range(threads):
        _post(sheet.ctypes.data + 8 * INBOX)


@jit
def wait(sheet):  # type: ignore[no-untyped-def]
    """Sleep until somebody calls; False where that is to end."""
    while _wait(sheet.ctypes.data + 8 * INBOX) != 0:  # a signal
        pass
    return sheet[CLOSING] == 0


@inlined
def hand_out(sheet, first, count):  # type: ignore[no-untyped-def]
    """Jobs number `first` up to `count` may be taken: what they are is written down, and none before them is left."""
    sheet[COUNT] = count
    sheet[JOBS] = count - first
    sheet[ENDED] = 0
    exchange_atomic(sheet.ctypes.data + 8 * LEFT, count - first)


@inlined
def take(sheet):  # type: ignore[no-untyped-def]
    """The number of a job that nobody has begun, -1 where there is none.

    They are counted down, so that who was called for earlier jobs and comes late finds either none of those, or one of
    the new ones, when all that is on the sheet is of these.
    """
    left = add_atomic(sheet.ctypes.data + 8 * LEFT, -1)
    if left <= 0:
        return -1
    return sheet[COUNT] - left


@inlined
def ended(sheet):  # type: ignore[no-untyped-def]
    """A job that was taken is done, well or not; whether it was the last one."""
    return add_atomic(sheet.ctypes.data + 8 * ENDED, 1) + 1 == sheet[JOBS]


@jit
def finish(sheet):  # type: ignore[no-untyped-def]
    """Who ended the last job, and is not the one who waits for it, says so."""
    _post(sheet.ctypes.data + 8 * FINISHED)


@jit
def wait_for_others(sheet):  # type: ignore[no-untyped-def]
    while _wait(sheet.ctypes.data + 8 * FINISHED) != 0:  # a signal
        pass


@jit
def do_nothing(sheet):  # type: ignore[no-untyped-def]
    """A loop whose jobs are empty."""
    while wait(sheet):
        while take(sheet) >= 0:
            if ended(sheet):
                finish(sheet)


@jit
def there_and_back(sheet):  # type: ignore[no-untyped-def]
    """An empty job for somebody else."""
    hand_out(sheet, 0, 1)
    call(sheet, 1)
    wait_for_others(sheet)


@cache
def measured_call() -> float:
    """Microseconds from handing out a job until another thread has ended it: the median of some hundred."""
    threads = CompiledThreads(do_nothing, 1)
    if not threads.begin(1):
        return float("inf")
    there_and_back(threads.sheet)
    taken = []
    for _ in range(300):
        started = time.perf_counter()
        there_and_back(threads.sheet)
        taken.append(time.perf_counter() - started)
    threads.close()
    return 1e6 * median(taken)
