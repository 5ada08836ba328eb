"""The experiment runs once in a small size; nobody asks how long it takes."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.harness import Outcome
from benchmarks.joinagg import benchmark as joinagg
from benchmarks.joinagg.contestants import (
    AUTO,
    CONTESTANTS,
    FACTORISED,
    IC,
    PC,
    TC,
    TC_PAPER,
    Answer,
    Bench,
    Effort,
    measure_falling,
    measure_steady,
)
from benchmarks.joinagg.data import FALLING_SECONDS, WINDOW_SECONDS, Cell, falling, falling_rates, steady
from tests.benchmarks.running import is_chart, quick
from transom.core.delta import Delta
from transom.kernels.joinagg.credit_scan import CreditScanKernel

EFFORT = Effort(runs=2, seconds=0, steps=1, most_join_rows=10**7, most_scanned_rows=200, most_matches=50)
SMALL = joinagg.Size(
    windows=(20, 200, 2_000),
    grouped=(100,),
    falling=1_000,
    inputs=(2, 3),
    inputs_window=50,
    matches_window=1_000,
    window_batch=20,
    matches_batch=500,
    other_keys=25,
)


@pytest.mark.nightly
def test_it_runs_and_ends_in_a_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(joinagg, "QUICK", SMALL)
    monkeypatch.setattr(joinagg, "QUICK_EFFORT", replace(EFFORT, runs=1, most_matches=1_000))
    chart = tmp_path / "joinagg.svg"
    reported = quick(capsys, "joinagg", "--plot", str(chart))
    assert [cell["experiment"] for cell in reported["cells"]].count("rate") == FALLING_SECONDS
    by_x = {(cell["experiment"], cell["x"]): cell for cell in reported["cells"]}
    assert set(by_x["window", 20]["contestants"]) == set(CONTESTANTS)
    assert by_x["window", 2_000]["contestants"]["tc_paper"] is None
    assert by_x["inputs", 3]["contestants"]["ic"] is None
    assert "3 inputs" in by_x["inputs", 3]["unsupported"]["ic"]
    assert "unsupported" not in by_x["inputs", 2]
    rates = {m: by_x["matches", m]["contestants"] for m in joinagg.MATCHES}
    assert all(figures["join_rows_per_s"] > 0 for figures in (tactics["pc"] for tactics in rates.values()))
    summary = reported["summary"]
    assert {"factorised_over_pc_100", "ic_over_pc_100", "tc_over_pc_100", "factorised_1000_over_1"} < set(summary)
    best = {m: max(figures["rows_per_s"] for name, figures in rates[m].items() if name != "auto") for m in rates}
    expected = max(best[m] / rates[m]["auto"]["rows_per_s"] for m in rates)
    assert summary["auto_over_best_max"] == pytest.approx(expected, rel=0.01)
    expected = rates[1_000]["factorised"]["rows_per_s"] / rates[1]["factorised"]["rows_per_s"]
    assert summary["factorised_1000_over_1"] == pytest.approx(expected, rel=0.01)
    growth = summary["state_growth"]
    assert set(growth) == set(CONTESTANTS)
    # The join of the paper's pipeline is kept, and the others keep rows.
    assert growth["pc"] > 2 * growth["factorised"]
    assert is_chart(chart)


def test_what_takes_too_long_is_left_out() -> None:
    outcome = measure_steady(Cell("window", 400, 4, 100), replace(EFFORT, most_join_rows=100))
    assert {name for name, figures in outcome.contestants.items() if figures is None} == {PC, IC, TC, TC_PAPER}
    assert not outcome.about


def test_a_different_answer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    follow = Answer.follow
    reported: list[Answer] = []

    def misread(answer: Answer, out: Delta) -> None:
        reported.append(answer)
        if answer is reported[0]:
            follow(answer, replace(out, values=out.values.slice(0, 0), ta=out.ta[:0], te=out.te[:0]))
        else:
            follow(answer, out)
        answer.rows.setdefault(None, ())

    monkeypatch.setattr(Answer, "follow", misread)
    with pytest.raises(AssertionError, match="the answers differ"):
        measure_steady(Cell("matches", 100, 10, 50), EFFORT)


def test_every_second_has_its_state_and_time() -> None:
    cell = Cell("rate", 1_000, 10, 0)
    seconds = measure_falling(cell, replace(EFFORT, most_scanned_rows=1_000, most_matches=100))
    assert len(seconds) == FALLING_SECONDS
    for number, outcome in enumerate(seconds, 1):
        assert outcome.cell["x"] == number
        states = {name: figures["state_bytes"] for name, figures in outcome.contestants.items() if figures is not None}
        assert set(states) == set(CONTESTANTS)
        assert states[PC] > states[FACTORISED]


# --- the streams -----------------------------------------------------------------------------------------------------


def test_a_row_comes_when_one_of_its_stream_expires() -> None:
    cell = Cell("window", 40, 4, 20)
    steps = list(itertools.islice(steady(cell), 4))
    a, b = (np.concatenate([step.batches[name].t for step in steps]) for name in "ab")
    assert not set(a.tolist()) & set(b.tolist())
    assert "[RANGE 80 MILLISECONDS]" in cell.text
    assert a[40] - a[0] == b[40] - b[0] == 80_000
    assert cell.matches == 10
    assert cell.join_rows == 400


def test_the_rate_falls() -> None:
    cell = Cell("rate", 10_000, 20, 0)
    assert falling_rates(cell) == [500, 125, 55, 31, 20]
    steps = list(falling(cell))
    assert [step.rows for step in steps] == [1_000] * WINDOW_SECONDS + [1_000, 250, 110, 62, 40]
    for number, step in enumerate(steps):
        t = step.batches["a"].t
        assert set(np.diff(np.unique(t))) == {50_000}, "something comes at every instant"
        assert number * 10**6 == t[0] and t[-1] < step.frontier == (number + 1) * 10**6


def test_the_paper_scans() -> None:
    bench = Bench(Cell("window", 40, 4, 20), TC_PAPER)
    kernels = [kernel for kernels in bench.part._kernels for kernel in kernels]
    assert any(isinstance(kernel, CreditScanKernel) for kernel in kernels)
    assert "merge" not in {operator.tactic.name for operator in bench.part.operators}


# --- tables ----------------------------------------------------------------------------------------------------------


def test_tables_are_for_people() -> None:
    def outcome(experiment: str, x: float, scale: float, *names: str, window: int = 1_000, **about: object) -> Outcome:
        figures = {
            name: {"rows_per_s": 2e6 / scale, "us_per_row": scale / 2, "state_bytes": 5e5 * scale} for name in names
        }
        pc = {"rows_per_s": 1e4, "us_per_row": 100.0, "state_bytes": 1e6 * scale**2, "join_rows_per_s": 4e6}
        cell = {"experiment": experiment, "x": x, "window": window, "keys": 20, "matches": x, **about}
        return Outcome(cell, {**figures, PC: pc})

    both = (IC, TC, FACTORISED)
    outcomes = [outcome("window", w, w / 100, *both, window=w) for w in (100, 1_000)]
    last = outcome("window", 9_000, 1, *both, window=9_000)
    outcomes.append(replace(last, contestants={**last.contestants, PC: None}))
    outcomes += [outcome("matches", m, 1, *both, AUTO) for m in (1, 100, 1_000)]
    outcomes += [outcome("rate", 1, 1, *both), outcome("grouped", 1, 1, *both)]
    outcomes.append(outcome("inputs", 3, 1, TC, FACTORISED, unsupported={IC: "three"}))
    lines = "\n".join(map(str, joinagg.tables(outcomes))).splitlines()
    assert "| ic | 2,000,000, 0.5, 0.5 | 200,000, 5, 5 | 2,000,000, 0.5, 0.5 |" in lines
    assert "| pc | 10,000, 100, 1 | 10,000, 100, 100 | - |" in lines
    assert "ic is not supported: three." in lines
    assert "| pc | 4,000,000 | 4,000,000 | 4,000,000 |" in lines
    summary = joinagg.summary(outcomes)
    assert (summary["factorised_over_pc_100"], summary["auto_over_best_max"]) == (200, 1)
    assert (summary["state_growth"][PC], summary["state_growth"][TC]) == (100, 10)
    times, states, *_ = joinagg.panels(outcomes)
    assert states.lines[PC] == [(100, 1.0), (1_000, 100.0)] and set(times.lines) == {IC, TC, FACTORISED, PC}
