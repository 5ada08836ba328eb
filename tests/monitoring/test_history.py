from __future__ import annotations

import pytest

from transom.monitoring.history import MOST_QUERIES, TIERS, SeriesHistory


def test_it_is_finer_the_nearer_it_is() -> None:
    history = SeriesHistory()
    for second in range(1, 30_000):
        history.add("q", second, {"rows_per_second": second % 10, "rows_late": second})
    near, far = history.of("q", 600, 30_000), history.of("q", 7200, 30_000)
    assert len(near["time"]) == 600 and near["time"][-1] == 29_999 and near["rows_per_second"][-1] == 9
    assert len(far["time"]) == 720 and set(far["rows_per_second"]) == {4.5}
    assert far["rows_late"][-1] == 29_999 and far["rows_late"] == sorted(far["rows_late"])


def test_it_does_not_grow() -> None:
    history = SeriesHistory()
    for number in range(MOST_QUERIES + 5):
        history.add(f"q{number}", 1.0, {})
    assert history.of("q4", 600, 2)["time"] == [] and history.of("q5", 600, 2)["time"] == [1]
    for second in range(0, 200_000, 7):
        history.add("q9", second, {"state_bytes": 1})
    for seconds, size in TIERS:
        assert len(history.of("q9", seconds * size, 200_000)["time"]) <= size + 1


def test_what_was_not_looked_at_is_not_there() -> None:
    history = SeriesHistory()
    history.add("q", 100, {"lag_seconds": 1})
    history.add("q", 400, {"lag_seconds": None})
    history.add("q", 800, {"lag_seconds": 3})
    series = history.of("q", 600, 801)
    assert series["time"] == [400, 800] and series["lag_seconds"] == [None, pytest.approx(3)]
