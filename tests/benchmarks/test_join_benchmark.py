"""Benchmarks run once in a small size; nobody asks how long they take."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from transom.benchmarks import join
from transom.benchmarks.chart import write_chart
from transom.core.errors import SinkError


def test_it_runs_and_ends_in_a_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(join, "WINDOWS", (1_000, 20_000))
    monkeypatch.setattr(join, "QUICK_BATCHES", 5)
    chart = tmp_path / "join.svg"
    assert join.main(argparse.Namespace(json=True, quick=True, plot=str(chart))) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told)[-1] == "summary"
    assert set(told["summary"]["rows_per_s"]) == {"1000", "20000"}
    for cell in told["cells"].values():
        assert 0.8 < cell["matches_per_row"] < 1.2
    assert chart.read_text(encoding="utf-8").startswith("<?xml")


def test_it_also_prints_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(join, "WINDOWS", (1_000,))
    monkeypatch.setattr(join, "QUICK_BATCHES", 5)
    assert join.main(argparse.Namespace(json=False, quick=True, plot=None)) == 0
    assert "matches a row" in capsys.readouterr().out


def test_partitions_run_beside_one_on_the_same_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(join, "PARTITIONED_WINDOWS", (5_000,))
    monkeypatch.setattr(join, "LARGE_BATCH", 6_000)
    monkeypatch.setattr(join, "QUICK_BATCHES", 5)
    assert join.main(argparse.Namespace(json=True, quick=True, plot=None, partitions=[2, 3])) == 0
    told = json.loads(capsys.readouterr().out)
    assert {cell["matches_per_row"] for cell in told["cells"].values()} == {told["cells"]["1/5000"]["matches_per_row"]}
    assert set(told["summary"]["over_one_partition"]) == {"1", "2", "3"}
    assert join.main(argparse.Namespace(json=False, quick=True, plot=None, partitions=[2])) == 0
    assert "processor ms" in capsys.readouterr().out


def test_a_chart_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="cannot be written"):
        write_chart(str(tmp_path / "chart.nonsense"), "t", "x", "y", {"a": [(1, 2)]})
