"""Scalar expressions as Catalyst columns, so that filters and projections run in Spark before rows are packed.

The law's value is the engine's (`kernels/scalar`), which is DuckDB's. An expression becomes a Column only where Spark
gives that value for all values of the types involved, in ANSI mode and out of it, in every time zone, and cannot
raise: `to_column` gives None for all others, and they are evaluated in the fragment. What is pushed is the closed
table in `catalyst_calls`, the casts below, CASE, and the columns and constants that they are made of. Columns are
objects of Spark's API throughout; no text of a query is ever read by Spark.

Floats are shielded from the sources: file readers skip row groups by the least and the greatest value written beside
them, from which NaN is left out and where -0.0 is less than 0.0, so a bare `x > 5` over a parquet file loses rows.

The law takes watermarks, counts and rejects from all rows. So a pushed filter may drop the values of a row, but the
row's instant must still be counted: it is a condition to select by, not a `where` below the place that counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from transom.core.schema import BOOLEAN, DATE, DOUBLE, DURATION, JSON, REAL, TIMESTAMP, TIMESTAMPTZ, VARCHAR, is_nested
from transom.kernels.scalar import can_fail
from transom.plan.expression import Call, Case, Cast, ColumnRef, Expression, Literal, conjunction, conjuncts
from transom.plan.typing_rules import NULL, digits_of, is_decimal, is_float, is_integer
from transom.runtimes.spark.catalyst_calls import CALLS, balanced, connected
from transom.runtimes.spark.types import to_spark

_DEEPEST: Final = 50
"""Catalyst walks trees by recursion; a deeper expression is left to the fragment."""

_WIDEST: Final = 1000
"""So is one with more arguments to a call than this."""


def to_column(expression: Expression, columns: Sequence[Column | None]) -> Column | None:
    """The expression over columns of the Spark types of its own column types, or None when Spark may differ.

    A column that is None (see `types.declared_columns`) cannot be read, nor can what is made from it.
    """
    if isinstance(expression, ColumnRef):
        return columns[expression.index]
    return _column(expression, columns, 0)


def pushable_filter(predicate: Expression, columns: Sequence[Column | None]) -> tuple[Column | None, Expression | None]:
    """The parts of a conjunction that Catalyst can decide, as one condition, and the others in their order.

    A row passes the predicate if and only if it passes both. The condition never raises. A part stays behind one that
    stays and may fail: taken first, it would hide the failure on the rows that it drops, and whether a query fails
    would depend on what Spark happens to be able to compute.
    """
    pushed: list[Column] = []
    rest: list[Expression] = []
    failing = False
    for part in conjuncts(predicate):
        column = None if failing else to_column(part, columns)
        if column is None:
            rest.append(part)
            failing = failing or can_fail(part)
        else:
            pushed.append(column)
    return (balanced("and", pushed) if pushed else None), conjunction(tuple(rest))


def _column(expression: Expression, columns: Sequence[Column | None], depth: int) -> Column | None:
    if (
        depth > _DEEPEST or is_nested(expression.type) or expression.type in (JSON, DURATION)
    ):  # NULL within arrays is compared in another way there
        return None
    if isinstance(expression, ColumnRef):
        column = columns[expression.index]
        return _shielded(column, expression.type) if column is not None else None
    if isinstance(expression, Literal):
        return None if expression.type == NULL else literal(expression)
    if expression.type == TIMESTAMPTZ:  # Spark may go by the clocks of its session
        return None
    if isinstance(expression, Cast):
        operand = _column(expression.operand, columns, depth + 1)
        return None if operand is None else _cast(operand, expression.operand.type, expression.target)
    if isinstance(expression, Case):
        return _case(expression, columns, depth)
    if isinstance(expression, Call) and expression.function in CALLS:
        parts = connected(expression)
        if len(parts) > _WIDEST:
            return None
        arguments = _all(parts, columns, depth)
        return None if arguments is None else CALLS[expression.function](expression, arguments)
    return None


def _all(parts: Sequence[Expression], columns: Sequence[Column | None], depth: int) -> list[Column] | None:
    translated = []
    for part in parts:
        column = _column(part, columns, depth + 1)
        if column is None:
            return None
        translated.append(column)
    return translated


def _shielded(column: Column, type_: pa.DataType) -> Column:
    """A column of the same values, of which no source knows bounds: NaN where it is NaN, and otherwise the column."""
    return F.nanvl(column, F.lit(math.nan).cast(to_spark(type_))) if is_float(type_) else column


def _case(case: Case, columns: Sequence[Column | None], depth: int) -> Column | None:
    if len(case.conditions) > _WIDEST:
        return None
    conditions = _all(case.conditions, columns, depth)
    results = _all((*case.results, case.otherwise), columns, depth)
    if conditions is None or results is None:
        return None
    first, *others = zip(conditions, results[:-1], strict=True)
    return reduce(lambda whole, arm: whole.when(*arm), others, F.when(*first)).otherwise(results[-1])


def literal(constant: Literal) -> Column:
    """A constant of exactly its type.

    Decimals, dates and timestamps go as texts of one form: Python's own objects reach the JVM by way of the local
    time zone, the Julian calendar, and whatever precision the number happens to be written with.
    """
    value, type_ = pa.scalar(constant.value, constant.type).as_py(), constant.type
    if value is None or type_ in (BOOLEAN, VARCHAR, DOUBLE):
        written = F.lit(value)
    elif type_ in (TIMESTAMP, TIMESTAMPTZ):
        written = F.lit(value.isoformat(sep=" "))
    elif type_ == DATE:
        written = F.lit(value.isoformat())
    elif is_decimal(type_):
        written = F.lit(format(value, "f"))
    else:
        written = F.lit(value)
    return written.cast(to_spark(type_))


# --- casts -----------------------------------------------------------------------------------------------------------


def _cast(operand: Column, source: pa.DataType, target: pa.DataType) -> Column | None:
    """CAST and TRY_CAST, which are one where nothing can fail."""
    if target == BOOLEAN and source != VARCHAR:
        return operand != F.lit(0).cast(to_spark(source))
    return operand.cast(to_spark(target)) if _keeps(source, target) else None


def _keeps(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether both engines take every value to the same one.

    Not from text, which each reads in its own way; not to narrower numbers, which may fail; not from decimals to REAL
    (rounded twice here, once in Spark) nor from great whole decimals to DOUBLE, of which DuckDB rounds the two halves;
    and to text only what has one way to be written.
    """
    if target == VARCHAR:
        return is_integer(source) or source in (BOOLEAN, DATE)
    if source in (DATE, TIMESTAMP):
        return target in (DATE, TIMESTAMP)
    if source == BOOLEAN:
        return is_integer(target)
    if is_integer(source) or is_decimal(source):
        if is_decimal(target):
            (digits, scale), (most, indexes) = digits_of(source), digits_of(target)
            return scale <= indexes and digits - scale <= most - indexes
        if is_integer(source):
            return is_float(target) or (is_integer(target) and source.bit_width <= target.bit_width)
        return bool(target == DOUBLE and (source.scale > 0 or source.precision <= 18))
    return bool(source == REAL and target == DOUBLE)
