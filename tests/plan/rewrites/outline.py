"""Plans as people read them, a line per node, so that a rule is tested as: this query, and what it becomes."""

from __future__ import annotations

from textwrap import dedent, indent

from transom.cql.statements import parse_statements
from transom.plan.algebra import (
    Aggregate,
    Filter,
    Join,
    Node,
    Project,
    SetOperation,
    StreamFilter,
    StreamProject,
    StreamScan,
    TableScan,
    ToStream,
    Window,
)
from transom.plan.catalogue import Catalogue, QueryStatement

DECLARATIONS = """
CREATE STREAM s (ts TIMESTAMP INVISIBLE, a INTEGER, b INTEGER, c VARCHAR, WATERMARK FOR ts AS ts);
CREATE STREAM t (ts TIMESTAMP INVISIBLE, a INTEGER, d INTEGER, WATERMARK FOR ts AS ts);
CREATE TABLE r (a INTEGER, e INTEGER);
"""


def bound(text: str) -> tuple[Node, Catalogue]:
    catalogue = Catalogue()
    statement = parse_statements(DECLARATIONS + text, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    return statement.query, catalogue


def outline(node: Node) -> str:
    """A line per node, inputs below and to the right of it.

    >>> print(outline(bound("SELECT a FROM s [NOW]")[0]))
    project a
      [NOW]
        s
    """
    below = [indent(outline(child), "  ") for child in node.inputs]
    return "\n".join([_line(node), *below])


def drawn(text: str) -> str:
    return dedent(text).strip()


def _line(node: Node) -> str:
    match node:
        case StreamScan() | TableScan():
            return node.name
        case Window():
            return str(node.spec)
        case Filter():
            return f"filter {node.predicate}"
        case StreamFilter():
            return f"stream filter {node.predicate}"
        case Project():
            return "project " + ", ".join(map(str, node.expressions))
        case StreamProject():
            return "stream project " + ", ".join(map(str, node.expressions))
        case Join():
            return "join" if node.predicate is None else f"join {node.predicate}"
        case Aggregate():
            return "aggregate " + ", ".join(map(str, (*node.keys, *node.calls)))
        case SetOperation():
            return node.kind + (" all" if node.all else "")
        case ToStream():
            return node.change.value
    return type(node).__name__.lower()
