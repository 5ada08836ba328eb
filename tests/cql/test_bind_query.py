"""SELECT, FROM, joins, groups, set operations and sub-queries as plans."""

from __future__ import annotations

import pytest

from tests.cql.queries import bind, relation
from transom.core.schema import BIGINT, DOUBLE, HUGEINT, INTEGER, VARCHAR
from transom.plan.algebra import (
    Aggregate,
    Change,
    Distinct,
    Filter,
    Join,
    Node,
    OuterJoin,
    Project,
    SetOperation,
    TableScan,
    ToStream,
    Window,
)
from transom.plan.expression import Call, Exists, Expression, InQuery, OuterColumn, walk


def shape(node: Node) -> str:
    """The operators of a plan, without expressions: Filter(Window(StreamScan))."""
    inside = ", ".join(shape(child) for child in node.inputs)
    return type(node).__name__ + (f"({inside})" if inside else "")


def projected(text: str) -> list[str]:
    """The expressions of the projection at the top of a query."""
    bound = bind(text)
    assert isinstance(bound, Project)
    return [str(expression) for expression in bound.expressions]


# --- SELECT ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT * FROM S", ["A", "B"]),
        ("SELECT S.* FROM S", ["A", "B"]),
        ("SELECT *, ts FROM S", ["A", "B", "ts"]),
        ("SELECT * FROM S x, T y", ["A", "B", "A", "C"]),
        ("SELECT y.*, x.a FROM S x, T y", ["A", "C", "A"]),
        ("SELECT a, s.b FROM S", ["A", "B"]),
        ('SELECT a AS x, b y, b AS "Some Name" FROM S', ["x", "y", "Some Name"]),
        ("SELECT A  +  b /* why */ *2, Sum(B) FROM S GROUP BY A, B", ["a + b *2", "sum(b)"]),
        ("SELECT COUNT(*), Count( DISTINCT A ) FROM S", ["count(*)", "count( distinct a )"]),
        ("SELECT 1, 'X', NULL FROM S", ["1", "'x'", "null"]),
        ("SELECT a AS select, b AS from FROM S", ["select", "from"]),
        ("SELECT q.x, q.y FROM (SELECT A, B FROM S) AS q(x, y)", ["x", "y"]),
        ("SELECT * FROM S AS q(x, y)", ["x", "y"]),
        ("WITH w(x) AS (SELECT A FROM S), z AS (SELECT x + 1 AS y FROM w) SELECT * FROM z, w", ["y", "x"]),
    ],
)
def test_names_of_results(text: str, names: list[str]) -> None:
    assert bind(text).schema.names == names


def test_a_star_over_everything_is_no_projection() -> None:
    assert shape(bind("SELECT * FROM Events [ROWS 1]")) == "Window(StreamScan)"
    assert shape(bind("SELECT * FROM S [ROWS 1]")) == "Project(Window(StreamScan))"


def test_where_distinct_and_change() -> None:
    bound = bind("SELECT ISTREAM DISTINCT A FROM S WHERE B > 1")
    assert shape(bound) == "ToStream(Distinct(Project(Filter(Window(StreamScan)))))"
    assert isinstance(bound, ToStream) and bound.change is Change.ISTREAM
    assert bind("ISTREAM(SELECT DISTINCT A FROM S WHERE B > 1)") == bound


def test_a_null_alone_is_an_integer() -> None:
    assert bind("SELECT NULL AS n FROM S").schema.types == [INTEGER]


# --- joins -----------------------------------------------------------------------------------------------------------


def test_inner_joins_become_one() -> None:
    text = "SELECT 1 FROM S, T [NOW] JOIN R ON T.A = R.A CROSS JOIN (names n JOIN V ON n.A = V.A) WHERE S.A = T.A"
    bound = bind(text)
    assert shape(bound) == (
        "Project(Filter(Join(Window(StreamScan), Window(StreamScan), TableScan, TableScan, "
        "Project(Window(StreamScan)))))"
    )
    join = bound.inputs[0].inputs[0]
    assert isinstance(join, Join)
    # ts A B | ts A C | ts A E | A label | A B
    refs = [[node.index for node in walk(part) if not node.children] for part in join.predicate.children]  # type: ignore
    assert refs == [[4, 7], [9, 11]]


def test_join_on_many_conditions_is_not_deep() -> None:
    on = " AND ".join(f"S.A + {i} = T.A" for i in range(300))
    join = bind(f"SELECT 1 FROM S JOIN T ON {on}").inputs[0]
    assert isinstance(join, Join) and isinstance(join.predicate, Call)
    assert len(join.predicate.arguments) == 300


def test_outer_joins_keep_their_sides() -> None:
    bound = bind("SELECT S.A FROM S LEFT OUTER JOIN T ON S.A = T.A AND T.C > 1 FULL JOIN R ON R.A = T.A, names")
    assert shape(bound) == (
        "Project(Join(OuterJoin(OuterJoin(Window(StreamScan), Window(StreamScan)), TableScan), TableScan))"
    )
    outer = bound.inputs[0].inputs[0]
    assert isinstance(outer, OuterJoin) and outer.side == "full"
    assert isinstance(outer.left, OuterJoin) and outer.left.side == "left"


def test_an_outer_join_binds_tighter_than_a_comma() -> None:
    bound = bind("SELECT 1 FROM S, T RIGHT JOIN R ON T.A = R.A")
    assert shape(bound) == "Project(Join(Window(StreamScan), OuterJoin(Window(StreamScan), TableScan)))"
    outer = bound.inputs[0].inputs[1]
    assert isinstance(outer, OuterJoin)
    assert [node.index for node in walk(outer.predicate) if not node.children] == [1, 4]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kind", "merged"),
    [("JOIN", "A"), ("LEFT JOIN", "A"), ("RIGHT JOIN", "A"), ("FULL JOIN", "coalesce(A, A)")],
)
def test_using_makes_one_column_of_two(kind: str, merged: str) -> None:
    text = f"SELECT * FROM S {kind} T USING (a)"
    assert bind(text).schema.names == ["A", "B", "C"]
    assert projected(text)[0] == merged
    assert bind(f"SELECT S.A, T.A, A FROM S {kind} T USING (a)").schema.names == ["A", "A", "A"]
    assert bind(f"SELECT T.* FROM S {kind} T USING (a)").schema.names == ["A", "C"]


def test_using_takes_the_side_that_is_never_missing() -> None:
    indexes = {}
    for kind in ("LEFT", "RIGHT"):
        bound = bind(f"SELECT A FROM S {kind} JOIN T USING (A)")
        assert isinstance(bound, Project)
        indexes[kind] = bound.expressions[0].index  # type: ignore[attr-defined]
    assert indexes == {"LEFT": 1, "RIGHT": 4}


def test_using_three_times() -> None:
    bound = bind("SELECT A, B, C, E FROM S JOIN T USING (A) JOIN R USING (A)")
    assert shape(bound).startswith("Project(Join(Window(StreamScan), Window(StreamScan), TableScan")


def test_bracketed_queries_and_inputs_in_from() -> None:
    assert shape(bind("SELECT A FROM ((SELECT A FROM S))")) == "Project(Window(StreamScan))"
    assert shape(bind("SELECT x.A FROM ((SELECT A FROM S) AS x JOIN R ON x.A = R.A)")).startswith(
        "Project(Join(Project("
    )
    assert shape(bind("SELECT 1 FROM (ISTREAM(SELECT A FROM S) [NOW] AS x CROSS JOIN names)")).startswith(
        "Project(Join("
    )
    union = bind("SELECT * FROM ((SELECT A FROM S) UNION (SELECT A FROM T))")
    assert isinstance(union, SetOperation)


# --- groups ----------------------------------------------------------------------------------------------------------


def test_expressions_over_keys_and_aggregates() -> None:
    bound = bind("SELECT A + 1, SUM(B) / COUNT(*) + 1 AS q FROM S GROUP BY A HAVING MAX(B) > 3")
    assert isinstance(bound, Project)
    filtered = bound.input
    assert isinstance(filtered, Filter)
    groups = filtered.input
    assert isinstance(groups, Aggregate) and groups.grouped
    assert [str(key) for key in groups.keys] == ["A"]
    assert [str(call) for call in groups.calls] == ["sum(B)", "count(*)", "max(B)"]
    assert groups.schema.types == [INTEGER, HUGEINT, BIGINT, INTEGER]
    assert bound.schema.types == [INTEGER, DOUBLE]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT A + B, COUNT(*) FROM S GROUP BY A + B",
        "SELECT A + B, COUNT(*) FROM S GROUP BY 1",
        "SELECT A + B AS k, COUNT(*) FROM S GROUP BY k",
        "SELECT A + B AS k, COUNT(*) FROM S GROUP BY K, a+b, 1",
    ],
)
def test_ways_to_name_a_key(text: str) -> None:
    (groups,) = bind(text).inputs if isinstance(bind(text), Project) else (bind(text),)
    assert isinstance(groups, Aggregate)
    assert [str(key) for key in groups.keys] == ["(A + B)"]


def test_a_key_within_an_expression() -> None:
    assert projected("SELECT (A + B) * 2, upper('x') FROM S GROUP BY A + B") == ["((A + B) * 2)", "upper('x')"]


def test_a_column_of_from_comes_before_an_alias() -> None:
    bound = bind("SELECT B AS A, COUNT(*) FROM S GROUP BY A, B")
    groups = bound.inputs[0]
    assert isinstance(groups, Aggregate)
    assert [key.name for key in groups.keys] == ["A", "B"]  # type: ignore[attr-defined]


def test_having_takes_an_alias() -> None:
    bound = bind("SELECT A, COUNT(*) AS n FROM S GROUP BY A HAVING n > 1")
    assert "Filter(Aggregate" in shape(bound)


def test_a_global_aggregate_is_not_grouped() -> None:
    groups = bind("SELECT COUNT(*) AS n FROM S")
    while not isinstance(groups, Aggregate):
        (groups,) = groups.inputs
    assert not groups.grouped and groups.keys == ()


def test_having_alone_makes_one_group() -> None:
    assert shape(bind("SELECT 1 FROM S HAVING TRUE")) == "Project(Filter(Aggregate(Window(StreamScan))))"


@pytest.mark.parametrize("function", ["COUNT", "SUM", "AVG", "MIN", "MAX"])
def test_distinct_aggregates(function: str) -> None:
    (groups,) = bind(f"SELECT {function}(DISTINCT B) AS x FROM S").inputs
    assert isinstance(groups, Aggregate) and groups.calls[0].distinct


def test_the_same_aggregate_is_computed_once() -> None:
    (groups,) = bind("SELECT SUM(B), SUM(b) + 1, sum(S.B) FROM S").inputs
    assert isinstance(groups, Aggregate) and len(groups.calls) == 1


# --- set operations --------------------------------------------------------------------------------------------------


def operations(node: Node) -> object:
    if isinstance(node, SetOperation):
        return (node.kind + (" all" if node.all else ""), operations(node.left), operations(node.right))
    return node.schema.names[0]


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("{a} UNION {b}", ("union", "a", "b")),
        ("{a} UNION ALL {b}", ("union all", "a", "b")),
        ("{a} EXCEPT DISTINCT {b}", ("except", "a", "b")),
        ("{a} INTERSECT ALL {b}", ("intersect all", "a", "b")),
        ("{a} UNION {b} EXCEPT {c}", ("except", ("union", "a", "b"), "c")),
        ("{a} UNION {b} INTERSECT {c}", ("union", "a", ("intersect", "b", "c"))),
        ("{a} INTERSECT {b} UNION {c}", ("union", ("intersect", "a", "b"), "c")),
        ("{a} UNION ({b} EXCEPT {c})", ("union", "a", ("except", "b", "c"))),
        ("({a} UNION {b}) INTERSECT {c}", ("intersect", ("union", "a", "b"), "c")),
        ("({a}) UNION (({b}))", ("union", "a", "b")),
        ("WITH w AS ({a} UNION {b}) SELECT * FROM w", ("union", "a", "b")),
    ],
)
def test_set_operations(text: str, tree: object) -> None:
    selects = {name: f"SELECT A AS {name} FROM S" for name in "abc"}
    assert operations(bind(text.format(**selects))) == tree


def test_sides_of_a_set_operation_meet_in_one_type() -> None:
    bound = bind("SELECT A, NULL FROM S UNION SELECT rate, name FROM Events")
    assert isinstance(bound, SetOperation)
    assert bound.schema.types == [DOUBLE, VARCHAR]
    assert bound.left.schema.names == ["A", "null"]


# --- sub-queries -----------------------------------------------------------------------------------------------------


def predicate(text: str) -> Expression:
    at = bind(text)
    while not isinstance(at, Filter):
        (at,) = at.inputs
    return at.predicate


def outer_columns(query: Node) -> list[tuple[str, int]]:
    columns: list[tuple[str, int]] = []
    if isinstance(query, Filter):
        for part in walk(query.predicate):
            if isinstance(part, OuterColumn):
                columns.append((part.name, part.depth))
            if isinstance(part, (Exists, InQuery)):
                columns += outer_columns(part.query)
    return columns + [item for child in query.inputs for item in outer_columns(child)]


def test_exists_sees_the_row_around() -> None:
    bound = predicate("SELECT A FROM S WHERE EXISTS (SELECT * FROM T WHERE T.A = S.A AND B < C)")
    assert isinstance(bound, Exists)
    assert sorted(outer_columns(bound.query)) == [("A", 1), ("B", 1)]


def test_depth_counts_sub_queries_not_brackets() -> None:
    bound = predicate(
        "SELECT A FROM S WHERE EXISTS (SELECT 1 FROM (SELECT A FROM T WHERE C = S.B) x WHERE EXISTS "
        "(SELECT 1 FROM R WHERE R.A = x.A AND R.E = S.A))"
    )
    assert isinstance(bound, Exists)
    assert sorted(outer_columns(bound.query)) == [("A", 1), ("A", 2), ("B", 1)]


def test_not_in_a_query() -> None:
    bound = predicate("SELECT A FROM S WHERE A NOT IN (SELECT C FROM T)")
    assert isinstance(bound, Call) and bound.function == "not"
    assert isinstance(bound.arguments[0], InQuery)


def test_in_a_query_compares_in_one_type() -> None:
    bound = predicate("SELECT A FROM S WHERE A IN (SELECT big FROM Events)")
    assert isinstance(bound, InQuery)
    assert bound.operand.type == BIGINT == bound.query.schema[0].type
    other = predicate("SELECT 1 FROM Events WHERE big IN (SELECT A FROM S)")
    assert isinstance(other, InQuery)
    assert other.query.schema.types == [BIGINT]


def test_named_queries_hide_streams() -> None:
    assert bind("WITH S AS (SELECT A AS only FROM S) SELECT * FROM S").schema.names == ["only"]
    assert shape(bind("WITH x AS (ISTREAM(SELECT A FROM S)) SELECT A FROM x [ROWS 2]")).startswith("Window(ToStream(")


def test_views_and_tables() -> None:
    assert shape(relation("SELECT * FROM V")) == "Project(Window(StreamScan))"
    assert isinstance(relation("SELECT A, label FROM names"), TableScan)
    assert isinstance(relation("SELECT DISTINCT A, label FROM names"), Distinct)
    assert isinstance(relation("SELECT * FROM News"), Window)
