"""Joins of many inputs: what the planner makes of their predicates, how they are spread, and what EXPLAIN says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from transom.core.errors import OptionError, UnsupportedError
from transom.cql.statements import bind_query, parse_statements
from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.operator import Operator
from transom.plan.catalogue import Catalogue
from transom.plan.options import read_option
from transom.planner.explain import explain_json, explain_text
from transom.planner.fragments import fragments
from transom.planner.plan import plan

DECLARED = """
    CREATE STREAM A (ts TIMESTAMP, k INTEGER, d VARCHAR, x INTEGER, WATERMARK FOR ts AS ts);
    CREATE STREAM B (ts TIMESTAMP, k INTEGER, d VARCHAR, x INTEGER, WATERMARK FOR ts AS ts);
    CREATE STREAM C (ts TIMESTAMP, k BIGINT, d VARCHAR, x INTEGER, WATERMARK FOR ts AS ts);
"""
THREE = "A [RANGE 1 MINUTE], B [RANGE 1 MINUTE], C [RANGE 1 MINUTE]"
ONE_KEY = f"SELECT A.d, C.x FROM {THREE} WHERE A.k = B.k AND B.k = C.k"
CHAIN = f"SELECT A.x, C.x FROM {THREE} WHERE A.k = B.k AND B.d = C.d"


def planned(text: str, **options: str) -> Operator:
    catalogue = Catalogue()
    parse_statements(DECLARED, catalogue)
    catalogue.options.update(options)
    return plan(bind_query(text, catalogue), catalogue)


def multiway(text: str) -> tuple[Operator, MultiwayJoin]:
    (operator,) = [each for each in planned(text, multiway="mjoin").walk() if each.kind == "MultiwayJoin"]
    assert isinstance(operator.node, MultiwayJoin)
    return operator, operator.node


def keys(node: MultiwayJoin) -> list[list[str | None]]:
    return [[None if key is None else str(key) for key in own] for own in node.keys]


def test_a_tree_is_joins_of_two_and_its_root_tells_why() -> None:
    root = planned(ONE_KEY, multiway="tree")
    joins = [each for each in root.walk() if each.kind == "Join"]
    assert len(joins) == 2 and "MultiwayJoin" not in {each.kind for each in root.walk()}
    assert [("mjoin" in dict(each.tactic.not_taken)) for each in joins] == [False, True]


@pytest.mark.parametrize("tactic", ["auto", "tree"])
def test_two_inputs_are_joined_as_ever(tactic: str) -> None:
    two = planned("SELECT A.x FROM A [NOW], B [NOW] WHERE A.k = B.k", multiway=tactic)
    assert "MultiwayJoin" not in {each.kind for each in two.walk()}
    assert not any("mjoin" in dict(each.tactic.not_taken) for each in two.walk())


@pytest.mark.parametrize("tactic", ["parallel_tree", "mjoin", "parallel_mjoin", "adaptive"])
def test_what_is_asked_for_is_planned(tactic: str) -> None:
    (operator,) = [each for each in planned(ONE_KEY, multiway=tactic).walk() if each.kind == "MultiwayJoin"]
    assert operator.tactic.name == tactic and set(dict(operator.tactic.not_taken).values()) == {"not requested"}
    assert operator.tactic.estimates == () and operator.tactic.rests_on == ()
    with pytest.raises(
        UnsupportedError, match=f"'{tactic}' cannot run this query: lifetimes are sent as negative tuples"
    ):
        planned(ONE_KEY, lifetimes="negative", multiway=tactic)


def test_whoever_asks_for_a_join_of_two_gets_one() -> None:
    root = planned(ONE_KEY, join="nested_loop")
    assert [each.tactic.name for each in root.walk() if each.kind == "Join"] == ["nested_loop"] * 2
    assert dict(root.inputs[0].tactic.not_taken)["mjoin"] == "SET join asks for nested_loop"


def test_equalities_become_one_key_by_transitivity() -> None:
    operator, node = multiway(ONE_KEY)
    assert keys(node) == [["k"], ["k"], ["k"]] and node.residual == () and node.last is None
    assert [str(need) for need in operator.needs] == ["by (k)"] * 3
    assert dict(operator.tactic.not_taken) == dict.fromkeys(
        ("tree", "parallel_tree", "parallel_mjoin", "adaptive"), "not requested"
    )
    _, again = multiway(f"SELECT 1 FROM {THREE} WHERE A.k = C.k AND B.k = A.k AND C.k = B.k")
    assert keys(again) == [["k"], ["k"], ["k"]] and again.residual == ()


def test_chains_have_a_key_for_each_edge_and_one_partition() -> None:
    operator, node = multiway(CHAIN)
    assert keys(node) == [["k", None], ["k", "d"], [None, "d"]]
    assert {need.kind for need in operator.needs} == {"single"} and "up to 2 hash tables each" in operator.tactic.keeps
    assert "one partition" in operator.tactic.costs


def test_what_is_no_key_is_a_predicate_and_what_can_fail_comes_last() -> None:
    _, node = multiway(f"SELECT 1 FROM {THREE} WHERE A.k = B.k AND A.x < C.x AND A.x + 1 > B.x AND A.x + B.x = C.x")
    assert keys(node) == [["k"], ["k"], [None]]
    assert [str(part) for part in node.residual] == ["(x < x)"]
    assert str(node.last) == "(((x + 1) > x) AND ((x + x) = x))"


def test_a_decimal_becomes_a_double_without_fail() -> None:
    """0.5 is a DECIMAL, and a band over doubles is asked as soon as both sides are there."""
    band = "ABS(CAST(A.x AS DOUBLE) - CAST(B.x AS DOUBLE)) < 0.5"
    _, node = multiway(f"SELECT 1 FROM {THREE} WHERE A.k = B.k AND B.k = C.k AND {band}")
    assert len(node.residual) == 1 and node.last is None


def test_several_columns_of_one_input_in_a_class_are_compared() -> None:
    _, node = multiway(f"SELECT 1 FROM {THREE} WHERE A.k = B.k AND C.k = B.k AND A.x = C.k")
    assert keys(node) == [["k"], ["k"], ["k"]]
    (same,) = node.residual
    assert str(same) == "(k = x)"


def test_two_inputs_and_the_same_input_twice() -> None:
    operator, _ = multiway("SELECT l.x, r.x FROM A [ROWS 3] AS l, A [ROWS 3] AS r WHERE l.k = r.k")
    assert operator.inputs[0] is operator.inputs[1] and operator.open_ends
    assert "open tuple" in operator.tactic.keeps and "O(1) to expire" in operator.tactic.costs
    operator, _ = multiway("SELECT l.x, r.x FROM A [ROWS 3] AS l, A [PARTITION BY d ROWS 3] AS r WHERE l.k = r.k")
    assert "O(log n) to expire" in operator.tactic.costs


def test_columns_come_in_the_written_order() -> None:
    operator, node = multiway("SELECT * FROM C [NOW], A [NOW], B [NOW] WHERE A.k = B.k AND B.d = C.d")
    assert [name for child in operator.inputs for name in child.schema.names] == operator.schema.names
    assert keys(node) == [[None, "d"], ["k", None], ["k", "d"]]


def test_the_key_goes_on_through_the_join() -> None:
    root = planned(
        f"SELECT DISTINCT z.k FROM (SELECT B.k AS k, A.x + C.x AS s FROM {THREE} WHERE A.k = B.k AND B.k = C.k) AS z",
        multiway="mjoin",
    )
    (only,) = fragments(root)
    assert str(only.partitioning) == "by (k)" and "MultiwayJoin" in [each.kind for each in only.operators]
    apart = fragments(planned(f"SELECT DISTINCT A.d FROM {THREE} WHERE A.k = B.k AND B.k = C.k", multiway="mjoin"))
    assert [str(each.partitioning) for each in apart] == ["by (k)", "by (d)"]


def test_negative_tuples_leave_the_tree() -> None:
    root = planned(ONE_KEY, lifetimes="negative")
    assert "MultiwayJoin" not in {each.kind for each in root.walk()}
    (whole,) = [each for each in root.walk() if "mjoin" in dict(each.tactic.not_taken)]
    assert dict(whole.tactic.not_taken)["parallel_mjoin"] == "lifetimes are sent as negative tuples"
    with pytest.raises(UnsupportedError) as reported:
        planned(ONE_KEY, lifetimes="negative", multiway="mjoin")
    assert reported.value.remedy is not None and "SET multiway" in reported.value.remedy


def test_aggregates_over_joins_stay_as_they_are() -> None:
    text = f"SELECT COUNT(*) FROM {THREE} WHERE A.k = B.k AND B.k = C.k"
    assert planned(text, multiway="mjoin") == planned(text, multiway="tree")
    by_rows = planned(text, multiway="mjoin", joinagg="pc")
    assert {"MultiwayJoin", "Aggregate"} <= {each.kind for each in by_rows.walk()}


def test_another_word_is_no_tactic() -> None:
    assert read_option("multiway", "MJOIN") == "mjoin"
    with pytest.raises(OptionError, match="'multiway' cannot be 'bushy'"):
        read_option("multiway", "bushy")


def test_explain_tells_the_tactic_its_bounds_and_the_rejections() -> None:
    lines = [line.lstrip("├└─ │") for line in explain_text(planned(ONE_KEY, multiway="mjoin")).splitlines()]
    at = next(i for i, line in enumerate(lines) if "mjoin" in line)
    assert lines[at].endswith("join mjoin: A.k = B.k = C.k")
    assert lines[at + 1 :][:2] == [
        "keeps the rows alive of all 3 inputs once, in a hash table each; "
        "2 probes a row, one more per partial match; O(1) to expire; fragment 1",
        "not tree: not requested",
    ]
    plan_json: Any = json.loads(json.dumps(explain_json(planned(CHAIN, multiway="mjoin"))))
    (operator,) = [each for each in plan_json["operators"] if each["operator"] == "MultiwayJoin"]
    assert operator["description"] == "A.k = B.k AND B.d = C.d" and operator["needs"] == ["single"] * 3
    (crossed,) = [each for each in explain_json(planned(f"SELECT 1 FROM {THREE}", multiway="mjoin"))["operators"]
                  if each["operator"] == "MultiwayJoin"]  # fmt: skip
    assert crossed["description"] == "all combinations"
