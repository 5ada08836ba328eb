"""What a plan reads."""

from __future__ import annotations

from collections.abc import Iterator

from transom.plan.algebra import Node, StreamScan, TableScan
from transom.plan.expression import Expression, SubQuery, walk


def reads(node: Node, name: str) -> bool:
    """Whether a plan reads the stream or table of a name, in lower case; sub-queries in expressions included."""
    if isinstance(node, StreamScan | TableScan) and node.name.lower() == name:
        return True
    if any(reads(each, name) for each in node.inputs):
        return True
    return any(reads(query, name) for query in sub_queries(node))


def nodes(node: Node) -> Iterator[Node]:
    """A plan and all of which it is made, sub-queries in expressions included."""
    yield node
    for each in (*node.inputs, *sub_queries(node)):
        yield from nodes(each)


def sub_queries(node: Node) -> Iterator[Node]:
    """The plans of sub-queries in the expressions of a node."""
    for value in vars(node).values():
        for expression in value if isinstance(value, tuple) else (value,):
            if isinstance(expression, Expression):
                yield from (part.query for part in walk(expression) if isinstance(part, SubQuery))
