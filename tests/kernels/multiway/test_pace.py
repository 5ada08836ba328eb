"""When threads are called: if that is sooner than to go on alone, by what was measured."""

from __future__ import annotations

import numpy as np

from transom.kernels.multiway.pace import Paces, note_probe, sooner, waited

CALL = 20_000.0
"""Nanoseconds."""

Task = tuple[float, float, float]


def microseconds(work: float, finding: float = 1.0) -> Task:
    """For each tuple."""
    return 1.0, 1000 * work, finding


def at_once(workers: int, tasks: list[Task], tuples: int, price: float = CALL) -> bool:
    return bool(sooner(np.array(tasks), np.arange(len(tasks)), tuples, workers, price))


def test_work_that_is_shorter_than_the_call_is_done_alone() -> None:
    assert not at_once(1, [microseconds(1)] * 10, 1)
    assert at_once(1, [microseconds(1)] * 10, 10)
    assert not at_once(1, [microseconds(1000)], 10)
    # Of two threads each does half; with more of them it pays sooner.
    assert not at_once(1, [microseconds(12)] * 3, 1)
    assert at_once(2, [microseconds(12)] * 3, 1)
    # Nobody can help with one long task.
    assert not at_once(9, [microseconds(1000), *[microseconds(1)] * 9], 1)


def test_what_the_first_probe_spares_the_others_counts() -> None:
    assert at_once(3, [microseconds(1)] * 4, 100)
    assert not at_once(3, [microseconds(1, finding=0.01), *[microseconds(1)] * 3], 100)
    # Where the second one spares the most it is first to be got at.
    assert not at_once(1, [microseconds(0.1, finding=1.0), microseconds(0.1, finding=0.0), microseconds(9)], 100)


def test_a_row_by_itself_is_expected_to_have_an_answer() -> None:
    """Where it has none, nobody waits for it."""
    assert at_once(3, [microseconds(100, finding=0.01)] * 4, 1)
    assert not at_once(3, [microseconds(1, finding=0.01)] * 4, 100)


def test_waiting_for_long_teaches_to_do_without_for_a_while() -> None:
    extra = np.zeros(1)
    tasks = np.array([100_000, 100_000])
    waited(extra, tasks, 1, CALL, 125_000)
    assert at_once(1, [microseconds(100)] * 2, 1, CALL + extra[0])
    for _ in range(4):
        waited(extra, tasks, 1, CALL, 1_000_000)
    assert not at_once(1, [microseconds(100)] * 2, 1, CALL + extra[0])


def test_a_pace_follows_what_is_seen() -> None:
    pace = Paces(2).probes[0, 1]
    for _ in range(30):
        note_probe(pace, 100, 25, 1000, 50_000)
    assert (round(pace[0]), round(pace[1]), round(pace[2], 2)) == (10, 50, 0.25)
    note_probe(pace, 1, 1, 2, 50_000)  # so short that it is the call that took the time
    assert round(pace[1]) == 50
    note_probe(pace, 0, 0, 0, 10)
