"""Which joins are the same, what a shared one keeps, and why a query has none."""

from __future__ import annotations

import pytest

from transom.core.time import UNBOUNDED
from transom.cql.statements import parse_statements
from transom.kernels.operator import Operator
from transom.kernels.shared_join.node import CountedWindow, Narrow, SharedJoin
from transom.plan.algebra import Window
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.planner.sharing import consumer, length_of, shared_join
from transom.planner.sharing_shape import Sharable, sharable

DECLARATIONS = """
CREATE STREAM s (ts TIMESTAMP INVISIBLE, k INTEGER, g VARCHAR, x INTEGER, WATERMARK FOR ts AS ts);
CREATE STREAM t (ts TIMESTAMP INVISIBLE, k INTEGER, g VARCHAR, x INTEGER, WATERMARK FOR ts AS ts);
CREATE TABLE names (k INTEGER, name VARCHAR);
"""
BASE = "SELECT s.x FROM s [RANGE 5 SECONDS], t [RANGE 5 SECONDS] WHERE s.k = t.k"


def requested(query: str, settings: str = "") -> Sharable | str:
    catalogue = Catalogue()
    statement = parse_statements(f"{DECLARATIONS}{settings}{query}", catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    return sharable(statement.query, catalogue)


def join_of(query: str, settings: str = "") -> object:
    sharable = requested(query, settings)
    assert isinstance(sharable, Sharable), sharable
    return sharable.join


@pytest.mark.parametrize(
    "query",
    [
        "SELECT t.g FROM t [ROWS 3], s [NOW] WHERE t.k = s.k AND s.x > 3 AND t.x < s.x",
        "ISTREAM(SELECT COUNT(*) FROM s, t WHERE s.k = t.k AND s.k = t.k)",
        "SELECT DISTINCT j.y FROM (SELECT s.x + 1 AS y FROM t [NOW] JOIN s [NOW] USING (k)) AS j WHERE j.y > 2",
        "SELECT a.x FROM s [RANGE 1 SECOND] AS a, (SELECT k AS j FROM t [ROWS 2 RANGE 1 MINUTE]) AS b WHERE b.j = a.k",
        "SELECT s.x FROM s, t WHERE s.k = t.k AND s.x / t.x = 1",
    ],
)
def test_queries_of_all_kinds_have_the_same_join(query: str) -> None:
    assert join_of(query) == join_of(BASE)


@pytest.mark.parametrize(
    ("query", "settings"),
    [
        (BASE.replace("s.k = t.k", "s.g = t.g"), ""),
        (BASE + " AND s.x = t.x", ""),
        (BASE.replace("s.k = t.k", "s.k < t.k"), ""),
        (BASE.replace("t [", "s [").replace("t.k", "b.k").replace("SECONDS] WHERE", "SECONDS] AS b WHERE"), ""),
        (BASE, "SET tick = '1 SECOND';"),
        (BASE, "SET join = 'lazy_hash';"),
    ],
)
def test_other_joins_are_not_the_same(query: str, settings: str) -> None:
    assert join_of(query, settings) != join_of(BASE)


@pytest.mark.parametrize(
    ("query", "settings", "reason"),
    [
        ("SELECT x FROM s", "", "not made of one join"),
        (f"{BASE} UNION ALL {BASE}", "", "not made of one join"),
        ("SELECT s.x FROM s, t, names WHERE s.k = t.k AND t.k = names.k", "", "has 3 inputs"),
        ("SELECT s.x FROM s, names WHERE s.k = names.k", "", "no window over a stream"),
        ("SELECT a.k FROM (SELECT k, COUNT(*) AS n FROM s GROUP BY k) AS a, t WHERE a.k = t.k", "", "no window over"),
        (BASE.replace("s [RANGE 5 SECONDS]", "s [PARTITION BY k ROWS 2]"), "", "by partition"),
        (BASE.replace("s [RANGE 5 SECONDS]", "s [ROWS 4 SLIDE 2]"), "", "slides"),
        (BASE, "SET lifetimes = 'negative';", "negative tuples"),
        (BASE, "SET multiway = 'mjoin';", "multiway asks for 'mjoin'"),
        ("SELECT COUNT(*) FROM s, t WHERE s.k = t.k", "SET joinagg = 'factorised';", "joinagg asks for"),
        (
            "SELECT s.x FROM s, t WHERE s.k = t.k AND t.ts BETWEEN s.ts AND s.ts + INTERVAL 5 SECONDS",
            "",
            "the times of its",
        ),
    ],
)
def test_a_query_without_a_shared_join_says_why(query: str, settings: str, reason: str) -> None:
    reason_or_join = requested(query, settings)
    assert isinstance(reason_or_join, str) and reason in reason_or_join


def shared(*queries: str) -> Operator:
    catalogue = Catalogue()
    parse_statements(DECLARATIONS, catalogue)
    requests = [requested(query) for query in queries]
    predicates = [predicate for predicate in requests if isinstance(predicate, Sharable)]
    assert len(predicates) == len(requests)
    subplan = shared_join(predicates, catalogue)
    for predicate in predicates:
        operators = list(consumer(predicate, catalogue, subplan).walk())
        (narrow,) = [operator.node for operator in operators if isinstance(operator.node, Narrow)]
        assert narrow.windows == predicate.windows and subplan in operators
    return subplan


def test_the_join_keeps_the_widest_windows_and_the_columns_that_are_read() -> None:
    subplan = shared(BASE, "SELECT t.g FROM s [RANGE 9 SECONDS], t [NOW] WHERE s.k = t.k")
    lengths = [length_of(child.node.spec) for child in subplan.inputs if isinstance(child.node, Window)]
    assert lengths == [9_000_000, 5_000_000]
    assert [child.schema.names for child in subplan.inputs] == [["k", "x"], ["k", "g"]]
    assert isinstance(subplan.node, SharedJoin) and subplan.node.indexes == (1, 3, 5, 6)
    assert subplan.schema.names[-1] == "age" and "for 2 queries" in subplan.tactic.keeps


def test_rows_are_numbered_where_somebody_counts_them() -> None:
    subplan = shared(BASE, "SELECT t.g FROM s [ROWS 7], t WHERE s.k = t.k", BASE.replace("s [RANGE 5", "s [RANGE 6"))
    counted, other = (child.node for child in subplan.inputs)
    assert isinstance(counted, CountedWindow) and (counted.length, counted.rows) == (6_000_000, 7)
    assert isinstance(other, Window) and length_of(other.spec) == UNBOUNDED
    assert isinstance(subplan.node, SharedJoin) and subplan.node.indexes == (1, 3, -2, 5, 6)


def test_both_sides_of_a_join_with_itself_are_kept_apart() -> None:
    subplan = shared("SELECT a.x FROM s [NOW] AS a, s [NOW] AS b WHERE a.k = b.k")
    left, right = subplan.inputs
    assert left is not right and left.inputs[0].inputs[0] is right.inputs[0].inputs[0]
