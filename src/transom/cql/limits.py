"""A bound on what a query may grow to once its views, named queries and repeated operands are put in.

Views and operands are shared while they are bound, but everything behind the binder walks plans and expressions as
trees, by recursion: a view that joins a view twice that joins a view twice .. doubles with every step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp

from transom.cql.query_text import QueryText
from transom.plan.algebra import Aggregate, Filter, Join, Lateral, Node, OuterJoin, Over, Project, SemiJoin, Unnest
from transom.plan.expression import Expression, SubQuery, walk

MAX_DEPTH: Final = 150
"""Levels of operators in a plan, or of one expression."""

MAX_NODES: Final = 10_000
MAX_TERMS: Final = 100_000
MAX_COLUMNS: Final = 5_000


class Measure:
    """Size and depth of trees, as if nothing in them were shared; each object is measured once."""

    def __init__(self, children: Callable[[Any], list[Any]]) -> None:
        self._children = children
        # The object is kept with its measure, so that its id is not given to another.
        self._measures: dict[int, tuple[Any, int, int]] = {}

    def of(self, root: Any) -> tuple[int, int]:
        stack = [root]
        while stack:
            at = stack[-1]
            below = self._children(at)
            waiting = [child for child in below if id(child) not in self._measures]
            if waiting and id(at) not in self._measures:
                stack.extend(waiting)
                continue
            stack.pop()
            sizes = [self._measures[id(child)] for child in below]
            deepest = max((depth for _, _, depth in sizes), default=0)
            self._measures[id(at)] = at, 1 + sum(size for _, size, _ in sizes), 1 + deepest
        _, size, depth = self._measures[id(root)]
        return size, depth


def expression_measure() -> Measure:
    return Measure(lambda expression: list(expression.children))


def check_expression(expression: Expression, measure: Measure, node: exp.Expr, source: QueryText) -> Expression:
    size, depth = measure.of(expression)
    if size > MAX_TERMS or depth > MAX_DEPTH:
        raise source.error("the expression is nested too deeply", node, "compute parts of it in a sub-query in FROM")
    return expression


def check_plan(plan: Node, node: exp.Expr, source: QueryText) -> None:
    size, depth = Measure(_below).of(plan)
    if size > MAX_NODES or depth > MAX_DEPTH:
        remedy = "insert a part of it into a sink, and read that as a stream"
        raise source.error("the query is nested too deeply once its views are put in", node, remedy)


def _below(at: Node) -> list[Node]:
    """The inputs of a node and the plans of its sub-queries."""
    parts = [part for expression in _expressions(at) for part in walk(expression)]
    return [*at.inputs, *(part.query for part in parts if isinstance(part, SubQuery))]


def _expressions(at: Node) -> list[Expression]:
    match at:
        case Filter():
            return [at.predicate]
        case Project():
            return list(at.expressions)
        case Unnest():
            return [at.array]
        case Join() | OuterJoin() | SemiJoin() | Lateral():
            return [] if at.predicate is None else [at.predicate]
        case Aggregate():
            return [*at.keys, *(each for call in at.calls for each in call.expressions)]
        case Over():
            return [each for call in at.calls for each in call.expressions]
        case _:
            return []
