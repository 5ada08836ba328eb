"""The cases are those of the paper, its claims hold where they are said to, and the benchmark runs in a small size."""

from __future__ import annotations

import argparse
import ast
import json
from itertools import pairwise
from pathlib import Path

import pytest

from transom.benchmarks import shared, shared_plan_search, shared_throughput, shared_throughput_report
from transom.benchmarks.shared_assumptions import RESTORED
from transom.benchmarks.shared_cases import CASES, GREATEST, GROUPS, PLAN, QUERIES
from transom.benchmarks.shared_fingerprint import IMPLIED
from transom.benchmarks.shared_overload import Rush
from transom.benchmarks.shared_scheduling import Case, Seed, run_case, run_seeds
from transom.benchmarks.shared_scheduling_report import Findings, panels, summary
from transom.benchmarks.shared_throughput import Cell, Effort, Separate, Shared, batches, crowds_of, measure
from transom.scheduling.mqt import groups_of
from transom.scheduling.simulation import Plan

SMALL = Plan((900, 300, 100, 500), 4)
BIG_GAP_AFTER = {"P3": 5, "P4": 5, "P5": 2, "P6": 2, "P7": 8, "P8": 8}


@pytest.mark.parametrize("name", GROUPS)
def test_the_windows_give_the_groups_of_the_paper(name: str) -> None:
    assert str(groups_of(CASES[name])) == GROUPS[name]


@pytest.mark.parametrize("name", CASES)
def test_the_windows_keep_the_rule(name: str) -> None:
    windows = CASES[name]
    assert len(windows) == QUERIES and windows[-1] == GREATEST
    gaps = [high - low for low, high in pairwise(windows)]
    if name in BIG_GAP_AFTER:
        big = gaps.pop(BIG_GAP_AFTER[name] - 1)
        assert big > 2 * max(gaps)
    if name in ("P1", "P3", "P5", "P7"):
        assert windows[0] == 1
        assert all(low < high for low, high in pairwise(gaps))
    elif name != "random":
        assert windows[0] == 500
        assert all(low >= high for low, high in pairwise([500, *gaps]))


@pytest.mark.parametrize("name", ["P4", "P7"])
def test_the_plan_shows_the_fingerprint_and_the_claims_hold(name: str) -> None:
    found = run_case(name, PLAN)
    assert all(found.fingerprint.values())
    assert found.claims == {"drops_none": True, "at_least_the_others": True}
    assert found.over_best_other > 1


def test_claims_can_fail() -> None:
    outcomes = run_case("P4", SMALL).outcomes
    swapped = Case("P3", CASES["P4"], {**outcomes, "admandf": outcomes["mqt"], "mqt": outcomes["fifo"]})
    assert swapped.claims["equals_mqt"] is False
    worse = Case("P4", CASES["P4"], {**outcomes, "admandf": outcomes["fifo"]})
    assert worse.claims["at_least_the_others"] is False


def test_the_search_never_runs_the_new_policy() -> None:
    tree = ast.parse(Path(shared_plan_search.__file__).read_text(encoding="utf-8"))
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    named |= {str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    named |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert not named & {"admandf", "AdMandF", "POLICIES", "NEW"}
    assert "OLDER" in named


def test_the_plan_is_among_those_that_the_search_looks_at() -> None:
    plans = shared_plan_search.candidates()
    assert PLAN in plans
    assert len(plans) == len(set(plans))


def test_the_search_says_what_a_plan_does_not_show() -> None:
    calm = Plan((100, 200, 100, 200), 2)
    found = shared_plan_search.judge(calm)
    assert {"P7 mqt_drops", "P4 mqt_drops", "P4 mandf_below"} <= set(found.failed)
    assert not any(what.endswith(IMPLIED) for what in found.failed)
    assert len(shared_plan_search.judge(calm, patience=0).failed) < len(found.failed)


def test_it_runs_and_ends_in_a_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shared, "PLAN", SMALL)
    monkeypatch.setattr(shared, "SEEDS", 2)
    monkeypatch.setattr(shared, "OTHER_PLANS", (Plan((200, 300, 100, 500), 3),))
    monkeypatch.setattr(shared, "VARIED", ({}, {"decide": "before"}))
    chart = tmp_path / "shared.svg"
    asked = argparse.Namespace(json=True, quick=False, plot=str(chart), part=["a"])
    assert shared.main(asked) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told) == ["cells", "settings", "summary"]
    assert [cell["case"] for cell in told["cells"]] == list(CASES)
    stages = told["cells"][1]["policies"]["mqt"]["stages"]
    assert [stage["due"] for stage in stages] == sorted(stage["due"] for stage in stages)
    assert all(stage["due"] == stage["processed"] + stage["shed"] + stage["pending"] for stage in stages)
    found = told["summary"]
    assert (
        set(found["admandf_drops"]) == set(found["admandf_over_best_other"]) == set(found["fingerprint"]) == set(CASES)
    )
    assert set(found["readings"]) == {"the default", "decide = before"}
    assert list(found["other_plans"]) == ["200, 300, 100, 500; 3 intervals each"]
    assert [some["seeds"] for some in found["seeds"].values()][:2] == [2, 2]
    counts = found["assumptions"]["counts"]
    assert {counts[name]["plans"] for name in ("as drawn", *RESTORED)} == {2}
    assert [one["seed"] for one in found["assumptions"]["misses"]] == counts["as drawn"]["more"]
    assert chart.read_text(encoding="utf-8").startswith("<?xml")


def test_a_quick_run_is_for_people_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(shared, "PLAN", SMALL)
    monkeypatch.setattr(shared, "QUICK_CELLS", (Cell(2, 1.0, largest=300),))
    monkeypatch.setattr(shared, "QUICK_RUSH", Rush(0.1, 0.2, 0.2, buffer=100, windows=(10, 30)))
    asked = argparse.Namespace(json=False, quick=True, plot=None, part=None)
    assert shared.main(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("| P8 | 1-8,9-10 |") for line in lines)
    assert sum(line.startswith("| the default |") for line in lines) == 1
    assert not any("plans" in line for line in lines)
    assert sum(line.startswith("| 1 | 2 | 65,536 |") for line in lines) == 1
    assert sum(line.startswith("| admandf | ") for line in lines) == 1


def test_seeds_that_drop_more_are_named() -> None:
    def seed(number: int, fifo: float, mandf: float, admandf: float, slack: float) -> Seed:
        dropped = {"fifo": fifo, "mqt": 0.3, "mandf": mandf, "admandf": admandf, "slack": slack}
        return Seed(number, SMALL, dropped, {name: 0.9 - share for name, share in dropped.items()})

    seeds = [seed(0, 0.05, 0.1, 0.2, 0.2), seed(1, 0.0, 0.1, 0.1, 0.2), seed(2, 0.0, 0.1, 0.0, 0.0)]
    assert [one.served for one in seeds] == [False, True, True]
    found = summary(Findings([], {}, {}, {"all": seeds}))["seeds"]["all"]
    assert found["admandf_drops_no_more_than_mandf"] == 2
    assert found["slack_drops_no_more_than_mandf"] == 1
    assert found["slack_drops_no_more_than_admandf"] == found["slack_processes_no_less_than_admandf"] == 2
    assert found["mean_dropped"]["admandf"] == 0.1
    assert [one["seed"] for one in found["admandf_drops_more"]] == [0]


def test_seeds_go_on_until_enough_are_served() -> None:
    found = run_seeds(1, intervals=30)
    assert len(found) >= 1 and found[-1].served
    assert not any(seed.served for seed in found[:-1])


def test_the_course_is_drawn_with_the_spans_of_fifo() -> None:
    case = run_case("P4", Plan((3_000, 1_500, 300, 500), 4))
    drawn = panels([case])
    assert len(drawn) == 2 * 3 + 1
    trace = case.outcomes["mandf"].trace
    shaded = {time for begin, end in drawn[0].shaded for time in trace.time if begin <= time < end}
    assert shaded == {time for time, method in zip(trace.time[:-1], trace.method, strict=False) if method == "fifo"}
    assert 0 < len(shaded) < len(trace.time) - 1
    assert drawn[-1].lines["mqt, dropped"][0] == [1, 2, 3, 4]


# --- part b ----------------------------------------------------------------------------------------------------------

TINY_EFFORT = Effort(runs=2, seconds=0.0, most_seconds=60.0)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_throughput, "MOST_ROWS", 200)


@pytest.mark.parametrize(
    ("queries", "matches", "emit"), [(3, 0.5, "lifetimes"), (1, 4.0, "lifetimes"), (2, 2.0, "changes")]
)
def test_shared_queries_keep_what_the_largest_keeps(
    queries: int, matches: float, emit: str, small_batches: None
) -> None:
    found = measure(Cell(queries, matches, emit, largest=1_000), TINY_EFFORT)
    assert found.runs == 2 and found.rows == 2 * 2 * 200
    assert found.matches == pytest.approx(matches if emit == "lifetimes" else 2 * matches, rel=0.3)
    assert found.separate.state.rows >= found.shared.state.rows
    if emit == "lifetimes":
        assert found.shared.state.rows == found.alone.rows == 2 * 1_000
        assert found.state_ratio == pytest.approx(1, abs=0.05)


def test_separate_queries_take_turns_in_crowds(small_batches: None, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = measure(Cell(5, 1.0, largest=500), TINY_EFFORT)
    monkeypatch.setattr(shared_throughput, "TOGETHER", 2)
    parts = measure(Cell(5, 1.0, largest=500), TINY_EFFORT)
    assert [list(crowd) for crowd in crowds_of(5)] == [[1, 4], [0, 3], [2]]
    assert parts.separate.state == whole.separate.state
    assert (parts.alone, parts.shared.state, parts.matches) == (whole.alone, whole.shared.state, whole.matches)


def test_answers_that_differ_are_noticed(small_batches: None, monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(Separate):
        def step(self, pair: shared_throughput.Pair) -> None:
            super().step((pair[0].slice(1), pair[1]))

    monkeypatch.setattr(shared_throughput, "Separate", Forgetful)
    with pytest.raises(AssertionError, match="the answers differ"):
        measure(Cell(2, 4.0, largest=200), TINY_EFFORT)


def test_narrow_windows_see_less_of_the_same_join(small_batches: None) -> None:
    cell = Cell(4, 2.0, largest=400)
    group = Shared(cell)
    for pair, _ in zip(batches(cell), range(6), strict=False):
        group.step(pair)
    assert all(0 < narrow < wide for narrow, wide in pairwise(group.counts))


def test_part_b_runs_and_ends_in_a_summary(
    tmp_path: Path, small_batches: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shared_throughput_report, "QUERIES", 5)
    cells = [Cell(queries, 0.04, largest=1_000) for queries in (1, 5)]
    monkeypatch.setattr(shared, "CELLS", (*cells, Cell(2, 1.0, "changes", largest=300)))
    monkeypatch.setattr(shared, "EFFORT", TINY_EFFORT)
    chart = tmp_path / "throughput.svg"
    asked = argparse.Namespace(json=True, quick=False, plot=str(chart), part=["b"])
    assert shared.main(asked) == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert list(told) == ["cells", "settings", "summary"]
    assert printed.err.count(" of the largest") == 3
    assert [(cell["part"], cell["queries"]) for cell in told["cells"]] == [("b", 1), ("b", 5), ("b", 2)]
    found = told["summary"]
    assert found["state_ratio_100"] <= 1.2
    assert found["throughput_ratio_100"] == pytest.approx(told["cells"][1]["throughput_ratio"], abs=0.1)
    assert found["throughput_ratio_100_changes"] is None
    assert all(cell["shared"]["rows_per_s"] > 0 for cell in told["cells"])
    assert chart.read_text(encoding="utf-8").startswith("<?xml")
