"""A worker pool does everything that it is requested, in the order that it promises, and leaves no thread behind."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator
from random import Random

import pytest

from transom.kernels.worker_pool import WorkerPool, measured_handover


def its_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "transom-worker"]


@pytest.fixture(params=[1, 2, 5])
def worker_pool(request: pytest.FixtureRequest) -> Iterator[WorkerPool]:
    """Whatever a test does with it, after `close` there is no thread."""
    assert not its_threads()
    found = WorkerPool(request.param)
    yield found
    assert len(its_threads()) <= request.param
    found.close()
    assert not its_threads()


@pytest.fixture
def shuffled() -> Iterator[None]:
    random = Random(5)
    WorkerPool.hook = lambda: time.sleep(random.choice([0, 0, 1e-5, 2e-4]))
    yield
    WorkerPool.hook = None


def number(value: int) -> Callable[[], int]:
    return lambda: value


def failing(reported: str) -> Callable[[], int]:
    def task() -> int:
        raise ValueError(reported)

    return task


@pytest.mark.parametrize("count", [0, 1, 2, 3, 40])
def test_each_gives_the_results_in_order(worker_pool: WorkerPool, count: int, shuffled: None) -> None:
    assert worker_pool.each([number(i) for i in range(count)]) == list(range(count))


def test_each_runs_its_tasks_at_once() -> None:
    worker_pool = WorkerPool(3)
    together = threading.Barrier(4, timeout=60)
    assert sorted(worker_pool.each([together.wait] * 4)) == [0, 1, 2, 3]
    assert worker_pool.submitted == 3
    worker_pool.close()
    assert not its_threads()


def test_the_first_task_is_done_by_the_caller(worker_pool: WorkerPool, shuffled: None) -> None:
    for _ in range(20):
        assert worker_pool.each([threading.get_ident] * 3)[0] == threading.get_ident()


def test_no_thread_before_the_first_use(worker_pool: WorkerPool) -> None:
    assert not its_threads()
    assert worker_pool.each([number(1)]) == [1]
    assert not its_threads()
    worker_pool.each([number(1), number(2)])
    assert len(its_threads()) == 1


def test_the_first_failure_of_each_is_raised_when_all_have_stopped(worker_pool: WorkerPool, shuffled: None) -> None:
    done: list[int] = []
    tasks = [lambda: done.append(1), failing("one"), lambda: done.append(2), failing("two"), lambda: done.append(3)]
    with pytest.raises(ValueError, match="one"):
        worker_pool.each(tasks)
    assert sorted(done) == [1, 2, 3]
    assert worker_pool.each([number(1), number(2)]) == [1, 2]


def test_later_tasks_run_one_after_the_other_in_order(worker_pool: WorkerPool, shuffled: None) -> None:
    done: list[int] = []
    running = 0

    def task(value: int) -> Callable[[], None]:
        def run() -> None:
            nonlocal running
            running += 1
            assert running == 1
            done.append(value)
            running -= 1

        return run

    for i in range(30):
        worker_pool.later(task(i))
        if i % 3:
            worker_pool.go()
        if i % 7 == 6:
            worker_pool.drain()
            assert done == list(range(i + 1))
    worker_pool.drain()
    assert done == list(range(30))


def test_later_returns_before_the_task_is_done(worker_pool: WorkerPool) -> None:
    gate = threading.Lock()
    gate.acquire()
    worker_pool.later(gate.acquire)
    worker_pool.go()
    gate.release()
    worker_pool.drain()
    assert gate.locked()


def test_a_later_task_runs_though_nobody_waits_for_it() -> None:
    worker_pool = WorkerPool(1)
    done = threading.Event()
    worker_pool.later(done.set)
    assert not its_threads()
    worker_pool.go()
    assert done.wait(60)
    worker_pool.close()
    assert worker_pool.submitted == 1


def test_tasks_use_the_worker_pool_themselves(worker_pool: WorkerPool, shuffled: None) -> None:
    found: list[list[int]] = []

    def deep(depth: int) -> int:
        return 1 if depth == 0 else sum(worker_pool.each([lambda: deep(depth - 1)] * 3))

    for _ in range(3):
        worker_pool.later(lambda: found.append(worker_pool.each([number(1), number(2), lambda: deep(2)])))
        worker_pool.go()
        assert worker_pool.each([lambda: deep(3), number(5)]) == [27, 5]
    worker_pool.drain()
    assert found == [[1, 2, 9]] * 3


def test_settle_raises_what_a_task_raised_and_nothing_behind_it_is_done(
    worker_pool: WorkerPool, shuffled: None
) -> None:
    done: list[int] = []
    hold = threading.Lock()
    hold.acquire()
    worker_pool.later(lambda: done.append(int(hold.acquire())))
    worker_pool.later(lambda: done.append(failing("later")()))
    worker_pool.later(lambda: done.append(3))
    worker_pool.go()
    hold.release()
    with pytest.raises(ValueError, match="later"):
        worker_pool.drain()
    assert done == [1]
    worker_pool.later(lambda: done.append(4))
    worker_pool.drain()
    assert done == [1, 4]


def test_close_is_quiet_and_a_closed_worker_pool_starts_again(worker_pool: WorkerPool) -> None:
    worker_pool.later(failing("nobody asks"))
    worker_pool.go()
    worker_pool.close()
    assert not its_threads()
    worker_pool.drain()
    assert worker_pool.each([number(1), number(2), number(3)]) == [1, 2, 3]
    worker_pool.close()
    worker_pool.close()


def test_close_waits_for_what_is_under_way(worker_pool: WorkerPool) -> None:
    done: list[int] = []
    worker_pool.later(lambda: time.sleep(0.02))
    worker_pool.go()
    worker_pool.later(lambda: done.append(1))
    worker_pool.close()
    assert done == [1]


def test_a_forgotten_worker_pool_sends_its_threads_home() -> None:
    worker_pool = WorkerPool(2)
    worker_pool.each([number(i) for i in range(3)])
    threads = its_threads()
    assert threads
    del worker_pool
    gc.collect()
    for thread in threads:
        thread.join(60)
    assert not its_threads()


def test_an_interrupt_of_the_caller_leaves_nothing_behind() -> None:
    """Ctrl-C while it waits for others."""
    worker_pool = WorkerPool(1)
    begun, hold = threading.Event(), threading.Event()
    done: list[int] = []

    def held() -> None:
        begun.set()
        hold.wait(60)
        done.append(1)

    caller = threading.get_ident()
    interrupt = threading.Timer(0.02, lambda: signal.pthread_kill(caller, signal.SIGINT))

    def first() -> None:
        begun.wait(60)
        interrupt.start()

    with pytest.raises(KeyboardInterrupt):
        worker_pool.each([first, held])
    hold.set()
    worker_pool.close()
    assert done == [1] and not its_threads()
    interrupt.join()


def test_many_callers_at_once() -> None:
    """Tasks that call it from several threads, as those of different kernels would."""
    worker_pool = WorkerPool(2)
    sums: list[int] = []

    def caller() -> None:
        for _ in range(50):
            sums.append(sum(worker_pool.each([number(i) for i in range(6)])))

    threads = [threading.Thread(target=caller) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [15] * 150
    worker_pool.close()
    assert not its_threads()


def test_the_price_of_a_handover_is_measured_once() -> None:
    assert 0 < measured_handover() < 1e6
    assert measured_handover() == measured_handover()
    assert not its_threads()
