"""The benchmark of ranks runs once in a small size; nobody asks how long it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import top_n
from tests.benchmarks.running import is_chart, quick


def test_it_runs_and_ends_in_a_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(top_n, "WINDOWS", (100, 2_000))
    monkeypatch.setattr(top_n, "BATCH", 1_000)
    monkeypatch.setattr(top_n, "KEYS", 10)
    chart = tmp_path / "top_n.svg"
    reported = quick(capsys, "top_n", "--plot", str(chart))
    assert set(reported["summary"]["grows"]) == set(top_n.QUERIES)
    for cell in reported["cells"]:
        assert all(figures["changes_per_row"] > 0 for figures in cell["contestants"].values())
    assert is_chart(chart)
