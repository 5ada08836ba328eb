"""Which columns of the rows around it a sub-query reads, and what it means over other rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from transom.plan.algebra import (
    Aggregate,
    Filter,
    Join,
    Lateral,
    Node,
    OuterJoin,
    Over,
    Project,
    Relation,
    SemiJoin,
    StreamFilter,
    StreamProject,
    Unnest,
    a_relation,
)
from transom.plan.expression import ColumnRef, Exists, Expression, OuterColumn, SubQuery, transform, walk


def expressions_of(node: Node) -> tuple[Expression, ...]:
    """The expressions of a node, over the columns of its inputs."""
    match node:
        case Filter() | StreamFilter():
            return (node.predicate,)
        case Unnest():
            return (node.array,)
        case Join() | OuterJoin() | SemiJoin() | Lateral():
            return () if node.predicate is None else (node.predicate,)
        case Project() | StreamProject():
            return node.expressions
        case Aggregate():
            return (*node.keys, *(each for call in node.calls for each in call.expressions))
        case Over():
            return tuple(each for call in node.calls for each in call.expressions)
    return ()


def with_expressions(node: Node, change: Callable[[Expression], Expression]) -> Node:
    """The node with its expressions changed."""
    match node:
        case Filter() | StreamFilter():
            return replace(node, predicate=change(node.predicate))
        case Unnest():
            return replace(node, array=change(node.array))
        case Join() | OuterJoin() | SemiJoin() | Lateral():
            return node if node.predicate is None else replace(node, predicate=change(node.predicate))
        case Project() | StreamProject():
            return replace(node, expressions=tuple(change(each) for each in node.expressions))
        case Aggregate():
            calls = tuple(call.over(change) for call in node.calls)
            return replace(node, keys=tuple(change(key) for key in node.keys), calls=calls)
        case Over():
            return replace(node, calls=tuple(call.over(change) for call in node.calls))
    return node


def has_query(expression: Expression) -> bool:
    """Whether a sub-query is in the expression."""
    return any(isinstance(part, SubQuery) for part in walk(expression))


def outer_columns(tree: Node | Expression) -> frozenset[OuterColumn]:
    """The columns of rows around that are read; of a node those around it, of an expression those around its row.

    `depth` 1 is the nearest row around; what a sub-query in the expression reads of the row itself is not among them,
    nor what the right of a LATERAL does, which reads no other.
    """
    columns_of_node: dict[int, frozenset[OuterColumn]] = {}

    def of_node(node: Node) -> frozenset[OuterColumn]:
        read = columns_of_node.get(id(node))
        if read is None:
            parts = [of_node(child) for child in (node.inputs[:1] if isinstance(node, Lateral) else node.inputs)]
            parts += [of_expression(expression) for expression in expressions_of(node)]
            read = columns_of_node[id(node)] = frozenset().union(*parts)
        return read

    def of_expression(expression: Expression) -> frozenset[OuterColumn]:
        return frozenset(_read_in(expression, of_node))

    return of_node(tree) if isinstance(tree, Node) else of_expression(tree)


def _read_in(expression: Expression, of_node: Callable[[Node], frozenset[OuterColumn]]) -> Iterator[OuterColumn]:
    for part in walk(expression):
        if isinstance(part, OuterColumn):
            yield part
        elif isinstance(part, SubQuery):
            for column in of_node(part.query):
                if column.depth > 1:
                    yield replace(column, depth=column.depth - 1)


def over_row(
    expression: Expression, own: Callable[[int], Expression], around: Callable[[int], Expression]
) -> Expression:
    """The expression over another row, in which `own` says what its columns are, and `around` what those of the nearest
    row around are; sub-queries in it see that row, and beyond it one row less.
    """

    def change(depth: int) -> Callable[[Expression], Expression]:
        """At a place that is so many queries below the row."""

        def changed(part: Expression) -> Expression:
            if isinstance(part, ColumnRef) and depth == 0:
                return own(part.index)
            if isinstance(part, OuterColumn) and part.depth >= depth > 0:
                if part.depth == depth:
                    return seen_from(own(part.index), depth)
                if part.depth == depth + 1:
                    return seen_from(around(part.index), depth)
                return replace(part, depth=part.depth - 1)
            if isinstance(part, OuterColumn) and depth == 0:
                return around(part.index) if part.depth == 1 else replace(part, depth=part.depth - 1)
            if isinstance(part, SubQuery):
                return part.with_query(a_relation(below(part.query, depth + 1)))
            return part

        return lambda whole: transform(whole, changed)

    def below(node: Node, depth: int) -> Node:
        inside = isinstance(node, Lateral)  # its right is a query within that of the left
        inputs = enumerate(node.inputs)
        node = node.over(tuple(below(child, depth + (inside and i == 1)) for i, child in inputs))
        return with_expressions(node, change(depth))

    return change(0)(expression)


def around_other_rows(query: Relation, own: Callable[[int], Expression]) -> Relation:
    """A sub-query that reads the nearest row around it alone, around other rows, in which `own` says what its columns
    are."""

    def nothing(index: int) -> Expression:
        raise AssertionError(f"the query reads column {index} of a row further out")

    seen = over_row(Exists(query), own, nothing)
    assert isinstance(seen, Exists)
    return seen.query


def seen_from(value: Expression, depth: int) -> Expression:
    """What is said of a row, said in a query that is so many queries below it."""

    def lift(part: Expression) -> Expression:
        if isinstance(part, ColumnRef):
            return OuterColumn(part.index, part.type, part.name, depth)
        return replace(part, depth=part.depth + depth) if isinstance(part, OuterColumn) else part

    return transform(value, lift)
