"""Expressions as closures over columns, made once for each expression and run for each batch.

A branch that may fail (an overflow, a division by zero, a text that is no number) is run on the rows that take it and on
no others: CASE, COALESCE, AND and OR guard what stands behind them. What cannot fail is run on all rows, which is cheaper
than choosing some.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.errors import EvaluationError, RefusedError
from transom.core.schema import BIGINT, BOOLEAN, DATE, REAL, VARCHAR
from transom.kernels.scalar import arithmetic, casts, comparison, dates, like, numbers, text
from transom.kernels.scalar.values import Kernel, Value, as_array
from transom.plan.expression import Call, Case, Cast, ColumnRef, Expression, Literal, walk
from transom.plan.typing_rules import is_decimal, is_float, is_integer


class Rows(Protocol):
    """Some rows of a batch, by column."""

    count: int

    def column(self, index: int) -> pa.Array: ...


class AllRows:
    __slots__ = ("batch", "count")

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.count: int = batch.num_rows

    def column(self, index: int) -> pa.Array:
        return self.batch.column(index)


class SomeRows:
    """The rows at some positions; a column is gathered when it is first asked for."""

    __slots__ = ("columns", "count", "positions", "source")

    def __init__(self, source: Rows, positions: pa.Array) -> None:
        self.source = source
        self.positions = positions
        self.count: int = len(positions)
        self.columns: dict[int, pa.Array] = {}

    def column(self, index: int) -> pa.Array:
        found = self.columns.get(index)
        if found is None:
            found = self.columns[index] = self.source.column(index).take(self.positions)
        return found


Compiled = Callable[[Rows], Value]
"""Run on at least one row. A scalar stands for the same value in all rows."""

_ONE_ROW: Final = AllRows(pa.record_batch([pa.array([None], pa.null())], names=["nothing"]))
_TRUE: Final = pa.scalar(True)
_FALSE: Final = pa.scalar(False)

_SAME: Final = {**numbers.DOUBLE_FUNCTIONS, "not": pc.invert, "is_null": pc.is_null, "upper": text.upper,
                "lower": text.lower, "length": text.length, "left": text.left, "right": text.right,
                "split_part": text.split_part, "replace": text.replace, "position": text.position}  # fmt: skip
"""Functions whose kernel depends on nothing but the values."""

_BUILT: Final[dict[str, Callable[[Call], Kernel]]] = {
    **dict.fromkeys(("+", "-", "*", "/", "//", "%", "negate", "abs"), arithmetic.arithmetic),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), comparison.comparison),
    "is_not_distinct": comparison.is_not_distinct,
    "in": comparison.is_in,
    **dict.fromkeys(("greatest", "least"), comparison.extreme),
    **dict.fromkeys(("like", "ilike"), like.like),
    "sign": numbers.sign,
    **dict.fromkeys(("floor", "ceil"), numbers.floor_or_ceil),
    "round": numbers.round_to,
    "substring": text.substring,
    **dict.fromkeys(("trim", "ltrim", "rtrim"), text.trim),
    **dict.fromkeys(("concat", "||"), text.concat),
    "repeat": text.repeat,
    **dict.fromkeys(("lpad", "rpad"), text.pad),
    **dict.fromkeys(("contains", "starts_with", "ends_with"), text.contains),
    **dict.fromkeys(("year", "quarter", "month", "week", "day", "dayofweek", "dayofyear"), dates.part),
    **dict.fromkeys(("hour", "minute", "second", "epoch"), dates.part),
    "date_trunc": dates.date_trunc,
    "date_diff": dates.date_diff,
    "add_interval": dates.add_interval,
}


@lru_cache(maxsize=4096)
def compile_expression(expression: Expression) -> Compiled:
    """The expression as a function of rows."""
    if isinstance(expression, ColumnRef):
        index = expression.index
        return lambda rows: rows.column(index)
    if isinstance(expression, Literal):
        constant = pa.scalar(expression.value, expression.type)
        return lambda rows: constant
    return _folded(expression, _compile_node(expression))


def _compile_node(expression: Expression) -> Compiled:
    if isinstance(expression, Case):
        return _case(expression)
    if isinstance(expression, Cast):
        return _apply(casts.cast(expression), (expression.operand,))
    if isinstance(expression, Call):
        if expression.function in ("and", "or"):
            return _logic(expression)
        if expression.function == "coalesce":
            return _coalesce(expression)
        same = _SAME.get(expression.function)
        return _apply(same or _BUILT[expression.function](expression), expression.arguments)
    raise RefusedError(
        f"{expression} cannot be evaluated row by row",
        remedy="write the sub-query as a join",
    )


def _folded(expression: Expression, run: Compiled) -> Compiled:
    """Constants are computed once. One that fails does so when it is used, and not in a branch that nobody takes."""
    if any(isinstance(node, ColumnRef) for node in walk(expression)):

        def column(rows: Rows) -> Value:
            value = run(rows)
            return as_array(value, rows.count) if isinstance(value, pa.Scalar) else value

        return column
    try:
        value = run(_ONE_ROW)
    except EvaluationError:
        return run
    constant = value[0] if isinstance(value, pa.Array) else value
    return lambda rows: constant


def _apply(kernel: Kernel, arguments: Sequence[Expression]) -> Compiled:
    operands = [compile_expression(argument) for argument in arguments]
    if all(not any(isinstance(node, ColumnRef) for node in walk(argument)) for argument in arguments):
        return lambda rows: kernel(*(as_array(operand(rows), 1) for operand in operands))
    if len(operands) == 1:
        (only,) = operands
        return lambda rows: kernel(only(rows))
    if len(operands) == 2:
        left, right = operands
        return lambda rows: kernel(left(rows), right(rows))
    return lambda rows: kernel(*(operand(rows) for operand in operands))


# --- choice ----------------------------------------------------------------------------------------------------------


def _case(case: Case) -> Compiled:
    conditions = [compile_expression(condition) for condition in case.conditions]
    results = [compile_expression(result) for result in case.results]
    otherwise = compile_expression(case.otherwise)
    guarded = any(can_fail(e) for e in (*case.conditions[1:], *case.results, case.otherwise))

    def run(rows: Rows) -> Value:
        value = otherwise(rows)
        for condition, result in zip(reversed(conditions), reversed(results), strict=True):
            value = pc.if_else(_true(condition(rows)), result(rows), value)
        return value

    def run_guarded(rows: Rows) -> Value:
        pieces = Pieces(rows, case.type)
        for condition, result in zip(conditions, results, strict=True):
            if pieces.left == 0:
                break
            pieces.put(_true(condition(pieces.rows)), result)
        return pieces.whole(otherwise)

    return run_guarded if guarded else run


def _true(value: Value) -> Value:
    return pc.fill_null(value, False)


def _coalesce(call: Call) -> Compiled:
    operands = [compile_expression(argument) for argument in call.arguments]
    if not any(can_fail(argument) for argument in call.arguments[1:]):
        return lambda rows: pc.coalesce(*(operand(rows) for operand in operands))

    def run(rows: Rows) -> Value:
        pieces = Pieces(rows, call.type)
        for operand in operands[:-1]:
            if pieces.left == 0:
                break
            value = operand(pieces.rows)
            pieces.put(pc.is_valid(value), lambda _, value=value: value, chosen=True)
        return pieces.whole(operands[-1])

    return run


def _logic(call: Call) -> Compiled:
    combine = comparison.LOGIC[call.function]
    settled = _FALSE if call.function == "and" else _TRUE
    compiled = compile_expression(call.arguments[0])
    for argument in call.arguments[1:]:
        compiled = _connect(combine, settled, compiled, argument)
    return compiled


def _connect(combine: Kernel, settled: pa.Scalar, left: Compiled, argument: Expression) -> Compiled:
    right = compile_expression(argument)
    if not can_fail(argument):
        return lambda rows: combine(left(rows), right(rows))

    def run(rows: Rows) -> Value:
        first = as_array(left(rows), rows.count)
        pieces = Pieces(rows, BOOLEAN)
        pieces.put(_true(pc.equal(first, settled)), lambda _: settled)
        if pieces.left == 0:
            return first
        rest = first.take(pieces.positions) if pieces.positions is not None else first
        return pieces.whole(lambda some: combine(rest, right(some)))

    return run


class Pieces:
    """A column put together from pieces: each time some of the rows that are left get their values."""

    def __init__(self, rows: Rows, type_: pa.DataType) -> None:
        self.source = rows
        self.rows = rows
        self.type = type_
        self.positions: pa.Array | None = None  # of the rows that are left; None is all
        self.done: list[tuple[pa.Array | None, pa.Array]] = []

    @property
    def left(self) -> int:
        return self.rows.count

    def put(self, takes: Value, result: Compiled, chosen: bool = False) -> None:
        """Give the rows that `takes` is true for their values; `chosen` when `result` is for all that are left."""
        mask = as_array(takes, self.left)
        if mask.true_count == 0:
            return
        here = pc.indices_nonzero(mask)
        some = SomeRows(self.rows, here)
        value = as_array(result(some), self.left if chosen else some.count)
        self.done.append((self._global(here), value.take(here) if chosen else value))
        rest = pc.indices_nonzero(pc.invert(mask))
        self.rows, self.positions = SomeRows(self.rows, rest), self._global(rest)

    def _global(self, positions: pa.Array) -> pa.Array:
        return positions if self.positions is None else self.positions.take(positions)

    def whole(self, otherwise: Compiled) -> pa.Array:
        """The column, with `otherwise` in the rows that are left."""
        if self.left:
            self.done.append((self.positions, as_array(otherwise(self.rows), self.left)))
        if len(self.done) == 1 and self.done[0][0] is None:
            return self.done[0][1]
        order = np.empty(self.source.count, dtype=np.int64)
        order[np.concatenate([positions.to_numpy() for positions, _ in self.done])] = np.arange(self.source.count)
        return pa.concat_arrays([values for _, values in self.done]).take(pa.array(order))


# --- what may fail ---------------------------------------------------------------------------------------------------


def can_fail(expression: Expression) -> bool:
    """Whether some row could make it raise an EvaluationError."""
    return any(_may_fail(node) for node in walk(expression))


def _may_fail(node: Expression) -> bool:
    if isinstance(node, Cast):
        return not node.safe and _cast_may_fail(node.operand.type, node.target)
    if not isinstance(node, Call):
        return False
    name = node.function
    if name in ("+", "-", "*", "//", "%", "negate", "abs", "round"):
        exact = not is_float(node.type)
        return exact and not (name == "-" and node.arguments[0].type == DATE and node.type == BIGINT)
    if name == "substring":
        return not text.substring_is_safe(node)
    return name in ("add_interval", "repeat", "lpad", "rpad")


def _cast_may_fail(source: pa.DataType, target: pa.DataType) -> bool:
    if VARCHAR in (source, target):
        return source == VARCHAR
    if is_decimal(target):
        return True
    if is_integer(target):
        return source != BOOLEAN and not (is_integer(source) and source.bit_width <= target.bit_width)
    return target == REAL and is_float(source)
