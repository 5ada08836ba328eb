"""Joins of joins become one join of all inputs, with all predicates over its columns."""

from __future__ import annotations

from tests.plan.rewrites.outline import bound, drawn, outline
from transom.core.schema import BOOLEAN
from transom.plan.algebra import Distinct, Filter, Join, Project, Relation, a_relation
from transom.plan.expression import Call, ColumnRef, Expression, columns_of
from transom.plan.rewrites.flatten_joins import flatten_joins


def relation(text: str) -> Relation:
    """What a query is made of, without its projection."""
    query, _ = bound(f"SELECT * FROM {text}")
    return a_relation(query.inputs[0] if isinstance(query, Project) else query)


S, T, R = relation("s [NOW]"), relation("t [ROWS 2]"), relation("r")


def equal(join: Join, left: int, right: int) -> Expression:
    columns = [ColumnRef(i, join.schema[i].type, f"{join.schema[i].name}#{i}") for i in (left, right)]
    return Call("=", tuple(columns), BOOLEAN)


def joined(*relations: Relation, on: tuple[int, int] | None = None) -> Join:
    bare = Join(relations)
    return bare if on is None else Join(relations, equal(bare, *on))


def test_predicates_move_with_their_columns() -> None:
    # ts, a, b, c of s are 0 to 3; ts, a, d of t follow; then a, e of r.
    nested = joined(S, joined(T, R, on=(1, 3)), on=(1, 5))
    flat = flatten_joins(nested)
    assert isinstance(flat, Join) and flat.relations == (S, T, R) and flat.schema == nested.schema
    assert outline(flat) == drawn("""
        join ((a#1 = a#5) AND (a#1 = a#3))
          [NOW]
            s
          [ROWS 2]
            t
          r
    """)
    assert isinstance(flat.predicate, Call)
    assert [columns_of(part) for part in flat.predicate.arguments] == [{1, 5}, {5, 7}]


def test_joins_on_both_sides_and_three_levels() -> None:
    deep = joined(joined(joined(R, R, on=(0, 2)), T), joined(S, R, on=(1, 4)))
    flat = flatten_joins(deep)
    assert isinstance(flat, Join) and flat.relations == (R, R, T, S, R) and flat.schema == deep.schema
    assert flat.predicate is not None and columns_of(flat.predicate) == {0, 2, 7 + 1, 7 + 4}


def test_without_predicates_there_is_none() -> None:
    flat = flatten_joins(joined(joined(R, R), R))
    assert flat == joined(R, R, R)


def test_what_stands_between_two_joins_keeps_them_apart() -> None:
    inner = joined(T, R, on=(1, 3))
    for between in (Distinct(inner), Filter(inner, equal(inner, 2, 4))):
        apart = joined(S, between)
        assert flatten_joins(apart) == apart


def test_joins_are_found_below_other_nodes() -> None:
    nested = joined(joined(R, R), T)
    assert flatten_joins(Distinct(nested)) == Distinct(joined(R, R, T))
    assert flatten_joins(joined(S, Distinct(nested))) == joined(S, Distinct(joined(R, R, T)))
