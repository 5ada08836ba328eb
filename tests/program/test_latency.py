from __future__ import annotations

import numpy as np
import pytest

from transom.program.latency import Histogram, Stopwatch

PARTS = (0.5, 0.9, 0.99, 0.999)


@pytest.mark.parametrize("scale", [100, 100_000, 50_000_000_000])
def test_quantiles_are_at_most_one_percent_too_great(scale: int) -> None:
    durations = np.sort(np.random.default_rng(scale).exponential(scale, 5_000).astype(np.int64))
    histogram = Histogram()
    for nanos in durations.tolist():
        histogram.add(nanos)
    for part in PARTS:
        exact = int(durations[int(np.ceil(part * len(durations))) - 1])
        assert exact <= histogram.quantile(part) <= exact * 1.01
    assert histogram.quantile(1) == histogram.greatest == durations[-1]


def test_every_duration_has_a_bucket_whose_bound_is_not_below_it() -> None:
    for bits in range(48):
        for nanos in {(1 << bits) - 1, 1 << bits, (1 << bits) + 1}:
            histogram = Histogram()
            histogram.add(nanos)
            histogram.add(1 << 47)  # so that the greatest does not hide the bound
            assert nanos <= histogram.quantile(0.5) <= nanos * 129 // 128


def test_rows_are_weights() -> None:
    one_by_one, together = Histogram(), Histogram()
    for nanos, rows in ((10, 3), (5_000, 90), (70_000, 7)):
        together.add(nanos, rows)
        for _ in range(rows):
            one_by_one.add(nanos)
    assert together.count == one_by_one.count == 100
    assert [together.quantile(part) for part in PARTS] == [one_by_one.quantile(part) for part in PARTS]


def test_what_is_too_long_or_too_short_is_counted_at_the_ends() -> None:
    histogram = Histogram()
    histogram.add(-5)
    histogram.add(1 << 60)
    assert histogram.quantile(0.5) == 0 and histogram.count == 2 and histogram.greatest == 1 << 60


def test_nothing_was_measured() -> None:
    latency = Stopwatch().latency
    assert (latency.count, latency.p50, latency.p999, latency.max) == (0, 0, 0, 0)


def test_each_batch_is_measured_from_its_own_arrival_and_once() -> None:
    moments = iter([1_000, 51_000, 101_000])
    watch = Stopwatch(lambda: next(moments))
    watch.arrive(1)
    watch.arrive(0)
    watch.arrive(3)
    assert watch.latency.count == 0, "nothing has left yet"
    watch.leave()
    watch.leave()
    assert watch.latency.count == 4 and watch.latency.max == 100
    assert watch.latency.p50 == pytest.approx(50, rel=0.01)
