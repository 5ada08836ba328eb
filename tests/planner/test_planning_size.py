"""Long and deep queries are planned in a number of steps that grows as they do, or are rejected."""

from __future__ import annotations

import pyarrow as pa
import pytest

from transom.core.errors import TransomError, UnsupportedError
from transom.core.structural import Structural
from transom.cql.statements import parse_statements
from transom.kernels.operator import Operator, Site
from transom.kernels.scalar import keep
from transom.plan.algebra import Aggregate
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.plan.expression import Call, ColumnRef, Literal
from transom.planner.explain import explain_text
from transom.planner.fingerprint import fingerprint
from transom.planner.plan import Planner, plan

INPUTS = """
CREATE STREAM s (ts TIMESTAMP, a INTEGER, c DOUBLE, WATERMARK FOR ts AS ts) WITH (connector = 'memory');
CREATE STREAM r (ts TIMESTAMP, a INTEGER, c DOUBLE, WATERMARK FOR ts AS ts) WITH (connector = 'memory');
"""
WINDOW = "[RANGE 10 SECONDS]"


def planned(text: str) -> Operator:
    catalogue = Catalogue()
    *_, statement = parse_statements(INPUTS + text, catalogue)
    assert isinstance(statement, QueryStatement)
    return plan(statement.query, catalogue)


def levels(count: int, level: str) -> str:
    """Views, each of which uses the one below twice."""
    views = [f"CREATE VIEW v0 AS SELECT a, c FROM s {WINDOW};"]
    views += [f"CREATE VIEW v{i} AS {level.format(below=f'v{i - 1}', i=i)};" for i in range(1, count + 1)]
    return "\n".join([*views, f"SELECT a, c FROM v{count}"])


LONG = {
    "sub-queries": f"SELECT DISTINCT a FROM s {WINDOW} AS x WHERE "
    + " OR ".join(f"EXISTS (SELECT 1 FROM s {WINDOW} AS y WHERE y.a = x.a + {i})" for i in range(30)),
    "and": f"SELECT a FROM s {WINDOW} WHERE " + " AND ".join(f"a <> {i}" for i in range(1200)),
    "or": f"SELECT a FROM s {WINDOW} WHERE " + " OR ".join(f"a = {i}" for i in range(1200)),
    "and of or": f"SELECT a FROM s {WINDOW} WHERE " + " AND ".join(f"(a <> {i} OR c < {i})" for i in range(1000)),
    "equalities": f"SELECT s.a FROM s {WINDOW} JOIN r {WINDOW} ON "
    + " AND ".join(f"s.a + {i} = r.a + {i}" for i in range(1000)),
    "using": f"SELECT x.a FROM s {WINDOW} AS x JOIN s {WINDOW} AS y USING (ts, a, c)",
    "aggregates": "SELECT " + ", ".join(f"SUM(a + {i})" for i in range(1200)) + f" FROM s {WINDOW}",
    "keys": f"SELECT COUNT(*) FROM s {WINDOW} GROUP BY " + ", ".join(f"a + {i}" for i in range(1200)),
    "columns": "SELECT DISTINCT " + ", ".join(f"a + {i} AS x{i}" for i in range(1200)) + f" FROM s {WINDOW}",
}


@pytest.mark.parametrize("shape", LONG)
def test_a_long_query_is_planned_and_explained(shape: str) -> None:
    root = planned(LONG[shape])
    assert len(explain_text(root)) > 100
    assert fingerprint(list(root.walk())) == fingerprint(list(root.walk()))


def test_arguments_of_aggregates_are_found_by_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the kernels are built; they are compared with one another where hashes say so, not each with all others."""
    (aggregate,) = [o for o in planned(LONG["aggregates"]).walk() if isinstance(o.node, Aggregate)]
    compared = 0
    equal = Structural.__eq__

    def counted(self: Structural, other: object) -> bool:
        nonlocal compared
        compared += 1
        return equal(self, other)

    for kind in (Call, ColumnRef, Literal):
        monkeypatch.setattr(kind, "__eq__", counted)
    aggregate.tactic.kernels(aggregate, Site(Catalogue(), tick=1))
    assert compared < 100_000


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_a_long_condition_is_evaluated(word: str) -> None:
    """With parts that may fail among them, which are asked about the rows that are not settled."""
    test = "a <> {0} AND 10 // (a - {0}) < 100" if word == "AND" else "a = {0} OR 10 // (a - {0}) > 100"
    root = planned(f"SELECT a FROM s {WINDOW} WHERE " + f" {word} ".join(test.format(i) for i in range(1000)))
    (predicate,) = [o.node.predicate for o in root.walk() if hasattr(o.node, "predicate")]
    rows = pa.record_batch(
        [pa.array([0, 1500, 999, None], pa.timestamp("us")), pa.array([0, 1500, 999, None], pa.int32())],
        names=["ts", "a"],
    )
    positions = keep(predicate, rows)
    assert positions is not None
    assert positions.to_pylist() == ([1] if word == "AND" else [0, 2])


def test_a_conjunction_is_one_call() -> None:
    root = planned(f"SELECT a FROM (SELECT a, c FROM s {WINDOW} WHERE a > 1 AND c > 2) AS x WHERE a < 3")
    (predicate,) = [o.node.predicate for o in root.walk() if hasattr(o.node, "predicate")]
    assert str(predicate) == "((a > 1) AND (c > CAST(2 AS DOUBLE)) AND (a < 3))"


TWICE = {
    "join": "SELECT x.a, y.c FROM {below} AS x JOIN {below} AS y ON x.a = y.a",
    "union": "SELECT a, c FROM {below} UNION ALL SELECT a, c FROM {below}",
    "aggregate": "SELECT x.a AS a, MAX(y.c) AS c FROM {below} AS x JOIN {below} AS y ON x.a = y.a GROUP BY x.a",
}


@pytest.mark.parametrize("shape", TWICE)
def test_a_level_of_views_adds_the_same_work_each_time(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0
    make, values = Planner._plan, Structural._values

    def counted(self: Planner, node: object) -> Operator:
        nonlocal steps
        steps += 1
        return make(self, node)  # type: ignore[arg-type]

    def counted_values(self: Structural) -> tuple[object, ...]:
        nonlocal steps
        steps += 1
        return values(self)

    monkeypatch.setattr(Planner, "_plan", counted)
    monkeypatch.setattr(Structural, "_values", counted_values)

    def work(count: int) -> int:
        nonlocal steps
        steps = 0
        fingerprint(list(planned(levels(count, TWICE[shape])).walk()))
        return steps

    work(2)
    few, more, most = work(3), work(6), work(9)
    assert most - more <= 1.5 * (more - few)


def test_the_two_uses_of_a_view_are_one_operator() -> None:
    few, more = (len(list(planned(levels(n, TWICE["join"])).walk())) for n in (4, 8))
    assert more <= 2 * few


def test_views_that_double_without_end_are_rejected() -> None:
    with pytest.raises(TransomError, match="once its views are put in"):
        planned(levels(20, TWICE["join"]))


def test_a_plan_of_too_many_operators_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other selections on each use leave nothing to share."""
    monkeypatch.setattr("transom.planner.plan.MAX_OPERATORS", 1_000)
    level = "SELECT a, c FROM {below} WHERE a > {i} EXCEPT ALL SELECT a, c FROM {below} WHERE c < {i}"
    with pytest.raises(UnsupportedError, match="more than 1,000 operators"):
        planned(levels(9, level))
