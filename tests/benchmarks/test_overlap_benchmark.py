"""The experiment runs once in a small size; nobody asks how long it takes."""

from __future__ import annotations

import itertools
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.harness import Outcome
from benchmarks.overlap import benchmark as overlap
from benchmarks.overlap import burst as overlap_burst
from benchmarks.overlap import memory as overlap_memory
from benchmarks.overlap.burst import Burst, Diary
from benchmarks.overlap.contestants import (
    FULL,
    HYBRID,
    INCREMENTAL,
    LEARNING,
    TACTICS,
    Contestant,
    Effort,
    Taken,
    measure,
)
from benchmarks.overlap.data import MB, STREAMS, Cell, basic_windows
from benchmarks.processes import call_apart
from tests.benchmarks.running import is_chart, quick
from transom.planner import slide_join

EFFORT = Effort(slides=2, most=2, seconds=0)
BURST = Burst(
    calm=20, burst=4_000, slides_before=1, slides_of_burst=4, slides_after=3, slide_ms=60, batches=2,
    keys=4_000, budget_mb=1, disk_mb_s=1,
)  # fmt: skip
SMALL = overlap.Size(
    budget_mb=4,
    disk_mb_s=10_000,
    rows=(20, 220),
    selectivities=(0.001, 0.1),
    memory=(
        (Cell("windows", 1_000, 1 / 20_000, 0.5, 10_000, filler=200), None),
        (Cell("results", 40, 0.25, 4, 10_000), 6),
    ),
    memory_tactics=(HYBRID,),
    burst=BURST,
)


@pytest.mark.nightly
def test_it_runs_and_ends_in_a_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(overlap, "QUICK", SMALL)
    monkeypatch.setattr(overlap, "QUICK_EFFORT", EFFORT)
    monkeypatch.setattr(overlap, "SELECTIVITY", 0.25)
    monkeypatch.setattr(overlap, "ROWS", 100)
    # Another test starts a process.
    monkeypatch.setattr(overlap, "call_apart", lambda function, *arguments: overlap_memory.watched(*arguments))
    monkeypatch.setattr(slide_join, "LEAST_MEMORY", 1)
    chart = tmp_path / "overlap.svg"
    reported = quick(capsys, "overlap", "--plot", str(chart))
    experiments = [cell["experiment"] for cell in reported["cells"]]
    assert experiments == ["size"] * 2 + ["selectivity"] * 2 + ["windows", "results", "burst"]
    small, large, few, _, windows, results, burst = reported["cells"]
    assert set(large["contestants"]) == set(TACTICS)
    assert (small["keys"], few["keys"]) == (4, 1_000)
    # 880 rows in a window of each stream, 4 keys: more results than the budget holds.
    assert large["results_a_slide"] == pytest.approx(880 * 880 / 4, rel=0.05)
    assert (
        small["contestants"]["incremental"]["written_mb_a_slide"]
        == 0
        < large["contestants"]["incremental"]["written_mb_a_slide"]
    )
    assert set(large["contestants"]["incremental"]["ways"]) == {"one-pass incremental, two-pass merge"}
    assert set(large["contestants"]["full"]["ways"]) == {"one-pass full"}
    for cell in (small, large):
        for one in cell["contestants"].values():
            assert len(one["learning_ms"]) == sum(one["learning_ways"].values()) == LEARNING
            assert sum(one["ways"].values()) == EFFORT.slides
    assert large["contestants"]["hybrid"]["estimates"]["join_cost_ms"] > 0
    kept = windows["contestants"]["hybrid"]
    assert kept["input_mb"] >= 10 * windows["budget_mb"]
    assert any(way.startswith("two-pass") for way in kept["ways"])
    assert kept["kept_mb_at_most"] <= windows["budget_mb"]
    assert results["contestants"]["hybrid"]["results"] > 0
    ended = reported["summary"]["burst"]
    assert ended["put_off"] == ended["completed_later"] > 0 == ended["unfinished"]
    assert [one["slide"] for one in burst["contestants"]["hybrid"]["slides"]] == list(range(1, BURST.slides))
    assert {"max_hybrid_over_best", "min_hybrid_over_worst", "peak_over_budget_mb"} < set(reported["summary"])
    assert is_chart(chart)


@pytest.mark.nightly
def test_a_burst_on_spark_is_put_off_and_completed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """How much memory a process has beside the budget is measured in the whole size alone."""
    small = replace(
        BURST, calm=200, burst=20_000, keys=10_000, slides_before=2, slide_ms=400, budget_mb=4, disk_mb_s=20
    )
    monkeypatch.setattr(overlap, "QUICK", replace(SMALL, burst=replace(small, put_off_ms=20)))
    chart = tmp_path / "burst.svg"
    reported = quick(capsys, "overlap", "--runtime", "spark", "--plot", str(chart))
    (burst,) = reported["cells"]
    figures, ended = burst["contestants"]["hybrid"], reported["summary"]["burst"]
    assert ended["put_off"] == ended["completed_later"] > 0 == ended["unfinished"] and figures["wrong"] == []
    assert figures["kept_mb_at_most"] <= burst["budget_mb"]
    assert is_chart(chart)


def test_different_answers_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Contestant.take

    def lose(each: Contestant, *arguments: Any, **others: Any) -> Taken:
        taken = take(each, *arguments, **others)
        each.results -= each.tactic == FULL
        return taken

    monkeypatch.setattr(Contestant, "take", lose)
    with pytest.raises(AssertionError, match="the answers differ"):
        measure(Cell("size", 20, 0.25, 4, 10_000), EFFORT)


# --- the streams -----------------------------------------------------------------------------------------------------


def test_a_basic_window_is_a_second() -> None:
    cell = Cell("size", 300, 0.05, 4, 100)
    first, second = itertools.islice(basic_windows(cell), 2)
    assert [name for name, _ in first] == list(STREAMS)
    for rows, begin in ((first, 0), (second, 1_000_000)):
        for _, batch in rows:
            t = batch.column("ts").cast(pa.int64()).to_numpy()
            assert len(t) == 300 and begin < t[0] and t[-1] < begin + 1_000_000 and (np.diff(t) > 0).all()
            assert set(batch.column("k").to_pylist()) == set(range(20))
    assert (cell.keys, cell.results) == (20, 1_200 * 1_200 / 20)
    assert cell.x == 300 and Cell("selectivity", 300, 0.05, 4, 100).x == 0.05


def test_so_many_slides_bring_ten_budgets() -> None:
    cell = Cell("windows", 1_000, 0.001, 4, 100, filler=40)
    slides = overlap_memory.slides_for(cell)
    assert slides * 2 * 1_000 * cell.row_bytes >= 10 * 4 * MB > (slides - 1) * 2 * 1_000 * cell.row_bytes


# --- memory, in a process of its own ---------------------------------------------------------------------------------


@pytest.mark.nightly
def test_memory_is_measured_in_its_own_process() -> None:
    cell = Cell("windows", 100, 0.01, 4, 10_000, filler=8)
    reported = call_apart("benchmarks.overlap.memory:watched", asdict(cell), FULL, 6)
    assert reported["ways"] == {"one-pass full": reported["slides"]}
    assert reported["results"] > 0 and reported["idle_mb"] > 10
    assert reported["peak_over_budget_mb"] == pytest.approx(reported["peak_mb"] - 4, abs=0.01)


# --- the burst -------------------------------------------------------------------------------------------------------


def reported_rows(*rows: tuple[int, int, str | None]) -> pa.Table:
    at, attempt, status = zip(*rows, strict=True)
    times = pa.array(at, pa.int64()).cast(pa.timestamp("us"))
    return pa.table({"at": times, "attempt": attempt, "status": pa.array(status, pa.string())})


def test_the_diary_of_a_run() -> None:
    diary = Diary()
    diary.follow(reported_rows((10, 1, None), (10, 1, None)))
    diary.follow(reported_rows((10, 1, None), (10, 1, "incomplete"), (20, 1, None), (20, 1, "complete")))
    assert (diary.results, diary.results_void, set(diary.complete)) == (1, 3, {20})
    diary.follow(reported_rows((10, 2, None), (10, 2, None), (10, 2, "complete")))
    assert (diary.results, diary.attempts) == (3, {20: 1, 10: 2})
    assert diary.complete[10] >= diary.incomplete[10][0]
    with pytest.raises(AssertionError, match="completed twice"):
        diary.follow(reported_rows((10, 3, "complete")))


def test_rows_of_the_burst_come_when_they_are_due() -> None:
    batches = list(overlap_burst._batches(BURST, 0))
    assert len(batches) == BURST.slides * BURST.batches
    assert [due for due, _ in batches[:3]] == [20_000, 40_000, 80_000]
    assert [len(rows[0]) for _, rows in batches] == [10] * 2 + [2_000] * 8 + [10] * 6
    assert BURST.rows(0) == 20 and BURST.rows(1) == BURST.rows(4) == 4_000 and BURST.rows(5) == 20


# --- tables ----------------------------------------------------------------------------------------------------------


def timed(experiment: str, x: float, incremental: float, full: float, hybrid: float) -> Outcome:
    def one(ms: float) -> dict[str, Any]:
        costs = {"reuse_cost_ms": 50.0 if x > 1 else None, "join_cost_ms": 40.0 if x > 1 else None}
        return {
            "ms": ms, "ways": {"one-pass full": 3}, "learning_ms": [ms] * 10, "written_mb_a_slide": 1.5,
            "read_mb_a_slide": 2.0, "estimates": costs,
        }  # fmt: skip

    tactics = {INCREMENTAL: one(incremental), FULL: one(full), HYBRID: one(hybrid)}
    setting = {"rows": 1_500, "selectivity": 0.05, "budget_mb": 32, "disk_mb_s": 100}
    return Outcome({"experiment": experiment, "x": x, "results_a_slide": 9_000, **setting}, tactics)


def test_tables_are_for_people() -> None:
    memory = {
        "input_mb": 163.4, "peak_mb": 40.0, "peak_over_budget_mb": 24.0, "written_mb": 0.0,
        "read_mb": 0.0, "ms": 250.0, "ways": {"one-pass full": 9},
    }  # fmt: skip
    slides = [
        {"slide": 1, "delay_ms": 20.0, "attempts": 1, "put_off_ms": []},
        {"slide": 2, "delay_ms": 900.0, "attempts": 2, "put_off_ms": [70.0]},
        {"slide": 6, "delay_ms": 30.0, "attempts": 1, "put_off_ms": []},
    ]
    counts = {"complete": 3, "put_off": 1, "completed_later": 1, "unfinished": []}
    found = [
        timed("size", 1, 10.0, 20.0, 12.0),
        timed("size", 2, 30.0, 20.0, 20.0),
        timed("size", 3, 90.0, 30.0, 30.0),
        timed("selectivity", 1, 10.0, 20.0, 10.0),
        Outcome({"experiment": "results", "budget_mb": 16}, {FULL: memory}),
        Outcome({"experiment": "burst", **asdict(BURST)}, {HYBRID: {**counts, "slides": slides}}),
    ]
    assert overlap.summary(found) == {
        "max_hybrid_over_best": 1.2,
        "min_hybrid_over_worst": 0.333,
        "full_is_faster_from_size": 2.0,
        "full_is_faster_from_selectivity": None,
        "peak_over_budget_mb": 24.0,
        "burst": {"complete": 3, "put_off": 1, "completed_later": 1, "unfinished": 0},
    }
    lines = "\n".join(map(str, overlap.tables(found))).splitlines()
    assert "| incremental | 10 | 30 | 90 |" in lines
    assert "| hybrid / better | 1.20 | 1.00 | 1.00 |" in lines
    assert "| C_reuse | not asked | 50 | 50 |" in lines
    assert "| Windows fit, results do not | full | 16 | 163 | 40 | 24 | 0 | 0 | 250 | 9 one-pass full |" in lines
    assert "| 2 | burst | 2 | 70 | 900 |" in lines and "| 6 | after | 1 | - | 30 |" in lines
    delays, times, costs, *_ = overlap.panels(found)
    assert times.lines[INCREMENTAL] == [(1, 10.0), (2, 30.0), (3, 90.0)]
    assert delays.lines["until it was put off"] == [(0.12, 0.07)] and list(delays.shaded) == [(0.06, 0.3)]
    assert costs.lines["C_reuse, estimated"] == [(2, 50.0), (3, 50.0)]
