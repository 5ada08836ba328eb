"""Inputs are read so that all come to about the same time: what waits stays small, and nobody starves."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.core.time import BEGINNING, FOREVER, SECOND
from transom.program.alignment import InputPace, read_by_need


@dataclass
class Simulated:
    """A query over inputs with these times, each in order, of which it has read so many of each.

    What is there of an input `now` can be read; `ends`: it ends there.
    """

    times: dict[str, list[int]]
    now: dict[str, int] = field(default_factory=dict)
    ends: bool = True

    def __post_init__(self) -> None:
        self.read = dict.fromkeys(self.times, 0)
        self.paces = {name: InputPace() for name in self.times}
        self.peak = 0
        self.batches = 0

    def watermark(self, name: str) -> int:
        if self.ends and self.read[name] == len(self.times[name]):
            return FOREVER
        return self.times[name][self.read[name] - 1] if self.read[name] else BEGINNING

    def waiting(self, name: str) -> int:
        progress = min(map(self.watermark, self.times))
        return self.read[name] - bisect_right(self.times[name][: self.read[name]], progress - 1)

    def take(self, name: str, rows: int) -> int:
        there = self.now.get(name, len(self.times[name]))
        before, self.read[name] = self.read[name], min(self.read[name] + rows, there)
        return self.read[name] - before

    def batch(self, most: int, most_waiting: int | None = None, by_need: bool = True) -> bool:
        """Whether anything was read."""
        before = dict(self.read)
        left = {name: pace for name, pace in self.paces.items() if self.watermark(name) < FOREVER}
        if by_need:
            read_by_need(left, most, self.take, most_waiting)
        else:
            for name in left:
                self.take(name, most)
        for name, times in self.times.items():
            progress = self.watermark(name), self.read[name], self.waiting(name)
            self.paces[name] = self.paces[name].after(*progress, first=times[0] if times else None)
            self.peak = max(self.peak, progress[2])
        self.batches += 1
        return self.read != before

    def run(self, most: int, most_waiting: int | None = None, by_need: bool = True) -> None:
        while self.batch(most, most_waiting, by_need):
            pass


def every(step: int, count: int) -> list[int]:
    return [step * i for i in range(1, count + 1)]


def test_a_slow_stream_does_not_run_ahead() -> None:
    """A thousand rows a second, and one: 100 seconds of both."""
    peaks = []
    for by_need in (False, True):
        query = Simulated({"fast": every(1_000, 100_000), "slow": every(SECOND, 100)})
        query.run(10, by_need=by_need)
        assert query.read == {"fast": 100_000, "slow": 100}
        peaks.append(query.peak)
    assert peaks == [100, 10]


def test_streams_of_one_rate_are_read_side_by_side() -> None:
    query = Simulated({"a": every(1_000, 10_000), "b": every(1_001, 10_000), "c": every(999, 10_000)})
    query.run(100)
    assert query.batches <= 104


def test_a_burst_is_caught_up_with() -> None:
    """Of a stream whose rows were far apart a thousand come in an instant, and the others wait for it."""
    burst = (
        every(SECOND, 100) + [100 * SECOND + i for i in range(1_000)] + [101 * SECOND + i for i in every(SECOND, 99)]
    )
    query = Simulated({"bursts": burst, "even": every(10_000, 20_000)})
    query.run(100)
    assert query.peak <= 200 and query.batches <= 230


def test_who_brings_little_is_not_run_ahead_of_by_what_a_batch_of_it_would_be() -> None:
    """A row a second comes as it happens, and a thousand a second are there from before."""
    query = Simulated({"live": every(SECOND, 50), "backlog": every(1_000, 50_000)}, now={"live": 2}, ends=False)
    for second in range(2, 50):
        query.now["live"] = second
        query.batch(2_000)
    assert query.peak <= 4_000


def test_who_holds_back_and_has_nothing_now_is_not_waited_for_at_a_run_that_ends() -> None:
    query = Simulated({"a": every(10, 100), "b": every(10, 100), "silent": []}, ends=False)
    query.run(10)
    assert query.read == {"a": 100, "b": 100, "silent": 0} and query.batches <= 12


def test_who_is_ahead_of_a_silent_one_is_read_until_so_much_waits() -> None:
    query = Simulated({"a": every(10, 1_000), "silent": every(10, 1_000)}, now={"silent": 7}, ends=False)
    query.run(10, most_waiting=40)
    assert query.read == {"a": 46, "silent": 7}, "six are before the time of the silent one"
    query.now["silent"] = 500
    query.run(10, most_waiting=40)
    assert query.read["silent"] == 500 and 500 <= query.read["a"] <= 541


@pytest.mark.parametrize("first", [None, 0])
def test_how_dense_rows_are_is_what_came_last(first: int | None) -> None:
    pace = InputPace().after(100, 10, 0, first)
    assert pace.density == (None if first is None else 0.1)
    pace = pace.after(200, 30, 0)
    assert pace.density == 0.2
    assert pace.after(300, 30, 0).density == 0.2, "time went on without a row"
    assert pace.after(FOREVER, 40, 0).density == 0.2
    assert pace.rows_to(250, 50) == 10 and pace.rows_to(10_000, 50) == 50 and pace.rows_to(200, 50) == 0
    assert pace.rows_to(201, 80) == 10, "less is not worth a batch"


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 30)), max_size=8), min_size=1, max_size=4),
    st.integers(1, 12),
)
def test_everything_is_read_and_little_waits(streams: list[list[tuple[int, int]]], most: int) -> None:
    """Whatever the rates are and however they change: (gap, rows) is so many rows, each so long after the last."""
    times = {}
    for number, parts in enumerate(streams):
        at, instants = 0, []
        for gap, rows in parts:
            for _ in range(rows):
                at += gap
                instants.append(at)
        times[f"s{number}"] = instants
    query = Simulated(times)
    query.run(most)
    assert query.read == {name: len(instants) for name, instants in times.items()}
    together = max((max(Counter(instants).values()) for instants in times.values() if instants), default=0)
    assert query.peak <= 4 * most + max(30, together), "rows of one instant come together"
