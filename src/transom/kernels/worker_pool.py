"""Threads that work for the kernels of one part of a plan.

They are real threads, which pays because compiled loops and Arrow run without the interpreter's lock. Nobody polls:
whoever has nothing to do sleeps on a lock until he is woken. Threads are started when they are first needed, and a
worker pool that was closed starts them again. Whoever waits for others first does what nobody has begun, so he waits
for work that is under way and never for a free thread: tasks may call the worker pool themselves.
"""

from __future__ import annotations

import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from itertools import count
from queue import SimpleQueue
from statistics import median
from threading import Condition, Lock, Thread
from typing import Any, ClassVar, TypeVar

from transom.kernels.compiled_threads import CompiledThreads, Loop

T = TypeVar("T")

_Job = Callable[[], object]
_Inbox = SimpleQueue[_Job | None]


class WorkerPool:
    """At most `workers` threads; without a number, one for each processor that there is for us, but the caller's.

    >>> worker_pool = WorkerPool()
    >>> worker_pool.each([lambda: 1, lambda: 2, lambda: 3])
    [1, 2, 3]
    >>> worker_pool.later(lambda: print("meanwhile"))
    >>> worker_pool.go()
    >>> worker_pool.drain()
    meanwhile
    >>> worker_pool.close()
    """

    hook: ClassVar[Callable[[], None] | None] = None
    """Called before and after every task, in its thread: tests shuffle here who comes first."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = max(1, processors() - 1) if workers is None else workers
        assert self.workers >= 1
        self._inbox: _Inbox = SimpleQueue()
        self._threads: list[Thread] = []
        self._lock = Lock()
        self._line = _TaskLine()
        self._helped = 0
        self._compiled: dict[int, CompiledThreads] = {}
        weakref.finalize(self, _dismiss, self._inbox, self._threads)  # for crews that nobody closed

    @property
    def submitted(self) -> int:
        """How many tasks were done by another thread than the one that wanted them."""
        return self._helped + self._line.submitted

    def each(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Do all tasks at once, the first one here. What the first of them raised is raised when all have stopped."""
        if len(tasks) < 2:
            return [_hooked(task) for task in tasks]
        group = _Group(tasks)
        self._call(group.help, min(len(tasks) - 1, self.workers))
        group.lead()
        if group.helped:
            self.helped(group.helped)
        for _, failure in sorted(group.failures.items()):
            raise failure
        return group.results

    def later(self, task: _Job) -> None:
        """To be done after all tasks that were left before it: by another thread once `go` says so, or by `drain`.

        Until then nobody is woken: he would want the interpreter while the caller still needs it for something urgent.
        """
        self._line.add(task)

    def go(self) -> None:
        """Let another thread do what was left for later, without waiting for it."""
        if self._line.somebody_is_needed():
            self._call(self._line.work, 1)

    def drain(self) -> None:
        """Wait until nothing is left to do; raises what a task raised, after which none of those behind it was done."""
        failure = self._line.rest()
        if failure is not None:
            raise failure

    def compiled(self, loop: Loop) -> CompiledThreads:
        """As many threads again, that wait within a loop."""
        threads = self._compiled.get(id(loop))
        if threads is None:
            threads = self._compiled[id(loop)] = CompiledThreads(loop, self.workers)
        return threads

    def helped(self, jobs: int) -> None:
        """So many jobs were done by threads within loops."""
        with self._lock:
            self._helped += jobs

    def close(self) -> None:
        """Everything is done, and no thread is left. What tasks raised is forgotten."""
        try:
            self._line.rest()
        finally:
            with self._lock:
                threads = self._threads.copy()
                _dismiss(self._inbox, self._threads)
                compiled = list(self._compiled.values())
                self._compiled.clear()
            for thread in threads:
                thread.join()
            for within in compiled:
                within.close()

    def _call(self, job: _Job, wanted: int) -> None:
        """Wake so many threads for a job, or make them if there are not enough yet."""
        if len(self._threads) < min(wanted, self.workers):
            with self._lock:
                while len(self._threads) < min(wanted, self.workers):
                    thread = Thread(target=_work, args=(self._inbox,), name="transom-worker", daemon=True)
                    self._threads.append(thread)
                    thread.start()
        for _ in range(wanted):
            self._inbox.put(job)


class _Group:
    """Tasks to be done at once: by whoever wanted them, and by those who come to help before all are begun."""

    def __init__(self, tasks: Sequence[Callable[[], Any]]) -> None:
        self.results: list[Any] = [None] * len(tasks)
        self.failures: dict[int, BaseException] = {}
        self.helped = 0
        self._tasks = tasks
        self._next = count(1).__next__
        self._lock = Lock()
        self._helpers = 0
        self._closed = False
        self._alone = Lock()
        self._alone.acquire()

    def lead(self) -> None:
        try:
            self._do(0)
        finally:
            with self._lock:
                self._closed = True
                helpers = self._helpers
            if helpers:
                self._alone.acquire()

    def help(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._helpers += 1
        self._leave(self._do(self._next()))

    def _leave(self, done: int) -> None:
        with self._lock:
            self.helped += done
            self._helpers -= 1
            if self._closed and not self._helpers:
                self._alone.release()

    def _do(self, at: int) -> int:
        """This task and then whatever nobody has begun; how many."""
        done = 0
        while at < len(self._tasks):
            try:
                self.results[at] = _hooked(self._tasks[at])
            except BaseException as failure:
                self.failures[at] = failure
            done += 1
            at = self._next()
        return done


class _TaskLine:
    """Tasks to be done one after the other, in the order in which they came."""

    def __init__(self) -> None:
        self.submitted = 0
        self._tasks: deque[_Job] = deque()
        self._failure: BaseException | None = None
        self._called = False
        self._busy = False
        self._resting = Condition()

    def add(self, task: _Job) -> None:
        self._tasks.append(task)

    def somebody_is_needed(self) -> bool:
        """Whether there are tasks that nobody was called for yet; whoever asks calls him."""
        if not self._tasks:
            return False
        with self._resting:
            needed = not (self._called or self._busy)
            self._called = self._called or needed
            return needed

    def work(self) -> None:
        with self._resting:
            self._called = False
        self._do_all(for_another=True)

    def rest(self) -> BaseException | None:
        """Wait until there is no task; gives what the first one raised that failed."""
        while self._tasks or self._busy:
            with self._resting:
                while self._busy:
                    self._resting.wait()
            self._do_all(for_another=False)
        failure, self._failure = self._failure, None
        return failure

    def _do_all(self, for_another: bool) -> None:
        working = False
        try:
            while (task := self._next(for_another, working)) is not None:
                working = True
                try:
                    _hooked(task)
                except BaseException as failure:
                    self._failure = failure
        except BaseException:  # an interrupt between two tasks
            self._stop()
            raise

    def _next(self, for_another: bool, working: bool) -> _Job | None:
        """The next task of whoever does them; None where there is none, or where it is another who does them."""
        with self._resting:
            if self._busy and not working:
                return None
            if self._failure is not None:
                self._tasks.clear()
            self._busy = bool(self._tasks)
            if not self._busy:
                self._resting.notify_all()
                return None
            self.submitted += for_another
            return self._tasks.popleft()

    def _stop(self) -> None:
        with self._resting:
            self._busy = False
            self._resting.notify_all()


def _hooked(task: Callable[[], T]) -> T:
    hook = WorkerPool.hook
    if hook is None:
        return task()
    hook()
    try:
        return task()
    finally:
        hook()


def _work(inbox: _Inbox) -> None:
    """What a thread does: knows nothing of its worker pool, which may be forgotten meanwhile."""
    while (job := inbox.get()) is not None:
        job()
        del job


def _dismiss(inbox: _Inbox, threads: list[Thread]) -> None:
    for _ in threads:
        inbox.put(None)
    threads.clear()


def processors() -> int:
    """How many this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # systems that do not tell
        return os.cpu_count() or 1


@cache
def measured_handover() -> float:
    """Microseconds from giving a task to another thread until its result is back: the median of some hundred."""
    worker_pool = WorkerPool(1)
    emitted = Lock()
    emitted.acquire()
    there_and_back: list[Callable[[], object]] = [emitted.acquire, emitted.release]
    taken = []
    for _ in range(300):
        started = time.perf_counter()
        worker_pool.each(there_and_back)
        taken.append(time.perf_counter() - started)
    worker_pool.close()
    return 1e6 * median(taken)
