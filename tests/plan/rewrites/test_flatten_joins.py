"""Joins of joins become one join of all inputs, with all predicates over its columns."""

from __future__ import annotations

from tests.plan.rewrites.outline import bound, drawn, outline
from transom.plan.algebra import Join, Node
from transom.plan.expression import columns_of
from transom.plan.rewrites.flatten_joins import flatten_joins


def joins(node: Node) -> list[Join]:
    return [found for child in node.inputs for found in joins(child)] + ([node] if isinstance(node, Join) else [])


def test_written_joins_become_one() -> None:
    text = "SELECT s.a FROM s [NOW] JOIN t [NOW] ON s.a = t.a JOIN r ON r.a = t.a AND r.e > s.b"
    assert len(joins(bound(text)[0])) == 2
    flat = flatten_joins(bound(text)[0])
    (join,) = joins(flat)
    assert [type(relation).__name__ for relation in join.relations] == ["Window", "Window", "TableScan"]
    assert outline(flat) == drawn("""
        project a
          join (((a = a) AND (e > b)) AND (a = a))
            [NOW]
              s
            [NOW]
              t
            r
    """)
    # ts, a, b, c of s are 0 to 3; ts, a, d of t 4 to 6; a, e of r 7 and 8.
    assert join.predicate is not None and columns_of(join.predicate) == {1, 2, 5, 7, 8}


def test_a_join_on_the_right_moves_its_columns_by_what_stands_before_it() -> None:
    inner = "SELECT t.a, t.d, r.e FROM t [NOW], r WHERE t.a = r.a"
    nested = Join(
        (_relation("SELECT * FROM r"), _relation("SELECT * FROM t [NOW], r WHERE t.d = r.e")), None
    )
    (join,) = joins(flatten_joins(nested))
    assert len(join.relations) == 3
    assert join.predicate is not None and columns_of(join.predicate) == {2 + 2, 2 + 3 + 1}
    projected, _ = bound(f"SELECT x.a FROM r, ({inner}) AS x")
    assert flatten_joins(projected) == projected, "a projection is in between"


def test_three_levels_and_no_predicate() -> None:
    one = _relation("SELECT * FROM r")
    deep = Join((Join((Join((one, one)), one)), one))
    flat = flatten_joins(deep)
    assert isinstance(flat, Join) and flat.relations == (one,) * 4 and flat.predicate is None
    assert flat.schema == deep.schema


def _relation(text: str) -> Join:
    """What stands below the projection of a query."""
    (below,) = bound(text)[0].inputs
    from transom.plan.algebra import Filter

    if isinstance(below, Filter):
        join = below.input
        assert isinstance(join, Join)
        return Join(join.relations, below.predicate)
    return below  # type: ignore[return-value]
