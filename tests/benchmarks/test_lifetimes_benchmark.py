"""The experiment runs once in a small size; nobody asks how long it takes."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from benchmarks.harness import Outcome
from benchmarks.lifetimes import benchmark as lifetimes
from benchmarks.lifetimes import large, soak
from benchmarks.lifetimes.contestants import DIRECT, LAZY, NEGATIVE, SORTED, Bench, Effort
from benchmarks.lifetimes.data import JOINS, KINDS, QUERIES, STATELESS, Cell, deltas
from benchmarks.lifetimes.sorted_insertion import SortedInsertionSet
from benchmarks.meters import anonymous_bytes, open_files, resident_bytes, threads
from benchmarks.processes import call_apart
from tests.benchmarks.running import is_chart, quick
from transom.core.delta import NO_OPEN_ID, Ends
from transom.core.time import FOREVER
from transom.kernels.lifetimes import LifetimeSet

BATCH = 40


@pytest.mark.nightly
def test_it_runs_and_ends_in_a_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lifetimes, "QUICK_WINDOWS", (10, 200))
    monkeypatch.setattr(lifetimes, "BATCHES", (BATCH, 3 * BATCH))
    monkeypatch.setattr(lifetimes, "LARGE", (2_000, 4_000))
    effort = Effort(runs=2, seconds=0, steps=2, settling=0, most_sorted_rows=10, most_sorted_batch=BATCH)
    monkeypatch.setattr(lifetimes, "QUICK_EFFORT", effort)
    monkeypatch.setattr(lifetimes, "QUICK_LARGE_SECONDS", 0.0)
    # In this process: another test starts a process of its own.
    monkeypatch.setattr(lifetimes, "call_apart", lambda function, *arguments: large.measure(*arguments))
    monkeypatch.setattr(large, "BATCH", 1_000)
    chart = tmp_path / "lifetimes.svg"
    reported = quick(capsys, "lifetimes", "--plot", str(chart))
    cells = [cell for cell in reported["cells"] if cell["experiment"] == "cells"]
    assert len(cells) == 5 * 2 * 2 * 2 and len(reported["cells"]) == len(cells) + 2
    for cell in cells:
        methods = cell["contestants"]
        assert (methods["direct"]["visits_per_row"], methods["negative"]["visits_per_row"]) == (1, 2)
        assert methods["direct"]["rows_per_s"] > 0 and methods["direct"]["runs"] == 2
        if cell["query"] in JOINS:
            measured = cell["rows"] == 10 and cell["batch"] == BATCH
            assert (methods["sorted_insertion"] is not None) == measured
    summary = reported["summary"]
    assert summary["visits_ratio_stateless"] == 2
    counted = [c["contestants"] for c in cells if c["query"] in STATELESS and c["kind"] == "rows"]
    least = min(
        methods_of_cell["direct"]["rows_per_s"] / methods_of_cell["negative"]["rows_per_s"]
        for methods_of_cell in counted
    )
    assert summary["min_ratio_stateless"] == pytest.approx(least, abs=0.001)
    assert min(summary[f"min_ratio_stateless_{b}"] for b in (BATCH, 3 * BATCH)) == summary["min_ratio_stateless"]
    assert {"ratio_time_join", "ratio_rows_join", "rows_10m_over_1m", "peak_mb_10m"} <= set(summary)
    assert is_chart(chart)


def test_tables_are_for_people() -> None:
    rates = {DIRECT: {"rows_per_s": 3e6, "visits_per_row": 1.0}, NEGATIVE: {"rows_per_s": 2e6, "visits_per_row": 2.0}}
    joins = {LAZY: {"rows_per_s": 1.5e6, "visits_per_row": 1.0}, SORTED: None}
    outcomes = [
        Outcome(
            {"experiment": "cells", "query": query, "kind": kind, "rows": rows, "batch": BATCH},
            {**rates, **(joins if query in JOINS else {})},
        )
        for query in QUERIES
        for kind in KINDS
        for rows in (10, 2_000)
    ]
    for rows, rate, peak in ((10, 4e8, 1e6), (20, 2e8, 3e6)):
        figures = {"rows_per_s": rate, "peak_bytes": peak}
        outcomes.append(Outcome({"experiment": "large", "rows": rows}, {DIRECT: figures}))
    lines = "\n".join(map(str, lifetimes.tables(outcomes))).splitlines()
    assert "| query | window | batch | 10 | 2,000 |" in lines
    assert f"| union | RANGE | {BATCH} | 3 / 2 = 1.50 | 3 / 2 = 1.50 |" in lines
    assert f"| join_spread | ROWS | {BATCH} | 1.5 / - | 1.5 / - |" in lines
    assert "| selection | 1 | 2 |" in lines
    assert "| 20 | 200 | 3 |" in lines
    summary = lifetimes.summary(outcomes)
    assert (summary["rows_10m_over_1m"], summary["ratio_rows_join"], summary["peak_mb_10m"]) == (0.5, 1.5, 3)
    drawn = lifetimes.panels(outcomes)
    assert [panel.title.partition(",")[0] for panel in drawn] == ["selection", "projection", "union", "join"]
    assert drawn[0].lines["direct, ROWS"] == [(10, 3.0), (2_000, 3.0)]


# --- the queries and their rows --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [DIRECT, NEGATIVE, LAZY, SORTED])
@pytest.mark.parametrize(("query", "kind"), [*itertools.product(JOINS, KINDS)])
def test_every_row_of_the_second_stream_meets_one_row(query: str, kind: str, method: str) -> None:
    bench = Bench(Cell(query, kind, 100, BATCH), method)
    running = bench.start()
    running.warm_up(settling=0)
    counters = running.state.counters[-1]

    def pairs() -> int:
        return counters.rows_out - (counters.ends_out if method == NEGATIVE else 0)

    before = pairs()
    running.advance(3)
    assert pairs() - before == 3 * BATCH


def test_a_match_is_the_newest_row_or_anywhere_in_the_window() -> None:
    for query, ages in (("join", {0}), ("join_spread", set(range(50)))):
        brought = list(itertools.islice(deltas(Cell(query, "rows", 100, BATCH)), 30))
        left, right = (
            np.concatenate([step[name].values.column(1).to_numpy() for step in brought]) for name in ("strb0", "strb1")
        )
        assert set((left - right).tolist()) == ages


def test_so_many_rows_pass_the_selection() -> None:
    step = next(deltas(Cell("selection", "rows", 10, 10_000)))["stru"]
    assert 0.57 < (step.values.column(2).to_numpy() > 3).mean() < 0.63
    assert np.diff(step.t).tolist() == [1_000] * 9_999  # one a millisecond
    assert {len(text) for text in step.values.column(1).to_pylist()} == {8}


def test_the_operator_stands_above_the_window() -> None:
    for query, name in (("selection", "filter"), ("projection", "project"), ("union", "concatenation")):
        for method in (DIRECT, NEGATIVE):
            root = Bench(Cell(query, "rows", 10, BATCH), method).part.operators[-1]
            assert root.tactic.name == name
            assert {below.tactic.name for below in root.inputs} == {"rows"}
            assert root.negative == (method == NEGATIVE)


# --- sorted insertion ------------------------------------------------------------------------------------------------


def test_sorted_insertion_lets_the_same_rows_leave() -> None:
    random = np.random.default_rng(3)
    lazy, insertion = LifetimeSet(), SortedInsertionSet()
    first = 0
    for frontier in range(5, 60, 5):
        slots = np.arange(first, first + 20)
        first += 20
        te = random.integers(frontier, 80, 20)
        te[random.random(20) < 0.1] = FOREVER
        open_id = np.where(random.random(20) < 0.3, slots, NO_OPEN_ID)
        waiting = open_id[open_id != NO_OPEN_ID][:4]
        ends = Ends.of(waiting, random.integers(0, frontier, len(waiting)))
        left = []
        for rows in (lazy, insertion):
            rows.add(slots, te, open_id)
            left.append(sorted(zip(*(part.tolist() for part in rows.leave(ends, frontier)), strict=True)))
        assert left[0] == left[1]
    assert insertion.determined.count == sum(len(run.te) for run in [*lazy.runs, *lazy.unsorted])


# --- processes -------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_a_process_of_its_own_measures_its_memory() -> None:
    reported = call_apart("benchmarks.lifetimes.large:measure", 200_000, 0.0)
    assert reported["rows_per_s"] > 0
    assert 8 * 200_000 < reported["peak_bytes"] < reported["idle_bytes"]


def test_what_the_process_holds(tmp_path: Path) -> None:
    before = open_files()
    with (tmp_path / "file").open("w"):
        assert open_files() == before + 1
    assert open_files() == before
    held = anonymous_bytes()
    block = np.ones(80 << 20, dtype=np.uint8)  # more than the process keeps of what was freed
    assert anonymous_bytes() - held > len(block) // 2
    assert resident_bytes() > anonymous_bytes()
    assert threads() >= 1


# --- the soak --------------------------------------------------------------------------------------------------------


def test_a_soak_tells_what_is_flat(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(soak, "BATCH", 100)
    monkeypatch.setattr(soak, "SAMPLES", 20)
    reported = quick(capsys, "lifetimes", "--soak", "1000", status=1)
    (cell,) = reported["cells"]
    assert cell["rows"] == 20 * 200
    assert len(cell["contestants"]["transom"]["samples"]) == 20
    # The windows hold more rows than came: nothing has left them, and open row ids are still on the rise.
    assert reported["summary"]["flat"]["holders_in_use"] is False
    assert reported["summary"]["flat"]["open_files"] is True
    assert "allowed more" in str(soak.table(Outcome.read(cell)))
    assert list(soak.panel(Outcome.read(cell)).lines) == ["rss_mb", "anonymous_mb"]


def test_flat_is_not_more_than_in_the_first_tenth() -> None:
    samples = [{"rows_per_s": 1.0, **dict.fromkeys(soak.LIMITS, 100.0)} for _ in range(20)]
    assert all(verdict["flat"] for verdict in soak.judged(samples).values())
    samples[15] |= {"threads": 101.0, "anonymous_mb": 112.0, "rss_mb": 114.0, "holders_in_use": 111.0}
    flat = {name for name, verdict in soak.judged(samples).items() if verdict["flat"]}
    assert flat == {"anonymous_mb", "holder_slots", "open_files"}
