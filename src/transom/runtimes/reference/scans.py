"""What a plan is made of: its sub-plans, those of sub-queries in expressions included."""

from __future__ import annotations

from collections.abc import Iterator

from transom.plan.algebra import (
    Aggregate,
    Filter,
    Join,
    Lateral,
    Node,
    OuterJoin,
    Project,
    SemiJoin,
    StreamScan,
    TableScan,
    Unnest,
)
from transom.plan.expression import Expression, SubQuery, walk


def scans(node: Node) -> Iterator[StreamScan | TableScan]:
    """Every scan of a declared stream or table in the plan."""
    if isinstance(node, StreamScan | TableScan):
        yield node
    for below in node.inputs:
        yield from scans(below)
    for expression in _expressions(node):
        for part in walk(expression):
            if isinstance(part, SubQuery):
                yield from scans(part.query)


def _expressions(node: Node) -> tuple[Expression, ...]:
    match node:
        case Filter() | OuterJoin():
            return (node.predicate,)
        case Join() | SemiJoin() | Lateral():
            return () if node.predicate is None else (node.predicate,)
        case Unnest():
            return (node.array,)
        case Project():
            return node.expressions
        case Aggregate():
            return (*node.keys, *(each for call in node.calls for each in call.expressions))
    return ()
