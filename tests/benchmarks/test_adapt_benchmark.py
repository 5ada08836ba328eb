"""The experiment runs once in a small size; nobody asks how long it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.adapt import aggregates, joins, phases
from benchmarks.harness import Outcome
from tests.benchmarks.running import is_chart, quick

SMALL = aggregates.Size(
    (aggregates.Phase(100, 1), aggregates.Phase(200, 20), aggregates.Phase(50, 1)), rows=10_000, batch=500, runs=1
)


@pytest.mark.nightly
def test_it_runs_and_ends_in_a_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(aggregates, "QUICK", SMALL)
    chart = tmp_path / "adapt.svg"
    reported = quick(capsys, "adapt", "--plot", str(chart))
    assert [cell["x"] for cell in reported["cells"]] == [1, 2, 3]
    assert all(set(cell["contestants"]) == set(aggregates.CONTESTANTS) for cell in reported["cells"])
    assert [change.split()[3] for change in reported["cells"][0]["changes"]] == ["pc", "factorised", "pc"]
    assert set(reported["summary"]) >= {"adaptive_over_best_max", "fixed_over_adaptive_min"}
    assert is_chart(chart)


def test_the_stream_changes_its_rate_and_its_keys() -> None:
    steps = list(aggregates.stream(SMALL))
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

    summary = phases.summary(
        [
            phase(1, pc=1.0, factorised=4.0, ic=5.0, tc=6.0, auto=1.0, adaptive=1.2),
            phase(2, pc=30.0, factorised=1.0, ic=5.0, tc=6.0, auto=30.0, adaptive=1.1),
        ],
        aggregates.FIXED,
    )
    assert summary["adaptive_over_best_max"] == 1.2
    assert summary["fixed_over_adaptive_min"] == round(5 / 2.3, 3)


SMALL_JOIN = joins.Size(
    (joins.Phase(20, 1_000, False), joins.Phase(200, 200, True), joins.Phase(10, 500, False)), 30_000, 0.5, 1
)


@pytest.mark.nightly
def test_the_join_of_three_runs_and_ends_in_a_summary(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(joins, "QUICK", SMALL_JOIN)
    reported = quick(capsys, "adapt", "--part", "join")
    assert [cell["x"] for cell in reported["cells"]] == [1, 2, 3]
    assert all(set(cell["contestants"]) == set(joins.CONTESTANTS) for cell in reported["cells"])
    assert set(reported["summary"]["over_adaptive"]) == set(joins.CONTESTANTS) - {"adaptive"}


def test_alarms_meet_in_a_storm_alone_and_readings_otherwise() -> None:
    """But for the tenth of all rows that give the answers."""
    devices: list[dict[str, set[int]]] = [{name: set() for name in "abc"} for _ in SMALL_JOIN.phases]
    for number, step in joins.stream(SMALL_JOIN):
        for name, given in step.batches.items():
            keys = given.values.column("k").to_pylist()
            devices[number][name] |= {key for key in keys if not 1 << 30 <= key < 1 << 40}
    for number, seen in enumerate(devices):
        assert bool(seen["a"] & seen["b"]) == SMALL_JOIN.phases[number].storm
        assert bool((seen["a"] | seen["b"]) & seen["c"]) != SMALL_JOIN.phases[number].storm
