"""The experiment runs once in a small size; nobody asks how long it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import adapt
from benchmarks.harness import Outcome
from tests.benchmarks.running import is_chart, quick

SMALL = adapt.Size((adapt.Phase(100, 1), adapt.Phase(200, 20), adapt.Phase(50, 1)), rows=10_000, batch=500, runs=1)


@pytest.mark.nightly
def test_it_runs_and_ends_in_a_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(adapt, "QUICK", SMALL)
    chart = tmp_path / "adapt.svg"
    reported = quick(capsys, "adapt", "--plot", str(chart))
    assert [cell["x"] for cell in reported["cells"]] == [1, 2, 3]
    assert all(set(cell["contestants"]) == set(adapt.CONTESTANTS) for cell in reported["cells"])
    assert [change.split()[3] for change in reported["cells"][0]["changes"]] == ["pc", "factorised", "pc"]
    assert set(reported["summary"]) >= {"adaptive_over_best_max", "fixed_over_adaptive_min"}
    assert is_chart(chart)


def test_the_stream_changes_its_rate_and_its_keys() -> None:
    steps = list(adapt.stream(SMALL))
    assert [number for number, _ in steps] == [0] * 20 + [1] * 20 + [2] * 20
    for number, phase in enumerate(SMALL.phases):
        of_phase = [step for at, step in steps if at == number]
        took = (of_phase[-1].frontier - of_phase[0].frontier) / 1e6
        assert took == pytest.approx(9_500 / phase.rate)
        keys = {key for step in of_phase for key in step.batches["a"].values.column("k").to_pylist()}
        assert 0.8 * phase.keys < len(keys) <= phase.keys
    frontiers = [step.frontier for _, step in steps]
    assert frontiers == sorted(frontiers)
    assert all(int(rows.t.max()) < step.frontier for _, step in steps for rows in step.batches.values())


def test_the_summary_compares_with_the_best_of_each_phase_and_with_each_over_the_whole() -> None:
    def phase(x: int, **seconds: float) -> Outcome:
        return Outcome({"experiment": "phase", "x": x}, {name: {"seconds": of} for name, of in seconds.items()})

    summary = adapt.summary(
        [
            phase(1, pc=1.0, factorised=4.0, ic=5.0, tc=6.0, auto=1.0, adaptive=1.2),
            phase(2, pc=30.0, factorised=1.0, ic=5.0, tc=6.0, auto=30.0, adaptive=1.1),
        ]
    )
    assert summary["adaptive_over_best_max"] == 1.2
    assert summary["fixed_over_adaptive_min"] == round(5 / 2.3, 3)
