"""The evaluator as a whole, on algebra built by hand, against answers worked out by hand."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from typing import Literal as OneOf

import pyarrow as pa
import pytest

from transom.core.errors import EvaluationError
from transom.core.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    REAL,
    TIMESTAMP,
    VARCHAR,
    Schema,
)
from transom.plan.algebra import (
    Aggregate,
    AggregateCall,
    AntiJoin,
    Change,
    Distinct,
    Filter,
    Join,
    Node,
    OuterJoin,
    Project,
    Relation,
    SemiJoin,
    SetOperation,
    StreamScan,
    TableScan,
    ToStream,
    Window,
    WindowSpec,
)
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition, TimeColumn
from transom.plan.expression import Call, Case, Cast, ColumnRef, Exists, Expression, InQuery, Literal, OuterColumn
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import RelationHistory, StreamHistory, canonical

# Streams s and t have the columns (ts, a INTEGER, x); instants are plain microseconds.
A = ColumnRef(1, INTEGER, "a")
UNBOUNDED, NOW = WindowSpec(), WindowSpec(now=True)


def schema(x: pa.DataType) -> Schema:
    return Schema.of(("ts", TIMESTAMP), ("a", INTEGER), ("x", x))


def catalogue(x: pa.DataType = VARCHAR, **options: int) -> Catalogue:
    streams = {name: StreamDefinition(name, schema(x), TimeColumn("ts", 0)) for name in ("s", "t")}
    return Catalogue(relations=dict(streams), options=dict(options))


def window(spec: WindowSpec, name: str = "s", x: pa.DataType = VARCHAR) -> Window:
    return Window(StreamScan(name, schema(x)), spec)


def a_and_x(relation: Relation, x: pa.DataType = VARCHAR) -> Project:
    return Project(relation, (A, ColumnRef(2, x, "x")), ("a", "x"))


def moment(micros: int) -> datetime:
    return datetime(1970, 1, 1) + timedelta(microseconds=micros)


def rows(*found: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return [(moment(t), *values) for t, *values in found]


def answer(query: Node, where: Catalogue, **inputs: list[tuple[Any, ...]]) -> dict[int, list[tuple[Any, ...]]]:
    """Instant -> rows: of a relation the snapshot from there on, sorted by text; of a stream its rows."""
    history = evaluate(query, where, inputs)
    if isinstance(history, StreamHistory):
        return {t: list(found) for t, found in history.points}
    assert isinstance(history, RelationHistory)
    return {t: sorted(bag.elements(), key=repr) for t, bag in history.points}


def call(function: str, *arguments: Expression, gives: pa.DataType = BOOLEAN) -> Call:
    return Call(function, arguments, gives)


def test_a_row_that_expires_as_another_arrives() -> None:
    query = a_and_x(window(WindowSpec(range=10)))
    assert answer(query, catalogue(), s=rows((0, 1, "p"), (10, 2, "q"))) == {0: [(1, "p")], 10: [(2, "q")], 20: []}


def test_equal_neighbours_are_one() -> None:
    query = a_and_x(window(WindowSpec(range=10)))
    assert answer(query, catalogue(), s=rows((0, 1, "p"), (10, 1, "p"))) == {0: [(1, "p")], 20: []}


def test_instants_before_the_epoch() -> None:
    query = a_and_x(window(WindowSpec(range=10)))
    assert answer(query, catalogue(), s=rows((-25, 1, "p"))) == {-25: [(1, "p")], -15: []}


def count(relation: Relation) -> Aggregate:
    return Aggregate(relation, (), (AggregateCall("count", None, BIGINT),), ("n",), False)


def test_a_global_aggregate_has_its_row_from_the_origin_on() -> None:
    query = count(window(WindowSpec(range=10)))
    given = rows((20, 1, "p"))
    assert answer(query, catalogue(), s=given) == {20: [(1,)], 30: [(0,)]}
    assert answer(query, catalogue(origin=5), s=given) == {5: [(0,)], 20: [(1,)], 30: [(0,)]}
    assert answer(query, catalogue(origin=5, tick=10), s=given) == {0: [(0,)], 20: [(1,)], 30: [(0,)]}


def test_the_origin_is_the_first_admitted_instant_of_any_input() -> None:
    query = SetOperation("union", True, count(window(NOW)), count(window(NOW, "t")))
    assert answer(query, catalogue(), s=rows((7, 1, "p")), t=rows((3, 1, "p"))) == {
        3: [(0,), (1,)],
        4: [(0,), (0,)],
        7: [(0,), (1,)],
        8: [(0,), (0,)],
    }


def test_without_an_admitted_row_there_is_no_time() -> None:
    query = count(window(NOW))
    assert answer(query, catalogue()) == {}
    assert answer(query, catalogue(), s=[(None, 1, "p")]) == {}
    assert answer(ToStream(query, Change.ISTREAM), catalogue()) == {}
    assert answer(query, catalogue(origin=5)) == {5: [(0,)]}


def test_late_and_rejected_rows_are_reported() -> None:
    history = evaluate(window(NOW), catalogue(), {"s": [*rows((5, 1, "p"), (4, 1, "p")), (None, 1, "p")]})
    assert (dict(history.late), dict(history.rejected)) == ({"s": 1}, {"s": 1})


@pytest.mark.parametrize(
    ("type_", "values", "total", "average"),
    [
        (DOUBLE, [1e16, 1.0, -1e16], 1.0, 1 / 3),
        (DOUBLE, [None, None], None, None),
        (DOUBLE, [float("inf"), float("-inf")], float("nan"), float("nan")),
        (REAL, [0.5, 0.25], 0.75, 0.375),
        (BIGINT, [2**63 - 1, 2**63 - 1, 2**63 - 1], 3 * (2**63 - 1), 9223372036854775807.0),
        (INTEGER, [1, None, 2], 3, 1.5),
        (pa.decimal128(4, 2), [Decimal("0.10"), Decimal("0.25")], Decimal("0.35"), 0.175),
    ],
)
def test_sum_and_avg(type_: pa.DataType, values: list[Any], total: Any, average: Any) -> None:
    x = ColumnRef(2, type_, "x")
    sum_type = (
        DOUBLE if pa.types.is_floating(type_) else HUGEINT if pa.types.is_integer(type_) else pa.decimal128(38, 2)
    )
    calls = (AggregateCall("sum", x, sum_type), AggregateCall("avg", x, DOUBLE))
    query = Aggregate(window(UNBOUNDED, x=type_), (), calls, ("total", "average"), False)
    found = answer(query, catalogue(type_), s=rows(*((0, 1, value) for value in values)))
    assert found == {0: [canonical((total, average))]}


def test_distinct_sums_see_each_number_once() -> None:
    x = ColumnRef(2, DOUBLE, "x")
    calls = (
        AggregateCall("sum", x, DOUBLE, distinct=True),
        AggregateCall("avg", x, DOUBLE, distinct=True),
        AggregateCall("count", x, BIGINT, distinct=True),
    )
    query = Aggregate(window(UNBOUNDED, x=DOUBLE), (), calls, ("s", "v", "n"), False)
    given = rows((0, 1, 0.5), (0, 1, 0.5), (0, 1, 2.5), (0, 1, 0.0), (0, 1, -0.0), (0, 1, None))
    assert answer(query, catalogue(DOUBLE), s=given) == {0: [(3.0, 1.0, 3)]}


def test_groups_take_nulls_and_nans_together() -> None:
    x = ColumnRef(2, DOUBLE, "x")
    query = Aggregate(window(UNBOUNDED, x=DOUBLE), (x,), (AggregateCall("count", None, BIGINT),), ("x", "n"), True)
    nan = float("nan")
    given = rows((0, 1, nan), (0, 1, nan), (0, 1, None), (0, 1, None), (0, 1, 0.0), (0, 1, -0.0), (0, 1, 1.0))
    (found,) = answer(query, catalogue(DOUBLE), s=given).values()
    assert sorted(found, key=repr) == sorted(
        [canonical(r) for r in [(nan, 2), (None, 2), (0.0, 2), (1.0, 1)]], key=repr
    )


def test_a_constant_key_is_a_key() -> None:
    query = Aggregate(window(NOW), (Literal(7, INTEGER),), (AggregateCall("count", None, BIGINT),), ("k", "n"), True)
    assert answer(query, catalogue(), s=rows((0, 1, "p"), (0, 2, "q"))) == {0: [(7, 2)], 1: []}


def joined(*specs: WindowSpec) -> Project:
    condition = call("=", A, ColumnRef(4, INTEGER, "a"))
    join = Join((window(specs[0]), window(specs[1], "t")), condition)
    return Project(join, (ColumnRef(2, VARCHAR, "x"), ColumnRef(5, VARCHAR, "x")), ("x", "y"))


def test_null_keys_join_nothing() -> None:
    found = answer(
        joined(UNBOUNDED, UNBOUNDED),
        catalogue(),
        s=rows((0, 1, "p"), (1, None, "q")),
        t=rows((2, None, "r"), (3, 1, "s")),
    )
    assert found == {3: [("p", "s")]}


@pytest.mark.parametrize(
    ("dead_letters", "last"),
    [
        ("left", [("p", "r"), ("q", None)]),
        ("right", [("p", "r"), (None, "s")]),
        ("full", [("p", "r"), ("q", None), (None, "s")]),
    ],
)
def test_outer_joins(dead_letters: OneOf["left", "right", "full"], last: list[tuple[Any, ...]]) -> None:
    condition = call("=", A, ColumnRef(4, INTEGER, "a"))
    join = OuterJoin(window(UNBOUNDED), window(UNBOUNDED, "t"), dead_letters, condition)
    query = Project(join, (ColumnRef(2, VARCHAR, "x"), ColumnRef(5, VARCHAR, "x")), ("x", "y"))
    found = answer(query, catalogue(), s=rows((0, 1, "p"), (0, None, "q")), t=rows((2, 1, "r"), (2, None, "s")))
    assert found[2] == sorted(last, key=repr)


@pytest.mark.parametrize(
    ("kind", "all_", "expected"),
    [
        ("union", True, [1, 1, 1, 1, 1, 2, None, None]),
        ("union", False, [1, 2, None]),
        ("intersect", True, [1, 1, None]),
        ("intersect", False, [1, None]),
        ("except", True, [1]),
        ("except", False, []),
    ],
)
def test_set_operations(kind: OneOf["union", "intersect", "except"], all_: bool, expected: list[int | None]) -> None:
    left, right = (Project(window(UNBOUNDED, name), (A,), ("a",)) for name in ("s", "t"))
    given = {
        "s": rows((0, 1, ""), (0, 1, ""), (0, 1, ""), (0, None, "")),
        "t": rows((0, 1, ""), (0, 1, ""), (0, 2, ""), (0, None, "")),
    }
    found = answer(SetOperation(kind, all_, left, right), catalogue(), **given).get(0, [])
    assert [row[0] for row in found] == expected


def test_distinct() -> None:
    query = Distinct(Project(window(WindowSpec(range=10)), (A,), ("a",)))
    assert answer(query, catalogue(), s=rows((0, 1, "p"), (5, 1, "q"))) == {0: [(1,)], 15: []}


def sub_query(predicate: Expression) -> Relation:
    return Project(Filter(window(UNBOUNDED, "t"), predicate), (A,), ("a",))


def test_exists_looks_at_the_row_around_it() -> None:
    inner = sub_query(call("=", A, OuterColumn(1, INTEGER, "a")))
    query = a_and_x(Filter(window(UNBOUNDED), Exists(inner)))
    given = {"s": rows((0, 1, "p"), (0, 2, "q"), (0, None, "r")), "t": rows((1, 2, ""), (2, None, ""))}
    assert answer(query, catalogue(), **given) == {1: [(2, "q")]}


def test_not_exists_of_two_levels() -> None:
    # No t with t.a = s.a for which there is another s with the same a and a different x.
    twin = Filter(
        window(UNBOUNDED),
        call(
            "and",
            call("=", A, OuterColumn(1, INTEGER, "a")),
            call("<>", ColumnRef(2, VARCHAR, "x"), OuterColumn(2, VARCHAR, "x", 2)),
        ),
    )
    inner = sub_query(call("and", call("=", A, OuterColumn(1, INTEGER, "a")), Exists(twin)))
    query = a_and_x(Filter(window(UNBOUNDED), call("not", Exists(inner))))
    given = {"s": rows((0, 1, "p"), (0, 2, "q"), (0, 2, "r")), "t": rows((1, 1, ""), (1, 2, ""))}
    assert answer(query, catalogue(), **given) == {0: [(1, "p"), (2, "q"), (2, "r")], 1: [(1, "p")]}


def test_in_has_three_values() -> None:
    # 1 NOT IN (2) is true; 1 NOT IN (2, NULL) is unknown.
    query = a_and_x(Filter(window(UNBOUNDED), call("not", InQuery(A, sub_query(Literal(True, BOOLEAN))))))
    given = {"s": rows((0, 1, "p")), "t": rows((1, 2, ""), (2, None, ""))}
    assert answer(query, catalogue(), **given) == {0: [(1, "p")], 2: []}


@pytest.mark.parametrize(("kind", "left_over"), [(SemiJoin, "0.0"), (AntiJoin, "-0.0")])
def test_a_join_of_rows_with_a_partner_tells_zeros_apart(kind: type[SemiJoin], left_over: str) -> None:
    x = ColumnRef(2, DOUBLE, "x")
    positive = call(">", call("/", Literal(1.0, DOUBLE), x, gives=DOUBLE), Literal(0.0, DOUBLE))
    joined = kind(window(UNBOUNDED, "s", DOUBLE), window(UNBOUNDED, "t", DOUBLE), positive)
    given = {"s": rows((0, 1, 0.0), (0, 1, -0.0)), "t": rows((0, 1, 1.0), (0, 1, 2.0))}
    query = Project(joined, (Cast(x, VARCHAR),), ("x",))
    assert answer(query, catalogue(DOUBLE), **given) == {0: [(left_over,)]}


def test_istream_and_dstream_cancel_a_row_that_leaves_as_an_equal_one_enters() -> None:
    relation = Project(window(WindowSpec(rows=1)), (A,), ("a",))
    given = rows((0, 1, ""), (5, 1, ""), (9, 2, ""))
    assert answer(ToStream(relation, Change.ISTREAM), catalogue(), s=given) == {0: [(1,)], 9: [(2,)]}
    assert answer(ToStream(relation, Change.DSTREAM), catalogue(), s=given) == {9: [(1,)]}
    assert answer(ToStream(relation, Change.RSTREAM), catalogue(), s=given) == {0: [(1,)], 9: [(2,)]}


def test_rows_of_one_instant_come_in_the_order_of_their_values() -> None:
    query = ToStream(a_and_x(window(NOW)), Change.ISTREAM)
    given = rows((0, 2, "b"), (0, None, "z"), (0, 2, None), (0, 2, "B"))
    assert answer(query, catalogue(), s=given) == {0: [(None, "z"), (2, None), (2, "B"), (2, "b")]}


def test_a_stream_made_so_can_be_windowed_again() -> None:
    # The counts 1, 2, 1, 0 come out at 0, 5, 10, 15, and the last two of them are alive: {1, 2} from 5 to 15.
    counts = ToStream(count(window(WindowSpec(range=10))), Change.ISTREAM)
    found = answer(Window(counts, WindowSpec(rows=2)), catalogue(), s=rows((0, 1, ""), (5, 1, "")))
    assert found == {0: [(1,)], 5: [(1,), (2,)], 15: [(0,), (1,)]}


def test_values_go_around_through_a_stream_unchanged() -> None:
    types = [HUGEINT, pa.decimal128(5, 2), DOUBLE, VARCHAR, DATE, TIMESTAMP, BOOLEAN]
    values = [2**70, Decimal("1.50"), float("nan"), "it's \x00 ü", date(1, 1, 1), moment(-1), True]
    literals = tuple(Literal(value, type_) for value, type_ in zip(values, types, strict=True))
    made = Project(window(NOW), literals, tuple("abcdefg"))
    assert answer(Window(ToStream(made, Change.ISTREAM), NOW), catalogue(), s=rows((0, 1, ""))) == {
        0: [canonical(values)],
        1: [],
    }


SLIDE = WindowSpec(range=10, slide=5)


def test_rstream_beside_a_window_that_does_not_slide_speaks_at_changes() -> None:
    both = SetOperation("union", True, Project(window(SLIDE), (A,), ("a",)), Project(window(NOW, "t"), (A,), ("a",)))
    found = answer(ToStream(both, Change.RSTREAM), catalogue(), s=rows((3, 1, "")), t=rows((12, 2, "")))
    assert found == {5: [(1,)], 12: [(1,), (2,)], 13: [(1,)]}


def test_rstream_over_slides_lasts_as_long_as_the_rows_of_the_query() -> None:
    counted = ToStream(count(window(SLIDE)), Change.RSTREAM)
    numbers = Project(Window(counted, NOW), (ColumnRef(0, BIGINT, "n"),), ("n",))
    marks = Project(window(NOW, "t"), (Cast(A, BIGINT),), ("n",))
    query = ToStream(SetOperation("union", True, numbers, marks), Change.ISTREAM)
    found = answer(query, catalogue(), s=rows((3, 1, "")), t=rows((27, 100, "")))
    assert found == {5: [(1,)], 10: [(1,)], 15: [(0,)], 20: [(0,)], 25: [(0,)], 27: [(100,)]}


TABLE = Schema.of(("k", INTEGER), ("name", VARCHAR))


def test_a_static_table_is_alive_from_the_origin_on() -> None:
    where = catalogue()
    where.relations["r"] = TableDefinition("r", TABLE)
    condition = call("=", A, ColumnRef(3, INTEGER, "k"))
    query = Project(Join((window(NOW), TableScan("r", TABLE)), condition), (ColumnRef(4, VARCHAR, "name"),), ("name",))
    assert answer(query, where, s=rows((5, 1, "")), r=[(1, "one"), (2, "two")]) == {5: [("one",)], 6: []}


def test_tables_alone_begin_at_instant_zero() -> None:
    where = catalogue()
    where.relations["r"] = TableDefinition("r", TABLE)
    assert answer(TableScan("r", TABLE), where, r=[(1, "one")]) == {0: [(1, "one")]}


def test_a_changing_table_has_no_change_column() -> None:
    columns = Schema.of(("ts", TIMESTAMP), ("change", VARCHAR), ("a", INTEGER))
    definition = TableDefinition("r", columns, TimeColumn("ts", 0), change_column="change")
    where = Catalogue(relations={"r": definition})
    query = Project(TableScan("r", definition.relation_columns), (A,), ("a",))
    assert answer(query, where, r=rows((1, "+", 7), (4, "-", 7))) == {1: [(7,)], 4: []}


def test_a_filter_above_a_row_count_window_does_not_count_for_it() -> None:
    query = a_and_x(Filter(window(WindowSpec(rows=1)), call("=", A, Literal(1, INTEGER))))
    assert answer(query, catalogue(), s=rows((0, 1, "p"), (5, 2, "q"))) == {0: [(1, "p")], 5: []}


def test_a_branch_not_taken_is_not_evaluated() -> None:
    number = Case(
        (call("=", A, Literal(1, INTEGER)),), (Cast(ColumnRef(2, VARCHAR, "x"), INTEGER),), Literal(0, INTEGER)
    )
    query = Project(window(NOW), (number,), ("n",))
    assert answer(query, catalogue(), s=rows((0, 1, "12"), (1, 2, "no"))) == {0: [(12,)], 1: [(0,)], 2: []}


def test_an_expression_that_fails_says_when() -> None:
    query = Project(window(NOW), (Cast(ColumnRef(2, VARCHAR, "x"), INTEGER),), ("n",))
    with pytest.raises(EvaluationError, match=r"failed at 1970-01-01 00:00:00\.000007"):
        evaluate(query, catalogue(), {"s": rows((3, 1, "4"), (7, 1, "no"))})
    zero = Project(window(NOW), (call("//", A, Literal(0, INTEGER), gives=INTEGER),), ("n",))
    with pytest.raises(EvaluationError, match="Division by zero"):
        evaluate(zero, catalogue(), {"s": rows((3, 1, "4"))})
