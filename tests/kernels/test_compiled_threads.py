"""Threads within a compiled loop do every job once, whoever comes late; and none is left."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from transom.core.delta import Int64s
from transom.kernels.address import add_atomic
from transom.kernels.compiled_threads import (
    REQUEST,
    CompiledThreads,
    call,
    ended,
    finish,
    hand_out,
    measured_call,
    take,
    wait,
    wait_for_others,
)
from transom.kernels.jit import jit
from transom.kernels.worker_pool import WorkerPool


def its_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "transom-worker"]


@jit
def count(sheet, n):  # type: ignore[no-untyped-def]
    """Job n: one more in place n, after some work."""
    worked = n
    for i in range(sheet[REQUEST + 1]):
        worked = worked * 31 + i
    add_atomic(sheet[REQUEST] + 8 * n, 1 + (worked == -1))


@jit
def help_counting(sheet):  # type: ignore[no-untyped-def]
    while wait(sheet):
        n = take(sheet)
        while n >= 0:
            count(sheet, n)
            if ended(sheet):
                finish(sheet)
            n = take(sheet)


@jit
def count_all(sheet, counts, first, threads, work):  # type: ignore[no-untyped-def]
    """How many others did."""
    sheet[REQUEST] = counts.ctypes.data
    sheet[REQUEST + 1] = work
    hand_out(sheet, first, len(counts))
    call(sheet, threads)
    own = 0
    last = False
    n = take(sheet)
    while n >= 0:
        count(sheet, n)
        last = ended(sheet)
        own += 1
        n = take(sheet)
    if not last:
        wait_for_others(sheet)
    return len(counts) - first - own


@pytest.fixture(params=[1, 3, 8])
def threads(request: pytest.FixtureRequest) -> Iterator[CompiledThreads]:
    assert not its_threads()
    within = CompiledThreads(help_counting, request.param)
    assert within.begin(request.param + 5) == request.param == len(its_threads())
    yield within
    within.close()
    assert not its_threads() and within.begin(1) == 0


def counted(counts: Int64s, first: int) -> bool:
    return bool(counts.tolist() == [int(n >= first) for n in range(len(counts))])


def test_every_job_is_done_once_and_by_then(threads: CompiledThreads) -> None:
    """Of many lists of jobs, short and long, one soon after the other: who was called for one comes for the next."""
    random = Random(4)
    helped = 0
    for _ in range(4000):
        counts = np.zeros(random.choice([1, 2, 3, 11, 40]), dtype=np.int64)
        first = random.randrange(len(counts))
        called = random.randint(0, threads.workers)
        helped += count_all(threads.sheet, counts, first, called, random.choice([0, 0, 100, 5000]))
        assert counted(counts, first)
    for _ in range(1000):  # until somebody has come, on a machine that has more to do
        if helped:
            break
        helped += count_all(threads.sheet, np.zeros(40, dtype=np.int64), 0, threads.workers, 100_000)
    assert helped


def test_a_pool_closes_its_threads_within_loops_and_has_others_then() -> None:
    pool = WorkerPool(2)
    for _ in range(2):
        within = pool.compiled(help_counting)
        assert pool.compiled(help_counting) is within and within.begin(2) == 2 == len(its_threads())
        counts = np.zeros(5, dtype=np.int64)
        count_all(within.sheet, counts, 0, 2, 10)
        assert counted(counts, 0)
        pool.close()
        assert not its_threads()


def test_threads_that_nobody_closed_leave_when_they_are_forgotten() -> None:
    within = CompiledThreads(help_counting, 2)
    within.begin(2)
    left = its_threads()
    assert len(left) == 2
    del within
    gc.collect()
    for thread in left:
        thread.join(60)
    assert not its_threads()


def test_a_process_may_end_without_closing_them() -> None:
    script = (
        "from transom.kernels.compiled_threads import CompiledThreads, do_nothing, there_and_back\n"
        "kept = CompiledThreads(do_nothing, 3)\n"
        "kept.begin(3)\n"
        "there_and_back(kept.sheet)\n"
        "print('done')"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


def test_the_price_of_a_call_is_measured_once() -> None:
    assert 0 < measured_call() < 1e6
    assert measured_call() == measured_call()
    assert not its_threads()
