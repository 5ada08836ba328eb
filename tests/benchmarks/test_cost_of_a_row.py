"""The benchmarks of what a row costs run once in a small size; nobody asks how long it takes."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import aggregates, top_n, windows
from tests.benchmarks.running import is_chart, quick


@pytest.mark.parametrize("benchmark", [top_n, aggregates, windows], ids=["top_n", "aggregates", "windows"])
def test_it_runs_and_ends_in_a_summary(
    benchmark: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark, "WINDOWS", (100, 2_000))
    monkeypatch.setattr(benchmark, "BATCH", 1_000)
    if hasattr(benchmark, "KEYS"):
        monkeypatch.setattr(benchmark, "KEYS", 10)
    chart = tmp_path / "chart.svg"
    reported = quick(capsys, benchmark.__name__.removeprefix("benchmarks."), "--plot", str(chart))
    for figure in ("us_per_row", "grows", "grows_per_decade"):
        assert set(reported["summary"][figure]) == set(benchmark.QUERIES)
    for cell in reported["cells"]:
        assert all(figures["changes_per_row"] > 0 for figures in cell["contestants"].values()), cell
    assert is_chart(chart)
