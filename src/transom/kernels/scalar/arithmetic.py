"""Arithmetic: + - * / // % and the negative, of integers, floats, decimals and days."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.schema import BIGINT, DATE, DOUBLE, INTEGER
from transom.kernels.scalar import casts, decimals
from transom.kernels.scalar.dates import days_moved, reject_beyond_time
from transom.kernels.scalar.values import Kernel, Value, as_arrays, failure, first_true, reject_rows, valid_like, whole
from transom.plan.expression import Call, Cast
from transom.plan.typing_rules import is_decimal, is_float

_FLOATS: Final[dict[str, Kernel]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "/": pc.divide,
    "negate": pc.negate,
    "abs": pc.abs,
}
_CHECKED: Final[dict[str, Kernel]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "//": pc.divide_checked,
    "negate": pc.negate_checked,
    "abs": pc.abs_checked,
}
_EXACT: Final[dict[str, Callable[..., int]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "negate": operator.neg,
    "abs": abs,
}


def arithmetic(call: Call) -> Kernel:
    """The kernel of + - * / // % negate abs for the types of a call."""
    name, type_ = call.function, call.type
    if call.arguments[0].type == DATE:
        return _date_difference if type_ == BIGINT else _date_shift(call)
    if name == "%":
        return _remainder(call)
    if is_decimal(type_):
        return _decimal(call)
    if is_float(type_):
        return _FLOATS[name]
    return _integer(call)


# --- integers --------------------------------------------------------------------------------------------------------


def _integer(call: Call) -> Kernel:
    kernel = _CHECKED[call.function]

    def run(*values: Value) -> Value:
        try:
            return kernel(*values)
        except pa.ArrowInvalid:
            raise _integer_failure(call, values) from None

    return run


def _integer_failure(call: Call, values: tuple[Value, ...]) -> Exception:
    """The error that names the first row that failed; looked for only once something has."""
    bound = 1 << call.type.bit_width - 1
    for row, numbers in enumerate(zip(*(a.to_pylist() for a in as_arrays(values)), strict=True)):
        if None in numbers:
            continue
        if call.function in ("//", "%"):
            if numbers[1] == 0:
                return failure(call, "division by zero", values, row)
            result = abs(numbers[0]) // abs(numbers[1])
            result = result if (numbers[0] < 0) == (numbers[1] < 0) else -result
        else:
            result = _EXACT[call.function](*numbers)
        if not -bound <= result < bound:
            return failure(call, f"the result is beyond the range of {call.type}", values, row)
    raise AssertionError("an overflow without a row")


def _remainder(call: Call) -> Kernel:
    if is_float(call.type):
        return _float_remainder if is_float(call.arguments[0].type) else _rounded_remainder(call)
    if is_decimal(call.type):
        return _decimal_division(call)

    def run(a: Value, b: Value) -> Value:
        try:
            quotient = pc.divide_checked(a, b)  # fails as DuckDB's % does: by zero, and the least number by -1
        except pa.ArrowInvalid:
            raise _integer_failure(call, (a, b)) from None
        return pc.subtract(a, pc.multiply(quotient, b))

    return run


def _float_remainder(a: Value, b: Value) -> Value:
    left, right = as_arrays((a, b))
    with np.errstate(invalid="ignore"):
        rest = np.fmod(left.to_numpy(zero_copy_only=False), right.to_numpy(zero_copy_only=False))
    return valid_like(pa.array(rest, left.type), left, right)


def _rounded_remainder(call: Call) -> Kernel:
    """% of decimals that no decimal holds both of."""
    as_double = [casts.cast(Cast(argument, DOUBLE)) for argument in call.arguments]

    def run(*values: Value) -> Value:
        left, right = (cast(column) for cast, column in zip(as_double, as_arrays(values), strict=True))
        reject_rows(call, "division by zero", values, pc.and_(pc.equal(right, pa.scalar(0.0)), left.is_valid()))
        return _float_remainder(left, right)

    return run


# --- bits ------------------------------------------------------------------------------------------------------------

BITS: Final[dict[str, Kernel]] = {
    "&": pc.bit_wise_and,
    "|": pc.bit_wise_or,
    "xor": pc.bit_wise_xor,
    "~": pc.bit_wise_not,
}


def shift(call: Call) -> Kernel:
    """<< and >>. To the right by as many bits as there are, or by less than none, nothing is left."""
    width = call.type.bit_width
    greatest = np.int64((1 << width - 1) - 1)

    def run(*values: Value) -> Value:
        columns = as_arrays(values)
        numbers, by = (column.fill_null(0).to_numpy().astype(np.int64) for column in columns)
        far = (by < 0) | (by >= width)
        within = np.where(far, 0, by)
        if call.function == ">>":
            return valid_like(pa.array(np.where(far, 0, numbers >> within)).cast(call.type), *columns)
        lost = (numbers < 0) | (by < 0) | (numbers > np.where(far, 0, greatest >> within))
        bad = valid_like(pa.array(lost), *columns)
        reject_rows(call, f"the result is beyond the range of {call.type}", values, bad)
        moved = np.where(far | lost, 0, numbers) << within
        return valid_like(pa.array(moved).cast(call.type), *columns)

    return run


# --- decimals --------------------------------------------------------------------------------------------------------


def _decimal(call: Call) -> Kernel:
    """+ - * and the sign: on the unscaled numbers, brought to the scale of the result for + and -."""
    if call.function == "//":
        return _decimal_division(call)
    kernel, slow, type_ = _CHECKED[call.function], _EXACT[call.function], call.type
    scales = [argument.type.scale for argument in call.arguments]
    units = [10 ** (type_.scale - scale) if call.function in "+-" else 1 for scale in scales]

    def run(*values: Value) -> Value:
        columns = as_arrays(values)
        numbers = [decimals.unscaled(column) for column in columns]
        if max(units) <= 10**18 and all(n is not None for n in numbers):
            try:
                aligned = zip(numbers, units, strict=True)
                result = kernel(*(n if unit == 1 else pc.multiply_checked(n, whole(unit)) for n, unit in aligned))
            except pa.ArrowInvalid:
                return exact(values, columns)
            bad = decimals.within(result, type_.precision)
            if bad is None or bad.true_count == 0:
                return decimals.scaled(result, type_)
        return exact(values, columns)

    def exact(values: tuple[Value, ...], columns: list[pa.Array]) -> pa.Array:
        sides = [decimals.exact(column) for column in columns]
        for side, unit in enumerate(units):
            if unit > 1:
                sides[side] = decimals.map_exact(lambda n, unit=unit: n * unit, sides[side])
                _check_digits(call, values, sides[side])
        return _checked_exact(call, values, decimals.map_exact(slow, *sides))

    return run


def _checked_exact(call: Call, values: tuple[Value, ...], numbers: decimals.Exact) -> pa.Array:
    _check_digits(call, values, numbers)
    return decimals.scaled_exact(numbers, call.type)


def _check_digits(call: Call, values: tuple[Value, ...], numbers: decimals.Exact) -> None:
    bound = 10**call.type.precision
    for row, number in enumerate(numbers):
        if number is not None and not -bound < number < bound:
            raise failure(call, f"the result has more than {call.type.precision} digits", values, row)


def _decimal_division(call: Call) -> Kernel:
    """% of decimals of one scale, and // of HUGEINT: towards zero, by zero an error."""
    remainder = call.function == "%"
    nought = pa.scalar(0, call.type)

    def slow(a: int, b: int) -> int:
        quotient = abs(a) // abs(b)
        quotient = quotient if (a < 0) == (b < 0) else -quotient
        return a - quotient * b if remainder else quotient

    def run(*values: Value) -> Value:
        columns = as_arrays(values)
        zero = first_true(pc.and_(pc.equal(columns[1], nought), columns[0].is_valid()))
        if zero is not None:
            raise failure(call, "division by zero", values, zero)
        numbers = [decimals.unscaled(column) for column in columns]
        if all(n is not None for n in numbers):
            try:
                quotient = pc.divide_checked(*numbers)
            except pa.ArrowInvalid:  # the least number by -1, which more than 64 bits can hold
                pass
            else:
                result = pc.subtract(numbers[0], pc.multiply(quotient, numbers[1])) if remainder else quotient
                return decimals.scaled(result, call.type)
        return _checked_exact(call, values, decimals.map_exact(slow, *(decimals.exact(c) for c in columns)))

    return run


# --- days ------------------------------------------------------------------------------------------------------------


def _date_difference(a: Value, b: Value) -> Value:
    return pc.subtract(a.cast(INTEGER).cast(BIGINT), b.cast(INTEGER).cast(BIGINT))


def _date_shift(call: Call) -> Kernel:
    sign = 1 if call.function == "+" else -1

    def run(date: Value, days: Value) -> Value:
        moved = days_moved(date, days, sign)
        reject_beyond_time(call, (date, days), moved, DATE)
        return moved.cast(INTEGER).cast(DATE)

    return run
