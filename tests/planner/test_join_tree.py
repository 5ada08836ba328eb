"""The shape of a tree of joins: cheap joins first, keys that stay together, and the answer in the written columns."""

from __future__ import annotations

import pytest

from transom.cql.statements import bind_query, parse_statements
from transom.kernels.multiway.join_tree import Tree, best_tree, joins_of, leaves, left_deep
from transom.kernels.multiway.statistics import InputStatistics, JoinStatistics, Machine
from transom.kernels.operator import Operator
from transom.plan.catalogue import Catalogue
from transom.planner.fingerprint import fingerprint
from transom.planner.fragments import fragments
from transom.planner.plan import plan, plan_and_decisions
from transom.planner.statistics import DeclaredStatistics

STREAMS = "ABCDE"
SPREAD = Machine(partitions=4, one_by_one=False)


def statistics_of(rates: list[float], members: list[int], origin: str = "declared") -> JoinStatistics:
    """Windows of ten seconds, one match a probe."""
    inputs = tuple(
        InputStatistics(rate, 10 * rate, "declared" if origin == "declared" else "assumed") for rate in rates
    )
    return JoinStatistics(inputs, tuple(members), (None,) * len(members))


def catalogue(**rates: float) -> Catalogue:
    declared = Catalogue()
    for name in STREAMS:
        rate = f"WITH (rate = {rates[name]})" if name in rates else ""
        columns = "ts TIMESTAMP, x INTEGER, y INTEGER, z BIGINT, WATERMARK FOR ts AS ts"
        parse_statements(f"CREATE STREAM {name} ({columns}) {rate}", declared)
    declared.options["multiway"] = "tree"
    return declared


def planned(where: str, catalogue: Catalogue, machine: Machine | None = None, names: str = STREAMS) -> Operator:
    query = f"SELECT {', '.join(f'{n}.x AS {n}' for n in names)} FROM {', '.join(f'{n} [1 MINUTE]' for n in names)}"
    return plan(
        bind_query(f"{query} WHERE {where}", catalogue), catalogue, DeclaredStatistics(catalogue, machine or Machine())
    )


def joins(root: Operator) -> list[str]:
    return [each.tactic.describe(each) for each in root.walk() if each.kind == "Join"]


def name(root: Operator) -> str:
    return fingerprint(list(root.walk()))


def test_nothing_known_leaves_the_written_order() -> None:
    written = left_deep([0, 1, 2, 3])
    assert best_tree(statistics_of([100.0] * 4, [0b1111], "assumed"), written, False) == written
    assert best_tree(statistics_of([100.0] * 4, [0b1111]), written, False) == written  # alike
    assert joins(planned("A.x = B.x AND B.x = C.x", catalogue(), names="ABC")) == ["A.x = B.x", "x = C.x"]


def test_a_fast_stream_meets_the_others_when_they_are_joined() -> None:
    tree = best_tree(statistics_of([1000.0, 1, 1, 1, 1], [0b11111]), left_deep([0, 1, 2, 3, 4]), False)
    assert isinstance(tree, tuple) and tree[0] == 0 and sorted(leaves(tree)) == [0, 1, 2, 3, 4]
    root = planned(" AND ".join(f"A.x = {n}.x" for n in "BCDE"), catalogue(A=1000, B=1, C=1, D=1, E=1))
    last = next(each for each in root.walk() if each.kind == "Join" and "mjoin" in dict(each.tactic.not_taken))
    assert [len(list(side.walk())) < 4 for side in last.inputs] == [True, False]
    assert root.schema.names == list(STREAMS)


def test_equalities_that_nobody_wrote_join_what_is_joined_first() -> None:
    root = planned("A.x = B.x AND B.x = C.z", catalogue(A=1, B=1000, C=1), names="ABC")
    first, last = joins(root)
    assert first in ("CAST(A.x AS BIGINT) = C.z", "A.CAST(x AS BIGINT) = C.CAST(z AS BIGINT)", "A.x = C.z"), first
    assert last.count("=") == 1
    assert len(fragments(root)) == 1


def test_what_shares_no_key_comes_last() -> None:
    tree = best_tree(statistics_of([1.0, 1000, 1000, 1000], [0b1110]), left_deep([0, 1, 2, 3]), False)
    assert list(joins_of(tree))[-1] in ((0b0001, 0b1110), (0b1110, 0b0001))


@pytest.mark.parametrize("count", [12, 20])
def test_many_inputs_are_joined_one_pair_after_the_other(count: int) -> None:
    rates = [1000.0 if i == 3 else 1.0 for i in range(count)]
    written = left_deep(list(range(count)))
    tree = best_tree(statistics_of(rates, [(1 << count) - 1]), written, False)
    assert sorted(leaves(tree)) == list(range(count)) and tree != written
    chain = best_tree(statistics_of(rates, [0b11 << i for i in range(count - 1)]), written, True)
    assert sorted(leaves(chain)) == list(range(count))


@pytest.mark.parametrize("tactic", ["tree", "parallel_tree", "mjoin", "parallel_mjoin", "auto"])
def test_one_key_is_one_fragment(tactic: str) -> None:
    declared = catalogue(A=10, B=500, C=3, D=80, E=1)
    declared.options["multiway"] = tactic
    assert len(fragments(planned("A.x = B.x AND C.x = B.x AND C.x = D.x AND E.x = A.x", declared, SPREAD))) == 1


@pytest.mark.parametrize("rates", [{}, {"A": 1, "B": 900, "C": 30, "D": 1, "E": 70}])
def test_a_chain_has_a_fragment_for_each_of_its_keys(rates: dict[str, float]) -> None:
    where = "A.x = B.x AND B.y = C.y AND C.y = D.y AND D.z = E.z"
    assert len(fragments(planned(where, catalogue(**rates), SPREAD))) == 3


def test_in_partitions_inputs_on_one_key_are_joined_before_the_others() -> None:
    where = "A.x = B.x AND A.y = C.y AND B.x = D.x"
    assert len(fragments(planned(where, catalogue(), SPREAD, "ABCD"))) == 2
    assert len(fragments(planned(where, catalogue(), names="ABCD"))) == 3  # as written


def test_a_decision_is_planned_again_whatever_is_known_by_then() -> None:
    fast, slow = catalogue(A=1000, B=1, C=1), catalogue(A=1, B=1, C=1000)
    query = bind_query("SELECT A.x FROM A [NOW], B [NOW], C [NOW] WHERE A.x = B.x AND B.x = C.x", fast)
    root, decisions = plan_and_decisions(query, fast)
    assert name(plan_and_decisions(query, slow)[0]) != name(root)
    again, kept = plan_and_decisions(query, slow, decided=decisions)
    assert name(again) == name(root) and kept == decisions
    tree: Tree | None = decisions[0].tree
    assert tree is not None and sorted(leaves(tree)) == [0, 1, 2]
