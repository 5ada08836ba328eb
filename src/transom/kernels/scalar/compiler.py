"""Expressions as closures over columns, made once for each expression and run for each batch.

A branch that may fail (an overflow, a division by zero, a text that is no number) is run on the rows that take it and
on no others: CASE, COALESCE, AND and OR guard what stands behind them. What cannot fail is run on all rows, which is
cheaper than choosing some.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from transom.core.errors import EvaluationError, UnsupportedError
from transom.core.schema import BIGINT, BOOLEAN, DATE, JSON, REAL, VARCHAR, held_type, is_array, is_nested
from transom.kernels.nested import held, shown
from transom.kernels.scalar import (
    arithmetic,
    attempts,
    casts,
    comparison,
    dates,
    formats,
    json_values,
    like,
    nested_values,
    numbers,
    patterns,
    sort_key,
    text,
    zones,
)
from transom.kernels.scalar.rows import AllRows, Compiled, Pieces, SelectedRows
from transom.kernels.scalar.values import FALSE, TRUE, Kernel, Value, as_array, as_arrays, is_true
from transom.plan.expression import Call, Case, Cast, ColumnRef, Expression, Literal, walk
from transom.plan.python_function import PythonCall
from transom.plan.typing_rules import is_decimal, is_float, is_integer

_ONE_ROW: Final = AllRows(pa.record_batch([pa.array([None], pa.null())], names=["nothing"]))

_SAME: Final = {**numbers.DOUBLE_FUNCTIONS, **arithmetic.BITS, "not": pc.invert, "is_null": pc.is_null,
                "upper": text.upper, "lower": text.lower, "length": text.length, "ascii": text.ascii,
                "right": text.right,
                "split_part": text.split_part, "split_index": text.split_index, "replace": text.replace,
                "position": text.position, "concat_ws": text.concat_ws, "array_length": nested_values.length,
                "array_element": nested_values.as_element, "string_split": nested_values.split,
                "array_to_string": nested_values.joined, "list_concat": nested_values.concatenated,
                "list_reverse": nested_values.reversed_elements, "list_slice": nested_values.sliced,
                "translate": text.translate, "strlen": text.bytes_of,
                "last_day": dates.last_day}  # fmt: skip
"""Functions whose kernel depends on nothing but the values."""

_BUILT: Final[dict[str, Callable[[Call], Kernel]]] = {
    **dict.fromkeys(("+", "-", "*", "/", "//", "%", "negate", "abs"), arithmetic.arithmetic),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), comparison.comparison),
    **dict.fromkeys(("<<", ">>"), arithmetic.shift),
    "is_not_distinct": comparison.is_not_distinct,
    "sort_key": sort_key.sort_key,
    "in": comparison.is_in,
    **dict.fromkeys(("greatest", "least"), comparison.extreme),
    **dict.fromkeys(("like", "ilike"), like.like),
    "sign": numbers.sign,
    **dict.fromkeys(("floor", "ceil"), numbers.floor_or_ceil),
    "round": numbers.round_to,
    "substring": text.substring,
    "left": text.left,
    **dict.fromkeys(("trim", "ltrim", "rtrim"), text.trim),
    **dict.fromkeys(("concat", "||"), text.concat),
    "repeat": text.repeat,
    **dict.fromkeys(("lpad", "rpad"), text.pad),
    **dict.fromkeys(("contains", "starts_with", "ends_with"), text.contains),
    **dict.fromkeys(("year", "quarter", "month", "week", "day", "dayofweek", "dayofyear"), dates.part),
    **dict.fromkeys(("hour", "minute", "second", "millisecond", "microsecond", "isodow", "isoyear"), dates.part),
    **dict.fromkeys(("decade", "century", "epoch", "epoch_ms", "epoch_us"), dates.part),
    **dict.fromkeys(("dayname", "monthname"), dates.name_of),
    "make_date": dates.make_date,
    "time_bucket": dates.time_bucket,
    "strftime": formats.strftime,
    **dict.fromkeys(("strptime", "try_strptime"), formats.strptime),
    **dict.fromkeys(("regexp_matches", "regexp_full_match"), patterns.regexp_matches),
    "regexp_replace": patterns.regexp_replace,
    "regexp_extract": patterns.regexp_extract,
    **dict.fromkeys(("md5", "sha1", "sha256"), text.digest),
    "trunc": numbers.trunc,
    "date_trunc": dates.date_trunc,
    "date_diff": dates.date_diff,
    "add_interval": dates.add_interval,
    "add_months": dates.add_months,
    "list_value": nested_values.array,
    "struct_pack": nested_values.struct,
    "struct_extract": nested_values.field,
    "list_extract": nested_values.element,
    **dict.fromkeys(("range", "generate_series"), nested_values.series),
    **dict.fromkeys(("list_sort", "list_distinct"), nested_values.sorted_elements),
    "list_mode": nested_values.most_frequent,
    "list_contains": nested_values.contains,
    "list_position": nested_values.position,
    "change_zone": zones.change_zone,
    "unless_failed": attempts.unless_failed,
    **dict.fromkeys(("var_pop_of_sums", "var_samp_of_sums"), attempts.variance_of_sums),
    **dict.fromkeys(("json_extract", "json_extract_string", "json_value"), json_values.json_function),
    **dict.fromkeys(("json_array_length", "json_type"), json_values.json_function),
}


_TAKES_NULL: Final = {
    "is_null", "is_not_distinct", "in", "coalesce", "concat", "concat_ws", "greatest", "least", "and", "or", "sort_key",
    "list_value", "struct_pack", "list_position", "list_concat", "array_element", "string_split", "array_to_string",
    "unless_failed", "var_pop_of_sums", "var_samp_of_sums",
}  # fmt: skip
"""Functions that may have a value though an argument is NULL."""


@dataclass(frozen=True)
class Constant:
    """A compiled expression that is the same for all rows."""

    value: pa.Scalar

    def __call__(self, rows: SelectedRows) -> Value:
        return self.value


@lru_cache(maxsize=4096)
def compile_expression(expression: Expression) -> Compiled:
    """The expression as a function of rows."""
    if isinstance(expression, ColumnRef):
        index = expression.index
        return lambda rows: rows.column(index)
    if isinstance(expression, Literal):
        return Constant(pa.scalar(expression.value, held_type(expression.type)))
    if isinstance(expression, Case):
        return _case(expression)
    if isinstance(expression, Cast):
        return _apply(casts.cast(expression), (expression.operand,))
    if isinstance(expression, Call):
        return _call(expression)
    if isinstance(expression, PythonCall):
        return _python(expression)
    raise UnsupportedError(f"{expression} cannot be evaluated row by row", remedy="write the sub-query as a join")


def _call(call: Call) -> Compiled:
    if call.function in ("and", "or"):
        return _logic(call)
    if call.function == "coalesce":
        return _coalesce(call)
    if call.function in ("attempt", "fails"):
        (tried,) = call.arguments
        return (attempts.attempt if call.function == "attempt" else attempts.fails)(call, compile_expression(tried))
    if call.function not in _TAKES_NULL and any(_is_null(argument) for argument in call.arguments):
        # As in DuckDB, the other arguments are then not looked at, and cannot fail.
        return Constant(pa.scalar(None, held_type(call.type)))
    same = _SAME.get(call.function)
    return _apply(same or _BUILT[call.function](call), call.arguments)


def _python(call: PythonCall) -> Compiled:
    function = call.function
    if function.nulls == "propagate" and any(_is_null(argument) for argument in call.arguments):
        return Constant(pa.scalar(None, held_type(call.type)))
    types = [argument.type for argument in call.arguments]

    def run(*values: Value) -> Value:
        given = [shown(array, type_) for array, type_ in zip(as_arrays(values), types, strict=True)]
        return held(function.apply(given))

    return _apply(run, call.arguments)


def _is_null(expression: Expression) -> bool:
    compiled = compile_expression(expression)
    return isinstance(compiled, Constant) and not compiled.value.is_valid


def _folded(run: Compiled, operands: Sequence[Compiled]) -> Compiled:
    """Constants are computed once. One that fails does so when it is used, and not in a branch that nobody takes."""
    if all(isinstance(operand, Constant) for operand in operands):
        try:
            value = run(_ONE_ROW)
        except EvaluationError:
            return run
        return Constant(value[0] if isinstance(value, pa.Array) else value)

    def column(rows: SelectedRows) -> Value:
        value = run(rows)
        return as_array(value, rows.count) if isinstance(value, pa.Scalar) else value

    return column


def _apply(kernel: Kernel, arguments: Sequence[Expression]) -> Compiled:
    operands = [compile_expression(argument) for argument in arguments]
    return _folded(_closure(kernel, operands), operands)


def _closure(kernel: Kernel, operands: list[Compiled]) -> Compiled:
    if all(isinstance(operand, Constant) for operand in operands):  # a kernel needs a column
        return lambda rows: kernel(*(as_array(operand(rows), rows.count) for operand in operands))
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

    def run(rows: SelectedRows) -> Value:
        value = otherwise(rows)
        for condition, result in zip(reversed(conditions), reversed(results), strict=True):
            value = pc.if_else(is_true(condition(rows)), result(rows), value)
        return value

    def run_guarded(rows: SelectedRows) -> Value:
        pieces = Pieces(rows, case.type)
        for condition, result in zip(conditions, results, strict=True):
            if pieces.left == 0:
                break
            pieces.put(is_true(condition(pieces.rows)), result)
        return pieces.whole(otherwise)

    return _folded(run_guarded if guarded else run, [*conditions, *results, otherwise])


def _coalesce(call: Call) -> Compiled:
    operands = [compile_expression(argument) for argument in call.arguments]
    if not any(can_fail(argument) for argument in call.arguments[1:]):
        return _folded(lambda rows: pc.coalesce(*(operand(rows) for operand in operands)), operands)

    def run(rows: SelectedRows) -> Value:
        pieces = Pieces(rows, call.type)
        for operand in operands[:-1]:
            if pieces.left == 0:
                break
            value = operand(pieces.rows)
            pieces.put_values(pc.is_valid(value), value)
        return pieces.whole(operands[-1])

    return _folded(run, operands)


def _logic(call: Call) -> Compiled:
    """AND and OR from left to right, in a loop: they may be long."""
    combine = comparison.LOGIC[call.function]
    settled = FALSE if call.function == "and" else TRUE
    first, *others = _chain(call)
    compiled = compile_expression(first)
    parts = [(compile_expression(argument), can_fail(argument)) for argument in others]
    constant = 0
    while constant < len(parts) and isinstance(compiled, Constant):
        right, fails = parts[constant]
        link = partial(_connected, combine, settled, right, fails, compiled.value)
        compiled = _folded(link, (compiled, right))
        constant += 1
    links = [partial(_connected, combine, settled, right, fails) for right, fails in parts[constant:]]
    if not links:
        return compiled

    def run(rows: SelectedRows) -> Value:
        value = compiled(rows)
        for link in links:
            value = link(value, rows)
        return as_array(value, rows.count)

    return run


def _chain(call: Call) -> list[Expression]:
    """The parts of a AND b AND c .., which is nested on the left and may be long."""
    parts: list[Expression] = []
    node: Expression = call
    while isinstance(node, Call) and node.function == call.function:
        parts.extend(reversed(node.arguments[1:]))
        node = node.arguments[0]
    return [node, *reversed(parts)]


def _connected(
    combine: Kernel, settled: pa.Scalar, right: Compiled, fails: bool, left: Value, rows: SelectedRows
) -> Value:
    """The value so far with one part more; a part that may fail is asked about the rows that are not settled yet."""
    if not fails:
        return combine(left, right(rows))
    first = as_array(left, rows.count)
    pieces = Pieces(rows, BOOLEAN)
    pieces.put(is_true(pc.equal(first, settled)), lambda _: settled)
    if pieces.left == 0:
        return first
    rest = first.take(pieces.positions) if pieces.positions is not None else first
    return pieces.whole(lambda some: combine(rest, right(some)))


# --- what may fail ---------------------------------------------------------------------------------------------------


def can_fail(expression: Expression) -> bool:
    """Whether some row could make it raise an EvaluationError."""
    return any(_may_fail(node) for node in walk(expression))


def _may_fail(node: Expression) -> bool:
    if isinstance(node, Cast):
        return not node.safe and _cast_may_fail(node.operand.type, node.target)
    if isinstance(node, PythonCall):
        return True
    if not isinstance(node, Call):
        return False
    name = node.function
    if name in ("+", "-", "*", "//", "%", "negate", "abs", "round"):
        days_between: bool = node.arguments[0].type == DATE and node.type == BIGINT
        return not (is_float(node.arguments[0].type) or days_between)
    if name in ("substring", "left"):
        return not text.cut_is_safe(node)
    return name in _FAILING


_FAILING: Final = {
    "<<", "add_interval", "add_months", "repeat", "lpad", "rpad", "strptime", "try_strptime", "make_date",
    "time_bucket", "change_zone", "range", "generate_series", "json_extract", "json_extract_string", "json_value",
    "json_array_length", "json_type", "unless_failed",
}  # fmt: skip


def _cast_may_fail(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_null(source):
        return False
    if is_array(target):
        return source.value_type != target.value_type and _cast_may_fail(source.value_type, target.value_type)
    if is_nested(target):
        pairs = [(a.type, b.type) for a, b in zip(source, target, strict=True)]
        return any(a != b and _cast_may_fail(a, b) for a, b in pairs)
    if VARCHAR in (source, target):
        return bool(source == VARCHAR)
    if source == JSON:
        return True
    if is_decimal(target):
        return True
    if is_integer(target):
        fits: bool = source == BOOLEAN or (is_integer(source) and source.bit_width <= target.bit_width)
        return not fits
    return bool(target == REAL and is_float(source))
