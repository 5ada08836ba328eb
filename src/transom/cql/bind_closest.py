"""ASOF JOIN: each row of the left beside the closest row of the right.

    a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts

is  a JOIN LATERAL (SELECT * FROM b WHERE a.k = b.k AND a.ts >= b.ts ORDER BY b.ts DESC LIMIT 1) ON TRUE. It is a join
of relations: a pair goes when its rows do, or when a closer row comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sqlglot import exp

from transom.cql.context import Context
from transom.plan.algebra import Filter, Lateral, Relation, SortKey, TopN
from transom.plan.expression import Call, ColumnRef, Expression, OuterColumn, columns_of, conjunction, transform, walk

_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EXAMPLE: Final = "write a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts"


def closest(
    left: Relation, right: Relation, conditions: Sequence[Expression], outer: bool, node: exp.Join, context: Context
) -> Lateral:
    """The join, given its conditions over the columns of both, of which one says what is close."""
    width = len(left.schema)
    keys = [key for condition in conditions if (key := _order_of(condition, width)) is not None]
    if len(keys) != 1:
        what = "ASOF JOIN has one comparison with <, <=, > or >=, of a value of the left with a column of the right"
        raise context.source.error(what, node, _EXAMPLE)
    if any(isinstance(part, OuterColumn) for condition in conditions for part in walk(condition)):
        remedy = "compare it in WHERE, or put the ASOF JOIN into FROM of the query around"
        raise context.source.error("the condition of an ASOF JOIN reads a column of the query around", node, remedy)

    def seen_from_right(part: Expression) -> Expression:
        if not isinstance(part, ColumnRef):
            return part
        if part.index < width:
            return OuterColumn(part.index, part.type, part.name, 1)
        return ColumnRef(part.index - width, part.type, part.name)

    met = conjunction(tuple(transform(condition, seen_from_right) for condition in conditions))
    assert met is not None
    best = TopN(Filter(right, met), (), (keys[0],), most=1)
    return Lateral(left, best, None, outer, excerpt=context.source.excerpt(node))


def at_least(equality: Expression) -> Expression:
    """The last column of USING is that which says what is close: DuckDB takes it for a.ts >= b.ts."""
    assert isinstance(equality, Call)
    return replace(equality, function=">=")


def _order_of(condition: Expression, width: int) -> SortKey | None:
    """By which column of the right a comparison orders its rows, the closest first."""
    if not isinstance(condition, Call) or condition.function not in _TURNED:
        return None
    (one, other), function = condition.arguments, condition.function
    if isinstance(one, ColumnRef) and one.index >= width:
        one, other, function = other, one, _TURNED[function]
    read = columns_of(one)
    if not isinstance(other, ColumnRef) or other.index < width or not read or max(read) >= width:
        return None
    return SortKey(other.index - width, function in (">", ">="), False)
