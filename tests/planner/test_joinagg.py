"""Which aggregates over joins are seen, which tactic runs them, and what EXPLAIN says of the others."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from transom.core.errors import UnsupportedError
from transom.cql.statements import bind_query, parse_statements
from transom.kernels.joinagg.node import JoinAggregate, MergeAggregate
from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.multiway.statistics import InputStatistics, JoinStatistics, KeyCounts, Machine
from transom.kernels.operator import Operator
from transom.plan.catalogue import Catalogue
from transom.planner.explain import explain_json, explain_text
from transom.planner.fragments import fragments
from transom.planner.multiway_choice import MultiwayDecision
from transom.planner.plan import plan, plan_and_decisions
from transom.planner.statistics import members_of

DECLARED = """
    CREATE STREAM A (ts TIMESTAMP, k INTEGER, d VARCHAR, x INTEGER, f DOUBLE, WATERMARK FOR ts AS ts);
    CREATE STREAM B (ts TIMESTAMP, k INTEGER, d VARCHAR, x INTEGER, f DOUBLE, WATERMARK FOR ts AS ts);
    CREATE STREAM C (ts TIMESTAMP, k BIGINT, d VARCHAR, x INTEGER, WATERMARK FOR ts AS ts);
"""
TWO = "A [RANGE 1 MINUTE], B [RANGE 1 MINUTE]"
THREE = f"{TWO}, C [RANGE 1 MINUTE]"


def planned(text: str, **options: str) -> Operator:
    """The plan of a query, of a tactic that stays unless SET adapt says otherwise."""
    catalogue = Catalogue()
    parse_statements(DECLARED, catalogue)
    catalogue.options.update({"adapt": "off"} | options)
    return plan(bind_query(text, catalogue), catalogue)


def join_aggregate(text: str, **options: str) -> Operator:
    (operator,) = [each for each in planned(text, **options).walk() if isinstance(each.node, JoinAggregate)]
    return operator


def reasons(operator: Operator) -> dict[str, str]:
    return dict(operator.tactic.not_taken)


@pytest.mark.parametrize(
    ("text", "tactic"),
    [
        (f"SELECT COUNT(*) FROM {TWO} WHERE A.k = B.k AND A.d = B.d", "factorised"),
        (f"SELECT MAX(A.x), SUM(B.f) FROM {THREE} WHERE A.k = B.k AND B.k = C.k", "factorised"),
        (f"SELECT B.d, COUNT(*) FROM {TWO} WHERE A.k = B.k AND A.x > 3 GROUP BY B.d HAVING COUNT(*) > 2", "factorised"),
        (f"SELECT COUNT(*) FROM (SELECT A.x AS y FROM {TWO} WHERE A.k = B.k) AS z", "factorised"),
        (f"SELECT COALESCE(A.d, ''), SUM(B.f * 2) FROM {TWO} WHERE A.k = B.k GROUP BY COALESCE(A.d, '')", "factorised"),
        ("SELECT COUNT(*) FROM A [ROWS 5], B [PARTITION BY k ROWS 2] WHERE A.k = B.k", "factorised"),
        (f"SELECT COUNT(*), MIN(B.x) FROM {TWO} WHERE A.k = B.k AND A.x < B.x", "tc"),
        (f"SELECT COUNT(*) FROM {TWO}", "ic"),
        (f"SELECT COUNT(*) FROM {THREE} WHERE A.k = B.k AND B.k = C.k AND A.x < C.x", "tc"),
        (f"SELECT SUM(A.x + 1), MIN(CAST(A.d AS INTEGER)) FROM {TWO} WHERE A.k = B.k", "factorised"),
        (f"SELECT STDDEV(A.x), VAR_POP(B.x + 1) FROM {TWO} WHERE A.k = B.k", "factorised"),
        (f"SELECT STDDEV(A.x) FROM {TWO} WHERE A.k = B.k AND A.x < B.x", "ic"),
        (f"SELECT SUM(A.x * B.x), AVG(A.f + B.f) FROM {TWO} WHERE A.k = B.k", "ic"),
        (f"SELECT SUM(A.x) FILTER (WHERE B.x > 3) FROM {TWO} WHERE A.k = B.k", "ic"),
        (f"SELECT MIN(A.x), A.k, B.d FROM {TWO} WHERE A.k = B.k AND A.x < B.x GROUP BY A.k, B.d", "tc"),
        ("SELECT COUNT(*), AVG(A.x) FROM A [ROWS 5], B [RANGE 1 MINUTE] WHERE A.x < B.x", "ic"),
    ],
)
def test_the_first_tactic_that_can_run_it_does(text: str, tactic: str) -> None:
    operator = join_aggregate(text)
    assert operator.tactic.name == tactic
    assert set(reasons(operator)) == {"factorised", "tc", "ic", "adaptive", "pc"} - {tactic}
    assert reasons(operator)["pc"] == f"{tactic} does it with less"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"SELECT COUNT(DISTINCT A.x) FROM {TWO} WHERE A.k = B.k", "count(DISTINCT x) needs the values of the join"),
        (f"SELECT MEDIAN(A.x) FROM {TWO} WHERE A.k = B.k", "is computed from the rows of the join"),
        (f"SELECT STDDEV(A.f) FROM {TWO} WHERE A.k = B.k", "squares of such values are not summed up exactly"),
        (f"SELECT A.d || B.d, COUNT(*) FROM {TWO} WHERE A.k = B.k GROUP BY A.d || B.d", "reads columns of several"),
        (
            f"SELECT A.x + 1, COUNT(*) FROM {TWO} WHERE A.k = B.k GROUP BY A.x + 1",
            "(x + 1) can fail, and must not for rows that match nothing",
        ),
    ],
)
def test_what_only_the_pipeline_can_do(text: str, reason: str) -> None:
    operators = list(planned(text).walk())
    assert not any(isinstance(each.node, JoinAggregate) for each in operators)
    (aggregate,) = [each for each in operators if each.kind == "Aggregate"]
    assert list(reasons(aggregate)) == ["factorised", "ic", "tc", "adaptive"]
    assert all(reason in reported for reported in reasons(aggregate).values())
    assert "row of the join alive" in aggregate.tactic.keeps


@pytest.mark.parametrize(
    ("tactic", "text", "reason"),
    [
        ("factorised", f"SELECT COUNT(*) FROM {TWO} WHERE A.x < B.x", "there is no equality between the inputs"),
        ("factorised", f"SELECT COUNT(*) FROM {THREE} WHERE A.k = B.k AND B.d = C.d", "not all joined on one key"),
        (
            "factorised",
            f"SELECT COUNT(*) FROM {TWO} WHERE A.k = B.k AND A.x < B.x",
            r"\(x < x\) is a predicate between",
        ),
        (
            "tc",
            "SELECT COUNT(*) FROM A [NOW], B [ROWS 3] WHERE A.k = B.k",
            "rows of input 2 may match before it is known",
        ),
        ("tc", f"SELECT COUNT(*) FROM {THREE} WHERE A.k = B.k AND B.d = C.d", "not all joined on one key"),
        (
            "tc",
            f"SELECT A.d, B.d, COUNT(*) FROM {TWO} WHERE A.k = B.k GROUP BY A.d, B.d",
            "it is grouped by columns of several inputs",
        ),
        ("tc", f"SELECT SUM(A.f + B.f) FROM {TWO} WHERE A.k = B.k", r"\(f \+ f\) reads columns of several inputs"),
        ("factorised", f"SELECT SUM(A.f + B.f) FROM {TWO} WHERE A.k = B.k", "reads columns of several inputs"),
        ("ic", f"SELECT MAX(A.f + B.f) FROM {TWO} WHERE A.k = B.k", "cannot be computed from what it was"),
        ("ic", f"SELECT COUNT(*) FROM {THREE} WHERE A.k = B.k AND B.k = C.k", "there are 3 inputs"),
        ("ic", f"SELECT MAX(A.x) FROM {TWO} WHERE A.k = B.k", r"max\(x\) cannot be computed from what it was"),
    ],
)
def test_a_forced_tactic_that_cannot_is_rejected_with_its_reason(tactic: str, text: str, reason: str) -> None:
    with pytest.raises(
        UnsupportedError, match=f"join-aggregate tactic '{tactic}' cannot run this query: .*{reason}"
    ) as reported:
        planned(text, joinagg=tactic)
    assert reported.value.remedy is not None and "pc" in reported.value.remedy and tactic not in reported.value.remedy


@pytest.mark.parametrize("tactic", ["factorised", "ic", "tc"])
def test_a_tactic_can_be_forced(tactic: str) -> None:
    text = f"SELECT COUNT(*) FROM {TWO} WHERE A.k = B.k"
    operator = join_aggregate(text, joinagg=tactic)
    assert operator.tactic.name == tactic
    assert set(reasons(operator).values()) == {"not requested", "SET adapt is 'off'"}
    assert {each.kind for each in planned(text, joinagg="pc").walk()} >= {"Join", "Aggregate"}


def test_negative_tuples_leave_the_pipeline() -> None:
    text = f"SELECT COUNT(*) FROM {TWO} WHERE A.k = B.k"
    kinds = {each.kind for each in planned(text, lifetimes="negative").walk()}
    assert "JoinAggregate" not in kinds and "Aggregate" in kinds
    with pytest.raises(UnsupportedError, match="negative tuples"):
        planned(text, lifetimes="negative", joinagg="ic")


def test_a_sub_query_in_the_predicate_is_a_semi_join_over_the_join() -> None:
    kinds = [
        each.kind
        for each in planned(f"SELECT COUNT(*) FROM {TWO} WHERE A.k = B.k AND A.x IN (SELECT x FROM C [NOW])").walk()
    ]
    assert kinds.index("Join") < kinds.index("SemiJoin") < kinds.index("Aggregate")


def cut(text: str) -> list[tuple[str, list[str]]]:
    return [(str(each.partitioning), [o.kind for o in each.operators]) for each in fragments(planned(text))]


def test_grouped_by_a_join_key_there_is_nothing_to_merge() -> None:
    for keys in ("A.k", "B.k, A.x", "A.d, A.k"):
        parts = cut(f"SELECT {keys}, COUNT(*) FROM {TWO} WHERE A.k = B.k AND A.d = B.d GROUP BY {keys}")
        assert len(parts) == 1 and "MergeAggregate" not in parts[0][1], keys
    assert cut(f"SELECT B.d, COUNT(*) FROM {TWO} WHERE A.k = B.k AND A.d = B.d GROUP BY B.d")[0][0] == "by (d)"
    wider = cut(f"SELECT A.k, COUNT(*) FROM {TWO}, C [NOW] WHERE A.k = B.k AND C.k = A.k GROUP BY A.k")
    assert len(wider) == 1 and "MergeAggregate" not in wider[0][1]


def test_other_groups_are_merged_from_the_partial_results_of_the_partitions() -> None:
    assert cut(f"SELECT A.d, COUNT(*) FROM {TWO} WHERE A.k = B.k GROUP BY A.d") == [
        ("by (k)", ["Window", "Window", "JoinAggregate"]),
        ("by (d)", ["MergeAggregate"]),
    ]
    assert cut(f"SELECT COUNT(*) FROM {TWO} WHERE A.k = B.k")[1] == ("single", ["MergeAggregate"])


def test_without_a_key_there_is_one_partition_and_nothing_to_merge() -> None:
    parts = cut(f"SELECT COUNT(*) FROM {TWO} WHERE A.x < B.x")
    assert parts[-1][0] == "single" and parts[-1][1][-1] == "JoinAggregate"


def test_expressions_of_one_input_are_computed_below_and_once() -> None:
    operator = join_aggregate(f"SELECT A.d, SUM(A.f * 2), AVG(A.f * 2) FROM {TWO} WHERE A.d = B.d GROUP BY A.d")
    assert [len(child.schema) for child in operator.inputs] == [2, 1]
    assert operator.inputs[0].schema.names == ["d", "(f * CAST(2 AS DOUBLE))"]


def test_a_key_that_is_two_columns_of_one_input_holds_them_equal() -> None:
    operator = join_aggregate(f"SELECT COUNT(*) FROM {TWO} WHERE A.k = B.k AND A.x = B.k")
    assert isinstance(operator.node, JoinAggregate) and operator.node.join_keys == ((0,), (0,))
    assert [each.kind for each in operator.inputs[0].walk()][-2:] == ["Filter", "Project"]


def test_integers_of_any_width_are_one_key() -> None:
    operator = join_aggregate(f"SELECT COUNT(*) FROM {THREE} WHERE A.k = B.k AND C.k = B.k AND A.x = B.k")
    assert [str(key) for each in operator.needs for key in each.keys] == ["k", "k", "k"]
    assert [str(child.schema[0].type) for child in operator.inputs] == ["int32", "int32", "int64"]


def test_partial_rows_hold_what_can_be_added_up() -> None:
    text = f"SELECT A.d, COUNT(*) AS n, COUNT(A.x) AS m, SUM(A.x) AS s, AVG(B.f) AS a, MAX(B.d) AS t FROM {TWO} "
    merge = next(
        each for each in planned(text + "WHERE A.k = B.k GROUP BY A.d").walk() if each.kind == "MergeAggregate"
    )
    (joined,) = merge.inputs
    assert joined.schema.names == [
        "d", "rows", "count(x) count", "sum(x) count", "sum(x) top", "sum(x) high", "sum(x) low", "avg(f) count",
        "avg(f) digits", "max(d)",
    ]  # fmt: skip
    assert isinstance(merge.node, MergeAggregate) and merge.node.key_count == 1


def lines(text: str, **options: str) -> list[str]:
    return [line.lstrip("├└─ │") for line in explain_text(planned(text, **options)).splitlines()]


def test_the_tree_tells_the_tactic_its_bounds_and_the_rejections() -> None:
    reported = lines(f"SELECT A.d, COUNT(*) AS n, MIN(B.x) AS m FROM {TWO} WHERE A.k = B.k GROUP BY A.d")
    at = next(i for i, line in enumerate(reported) if "join-aggregate factorised" in line)
    assert reported[at:][:6] == [
        f"{reported[at].split()[0]} join-aggregate factorised: partial count(*), min(x) by d over A.k = B.k",
        "keeps of the rows alive of all inputs the keys and 16 bytes per argument; totals per key, input and group, "
        "a heap entry per key and group; O(log rows alive) a row for each group under its key, whatever its matches; "
        "fragment 1",
        "not ic: min(x) cannot be computed from what it was and what leaves",
        "not adaptive: SET adapt is 'off'",
        "not tc: factorised does it with less",
        "not pc: factorised does it with less",
    ]
    assert any(line.endswith("join-aggregate merge: count(*), min(x) by d") for line in reported)


def test_json_tells_the_same() -> None:
    root = planned("SELECT COUNT(*) FROM A [ROWS 5], B [RANGE 1 MINUTE] WHERE A.x < B.x AND A.k <> B.k")
    plan_json: Any = json.loads(json.dumps(explain_json(root)))
    (operator,) = [each for each in plan_json["operators"] if each["operator"] == "JoinAggregate"]
    assert operator["tactic"] == "ic" and operator["needs"] == ["single", "single"]
    assert operator["description"] == "count(*) over ((x < x) AND (k <> k))"
    assert [each["tactic"] for each in operator["not_taken"]] == ["factorised", "tc", "adaptive", "pc"]
    assert operator["keeps"].startswith("of the rows alive") and operator["costs"].startswith("O(1 + matches)")


@dataclass(frozen=True)
class Counted:
    """Windows of a hundred rows of each input with so many keys; of none nothing is known."""

    keys: int
    machine: Machine = field(default_factory=Machine)

    def join(self, node: MultiwayJoin) -> JoinStatistics:
        members = members_of(node)
        now = np.full((len(node.relations), max(self.keys, 1)), 100 / max(self.keys, 1))
        alive = np.full((len(node.relations), 1), 100.0)
        keys = KeyCounts(now, 0.9 * now, alive, 0.9 * alive) if self.keys else None
        inputs = (InputStatistics(10.0, 100.0, "sampled"),) * len(node.relations)
        return JoinStatistics(inputs, members, (keys,) * len(members))


def decided(
    keys: int,
    *given: MultiwayDecision,
    text: str = f"SELECT COUNT(*) FROM {TWO} WHERE A.k = B.k",
    adapt: str = "off",
) -> tuple[Any, Any]:
    catalogue = Catalogue()
    parse_statements(DECLARED, catalogue)
    catalogue.options["adapt"] = adapt
    return plan_and_decisions(bind_query(text, catalogue), catalogue, Counted(keys), given)


@pytest.mark.parametrize(("keys", "tactic"), [(100, "pc"), (20, "pc"), (10, "factorised"), (1, "factorised")])
def test_the_join_is_taken_where_a_row_is_known_to_have_few_matches(keys: int, tactic: str) -> None:
    root, decisions = decided(keys)
    assert decisions == (MultiwayDecision(tactic),)
    assert any(isinstance(each.node, JoinAggregate) for each in root.walk()) == (tactic == "factorised")
    other = "factorised" if tactic == "pc" else "pc"
    reported = dict(next(each.tactic.not_taken for each in root.walk() if other in dict(each.tactic.not_taken)))[other]
    assert reported == f"{tactic} does it with less: {100 / keys:.2g} matches a row estimated, pc is faster up to 8"
    assert reported in explain_text(root)


def test_what_nobody_knows_does_not_lead_to_the_join() -> None:
    assert decided(0)[1] == (MultiwayDecision("factorised"),)


def test_a_decision_about_an_aggregate_over_a_join_stands() -> None:
    """Whatever would be decided now; of another query's decisions nothing is taken."""
    root, decisions = decided(100, MultiwayDecision("mjoin"), MultiwayDecision("factorised"))
    assert decisions == (MultiwayDecision("factorised"),)
    assert "the checkpoint was written with factorised" in explain_text(root)
    assert decided(1, MultiwayDecision("ic"))[1] == (MultiwayDecision("factorised"),)


def test_where_there_is_nothing_to_choose_no_estimate_decides() -> None:
    assert decided(100, text=f"SELECT COUNT(*) FROM {TWO}")[1] == ()


def test_the_tactic_may_change_unless_that_is_turned_off() -> None:
    text = f"SELECT A.d, COUNT(*) AS n, MIN(B.x) AS m FROM {TWO} WHERE A.k = B.k GROUP BY A.d"
    reported = lines(text, adapt="on")
    at = next(i for i, line in enumerate(reported) if "join-aggregate adaptive" in line)
    assert reported[at + 1].split("; ")[-2].endswith("may change")
    assert reported[at + 2 :][:4] == [
        "not ic: min(x) cannot be computed from what it was and what leaves",
        "not factorised: adaptive changes to what is better for what comes",
        "not tc: adaptive changes to what is better for what comes",
        "not pc: adaptive changes to what is better for what comes",
    ]
    with pytest.raises(UnsupportedError, match="SET adapt is 'off'"):
        planned(text, joinagg="adaptive")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"SELECT COUNT(*) FROM {THREE} WHERE A.k = B.k AND B.k = C.k", "there are 3 inputs"),
        (f"SELECT COUNT(*) FROM {TWO} WHERE A.k = B.k AND A.x < B.x", "factorised, which it changes to, cannot run it"),
        (f"SELECT SUM(A.x * B.x) FROM {TWO} WHERE A.k = B.k", "factorised, which it changes to, cannot run it"),
    ],
)
def test_what_cannot_change_says_why(text: str, reason: str) -> None:
    assert reasons(join_aggregate(text, adapt="on"))["adaptive"] == reason


def test_what_may_change_asks_for_no_estimate_and_what_was_decided_stands() -> None:
    for keys in (1, 100):
        root, decisions = decided(keys, adapt="on")
        assert decisions == (MultiwayDecision("adaptive"),)
        assert any(each.tactic.name == "adaptive" for each in root.walk())
        assert decided(keys, *decisions, adapt="on")[1] == decisions
    for tactic in ("factorised", "pc"):
        assert decided(1, MultiwayDecision(tactic), adapt="on")[1] == (MultiwayDecision(tactic),)
