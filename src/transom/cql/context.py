"""What binding needs to know wherever it is: the text, the catalogue, the named queries, and how to bind a query."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from sqlglot import exp

from transom.cql.limits import Measure, expression_measure
from transom.cql.query_text import QueryText
from transom.cql.scope import Scope
from transom.plan.algebra import Node, Relation, Stream
from transom.plan.catalogue import Catalogue
from transom.plan.options import OPTIONS

BindQuery = Callable[[exp.Expr, "Context", Scope | None], Node]


@dataclass(frozen=True)
class Context:
    source: QueryText
    catalogue: Catalogue
    bind_query: BindQuery
    named: dict[str, Node] = field(default_factory=dict)
    measure: Measure = field(default_factory=expression_measure)

    @property
    def tick(self) -> int:
        tick: int = self.catalogue.options.get("tick", OPTIONS["tick"].default)
        return tick

    def bind_relation(self, node: exp.Expr, outer: Scope | None, where: str) -> Relation:
        """A query that must be a relation, because of `where` it stands."""
        bound = self.bind_query(node, self, outer)
        if isinstance(bound, Stream):
            raise self.source.error(
                f"{where} takes a relation, and this is a stream",
                node,
                "leave ISTREAM, DSTREAM or RSTREAM out, or put the stream into FROM with a window: "
                "SELECT * FROM ISTREAM(..) [ROWS 10]",
            )
        assert isinstance(bound, Relation)
        return bound

    def at(self, node: exp.Expr) -> AbstractContextManager[None]:
        """Gives errors from below that have no place the place of the node."""
        return self.source.at(node)
