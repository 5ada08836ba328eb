"""ORDER BY, LIMIT, QUALIFY, DISTINCT ON, ranks and aggregates OVER: what has to know which row is before which.

All of them become `TopN` or `Over`, over rows that hold what the block mentions: the columns of FROM in their order (of
a grouped block its keys, in the order of their columns), and behind them what is computed for the purpose. So the
columns from left to right break ties, as the definition has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from typing import Literal as OneOf

import pyarrow as pa
from sqlglot import exp

from transom.core.excerpt import Excerpt
from transom.core.schema import BIGINT
from transom.cql import syntax
from transom.cql.context import Context
from transom.cql.query_text import QueryText
from transom.plan.algebra import AggregateCall, Filter, OrderedBy, Over, OverFrame, Project, Relation, SortKey, TopN
from transom.plan.expression import ColumnRef, Expression, remap, transform

_PROCTIME: Final = "PROCTIME() is the time of the row: that of its WATERMARK column, or its arrival_time"
_EMIT: Final = "EMIT ON WINDOW CLOSE is passed over: only final rows are emitted, and windows when they are over"

_MOST_ROWS: Final = 10**15
_GREATEST: Final = 2**63 - 1

RankFunction = OneOf["row_number", "rank", "dense_rank"]


@dataclass(frozen=True)
class SortValue:
    """One entry of an ORDER BY, bound."""

    value: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class RankCall:
    """ROW_NUMBER() OVER (..) and its sisters, bound."""

    function: RankFunction
    partition: tuple[Expression, ...]
    order: tuple[SortValue, ...]
    excerpt: Excerpt | None = field(default=None, compare=False)


@dataclass(frozen=True)
class BoundOver:
    """An aggregate OVER (..), bound; it takes the rows that it sees in their order from that `end`, if any."""

    call: AggregateCall
    partition: tuple[Expression, ...]
    order: tuple[SortValue, ...]
    frame: OverFrame | None
    end: OneOf["first", "last"] | None = None
    excerpt: Excerpt | None = field(default=None, compare=False)


@dataclass(frozen=True)
class RankRef(Expression):
    """What OVER says of a row, while the expression around it is bound; never leaves this room."""

    index: int
    call: RankCall | BoundOver

    @property
    def type(self) -> pa.DataType:
        return BIGINT if isinstance(self.call, RankCall) else self.call.call.result_type

    def __str__(self) -> str:
        return f"{self.call.function}()" if isinstance(self.call, RankCall) else f"{self.call.call} over"


@dataclass(frozen=True)
class Bounds:
    """Which rows of an order are let through: from `least` on, up to `most`."""

    least: int
    most: int | None


def bounds_of(ordering: exp.Expr | None, source: QueryText) -> Bounds | None:
    """What LIMIT and OFFSET ask for; None where they let all rows through."""
    limit, offset = (None if ordering is None else ordering.args.get(name) for name in ("limit", "offset"))
    skipped = _count(offset, source) or 0
    wanted = None if isinstance(limit, exp.Null) else _count(limit, source, _GREATEST)
    if wanted is not None and wanted > _MOST_ROWS and ordering is not None and ordering.args.get("keys"):
        wanted = None  # so many rows there never are
    if wanted is None and not skipped:
        return None
    assert ordering is not None
    if not ordering.args.get("keys"):
        word, node = ("LIMIT", limit) if wanted is not None else ("OFFSET", offset)
        assert node is not None
        remedy = "write ORDER BY .. LIMIT n for the first rows of an order, or a window such as [ROWS 10]"
        raise source.error(f"{word} without ORDER BY does not say which rows", node, remedy)
    return Bounds(skipped + 1, None if wanted is None else skipped + wanted)


def _count(node: exp.Expr | None, source: QueryText, most: int = _MOST_ROWS) -> int | None:
    if node is None or isinstance(node, exp.Null):
        return None
    if not node.name.isdigit() or int(node.name[:20]) > most:
        raise source.error(f"'{node.name}' is no number of rows", node, "write a whole number, as in LIMIT 10")
    return int(node.name)


@dataclass
class OrderedRows:
    """Rows to which numbers are given, one call after the other: columns come behind those that are there."""

    relation: Relation
    numbers: dict[int, int] = field(default_factory=dict)

    def number(self, index: int, call: RankCall) -> None:
        """Give the rows the number that a call asks for; the calls before it have theirs."""
        numbered = self._top(call.function, call.partition, call.order, Bounds(1, None), f"{call.function}()")
        self.relation = replace(numbered, excerpt=call.excerpt)
        self.numbers[index] = len(self.relation.schema) - 1

    def over(self, calls: Sequence[tuple[int, BoundOver]]) -> None:
        """Give the rows what calls ask for that see the same rows in the same order."""
        _, first = calls[0]
        distant = first.frame is not None and first.frame.distance is not None
        parts, sorts = self._sorted(first.partition, first.order, in_partition=distant)
        made = tuple(self._ordered(call, sorts) for _, call in calls)
        width = len(self.relation.schema)
        names = tuple(f"{call.call.function}_{width + i}" for i, (_, call) in enumerate(calls))
        framed = () if first.frame is None else sorts
        self.relation = Over(self.relation, parts, framed, first.frame, made, names, excerpt=first.excerpt)
        self.numbers |= {index: width + i for i, (index, _) in enumerate(calls)}

    def _ordered(self, over: BoundOver, sorts: tuple[SortKey, ...]) -> AggregateCall:
        """The call over these rows; that from an end of them with the order which says where that is."""
        call = over.call.over(self.resolved)
        if over.end is None:
            return call
        sorted_by = {sort.column for sort in sorts}
        ties = (SortKey(column) for column in range(len(self.relation.schema)) if column not in sorted_by)
        back = over.end == "last"
        order = [
            OrderedBy(self._column(k.column), k.descending != back, k.nulls_first != back) for k in (*sorts, *ties)
        ]
        assert call.argument is not None
        return replace(call, order=(*order, OrderedBy(call.argument, back, back)))

    def limit(self, partition: Sequence[Expression], order: Sequence[SortValue], bounds: Bounds) -> None:
        self.relation = self._top("row_number", partition, order, bounds, None)

    def resolved(self, expression: Expression) -> Expression:
        """With the columns of their numbers for the calls."""

        def fill(part: Expression) -> Expression:
            return self._column(self.numbers[part.index]) if isinstance(part, RankRef) else part

        return transform(expression, fill)

    def _top(
        self,
        function: RankFunction,
        partition: Sequence[Expression],
        order: Sequence[SortValue],
        bounds: Bounds,
        number: str | None,
    ) -> TopN:
        parts, keys = self._sorted(partition, order)
        return TopN(self.relation, parts, keys, function, bounds.least, bounds.most, number)

    def _sorted(
        self, partition: Sequence[Expression], order: Sequence[SortValue], in_partition: bool = False
    ) -> tuple[tuple[int, ...], tuple[SortKey, ...]]:
        """The columns of the partition and those of the order; what is no column yet is put behind the rows.

        The order of those that are `in_partition` says nothing, and is wanted only where a frame goes by its values.
        """
        positions = self._positions([self.resolved(value) for value in (*partition, *(key.value for key in order))])
        parts = tuple(dict.fromkeys(positions[: len(partition)]))
        sorts = [
            SortKey(column, key.descending, key.nulls_first)
            for column, key in zip(positions[len(partition) :], order, strict=True)
        ]
        first = {sort.column: sort for sort in reversed(sorts)}  # a column that comes again decides nothing
        return parts, tuple(
            first[column]
            for column in dict.fromkeys(sort.column for sort in sorts)
            if in_partition or column not in parts
        )

    def _positions(self, values: Sequence[Expression]) -> list[int]:
        """Where the values are; what is no column yet is put behind those that are there."""
        width = len(self.relation.schema)
        added: dict[Expression, int] = {}
        positions = [
            value.index if isinstance(value, ColumnRef) else added.setdefault(value, width + len(added))
            for value in values
        ]
        if added:
            names = (*self.relation.schema.names, *(str(value) for value in added))
            self.relation = Project(self.relation, (*map(self._column, range(width)), *added), names)
        return positions

    def _column(self, index: int) -> ColumnRef:
        column = self.relation.schema[index]
        return ColumnRef(index, column.type, column.name)


@dataclass(frozen=True)
class BlockOrder:
    """What one block asks of the order of its rows; `on` are the values of DISTINCT ON."""

    ranks: tuple[RankCall | BoundOver, ...]
    qualify: Expression | None
    on: tuple[Expression, ...] | None
    order: tuple[SortValue, ...]
    bounds: Bounds | None

    @property
    def simple(self) -> bool:
        """Whether no row has to know its place."""
        return not self.ranks and self.qualify is None and self.on is None and self.bounds is None

    def values(self) -> list[Expression]:
        """All that is computed of a row."""
        calls = [value for call in self.ranks for value in (*call.partition, *(key.value for key in call.order))]
        calls += [value for call in self.ranks if isinstance(call, BoundOver) for value in call.call.expressions]
        conditions = () if self.qualify is None else (self.qualify,)
        return [*calls, *conditions, *(self.on or ()), *(key.value for key in self.order)]

    def mapped(self, change: Callable[[Expression], Expression]) -> BlockOrder:
        """The same over other rows."""

        def keys(order: tuple[SortValue, ...]) -> tuple[SortValue, ...]:
            return tuple(replace(key, value=change(key.value)) for key in order)

        def over(call: RankCall | BoundOver) -> RankCall | BoundOver:
            made = replace(call, partition=tuple(map(change, call.partition)), order=keys(call.order))
            return replace(made, call=made.call.over(change)) if isinstance(made, BoundOver) else made

        return BlockOrder(
            tuple(map(over, self.ranks)),
            None if self.qualify is None else change(self.qualify),
            None if self.on is None else tuple(map(change, self.on)),
            keys(self.order),
            self.bounds,
        )

    def rows(
        self, relation: Relation, columns: Sequence[int]
    ) -> tuple[OrderedRows, Callable[[Expression], Expression]]:
        """The rows that are asked for, of those of the relation, and what becomes of expressions over it.

        `columns` are those that the block mentions, in the order in which they break ties.
        """
        refs = tuple(ColumnRef(i, relation.schema[i].type, relation.schema[i].name) for i in columns or (0,))
        names = tuple(ref.name for ref in refs)
        moved = {ref.index: position for position, ref in enumerate(refs)}
        whole = list(columns) == list(range(len(relation.schema)))
        rows = OrderedRows(relation if whole else Project(relation, refs, names))
        order_mapped = self.mapped(lambda value: remap(value, moved))
        alike: dict[object, list[tuple[int, BoundOver]]] = {}
        for index, call in enumerate(order_mapped.ranks):
            if isinstance(call, RankCall):
                rows.number(index, call)
            else:
                alike.setdefault((call.partition, call.order, call.frame), []).append((index, call))
        for calls in alike.values():
            rows.over(calls)
        if order_mapped.qualify is not None:
            rows.relation = Filter(rows.relation, rows.resolved(order_mapped.qualify))
        if order_mapped.on is not None:
            rows.limit(order_mapped.on, order_mapped.order, Bounds(1, 1))
        return rows, lambda value: rows.resolved(remap(value, moved))


def order_whole(node: syntax.Ordered, relation: Relation, context: Context) -> Relation:
    """The rows of a query that is no block, such as a union: it is ordered by the columns that it shows."""
    ordering = node.args["ordering"]
    names = [name.lower() for name in relation.schema.names]
    order = []
    for item in ordering.args.get("keys") or ():
        index = _shown(item.this, names)
        if index is None:
            remedy = (
                f"the columns are {', '.join(relation.schema.names[:8])}; for a value: SELECT .. FROM (..) ORDER BY .."
            )
            raise context.source.error("ORDER BY here takes a column of the result", item.this, remedy)
        column = relation.schema[index]
        order.append(_sort_value(ColumnRef(index, column.type, column.name), item))
    bounds = bounds_of(ordering, context.source)
    if bounds is None:
        return relation
    rows = OrderedRows(relation)
    rows.limit((), order, bounds)
    return replace(rows.relation, excerpt=context.source.excerpt(ordering))


def order_shown(node: exp.Expr, names: list[str]) -> tuple[SortKey, ...]:
    """The columns of the result by which a query as a whole is ordered, as far as it has them."""
    ordering = _top_ordering(node)
    keys: list[SortKey] = []
    for item in () if ordering is None else ordering.args["keys"]:
        index = _shown(item.this, [name.lower() for name in names])
        if index is None:
            break
        keys.append(SortKey(index, item.args["descending"], item.args["nulls_first"]))
    return tuple(keys)


def without_effect(node: exp.Expr, shown: bool) -> tuple[str, ...]:
    """Notes on what changes nothing: ORDER BY, but that of a whole query that is `shown` in its order; and EMIT.

    And on PROCTIME(), which elsewhere is the clock.
    """
    emit = node.args.get("emit") or getattr(node.args.get("query"), "args", {}).get("emit")
    notes = _orders_without_effect(node, shown)
    if any(call.name.lower() == "proctime" for call in node.find_all(exp.Anonymous)):
        notes = (*notes, _PROCTIME)
    return (*notes, _EMIT) if emit else notes


def _orders_without_effect(node: exp.Expr, shown: bool) -> tuple[str, ...]:
    seen = _top_ordering(node) if shown else None
    chosen = [select.args.get("ordering") for select in node.find_all(exp.Select) if _is_distinct_on(select)]
    alone = [
        ordering
        for ordering in node.find_all(syntax.OrderClause)
        if ordering.args["keys"] and not ordering.args.get("limit") and not ordering.args.get("offset")
    ]
    if all(any(ordering is other for other in (seen, *chosen)) for ordering in alone):
        return ()
    return ("ORDER BY without LIMIT is passed over: a relation has no order",)


def _is_distinct_on(select: exp.Select) -> bool:
    distinct = select.args.get("distinct")
    return distinct is not None and distinct.args.get("on") is not None


def rows_looked_at(node: exp.Expr, source: QueryText) -> int | None:
    """The n of a query that ends in LIMIT n and has no order, without which it is bound then."""
    ordering = _top_ordering(node)
    if ordering is None or ordering.args.get("keys") or ordering.args.get("offset"):
        return None
    limit = _count(ordering.args.get("limit"), source)
    ordering.set("limit", None)
    return limit


def _top_ordering(node: exp.Expr) -> exp.Expr | None:
    while isinstance(node, syntax.Bracketed | syntax.WithQuery | syntax.StreamOf):
        if isinstance(node, syntax.StreamOf) and not node.args.get("word"):
            return None
        node = node.this
    if isinstance(node, syntax.Ordered | exp.Select):
        ordering: exp.Expr | None = node.args.get("ordering")
        return ordering
    return None


def _shown(node: exp.Expr, names: list[str]) -> int | None:
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        position = int(node.name) if len(node.name) < 9 else 0
        return position - 1 if 1 <= position <= len(names) else None
    if isinstance(node, exp.Column) and node.args.get("table") is None and names.count(node.name.lower()) == 1:
        return names.index(node.name.lower())
    return None


def _sort_value(value: Expression, item: exp.Expr) -> SortValue:
    return SortValue(value, item.args["descending"], item.args["nulls_first"])
