"""Comparisons with the rows of a query: (a, b) IN (query), a > ALL (query), a = ANY (query).

They are asked with EXISTS, and know three answers: whether a row compares so, whether one might, if NULL were known,
and else that none does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from transom.core.errors import QueryError
from transom.core.schema import BOOLEAN
from transom.plan.algebra import Filter, Relation
from transom.plan.expression import Call, Case, ColumnRef, Exists, Expression, Literal, conjunction
from transom.plan.rewrites.outer_columns import has_query, seen_from

Compared = Callable[[Expression, Expression], Expression]
"""A comparison of a value with one of a row."""


def some_row(values: Sequence[Expression], rows: Relation, compared: Compared) -> Expression:
    """Whether the values compare so with some row, column by column."""
    true, unknown = _conditions(values, rows, compared, negated=False)
    return _answer(rows, true, unknown, True)


def every_row(value: Expression, rows: Relation, compared: Compared) -> Expression:
    """Whether a value compares so with every row of one column."""
    false, unknown = _conditions((value,), rows, compared, negated=True)
    return _answer(rows, false, unknown, False)


def _conditions(
    values: Sequence[Expression], rows: Relation, compared: Compared, negated: bool
) -> tuple[Expression, Expression]:
    """When a row decides, and when it might."""
    if len(values) != len(rows.schema):
        columns = f"{len(rows.schema)} column{'s' * (len(rows.schema) != 1)}"
        raise QueryError(
            f"the query has {columns}, and is compared with {len(values)}", remedy="select as many columns"
        )
    if any(map(has_query, values)):
        raise QueryError("what is compared with a query holds one itself", remedy="compute it in a sub-query in FROM")
    read = [ColumnRef(i, each.type, each.name) for i, each in enumerate(rows.schema)]
    each = [compared(seen_from(value, 1), column) for value, column in zip(values, read, strict=True)]
    met = conjunction(tuple(each))
    assert met is not None
    return Call("not", (met,), BOOLEAN) if negated else met, Call("is_null", (met,), BOOLEAN)


def _answer(rows: Relation, decides: Expression, might: Expression, answer: bool) -> Expression:
    exist = tuple(Exists(Filter(rows, condition)) for condition in (decides, might))
    return Case(exist, (Literal(answer, BOOLEAN), Literal(None, BOOLEAN)), Literal(not answer, BOOLEAN))
