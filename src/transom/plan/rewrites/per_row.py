"""A sub-query that reads the row around it, computed for all rows around at once.

What it reads of them, each different row of it once, is carried along in front of its own columns: a selection sees it
as columns, an aggregate groups by it, a set operation compares it as well. One row of the answer belongs to the rows
around that agree with it on those columns, NULL with NULL.

All of those take -0.0 and 0.0 for one value, and the sub-query may tell them apart. So behind the columns comes, for
each that is a floating number, whether it is -0.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from transom.core.errors import UnsupportedError
from transom.core.schema import BOOLEAN
from transom.plan.algebra import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    OuterJoin,
    Project,
    Relation,
    SetOperation,
    TopN,
    Unnest,
)
from transom.plan.expression import (
    Call,
    Case,
    ColumnRef,
    Expression,
    Literal,
    conjunction,
    conjuncts,
)
from transom.plan.rewrites.outer_columns import outer_columns, over_row


def per_row(around: Relation, query: Relation) -> tuple[Relation, tuple[Expression, ...]]:
    """The rows of the sub-query for each row around, behind what is carried of it, and what that is in its terms."""
    read = tuple(sorted((each for each in outer_columns(query) if each.depth == 1), key=lambda each: each.index))
    signed = tuple(each for each in read if pa.types.is_floating(each.type))
    carried = (*read, *map(_is_minus_zero, signed))
    values = tuple(over_row(each, _nothing, lambda i: columns(around)[i]) for each in carried)
    names = tuple(each.name for each in (*read, *signed))
    at = {each.index: i for i, each in enumerate(read)}
    sign_at = {each.index: len(read) + i for i, each in enumerate(signed)}
    return _PerRow(Distinct(Project(around, values, names)), at, sign_at).of(query), carried


def same_row(sub_query: Relation, carried: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """That a row of `per_row` belongs to the row around."""
    return tuple(
        part for each, column in zip(carried, columns(sub_query), strict=False) for part in same_values(each, column)
    )


def columns(relation: Relation) -> tuple[Expression, ...]:
    """All columns of a relation, as they are."""
    return tuple(ColumnRef(i, column.type, column.name) for i, column in enumerate(relation.schema))


class _PerRow:
    def __init__(self, rows: Relation, at: dict[int, int], sign_at: dict[int, int]) -> None:
        self.rows = rows
        self.at = at
        self.sign_at = sign_at
        self.width = len(rows.schema)

    def of(self, node: Relation) -> Relation:
        """The node for each of the rows; the columns of these come first."""
        if not outer_columns(node):
            return Join((self.rows, node), None)
        if isinstance(node, Filter):
            below = self.of(node.input)
            return Filter(below, self._over(node.predicate, below))
        if isinstance(node, Project):
            below = self.of(node.input)
            values = tuple(self._over(value, below) for value in node.expressions)
            return Project(below, (*columns(below)[: self.width], *values), self._named(node.names))
        if isinstance(node, Distinct):
            return Distinct(self.of(node.input))
        if isinstance(node, Unnest):
            below = self.of(node.input)
            return replace(node, input=below, array=self._over(node.array, below))
        if isinstance(node, SetOperation):
            return replace(node, left=self.of(node.left), right=self.of(node.right))
        if isinstance(node, Aggregate):
            return self._aggregate(node)
        if isinstance(node, TopN):
            return self._top_n(node)
        if isinstance(node, Join):
            return self._join(node)
        if isinstance(node, OuterJoin) and node.side == "left":
            return self._left_join(node)
        raise UnsupportedError(
            "this sub-query reads the row around it where it cannot be computed for all rows at once",
            remedy="write the condition in the WHERE of the sub-query, or in that of the query around it",
        )

    def _named(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return (*self.rows.schema.names, *names)

    def _around(self, index: int, carried: Callable[[int], Expression]) -> Expression:
        """A column of the row around, by the columns that are carried of it."""
        value = carried(self.at[index])
        if index not in self.sign_at:
            return value
        zero = Call("negate", (Literal(0.0, value.type),), value.type)
        return Case((carried(self.sign_at[index]),), (zero,), value)

    def _over(self, expression: Expression, below: Relation) -> Expression:
        """Over the row itself behind what is read of the row around."""
        schema = below.schema

        def column(i: int) -> Expression:
            return ColumnRef(i, schema[i].type, schema[i].name)

        return over_row(expression, lambda i: column(self.width + i), lambda i: self._around(i, column))

    def _aggregate(self, node: Aggregate) -> Relation:
        below = self.of(node.input)
        rows = columns(below)[: self.width]
        calls = tuple(call.over(lambda each: self._over(each, below)) for call in node.calls)
        keys = tuple(self._over(key, below) for key in node.keys)
        names = self._named(node.names)
        grouped = Aggregate(below, (*rows, *keys), calls, names, True)
        if node.grouped:
            return grouped
        # Over nothing there is a row as well: COUNT is 0 there, all others are NULL.
        ours = columns(self.rows)
        theirs = tuple(ColumnRef(self.width + i, c.type, c.name) for i, c in enumerate(grouped.schema))
        same = tuple(part for our, other in zip(ours, theirs, strict=False) for part in same_values(our, other))
        predicate = conjunction(same)
        assert predicate is not None
        joined = OuterJoin(self.rows, grouped, "left", predicate)
        values: list[Expression] = []
        for call, value in zip(calls, theirs[self.width :], strict=True):
            nothing = Literal(0, value.type)
            values.append(Call("coalesce", (value, nothing), value.type) if call.function == "count" else value)
        return Project(joined, (*ours, *values), names)

    def _top_n(self, node: TopN) -> Relation:
        """The first rows for each of the rows around."""
        partition = (*range(self.width), *(self.width + i for i in node.partition))
        order = tuple(replace(key, column=self.width + key.column) for key in node.order)
        return replace(node, input=self.of(node.input), partition=partition, order=order)

    def _join(self, node: Join) -> Relation:
        """The inputs that read the row around come with it, and meet on it."""
        relations: list[Relation] = []
        at: list[int] = []  # where each column of the join is now
        parts: list[Expression] = []
        first: list[Expression] | None = None
        width = 0
        for each in node.relations:
            reads = bool(outer_columns(each))
            below = self.of(each) if reads or (first is None and not self._reads(node.relations)) else each
            carried = len(below.schema) - len(each.schema)
            moved = [ColumnRef(width + i, c.type, c.name) for i, c in enumerate(below.schema)]
            if carried and first is None:
                first = list(moved[: self.width])
            elif carried and first is not None:
                parts += [p for left, right in zip(first, moved, strict=False) for p in same_values(left, right)]
            at += range(width + carried, width + len(below.schema))
            relations.append(below)
            width += len(below.schema)
        assert first is not None
        names = [column.name for each in relations for column in each.schema]
        types = [column.type for each in relations for column in each.schema]
        rows = first

        def column(i: int) -> Expression:
            return ColumnRef(at[i], types[at[i]], names[at[i]])

        for part in conjuncts(node.predicate):
            parts.append(over_row(part, column, lambda i: self._around(i, rows.__getitem__)))
        joined = Join(tuple(relations), conjunction(tuple(parts)))
        values = (*rows, *(column(i) for i in range(len(at))))
        return Project(joined, values, self._named(tuple(node.schema.names)))

    def _reads(self, relations: tuple[Relation, ...]) -> bool:
        return any(outer_columns(each) for each in relations)

    def _left_join(self, node: OuterJoin) -> Relation:
        """What is carried comes from the left; the right, if it reads the row around as well, meets it there."""
        left = self.of(node.left)
        right = self.of(node.right) if outer_columns(node.right) else node.right
        carried = len(right.schema) - len(node.right.schema)
        schema = (*left.schema, *right.schema)
        split = len(node.left.schema)

        def column(i: int) -> Expression:
            moved = self.width + i + (carried if i >= split else 0)
            return ColumnRef(moved, schema[moved].type, schema[moved].name)

        def row(i: int) -> Expression:
            return ColumnRef(i, schema[i].type, schema[i].name)

        parts = [over_row(part, column, lambda i: self._around(i, row)) for part in conjuncts(node.predicate)]
        for i in range(carried):
            parts += same_values(row(i), row(len(left.schema) + i))
        predicate = conjunction(tuple(parts))
        assert predicate is not None
        joined = OuterJoin(left, right, "left", predicate)
        values = (*(row(i) for i in range(self.width)), *(column(i) for i in range(len(node.schema))))
        return Project(joined, values, self._named(tuple(node.schema.names)))


def _nothing(index: int) -> Expression:
    raise AssertionError("what is carried reads the row around alone")


def _is_minus_zero(value: Expression) -> Expression:
    zero, unit = Literal(0.0, value.type), Literal(1.0, value.type)
    below = Call("<", (Call("/", (unit, value), value.type), zero), BOOLEAN)
    return Case((Call("=", (value, zero), BOOLEAN),), (below,), Literal(False, BOOLEAN))


def same_values(left: Expression, right: Expression) -> tuple[Expression, ...]:
    """That two values are the same, NULL and NULL among them, as equalities: those are looked up and not tried."""
    value = _any_value(left.type)
    if value is None:
        return (Call("is_not_distinct", (left, right), BOOLEAN),)
    filled = tuple(Call("coalesce", (each, value), left.type) for each in (left, right))
    null = tuple(Call("is_null", (each,), BOOLEAN) for each in (left, right))
    return Call("=", filled, BOOLEAN), Call("=", null, BOOLEAN)


def _any_value(type_: pa.DataType) -> Literal | None:
    kinds: tuple[tuple[bool, Any], ...] = (
        (pa.types.is_boolean(type_), False),
        (pa.types.is_integer(type_), 0),
        (pa.types.is_floating(type_), 0.0),
        (pa.types.is_decimal(type_), Decimal(0)),
        (pa.types.is_string(type_), ""),
        (pa.types.is_date(type_), date(1970, 1, 1)),
        (pa.types.is_timestamp(type_), datetime(1970, 1, 1)),
    )
    return next((Literal(value, type_) for fits, value in kinds if fits), None)
