"""Every part of the experiment runs once in a tiny size; nobody asks how long it takes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks import harness
from benchmarks.chart import Panel
from benchmarks.harness import Outcome
from benchmarks.multiway import benchmark as multiway
from benchmarks.multiway.contestants import (
    AUTO,
    CHAIN,
    MJOIN,
    PARALLEL_MJOIN,
    PARALLEL_TREE,
    TACTICS,
    TREE,
    Contestant,
    is_chain,
)
from benchmarks.multiway.data import NEAR, ROUND, VALUES, Cell, Feed
from benchmarks.multiway.latency import Answer, Effort, measure_latency, results
from tests.benchmarks.running import is_chart, quick

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
TINY = multiway.Size(
    streams=(3, 6),
    windows=(1, 2),
    window_streams=3,
    other_streams=3,
    paced=(3,),
    probe_streams=(3,),
    candidates=20,
    rate_streams=5,
    rate_window=100,
    batch=50,
    latency=Effort(runs=2, rounds=3, warm=1),
    in_real_time=Effort(runs=1, rounds=2, warm=0),
    probes=Effort(runs=1, rounds=3, warm=1),
    rates=Effort(runs=1, rounds=2, warm=1),
    floor=Effort(runs=1, rounds=10, warm=1),
)
COUNTER = Cell(1, "streams", 4, 4, 20, ROUND)
FEW = Cell(2, "probes", 3, 3, 20, 3_000, "few", 2)
DRAWN = Cell(3, "rate", 2, 3, 100, 3_000, "drawn", 50, timed=True)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiway, "QUICK", TINY)


@pytest.mark.nightly
def test_all_parts_end_in_a_summary(tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chart = tmp_path / "multiway.svg"
    reported = quick(capsys, "multiway", "--plot", str(chart))
    assert reported["machine"]["handover_us"] > 0
    experiments = [cell["experiment"] for cell in reported["cells"]]
    assert experiments == ["streams"] * 2 + ["window", "columns", "changes", "paced", "probes", "rate", "rate", "floor"]
    by_x = {(cell["experiment"], cell["x"]): cell for cell in reported["cells"]}
    for cell in reported["cells"][:-1]:
        assert cell["results"] > 0
        tactics = cell["contestants"]
        assert {name: tactics[name]["chosen"] for name in TACTICS} == {name: name for name in TACTICS}
        assert tactics[AUTO]["chosen"] in TACTICS
        kept = {name: tactics[name]["state_rows"] for name in TACTICS}
        assert kept[PARALLEL_TREE] > kept[TREE] > kept[MJOIN] == kept[PARALLEL_MJOIN]
    six = by_x["streams", 6]["contestants"]
    paths = {name: six[name]["path"] for name in TACTICS}
    assert paths == {TREE: (5 + sum(range(1, 6))) / 6, PARALLEL_TREE: 1, MJOIN: 5, PARALLEL_MJOIN: 1}
    assert six[MJOIN]["with_result"]["rows"] == 6 and six[MJOIN]["all_rows"]["rows"] == 36
    assert six[MJOIN]["handed_over"] == 0 and six[MJOIN]["path_here"] == 5
    found = reported["summary"]
    assert found["best_tactic_20"] is None and found["best_p50_us_20"] is None
    assert len(found["auto_cells"]) == 8, "those in real time are there to check the others"
    assert found["auto_over_best_max"] == max(one["over_best"] for one in found["auto_cells"])
    assert {"auto_over_best_cell", "auto_over_best_spread"} <= found.keys()
    assert 0 < found["mjoin_state_over_tree_5"] < 1
    floor = by_x["floor", 1]
    measured = [*floor["one_row_a_step"].values(), *floor["in_batches"].values()]
    assert found["tree_over_probe_floor"] == max(one["over"] for one in measured) > 0
    probes = by_x["probes", 3]
    assert probes["probe_us"] == pytest.approx(probes["contestants"][MJOIN]["join_us"] / 2, abs=0.1)
    assert is_chart(chart)
    shown = harness.text_of(multiway.BENCHMARK, reported)
    assert "Matches a probe, 5 streams, windows of 100 rows, batches of 50 rows of each." in shown
    assert "A row of the tree over 4 single probes, µs:" in shown and "| one row a step, with result |" in shown
    assert "| mjoin_state_over_tree_5 | 0." in shown


@pytest.mark.nightly
def test_parts_can_be_run_apart_and_shown_together(
    tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reported = quick(capsys, "multiway", "--part", "2")
    file = tmp_path / "2.json"
    file.write_text(json.dumps(reported), encoding="utf-8")
    assert {cell["part"] for cell in reported["cells"]} == {2}
    assert reported["summary"]["best_p50_us_20"] is None and reported["summary"]["tree_over_probe_floor"] is None
    assert harness.main(["multiway", "--read", str(file), str(file), "--plot", str(tmp_path / "both.svg")]) == 0
    shown = capsys.readouterr().out
    assert shown.count("a hand-over between threads takes") == 2
    assert "Streams, where a probe meets 20 candidates. All rows: mean, p50, p99 µs:" in shown
    assert "| best_p50_us_20 | - |" in shown


# --- what is measured ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tactic", TACTICS)
def test_what_is_asked_for_runs(tactic: str) -> None:
    contestant = Contestant(COUNTER, tactic)
    kernels = {type(kernel).__name__.lower() for kernels in contestant.pipeline.part._kernels for kernel in kernels}
    wanted = "joinkernel" if tactic == TREE else f"{tactic.replace('_', '')}kernel"
    assert wanted in kernels
    assert len(kernels & {"joinkernel", "mjoinkernel", "parallelmjoinkernel", "paralleltreekernel"}) == 1
    contestant.close()


def test_a_chain_has_streams_on_its_right() -> None:
    contestant = Contestant(DRAWN, CHAIN)
    assert is_chain(contestant.pipeline.root)
    assert contestant.path() == (2 + 2 + 1) / 3
    many = replace(DRAWN, streams=4)
    assert Contestant(many, CHAIN).path() == (3 + 3 + 2 + 1) / 4


def test_a_parallel_mjoin_waits_for_as_many_probes_as_a_core_has() -> None:
    contestant = Contestant(COUNTER, PARALLEL_MJOIN)
    assert [contestant.path(workers) for workers in (1, 2, 3, 9)] == [3, 2, 1, 1]


def test_rows_with_a_result_are_those_that_complete_one() -> None:
    """Of every four rows the last one; with changes, results that end are reported in other steps."""
    for emit in ("lifetimes", "changes"):
        contestant = Contestant(replace(COUNTER, emit=emit), MJOIN)
        span = contestant.take(Feed(COUNTER).rows(25))
        assert span.answered.tolist() == [False, False, False, True] * 25
        assert len(span.nanos) == len(span.background) == 100
        contestant.close()


def test_a_different_answer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Contestant.take

    def one_too_few(contestant: Contestant, *rows: Any) -> Any:
        span = take(contestant, *rows)
        if contestant.name == MJOIN:
            span.outputs[-1] = None
        return span

    monkeypatch.setattr(Contestant, "take", one_too_few)
    with pytest.raises(AssertionError, match="the answers differ"):
        measure_latency(COUNTER, (TREE, MJOIN), Effort(1, 2, 0), 2)


def test_answers_are_compared_by_their_sums() -> None:
    def answer(*values: int) -> Answer:
        found = Answer()
        found.follow(pa.RecordBatch.from_pydict({"a": values}))
        return found

    assert results({"one": answer(1, 2), "other": answer(2, 1)}) == 2
    with pytest.raises(AssertionError, match="differ"):
        results({"one": answer(1, 2), "other": answer(1, 1)})
    with pytest.raises(AssertionError, match="no answer"):
        results({"one": Answer()})


# --- the streams -----------------------------------------------------------------------------------------------------


def test_a_round_brings_a_row_of_every_stream() -> None:
    rows = Feed(COUNTER).rows(10)
    assert [row.at for row in rows] == [i * ROUND // 4 for i in range(40)]
    for first in range(0, 40, 4):
        together = rows[first : first + 4]
        assert sorted(row.stream for row in together) == ["s0", "s1", "s2", "s3"]
        assert {row.batch.column("k")[0].as_py() for row in together} == {first // 4}
    assert len({rows[first + 3].stream for first in range(0, 40, 4)}) > 1, "it is not always the same that is last"
    again = Feed(COUNTER).rows(10)
    assert [row.batch for row in again] == [row.batch for row in rows]


def test_the_distance_leaves_the_row_of_the_round() -> None:
    batch = dict(Feed(FEW).batch(40))
    keys = np.stack([rows.column("k").to_numpy() for rows in batch.values()])
    assert set(keys.ravel().tolist()) == {0, 1}
    values = [np.stack([rows.column(name).to_numpy() for name in VALUES]) for rows in batch.values()]
    for one, other in ((0, 1), (1, 2), (0, 2)):
        squared = ((values[one][:, :, None] - values[other][:, None, :]) ** 2).sum(axis=0)
        assert ((squared < NEAR) == np.eye(40, dtype=bool)).all()
    assert FEW.query().count(f"< {NEAR}") == 3
    assert FEW.candidates == 10


def test_rows_in_batches_have_their_own_times() -> None:
    batch = dict(Feed(DRAWN).batch(100))
    times = np.sort(np.concatenate([rows.column("ts").cast(pa.int64()).to_numpy() for rows in batch.values()]))
    assert times.tolist() == [1_000 * i for i in range(300)]
    assert "[RANGE 300 MILLISECONDS]" in DRAWN.query() and "WATERMARK" in DRAWN.declarations()
    assert DRAWN.candidates == 2


def test_all_columns_can_be_selected() -> None:
    query = replace(COUNTER, columns=len(VALUES)).query()
    assert query.partition(" FROM ")[0].count(",") == 39


# --- tables ----------------------------------------------------------------------------------------------------------


def reported_cell(experiment: str, x: float, **figures: float) -> Outcome:
    tactics = {
        name: {
            "chosen": TREE if name == AUTO else name,
            "with_result": {"mean_us": p50 + 1, "p50_us": p50, "p99_us": 3 * p50},
            "all_rows": {"mean_us": 1, "p50_us": 2, "p99_us": 1_234},
            "spread": 0.1,
            "path": 2.8,
            "path_here": 2.8 if name == TREE else 10,
            "join_us": p50 / 2,
            "handed_over": 1.5,
            "background_us": {"p50": 1, "p99": 20, "longer_than_gap": 0.125},
            "state_rows": 1_000,
        }
        for name, p50 in figures.items()
    }
    cell = {"experiment": experiment, "x": x, "streams": 20, "window_s": 1, "label": f"{experiment} {x:g}"}
    return Outcome(cell, tactics)


def test_tables_are_for_people() -> None:
    figures = {TREE: 200.0, PARALLEL_TREE: 150.0, MJOIN: 100.0, PARALLEL_MJOIN: 300.0, AUTO: 210.0}
    cells = [
        reported_cell("streams", 20, **figures),
        reported_cell("window", 2, **figures),
        reported_cell("paced", 5, **figures),
    ]
    found = multiway.summary(cells)
    assert (found["best_p50_us_20"], found["best_tactic_20"]) == (100, MJOIN)
    assert (found["auto_over_best_max"], found["auto_over_best_spread"]) == (2.1, 0.1)
    reported = {"machine": multiway.described_machine(), "cells": [one.as_json() for one in cells], "summary": found}
    lines = harness.text_of(multiway.BENCHMARK, reported).splitlines()
    assert "a hand-over between threads takes" in lines[0]
    assert "| tree | 201, 200, 600 |" in lines
    assert "| tree | 201, 200, 600 | 201, 200, 600 |" in lines, "the window of 1 s stands beside the others"
    assert "| tree | 1,000, 2.8 |" in lines and "| mjoin | 1,000, 2.8 (10 here) |" in lines
    assert "| mjoin | 100, 50, 50 | 1.5 | 1 | 20 | 12.5% |".replace(", ", " | ") in lines
    assert "| streams 20 | tree | mjoin | 2.1 | 0.1 |" in lines
    assert "| tree_over_probe_floor | - |" in lines
    first = multiway.panels(cells)[0]
    assert isinstance(first, Panel) and first.lines[MJOIN] == [(20, 101.0)]


# --- what was written down -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", sorted(RESULTS.glob("multiway*.json")), ids=lambda file: str(file.name))
def test_results_are_those_of_a_whole_run(file: Path) -> None:
    reported = json.loads(file.read_text(encoding="utf-8"))
    assert reported["summary"] == multiway.summary([Outcome.read(cell) for cell in reported["cells"]])
    assert reported["settings"]["latency"]["runs"] > 1, "a quick run is none to show"
