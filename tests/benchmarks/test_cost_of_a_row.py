"""The benchmarks of what a row costs run once in a small size; nobody asks how long it takes."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import aggregates, top_n, windows
from benchmarks.cost_of_a_row import growth_over_log
from tests.benchmarks.running import is_chart, quick
from tests.profile import first_of


@pytest.mark.parametrize("benchmark", first_of(top_n, aggregates, windows), ids=lambda module: module.__name__)
def test_it_runs_and_ends_in_a_summary(
    benchmark: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark, "WINDOWS", (100, 2_000))
    monkeypatch.setattr(benchmark, "BATCH", 1_000)
    if hasattr(benchmark, "KEYS"):
        monkeypatch.setattr(benchmark, "KEYS", 10)
    chart = tmp_path / "chart.svg"
    reported = quick(capsys, benchmark.__name__.removeprefix("benchmarks."), "--plot", str(chart))
    for figure in ("us_per_row", "grows", "grows_per_decade", "growth_over_log"):
        assert set(reported["summary"][figure]) == set(benchmark.QUERIES)
    assert reported["summary"]["growth_over_log_max"] == max(reported["summary"]["growth_over_log"].values())
    for cell in reported["cells"]:
        assert all(figures["changes_per_row"] > 0 for figures in cell["contestants"].values()), cell
    assert is_chart(chart)


def test_what_grows_as_the_logarithm_is_1() -> None:
    assert growth_over_log(10**3, 10**6, grows=2.0) == pytest.approx(1)
    assert growth_over_log(10**3, 10**6, grows=5.0) == pytest.approx(2.5)
