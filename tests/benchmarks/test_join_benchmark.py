"""Benchmarks run once in a small size; nobody asks how long they take."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import join
from tests.benchmarks.running import is_chart, quick


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "WINDOWS", (1_000, 20_000))
    monkeypatch.setattr(join, "QUICK_BATCHES", 5)
    monkeypatch.setattr(join, "PARTITIONED_WINDOWS", (5_000,))
    monkeypatch.setattr(join, "LARGE_BATCH", 6_000)


def test_it_runs_and_ends_in_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chart = tmp_path / "join.svg"
    reported = quick(capsys, "join", "--plot", str(chart))
    assert set(reported["summary"]["rows_per_s"]) == {"1000", "20000"}
    for cell in reported["cells"]:
        for figures in cell["contestants"].values():
            assert 0.8 < figures["matches_per_row"] < 1.2 and figures["batches"] == 5
    assert is_chart(chart)


def test_partitions_run_beside_one_on_the_same_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chart = tmp_path / "join.svg"
    reported = quick(capsys, "join", "--partitions", "2", "3", "--plot", str(chart))
    (cell,) = reported["cells"]
    assert len({figures["matches_per_row"] for figures in cell["contestants"].values()}) == 1
    assert set(reported["summary"]["over_one_partition"]) == {"1", "2", "3"}
    assert reported["summary"]["over_one_partition"]["1"] == {"5000": 1.0}
    assert is_chart(chart)
