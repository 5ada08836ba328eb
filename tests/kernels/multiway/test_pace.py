"""When threads are called: if that is sooner than to go on alone, by what was measured."""

from __future__ import annotations

import pytest

from transom.kernels.multiway import pace
from transom.kernels.multiway.pace import Paces, ProbePace, sooner
from transom.kernels.worker_pool import WorkerPool


@pytest.fixture(autouse=True)
def _price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "measured_handover", lambda: 20.0)


def microseconds(work: float, finding: float = 1.0) -> ProbePace:
    """For each tuple."""
    return ProbePace(1.0, 1000 * work, finding)


def test_work_that_is_shorter_than_the_call_is_done_alone() -> None:
    worker_pool = WorkerPool(1)
    assert not sooner(worker_pool, [microseconds(1)] * 10, 1)
    assert sooner(worker_pool, [microseconds(1)] * 10, 10)
    assert not sooner(worker_pool, [microseconds(1000)], 10)
    # Of two threads each does half; with more of them it pays sooner.
    assert not sooner(worker_pool, [microseconds(12)] * 3, 1)
    assert sooner(WorkerPool(2), [microseconds(12)] * 3, 1)
    # Nobody can help with one long task.
    assert not sooner(WorkerPool(9), [microseconds(1000), *[microseconds(1)] * 9], 1)


def test_what_the_first_probe_spares_the_others_counts() -> None:
    assert sooner(WorkerPool(3), [microseconds(1)] * 4, 100)
    assert not sooner(WorkerPool(3), [microseconds(1, finding=0.01), *[microseconds(1)] * 3], 100)
    # Where the second one spares the most it is first to be got at.
    assert not sooner(
        WorkerPool(1), [microseconds(0.1, finding=1.0), microseconds(0.1, finding=0.0), microseconds(9)], 100
    )


def test_a_row_by_itself_is_expected_to_have_an_answer() -> None:
    """Where it has none, nobody waits for it."""
    assert sooner(WorkerPool(3), [microseconds(100, finding=0.01)] * 4, 1)
    assert not sooner(WorkerPool(3), [microseconds(1, finding=0.01)] * 4, 100)


def test_waiting_for_long_teaches_to_do_without_for_a_while() -> None:
    worker_pool, paces = WorkerPool(1), Paces()
    works = [microseconds(100)] * 2
    assert paces.at_once(worker_pool, works, 1)
    paces.waited(worker_pool, [100_000, 100_000], 125_000)
    assert paces.at_once(worker_pool, works, 1)
    for _ in range(4):
        paces.waited(worker_pool, [100_000, 100_000], 1_000_000)
    assert not paces.at_once(worker_pool, works, 1)
    tries = next(n for n in range(1000) if paces.at_once(worker_pool, works, 1))
    assert 50 < tries < 500


def test_a_pace_follows_what_is_seen() -> None:
    found = Paces().of(0, 1)
    for _ in range(30):
        found.note(100, 25, 1000, 50_000)
    assert (round(found.entries), round(found.nanoseconds), round(found.finding, 2)) == (10, 50, 0.25)
    found.note(1, 1, 2, 50_000)  # so short that it is the call that took the time
    assert round(found.nanoseconds) == 50
    found.note(0, 0, 0, 10)
