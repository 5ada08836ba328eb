"""The algebra as DuckDB SQL: one SELECT over the snapshots of the leaves, which are windows and tables.

Of values that are equal DuckDB shows any; semantics.md says which: 0.0, wherever 0.0 and -0.0 are taken for one value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from transom.core.schema import DOUBLE, REAL, VARCHAR
from transom.plan.algebra import (
    Aggregate,
    AggregateCall,
    AntiJoin,
    Distinct,
    Filter,
    Join,
    Lateral,
    OuterJoin,
    Over,
    Project,
    Relation,
    SemiJoin,
    SetOperation,
    TableScan,
    TopN,
    Unnest,
    Window,
    WindowTable,
)
from transom.plan.expression import Expression, SubQuery, walk
from transom.plan.python_function import PythonFunction, functions_in
from transom.runtimes.reference.expression import Columns, SqlScope, expression_sql, literal_sql, type_sql

Leaf = Window | WindowTable | TableScan
Outer = tuple[Columns, ...]


@dataclass(frozen=True)
class SnapshotQuery:
    """A SELECT over `snapshot0`, `snapshot1`, ..: the snapshots of the leaves, whose columns are c0, c1, .."""

    sql: str
    leaves: tuple[Leaf, ...]
    functions: tuple[PythonFunction, ...] = ()


def snapshot_query(relation: Relation) -> SnapshotQuery:
    """What plain SQL says of the relation, given the snapshots of its leaves."""
    writer = _Writer()
    sql = writer.select(relation, ())
    return SnapshotQuery(sql, tuple(writer.leaves), tuple(functions_in(relation)))


def snapshot_name(leaf: int) -> str:
    return f"snapshot{leaf}"


@dataclass
class _Writer:
    leaves: list[Leaf] = field(default_factory=list)
    aliases: int = 0

    def source(self, node: Relation, outer: Outer) -> str:
        """What stands in a FROM for the node."""
        if isinstance(node, Leaf):
            numbers = [i for i, leaf in enumerate(self.leaves) if leaf is node]
            if not numbers:
                self.leaves.append(node)
            return snapshot_name(numbers[0] if numbers else len(self.leaves) - 1)
        return f"({self.select(node, outer)})"

    def alias(self) -> str:
        self.aliases += 1
        return f"r{self.aliases}"

    def expression(self, expression: Expression, columns: Columns, outer: Outer) -> str:
        return expression_sql(expression, SqlScope(columns, outer), self.select)

    def select(self, node: Relation, outer: Outer) -> str:
        """The SELECT of a node; its columns are called c0, c1, .."""
        match node:
            case Window() | WindowTable() | TableScan():
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
            case Unnest():
                return self._unnest(node, outer)
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
            case Lateral():
                left, right, row = self.alias(), self.alias(), self.alias()
                around = _columns(left, node.left)
                columns = [*around, *_columns(right, node.right)]
                where = "" if node.predicate is None else f" WHERE {self.expression(node.predicate, columns, outer)}"
                return (
                    f"SELECT {_named([*around, *_columns(row, node.right)])} "
                    f"FROM {self.source(node.left, outer)} AS {left} {'LEFT' if node.outer else 'INNER'} JOIN LATERAL "
                    f"(SELECT {_names(node.right)} FROM {self.source(node.right, (*outer, around))} AS {right}{where}) "
                    f"AS {row} ON TRUE"
                )
            case SemiJoin():
                return self._semi_join(node, outer)
            case Aggregate():
                return self._aggregate(node, outer)
            case Distinct():
                return f"SELECT DISTINCT {self._equal(node.input, outer)}"
            case TopN():
                return self._top_n(node, outer)
            case Over():
                return self._over(node, outer)
            case SetOperation(kind="union", all=True):
                return " UNION ALL ".join(
                    f"(SELECT {_names(side)} FROM {self.source(side, outer)} AS {self.alias()})"
                    for side in (node.left, node.right)
                )
            case SetOperation():
                sides = [f"(SELECT {self._equal(side, outer)})" for side in (node.left, node.right)]
                return f" {node.kind.upper()}{' ALL' if node.all else ''} ".join(sides)
        raise TypeError(f"a relation without a meaning: {node!r}")

    def _semi_join(self, node: SemiJoin, outer: Outer) -> str:
        """Not by EXISTS where DuckDB takes the join: it asks that once for rows that are equal, as 0.0 and -0.0 are."""
        left, right = self.alias(), self.alias()
        columns = [*_columns(left, node.left), *_columns(right, node.right)]
        on = "TRUE" if node.predicate is None else self.expression(node.predicate, columns, outer)
        there = f"SELECT {_named(_columns(left, node.left))} FROM {self.source(node.left, outer)} AS {left}"
        inner = f"{self.source(node.right, outer)} AS {right}"
        anti = isinstance(node, AntiJoin)
        asks = node.predicate is not None and any(isinstance(part, SubQuery) for part in walk(node.predicate))
        if outer or asks:
            return f"{there} WHERE {'NOT ' if anti else ''}EXISTS (SELECT 1 FROM {inner} WHERE {on})"
        return f"{there} {'ANTI' if anti else 'SEMI'} JOIN {inner} ON {on}"

    def _equal(self, node: Relation, outer: Outer) -> str:
        """The columns and the FROM of rows that are to be compared with each other."""
        row = self.alias()
        values = [_one_zero(name, column.type) for name, column in zip(_columns(row, node), node.schema, strict=True)]
        return f"{_named(values)} FROM {self.source(node, outer)} AS {row}"

    def _unnest(self, node: Unnest, outer: Outer) -> str:
        """UNNEST by the numbers of the elements, so that each row has its own."""
        row, numbers = self.alias(), self.alias()
        columns = _columns(row, node.input)
        array = self.expression(node.array, columns, outer)
        number = f"{numbers}.n"
        values = [*columns, f"list_extract({array}, {number})", number][: len(node.schema)]
        join = "LEFT JOIN" if node.outer else "JOIN"
        return (
            f"SELECT {_named(values)} FROM {self.source(node.input, outer)} AS {row} {join} LATERAL "
            f"(SELECT unnest(range(1, len({array}) + 1)) AS n) AS {numbers} ON TRUE"
        )

    def _join(self, node: Join, outer: Outer) -> str:
        rows = [self.alias() for _ in node.relations]
        columns = [name for row, relation in zip(rows, node.relations, strict=True) for name in _columns(row, relation)]
        sources = [f"{self.source(r, outer)} AS {row}" for r, row in zip(node.relations, rows, strict=True)]
        where = "" if node.predicate is None else f" WHERE {self.expression(node.predicate, columns, outer)}"
        return f"SELECT {_named(columns)} FROM {', '.join(sources)}{where}"

    def _aggregate(self, node: Aggregate, outer: Outer) -> str:
        row = self.alias()
        columns = _columns(row, node.input)
        keys = [_one_zero(self.expression(key, columns, outer), key.type) for key in node.keys]
        calls = [
            "count(*)"
            if call.argument is None
            else _in_order(call, lambda e: self.expression(e, columns, outer))
            if call.order
            else self._covariance(call, columns, outer)
            if call.other is not None
            else _aggregate_call(call, call.argument.type, self.expression(call.argument, columns, outer))
            for call in node.calls
        ]
        # By position: a key that is a constant would be taken for one.
        group = " GROUP BY " + ", ".join(str(i + 1) for i in range(len(keys))) if node.grouped else ""
        return f"SELECT {_named(keys + calls)} FROM {self.source(node.input, outer)} AS {row}{group}"

    def _over(self, node: Over, outer: Outer) -> str:
        row = self.alias()
        columns = _columns(row, node.input)
        frame = node.frame
        over = _over(columns, node, in_full=frame is not None and not frame.peers)
        over += "" if frame is None else f" {frame}"
        calls = []
        for call in node.calls:
            argument = None if call.argument is None else self.expression(call.argument, columns, outer)
            if call.argument is None or argument is None:
                calls.append(f"count(*) OVER ({over})")
            elif call.other is not None:
                calls.append(self._covariance(call, columns, outer, f" OVER ({over})"))
            elif call.order:
                calls.append(_in_order(call, lambda e: self.expression(e, columns, outer), f" OVER ({over})"))
            elif call.function == "first":
                calls.append(_one_zero(f"first_value({argument}) OVER ({over})", call.result_type))
            else:
                calls.append(_aggregate_call(call, call.argument.type, argument, f" OVER ({over})"))
        return f"SELECT {_named(columns + calls)} FROM {self.source(node.input, outer)} AS {row}"

    def _covariance(self, call: AggregateCall, columns: Columns, outer: Outer, over: str = "") -> str:
        """Of pairs; both numbers are NULL where one is."""
        assert call.argument is not None and call.other is not None
        floating = call.argument.type in (REAL, DOUBLE)
        kind, type_ = ("floats", "DOUBLE") if floating else ("texts", "VARCHAR")
        pair = [f"CAST({self.expression(each, columns, outer)} AS {type_})" for each in (call.argument, call.other)]
        pairs = f"list(CASE WHEN {pair[0]} IS NOT NULL THEN [{', '.join(pair)}] END){over}"
        return f"exact_{call.function}_of_{kind}({pairs})"

    def _top_n(self, node: TopN, outer: Outer) -> str:
        row, numbered = self.alias(), self.alias()
        columns = _columns(row, node.input)
        over = _over(columns, node, in_full=node.function == "row_number")
        inner = f"SELECT {_named(columns)}, {node.function}() OVER ({over}) AS n FROM {self.source(node.input, outer)}"
        most = "" if node.most is None else f" AND n <= {node.most}"
        number = "" if node.number is None else f", n AS c{len(columns)}"
        return (
            f"SELECT {_names(node.input)}{number} FROM ({inner} AS {row}) AS {numbered} WHERE n >= {node.least}{most}"
        )


def _over(columns: list[str], node: TopN | Over, in_full: bool) -> str:
    """Partition and order; `in_full` with all columns, so that rows without a place of their own are equal."""
    types = [column.type for column in node.input.schema]
    parts = [_one_zero(columns[i], types[i]) for i in node.partition]
    order = [
        f"{_one_zero(columns[key.column], types[key.column])} {'DESC' if key.descending else 'ASC'} "
        f"NULLS {'FIRST' if key.nulls_first else 'LAST'}"
        for key in node.order
    ]
    if in_full:
        for name, type_ in zip(columns, types, strict=True):
            order.append(f"{_one_zero(name, type_)} ASC NULLS LAST")
            if type_ in (REAL, DOUBLE):
                order.append(f"(CAST({name} AS VARCHAR) = '-0.0') DESC NULLS LAST")
    over = f"PARTITION BY {', '.join(parts)} " if parts else ""
    return over + (f"ORDER BY {', '.join(order)}" if order else "")


def _aggregate_call(call: AggregateCall, argument_type: pa.DataType, argument: str, over: str = "") -> str:
    distinct = "DISTINCT " if call.distinct else ""
    floating = argument_type in (REAL, DOUBLE)
    if call.function == "sum" and floating:
        written = f"exact_sums(list({distinct}CAST({argument} AS DOUBLE)){over})"
    elif call.function == "avg":
        function, type_ = ("exact_averages", "DOUBLE") if floating else ("exact_quotients", "VARCHAR")
        written = f"{function}(list({distinct}CAST({argument} AS {type_})){over})"
    elif call.function in ("var_pop", "var_samp"):
        kind, type_ = ("floats", "DOUBLE") if floating else ("texts", "VARCHAR")
        written = f"exact_{call.function}_of_{kind}(list({distinct}CAST({argument} AS {type_})){over})"
    elif call.fraction is not None:
        part, whole = call.fraction.numerator, call.fraction.denominator
        values = f"list({distinct}{argument}) FILTER (WHERE {argument} IS NOT NULL){over}"
        if call.function == "quantile_cont":
            written = f"exact_quantiles({values}, {part}, {whole})"
        else:
            at = f"greatest(1, (len({values}) * {part} + {whole - 1}) // {whole})"
            written = _one_zero(f"list_extract(list_sort({values}), {at})", call.result_type)
    elif call.function == "sum":
        # On its way DuckDB's own sum may leave the range of its type; what 38 digits cannot hold is an error here, too.
        scale = call.result_type.scale
        written = f"CAST(exact_totals(list({distinct}CAST({argument} AS VARCHAR)){over}) AS DECIMAL(38, {scale}))"
    else:
        written = _one_zero(f"{call.function}({distinct}{argument}){over}", call.result_type)
    return f"CAST({written} AS {type_sql(call.result_type)})"


def _in_order(call: AggregateCall, sql: Callable[[Expression], str], over: str = "") -> str:
    """The order says which of all is first, and NULLs count; or how texts follow each other."""
    assert call.argument is not None
    order = ", ".join(
        f"{sql(each.expression)} {'DESC' if each.descending else 'ASC'} NULLS {'FIRST' if each.nulls_first else 'LAST'}"
        for each in call.order
    )
    met = "" if call.condition is None else f" FILTER (WHERE {sql(call.condition)})"
    argument = sql(call.argument)
    if call.function == "array_agg":
        value = _one_zero(argument, call.argument.type)
        if call.distinct:
            order = order.replace(argument, value, 1)
        return f"list({'DISTINCT ' * call.distinct}{value} ORDER BY {order}){met}{over}"
    if call.function == "string_agg":
        once, separator = "DISTINCT " * call.distinct, literal_sql(call.separator, VARCHAR)
        return f"string_agg({once}{argument}, {separator} ORDER BY {order}){met}{over}"
    return _one_zero(f"list_extract(list({argument} ORDER BY {order}){met}{over}, 1)", call.result_type)


def _one_zero(value: str, type_: pa.DataType) -> str:
    """-0.0 + 0.0 is 0.0."""
    return f"({value} + CAST(0 AS {type_sql(type_)}))" if type_ in (REAL, DOUBLE) else value


def _names(node: Relation) -> str:
    return ", ".join(f"c{i}" for i in range(len(node.schema)))


def _columns(row: str, node: Relation) -> list[str]:
    return [f"{row}.c{i}" for i in range(len(node.schema))]


def _named(values: Columns) -> str:
    return ", ".join(f"{value} AS c{i}" for i, value in enumerate(values))
