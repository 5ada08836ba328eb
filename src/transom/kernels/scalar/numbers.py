"""Functions of numbers: rounding, sign, roots, powers and logarithms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.schema import BIGINT, TINYINT
from transom.kernels.scalar import decimals
from transom.kernels.scalar.values import Kernel, Value, as_arrays, failure, reject_rows, valid_like, whole
from transom.plan.expression import Call, Literal
from transom.plan.typing_rules import is_decimal, is_float

Floats = npt.NDArray[np.floating[Any]]

DOUBLE_FUNCTIONS: Final[dict[str, Kernel]] = {
    "sqrt": pc.sqrt,
    "exp": pc.exp,
    "ln": pc.ln,
    "log10": pc.log10,
    "log2": pc.log2,
    "power": pc.power,
    "sin": pc.sin,
    "cos": pc.cos,
    "tan": pc.tan,
    "asin": pc.asin,
    "acos": pc.acos,
    "atan": pc.atan,
    "atan2": pc.atan2,
    "radians": lambda value: pc.multiply(value, pa.scalar(math.pi / 180)),
    "degrees": lambda value: pc.multiply(value, pa.scalar(180 / math.pi)),
    "isnan": pc.is_nan,
    "isinf": pc.is_inf,
    "isfinite": pc.is_finite,
}


def sign(call: Call) -> Kernel:
    """-1, 0 or 1; NaN has no sign and gives 0."""
    zero = pa.scalar(0, call.arguments[0].type)

    def run(value: Value) -> Value:
        positive, negative = pc.greater(value, zero), pc.less(value, zero)
        return pc.subtract(positive.cast(TINYINT), negative.cast(TINYINT))

    return run


def floor_or_ceil(call: Call) -> Kernel:
    up = call.function == "ceil"
    if is_float(call.type):
        kernel: Kernel = pc.ceil if up else pc.floor
        return kernel
    unit: int = 10 ** call.arguments[0].type.scale

    def fast(numbers: pa.Array) -> pa.Array:
        if up:
            return pc.negate(decimals.floor_division(pc.negate(numbers), unit))
        return decimals.floor_division(numbers, unit)

    def slow(number: int) -> int:
        return -(-number // unit) if up else number // unit

    return lambda value: _rescaled(value, call.type, unit, fast, slow)


def trunc(call: Call) -> Kernel:
    """Towards 0: of floats, and of decimals, which lose their places."""
    if is_float(call.type):
        kernel: Kernel = pc.trunc
        return kernel
    unit: int = 10 ** call.arguments[0].type.scale

    def slow(number: int) -> int:
        return number // unit if number >= 0 else -(-number // unit)

    return lambda value: _rescaled(value, call.type, unit, lambda numbers: pc.divide(numbers, whole(unit)), slow)


def round_to(call: Call) -> Kernel:
    """round(x, places): halves away from zero; of floats by scaling, rounding and scaling back, as DuckDB does."""
    indexes = call.arguments[1]
    assert isinstance(indexes, Literal)
    if is_float(call.type):
        return lambda value, _: _round_floats(value, indexes.value)
    if is_decimal(call.type):
        return _round_decimals(call, indexes.value)
    return _round_integers(call, indexes.value)


def half_away(values: Floats) -> Floats:
    """C's round(): to the nearest whole number, halves away from zero. Adding 0.5 would be wrong just below a half."""
    whole = np.trunc(values)
    with np.errstate(invalid="ignore"):
        away = np.abs(values - whole) >= 0.5
    return np.asarray(np.where(away, whole + np.copysign(1.0, values), whole))


def _round_floats(value: Value, indexes: int) -> Value:
    (column,) = as_arrays((value,))
    values = column.to_numpy(zero_copy_only=False).astype(np.float64)
    with np.errstate(all="ignore"):
        if indexes == 0:
            rounded = half_away(values)
        elif indexes > 0:
            unit = np.float64(10.0) ** indexes
            rounded = half_away(values * unit) / unit
            rounded = np.where(np.isfinite(rounded), rounded, values)
        else:
            unit = np.float64(10.0) ** -indexes
            rounded = half_away(values / unit) * unit
            rounded = np.where(np.isfinite(rounded) | ~np.isfinite(values), rounded, 0.0)
        rounded = rounded.astype(column.type.to_pandas_dtype())
    return valid_like(pa.array(rounded, column.type), column)


def _round_integers(call: Call, indexes: int) -> Kernel:
    if indexes >= 0:
        return lambda value, _: value
    unit, type_ = 10**-indexes, call.type
    bound = 1 << type_.bit_width - 1

    def run(value: Value, _: Value) -> Value:
        (column,) = as_arrays((value,))
        if unit > 10**18:
            rounded = [None if n is None else decimals.divide_half_away(n, unit) * unit for n in column.to_pylist()]
            for row, number in enumerate(rounded):
                if number is not None and not -bound <= number < bound:
                    raise failure(call, f"the result is beyond the range of {type_}", (column,), row)
            return pa.array(rounded, type_)
        wide = decimals.halves_away(column.cast(BIGINT), unit)
        most = (bound - 1) // unit
        bad = pc.or_(pc.greater(wide, whole(most)), pc.less(wide, whole(-most)))
        reject_rows(call, f"the result is beyond the range of {type_}", (column,), bad)
        return pc.multiply(wide, whole(unit)).cast(type_)

    return run


def _round_decimals(call: Call, indexes: int) -> Kernel:
    source = call.arguments[0].type
    if indexes >= source.scale:
        return lambda value, _: value
    unit: int = 10 ** (source.scale - indexes)
    back: int = 10 ** max(0, -indexes)

    def fast(numbers: pa.Array) -> pa.Array:
        return pc.multiply(decimals.halves_away(numbers, unit), whole(back))

    def slow(number: int) -> int:
        return decimals.divide_half_away(number, unit) * back

    def run(value: Value, _: Value) -> Value:
        result = _rescaled(value, call.type, unit, fast, slow)
        if back > 1:  # 99 without places becomes 100, which has a digit more
            bad = _too_wide(result)
            reject_rows(call, f"the result has more than {call.type.precision} digits", (value,), bad)
        return result

    return run


def _too_wide(column: pa.Array) -> pa.Array:
    bound = 10**column.type.precision
    return pa.array([n is not None and not -bound < n < bound for n in decimals.exact(column)])


def _rescaled(
    value: Value, type_: pa.DataType, unit: int, fast: Callable[[pa.Array], pa.Array], slow: Callable[[int], int]
) -> pa.Array:
    """A function of the unscaled numbers that divides them by a unit: in int64 where all of them fit."""
    (column,) = as_arrays((value,))
    numbers = decimals.unscaled(column) if unit <= 10**18 else None
    if numbers is not None:
        return decimals.scaled(fast(numbers), type_)
    return decimals.scaled_exact(decimals.map_exact(slow, decimals.exact(column)), type_)
