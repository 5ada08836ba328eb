"""The algebra as DuckDB SQL: one SELECT over the snapshots of the leaves, which are windows and tables."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from transom.core.schema import DOUBLE, REAL
from transom.plan.algebra import (
    Aggregate,
    AggregateCall,
    Distinct,
    Filter,
    Join,
    OuterJoin,
    Project,
    Relation,
    SetOperation,
    TableScan,
    Window,
)
from transom.plan.expression import Expression
from transom.runtimes.reference.expression import Columns, Scope, expression_sql, type_sql

Leaf = Window | TableScan
Outer = tuple[Columns, ...]


@dataclass(frozen=True)
class SnapshotQuery:
    """A SELECT over `snapshot0`, `snapshot1`, ..: the snapshots of the leaves, whose columns are c0, c1, .."""

    sql: str
    leaves: tuple[Leaf, ...]


def snapshot_query(relation: Relation) -> SnapshotQuery:
    """What plain SQL says of the relation, given the snapshots of its leaves."""
    writer = _Writer()
    sql = writer.select(relation, ())
    return SnapshotQuery(sql, tuple(writer.leaves))


def snapshot_name(leaf: int) -> str:
    return f"snapshot{leaf}"


@dataclass
class _Writer:
    leaves: list[Leaf] = field(default_factory=list)
    aliases: int = 0

    def source(self, node: Relation, outer: Outer) -> str:
        """What stands in a FROM for the node."""
        if isinstance(node, Leaf):
            known = [i for i, leaf in enumerate(self.leaves) if leaf is node]
            if not known:
                self.leaves.append(node)
            return snapshot_name(known[0] if known else len(self.leaves) - 1)
        return f"({self.select(node, outer)})"

    def alias(self) -> str:
        self.aliases += 1
        return f"r{self.aliases}"

    def expression(self, expression: Expression, columns: Columns, outer: Outer) -> str:
        return expression_sql(expression, Scope(columns, outer), self.select)

    def select(self, node: Relation, outer: Outer) -> str:
        """The SELECT of a node; its columns are called c0, c1, .."""
        match node:
            case Window() | TableScan():
                return f"SELECT {_names(node)} FROM {self.source(node, outer)}"
            case Filter():
                row = self.alias()
                predicate = self.expression(node.predicate, _columns(row, node.input), outer)
                return f"SELECT {_names(node)} FROM {self.source(node.input, outer)} AS {row} WHERE {predicate}"
            case Project():
                row = self.alias()
                columns = _columns(row, node.input)
                values = [self.expression(value, columns, outer) for value in node.expressions]
                return f"SELECT {_named(values)} FROM {self.source(node.input, outer)} AS {row}"
            case Join():
                return self._join(node, outer)
            case OuterJoin():
                left, right = self.alias(), self.alias()
                columns = [*_columns(left, node.left), *_columns(right, node.right)]
                return (
                    f"SELECT {_named(columns)} FROM {self.source(node.left, outer)} AS {left} "
                    f"{node.side.upper()} JOIN {self.source(node.right, outer)} AS {right} "
                    f"ON {self.expression(node.predicate, columns, outer)}"
                )
            case Aggregate():
                return self._aggregate(node, outer)
            case Distinct():
                return f"SELECT DISTINCT {_names(node)} FROM {self.source(node.input, outer)} AS {self.alias()}"
            case SetOperation():
                sides = [
                    f"(SELECT {_names(side)} FROM {self.source(side, outer)} AS {self.alias()})"
                    for side in (node.left, node.right)
                ]
                return f" {node.kind.upper()}{' ALL' if node.all else ''} ".join(sides)
        raise TypeError(f"a relation without a meaning: {node!r}")

    def _join(self, node: Join, outer: Outer) -> str:
        rows = [self.alias() for _ in node.relations]
        columns = [name for row, relation in zip(rows, node.relations, strict=True) for name in _columns(row, relation)]
        sources = [f"{self.source(r, outer)} AS {row}" for r, row in zip(node.relations, rows, strict=True)]
        where = "" if node.predicate is None else f" WHERE {self.expression(node.predicate, columns, outer)}"
        return f"SELECT {_named(columns)} FROM {', '.join(sources)}{where}"

    def _aggregate(self, node: Aggregate, outer: Outer) -> str:
        row = self.alias()
        columns = _columns(row, node.input)
        keys = [self.expression(key, columns, outer) for key in node.keys]
        calls = [
            "count(*)"
            if call.argument is None
            else _aggregate_call(call, call.argument.type, self.expression(call.argument, columns, outer))
            for call in node.calls
        ]
        # By position: a key that is a constant would be taken for one.
        group = " GROUP BY " + ", ".join(str(i + 1) for i in range(len(keys))) if node.grouped else ""
        return f"SELECT {_named(keys + calls)} FROM {self.source(node.input, outer)} AS {row}{group}"


def _aggregate_call(call: AggregateCall, argument_type: pa.DataType, argument: str) -> str:
    distinct = "DISTINCT " if call.distinct else ""
    floating = argument_type in (REAL, DOUBLE)
    if call.function == "sum" and floating:
        written = f"exact_sums(list({distinct}CAST({argument} AS DOUBLE)))"
    elif call.function == "avg":
        function, type_ = ("exact_averages", "DOUBLE") if floating else ("exact_quotients", "VARCHAR")
        written = f"{function}(list({distinct}CAST({argument} AS {type_})))"
    else:
        written = f"{call.function}({distinct}{argument})"
    return f"CAST({written} AS {type_sql(call.result_type)})"


def _names(node: Relation) -> str:
    return ", ".join(f"c{i}" for i in range(len(node.schema)))


def _columns(row: str, node: Relation) -> list[str]:
    return [f"{row}.c{i}" for i in range(len(node.schema))]


def _named(values: Columns) -> str:
    return ", ".join(f"{value} AS c{i}" for i, value in enumerate(values))
