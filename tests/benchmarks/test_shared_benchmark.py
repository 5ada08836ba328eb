"""The cases are those of the paper, its claims hold where they are said to, and the benchmark runs in a small size."""

from __future__ import annotations

import ast
import json
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks import harness
from benchmarks.chart import Bars, Panel
from benchmarks.harness import Outcome
from benchmarks.shared import overload as shared_overload
from benchmarks.shared import plan_search as shared_plan_search
from benchmarks.shared import policies
from benchmarks.shared import throughput as shared_throughput
from benchmarks.shared.assumptions import RESTORED
from benchmarks.shared.cases import CASES, GREATEST, GROUPS, PLAN, QUERIES
from benchmarks.shared.fingerprint import IMPLIED
from benchmarks.shared.overload import Rush
from benchmarks.shared.scheduling import Case, Seed, run_case, run_seeds
from benchmarks.shared.throughput import (
    ALONE,
    SEPARATE,
    SHARED,
    Cell,
    Effort,
    Separate,
    Shape,
    Shared,
    batches,
    crowds_of,
    measure,
)
from tests.benchmarks.running import is_chart, quick
from transom.scheduling.mqt import groups_of
from transom.scheduling.simulation import ArrivalPlan

SMALL = ArrivalPlan((900, 300, 100, 500), 4)
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
    calm = ArrivalPlan((100, 200, 100, 200), 2)
    found = shared_plan_search.judge(calm)
    assert {"P7 mqt_drops", "P4 mqt_drops", "P4 mandf_below"} <= set(found.failed)
    assert not any(what.endswith(IMPLIED) for what in found.failed)
    assert len(shared_plan_search.judge(calm, patience=0).failed) < len(found.failed)


@pytest.mark.nightly
def test_it_runs_and_ends_in_a_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(policies, "PLAN", SMALL)
    monkeypatch.setattr(policies, "SEEDS", 2)
    monkeypatch.setattr(policies, "OTHER_PLANS", (ArrivalPlan((200, 300, 100, 500), 3),))
    monkeypatch.setattr(policies, "VARIED", ({}, {"decide": "before"}))
    chart = tmp_path / "shared.svg"
    assert harness.main(["shared", "--json", "--part", "a", "--plot", str(chart)]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert [cell["case"] for cell in reported["cells"] if cell["experiment"] == "case"] == list(CASES)
    stages = reported["cells"][1]["contestants"]["mqt"]["stages"]
    assert [stage["due"] for stage in stages] == sorted(stage["due"] for stage in stages)
    assert all(stage["due"] == stage["processed"] + stage["shed"] + stage["pending"] for stage in stages)
    found = reported["summary"]
    assert (
        set(found["admandf_drops"]) == set(found["admandf_over_best_other"]) == set(found["fingerprint"]) == set(CASES)
    )
    assert set(found["readings"]) == {"the default", "decide = before"}
    assert list(found["other_plans"]) == ["200, 300, 100, 500; 3 intervals each"]
    assert [some["seeds"] for some in found["seeds"].values()][:2] == [2, 2]
    counts = found["assumptions"]["counts"]
    assert {counts[name]["plans"] for name in ("as drawn", *RESTORED)} == {2}
    assert [one["seed"] for one in found["assumptions"]["misses"]] == counts["as drawn"]["more"]
    shown = harness.text_of(policies.POLICIES_PART, reported)
    assert "| decide = before | " in shown and "| as drawn | 2 | " in shown and "| mean dropped by mqt, % | " in shown
    assert is_chart(chart)


@pytest.mark.nightly
def test_a_quick_run_is_for_people_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(policies, "PLAN", SMALL)
    monkeypatch.setattr(shared_throughput, "QUICK_CELLS", (Cell(2, 1.0, largest=300),))
    monkeypatch.setattr(shared_overload, "QUICK_RUSH", Rush(0.1, 0.2, 0.2, buffer=100, windows=(10, 30)))
    assert harness.main(["shared", "--quick"]) == 0
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
    found = policies.of_seeds(seeds)
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
    case = run_case("P4", ArrivalPlan((3_000, 1_500, 300, 500), 4))
    drawn = policies.panels([policies.outcome_of(case)])
    assert len(drawn) == 2 * 3 + 2
    course, left, dropped = drawn[0], drawn[-2], drawn[-1]
    assert isinstance(course, Panel) and isinstance(left, Panel) and isinstance(dropped, Bars)
    trace = case.outcomes["mandf"].trace
    shaded = {time for begin, end in course.shaded for time in trace.time if begin <= time < end}
    assert shaded == {time for time, method in zip(trace.time[:-1], trace.method, strict=False) if method == "fifo"}
    assert 0 < len(shaded) < len(trace.time) - 1
    assert [stage for stage, _ in left.lines["mqt"]] == [1, 2, 3, 4] and dropped.groups == ["P4"]


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
    assert found.about["runs"] == 2 and found.about["rows"] == 2 * 2 * 200
    expected = matches if emit == "lifetimes" else 2 * matches
    assert found.about["matches_measured"] == pytest.approx(expected, rel=0.3)
    assert found[SEPARATE]["state_rows"] >= found[SHARED]["state_rows"]
    if emit == "lifetimes":
        assert found[SHARED]["state_rows"] == found[ALONE]["state_rows"] == 2 * 1_000
        assert found.about["state_ratio"] == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("shape", ["three", "slides"])
def test_joins_of_three_and_windows_that_slide_are_shared_as_well(shape: Shape, small_batches: None) -> None:
    found = measure(Cell(2, 1.0, largest=3_000, shape=shape), TINY_EFFORT)
    streams = 3 if shape == "three" else 2
    assert found.about["rows"] == 2 * streams * 200 and found.about["matches_measured"] > 0.3
    assert found[SHARED]["state_rows"] < found[SEPARATE]["state_rows"]


@pytest.mark.nightly
def test_separate_queries_take_turns_in_crowds(small_batches: None, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = measure(Cell(5, 1.0, largest=500), TINY_EFFORT)
    monkeypatch.setattr(shared_throughput, "TOGETHER", 2)
    parts = measure(Cell(5, 1.0, largest=500), TINY_EFFORT)
    assert [list(crowd) for crowd in crowds_of(5)] == [[1, 4], [0, 3], [2]]
    assert _kept(parts) == _kept(whole)
    assert parts.about["matches_measured"] == whole.about["matches_measured"]


def _kept(outcome: Outcome) -> list[tuple[int, int]]:
    return [(outcome[name]["state_bytes"], outcome[name]["state_rows"]) for name in (SHARED, SEPARATE, ALONE)]


def test_answers_that_differ_are_noticed(small_batches: None, monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(Separate):
        def step(self, pair: shared_throughput.Batches) -> None:
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


@pytest.mark.nightly
def test_part_b_runs_and_ends_in_a_summary(
    tmp_path: Path, small_batches: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shared_throughput, "SUMMED_UP", 5)
    cells = [Cell(queries, 0.04, largest=1_000) for queries in (1, 5)]
    monkeypatch.setattr(shared_throughput, "QUICK_CELLS", (*cells, Cell(2, 1.0, "changes", largest=300)))
    monkeypatch.setattr(shared_throughput, "QUICK_EFFORT", TINY_EFFORT)
    chart = tmp_path / "throughput.svg"
    reported = quick(capsys, "shared", "--part", "b", "--plot", str(chart))
    assert [(cell["part"], cell["queries"]) for cell in reported["cells"]] == [("b", 1), ("b", 5), ("b", 2)]
    found = reported["summary"]
    assert found["state_ratio_100"] <= 1.2
    assert found["throughput_ratio_100"] == pytest.approx(reported["cells"][1]["throughput_ratio"], abs=0.1)
    assert found["throughput_ratio_100_changes"] is None
    assert all(cell["contestants"]["shared"]["rows_per_s"] > 0 for cell in reported["cells"])
    assert is_chart(chart)
