"""The benchmark of outer joins runs once in a small size; nobody asks how long it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import outer_join
from tests.benchmarks.running import is_chart, quick


@pytest.mark.nightly
def test_it_runs_and_ends_in_a_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outer_join, "WINDOWS", (100, 500))
    monkeypatch.setattr(outer_join, "BATCH", 200)
    monkeypatch.setattr(outer_join, "QUICK_BATCHES", 5)
    chart = tmp_path / "outer_join.svg"
    reported = quick(capsys, "outer_join", "--plot", str(chart))
    others = [kind for kind in outer_join.KINDS if kind != outer_join.INNER]
    cells = [f"{emit}, {window}" for emit in outer_join.EMITS for window in outer_join.WINDOWS]
    summary = reported["summary"]
    second = outer_join.WINDOWS[1]
    more = (outer_join.EVERY_ROW, outer_join.EVERY_SECOND)
    cells += [f"{emit}, {partners}, {second}" for emit in outer_join.EMITS for partners in more]
    ratios = [summary.pop(f"{kind} of inner, {cell}") for kind in others for cell in cells]
    assert set(summary) == {
        "outer_over_inner_max", "outer_over_inner_same_answer_max", "outer_over_inner_by_answer_max",
        "answer_over_inner_max",
        "growth_over_log", "growth_over_log_max",
    }  # fmt: skip
    assert summary["outer_over_inner_max"] == max(ratios) >= summary["outer_over_inner_by_answer_max"] > 0
    assert summary["answer_over_inner_max"] > 1
    assert summary["growth_over_log_max"] == max(summary["growth_over_log"].values())
    for cell in reported["cells"]:
        figures = cell["contestants"]
        full, left, inner = (figures[kind]["out_per_row"] for kind in ("full", "left", "inner"))
        assert full == left == inner if cell["partners"] == outer_join.EVERY_ROW else full > left > inner
        assert inner > 0
    assert is_chart(chart)
