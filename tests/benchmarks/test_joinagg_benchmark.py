"""The experiment runs once in a small size; nobody asks how long it takes."""

from __future__ import annotations

import argparse
import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from transom.benchmarks import joinagg
from transom.benchmarks.joinagg_data import FALLING_SECONDS, WINDOW_SECONDS, Cell, falling, falling_rates, steady
from transom.benchmarks.joinagg_report import Outcome, panels, tables
from transom.benchmarks.joinagg_run import (
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
    Measured,
    measure_falling,
    measure_steady,
)
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


def test_it_runs_and_ends_in_a_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(joinagg, "QUICK", SMALL)
    monkeypatch.setattr(joinagg, "QUICK_EFFORT", replace(EFFORT, runs=1, most_matches=1_000))
    chart = tmp_path / "joinagg.svg"
    asked = argparse.Namespace(json=True, quick=True, plot=str(chart))
    assert joinagg.main(asked) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told) == ["cells", "settings", "summary"]
    assert [cell["experiment"] for cell in told["cells"]].count("rate") == FALLING_SECONDS
    by_x = {(cell["experiment"], cell["x"]): cell for cell in told["cells"]}
    assert set(by_x["window", 20]["tactics"]) == set(CONTESTANTS)
    assert by_x["window", 2_000]["tactics"]["tc_paper"] is None
    assert by_x["inputs", 3]["tactics"]["ic"] is None
    assert "3 inputs" in by_x["inputs", 3]["refused"]["ic"]
    assert "refused" not in by_x["inputs", 2]
    rates = {m: by_x["matches", m]["tactics"] for m in joinagg.MATCHES}
    assert all(one["join_rows_per_s"] > 0 for one in (tactics["pc"] for tactics in rates.values()))
    summary = told["summary"]
    assert {"factorised_over_pc_100", "ic_over_pc_100", "tc_over_pc_100", "factorised_1000_over_1"} < set(summary)
    best = {m: max(one["rows_per_s"] for name, one in rates[m].items() if name != "auto") for m in rates}
    expected = max(best[m] / rates[m]["auto"]["rows_per_s"] for m in rates)
    assert summary["auto_over_best_max"] == pytest.approx(expected, rel=0.01)
    expected = rates[1_000]["factorised"]["rows_per_s"] / rates[1]["factorised"]["rows_per_s"]
    assert summary["factorised_1000_over_1"] == pytest.approx(expected, rel=0.01)
    growth = summary["state_growth"]
    assert set(growth) == set(CONTESTANTS)
    # The join of the paper's pipeline is kept, and the others keep rows.
    assert growth["pc"] > 2 * growth["factorised"]
    assert chart.read_text(encoding="utf-8").startswith("<?xml")


def test_what_takes_too_long_is_left_out() -> None:
    found, refused = measure_steady(Cell("window", 400, 4, 100), replace(EFFORT, most_join_rows=100))
    assert {name for name, one in found.items() if one is None} == {PC, IC, TC, TC_PAPER}
    assert not refused


def test_a_different_answer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    follow = Answer.follow
    told: list[Answer] = []

    def misread(answer: Answer, out: Delta) -> None:
        told.append(answer)
        if answer is told[0]:
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
    for results in seconds:
        states = {name: one.state_bytes for name, one in results.items() if one is not None}
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
        assert number * 10**6 == t[0] and t[-1] < step.upto == (number + 1) * 10**6


def test_the_paper_scans() -> None:
    bench = Bench(Cell("window", 40, 4, 20), TC_PAPER)
    kernels = [kernel for kernels in bench.part._kernels for kernel in kernels]
    assert any(isinstance(kernel, CreditScanKernel) for kernel in kernels)
    assert "merge" not in {operator.tactic.name for operator in bench.part.operators}


# --- tables ----------------------------------------------------------------------------------------------------------


def test_tables_are_for_people() -> None:
    def results(scale: float, *names: str) -> dict[str, Measured | None]:
        made = {name: Measured(2e6 / scale, 5e5 * scale) for name in names}
        return {**made, PC: Measured(1e4, 1e6 * scale * scale, 4e6)}

    both = (IC, TC, FACTORISED)
    outcomes = [Outcome(Cell("window", w, 20, 10), w, results(w / 100, *both)) for w in (100, 1_000)]
    outcomes.append(Outcome(Cell("window", 9_000, 20, 10), 9_000, {**results(1, *both), PC: None}))
    chosen = (*both, AUTO)
    outcomes += [Outcome(Cell("matches", 1_000, 1_000 // m, 10), m, results(1, *chosen)) for m in (1, 100, 1_000)]
    outcomes.append(Outcome(Cell("rate", 1_000, 20, 0), 1, results(1, *both)))
    outcomes.append(Outcome(Cell("grouped", 1_000, 20, 0), 1, results(1, *both)))
    refused = Outcome(Cell("inputs", 1_000, 20, 0, 3), 3, {**results(1, *both), IC: None}, {IC: "three"})
    outcomes.append(refused)
    lines = tables(outcomes).splitlines()
    assert "| ic | 2,000,000, 0.5, 0.5 | 200,000, 5, 5 | 2,000,000, 0.5, 0.5 |" in lines
    assert "| pc | 10,000, 100, 1 | 10,000, 100, 100 | - |" in lines
    assert "| ic | refuses |" in lines
    assert "ic refuses: three." in lines
    assert "| the join of pc alone, join rows/s | 4,000,000 | 4,000,000 | 4,000,000 |" in lines
    assert "| factorised_over_pc_100 | 200 |" in lines
    assert "| auto_over_best_max | 1 |" in lines
    assert "| state_growth of pc | 100 |" in lines
    assert "| state_growth of tc | 10 |" in lines
    drawn = panels(outcomes)
    assert drawn["MB of state, by rows in a window"]["pc"] == [(100, 1.0), (1_000, 100.0)]
    assert drawn["µs a row, by streams"].keys() == {TC, FACTORISED, PC}
