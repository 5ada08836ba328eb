"""CAST between types. A converter gives the values, and which rows it could not convert; CAST fails on them, TRY_CAST
makes them NULL.

Floats become integers to the nearest, halves to the even one; decimals and texts with halves away from zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    DURATION,
    HUGEINT,
    JSON,
    REAL,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    held_type,
    is_nested,
    sql_name,
)
from transom.kernels.nested import decoded, encoded
from transom.kernels.scalar import decimals
from transom.kernels.scalar.dates import DAY, floor_divide
from transom.kernels.scalar.json_values import as_json, from_json
from transom.kernels.scalar.nested_values import converted
from transom.kernels.scalar.numbers import half_away
from transom.kernels.scalar.read_text import reader
from transom.kernels.scalar.values import Kernel, Value, as_arrays, failure, first_true, nulled, whole
from transom.kernels.scalar.write_text import writer
from transom.plan.expression import Cast
from transom.plan.typing_rules import is_decimal, is_float, is_integer

Converted = tuple[pa.Array, pa.Array | None]
Converter = Callable[[pa.Array], Converted]

_EXACT_POWER: Final = 22
"""The greatest power of ten that a DOUBLE holds exactly."""


def cast(expression: Cast) -> Kernel:
    """The kernel of CAST or TRY_CAST."""
    if is_nested(expression.target):
        return _nested_cast(expression)
    convert = converter(expression.operand.type, expression.target)
    target = held_type(expression.target)
    reason = f"it is no {sql_name(expression.target)}"

    def run(value: Value) -> Value:
        (column,) = as_arrays((value,))
        result, bad = convert(column)
        if bad is not None and not expression.safe:
            row = first_true(bad)
            if row is not None:
                raise failure(expression, reason, (column,), row)
        return result.view(target) if result.type != target else result

    return run


def _nested_cast(expression: Cast) -> Kernel:
    """Part by part; where a part cannot be converted TRY_CAST makes that part NULL."""
    source, target = expression.operand.type, expression.target

    def run(value: Value) -> Value:
        (column,) = as_arrays((value,))
        result, bad = converted(decoded(column, source), target, converter)
        if bad and not expression.safe:
            row = next(
                i for i in range(len(column)) if converted(decoded(column.slice(i, 1), source), target, converter)[1]
            )
            raise failure(expression, f"it is no {sql_name(target)}", (decoded(column, source),), row)
        return encoded(result)

    return run


def converter(source: pa.DataType, target: pa.DataType) -> Converter:
    """How values of one type become values of another."""
    if DURATION in (source, target):  # which is held as a BIGINT
        return lambda column: (column, None)
    if target == JSON:
        return as_json
    if source == JSON:
        return (lambda column: (column, None)) if target == VARCHAR else from_json(target, converter)
    if source == VARCHAR:
        return reader(target)
    if target == VARCHAR:
        write = writer(source)
        return lambda column: (write(column), None)
    if target == BOOLEAN:
        zero = pa.scalar(0, source)
        return lambda column: (pc.not_equal(column, zero), None)
    if target in (TIMESTAMP, TIMESTAMPTZ):
        return lambda column: (column.cast(TIMESTAMP).view(target), None)
    if target == DATE:
        return lambda column: (_as_dates(column), None)
    if is_decimal(target):
        return _to_decimal(source, target)
    if is_decimal(source):
        return _from_decimal(source, target)
    if is_float(target):
        return _narrow_float if target == REAL and is_float(source) else _plain(target)
    return _float_to_integer(target) if is_float(source) else _integer_to_integer(target)


def _plain(target: pa.DataType) -> Converter:
    return lambda column: (column.cast(target, safe=False), None)


def _as_dates(moments: pa.Array) -> pa.Array:
    return floor_divide(moments.cast(BIGINT), DAY).cast(pa.int32()).cast(DATE)


# --- integers and floats ---------------------------------------------------------------------------------------------


def out_of_range(numbers: pa.Array, target: pa.DataType) -> pa.Array:
    """Which integers a narrower integer type cannot hold."""
    bound = 1 << target.bit_width - 1
    return pc.or_(pc.less(numbers, whole(-bound)), pc.greater(numbers, whole(bound - 1)))


def _integer_to_integer(target: pa.DataType) -> Converter:
    def convert(column: pa.Array) -> Converted:
        if column.type == BOOLEAN or column.type.bit_width <= target.bit_width:
            return column.cast(target), None
        bad = out_of_range(column.cast(BIGINT), target)
        return nulled(column, bad).cast(target), bad

    return convert


def _float_to_integer(target: pa.DataType) -> Converter:
    bound = float(1 << target.bit_width - 1)
    lowest, beyond = pa.scalar(-bound), pa.scalar(bound)

    def convert(column: pa.Array) -> Converted:
        rounded = pc.round(column, ndigits=0, round_mode="half_to_even").cast(pa.float64())
        # NaN compares with nothing, so the bad rows are those that are not known to be good.
        bad = pc.invert(pc.and_(pc.greater_equal(rounded, lowest), pc.less(rounded, beyond)))
        return nulled(rounded, bad).cast(target), bad

    return convert


def _narrow_float(column: pa.Array) -> Converted:
    narrow = column.cast(REAL, safe=False)
    bad = pc.and_(pc.is_inf(narrow), pc.invert(pc.is_inf(column)))
    return nulled(narrow, bad), bad


# --- decimals --------------------------------------------------------------------------------------------------------


def _to_decimal(source: pa.DataType, target: pa.DataType) -> Converter:
    if is_float(source):
        return _float_to_decimal(target)
    scale = source.scale if is_decimal(source) else 0
    shift = target.scale - scale

    def fast(numbers: pa.Array) -> pa.Array:
        if shift >= 0:
            return pc.multiply_checked(numbers, whole(10**shift))
        return decimals.halves_away(numbers, 10**-shift)

    def slow(number: int) -> int:
        return number * 10**shift if shift >= 0 else decimals.divide_half_away(number, 10**-shift)

    def convert(column: pa.Array) -> Converted:
        numbers = decimals.unscaled(column) if is_decimal(source) else column.cast(BIGINT)
        if numbers is not None and abs(shift) <= 18:
            try:
                result = fast(numbers)
            except pa.ArrowInvalid:
                pass
            else:
                bad = decimals.within(result, target.precision)
                return decimals.scaled(nulled(result, bad) if bad is not None else result, target), bad
        exact = decimals.exact(column) if is_decimal(source) else column.cast(BIGINT).to_pylist()
        return _bounded(decimals.map_exact(slow, exact), target)

    return convert


def _bounded(numbers: decimals.Exact, target: pa.DataType) -> Converted:
    bound = 10**target.precision
    bad = [n is not None and not -bound < n < bound for n in numbers]
    kept = [None if wrong else n for n, wrong in zip(numbers, bad, strict=True)]
    return decimals.scaled_exact(kept, target), pa.array(bad, BOOLEAN)


def _float_to_decimal(target: pa.DataType) -> Converter:
    """Scaled in floating point and rounded there, as DuckDB does: halves away from zero, of a HUGEINT to the even."""
    unit, bound = 10.0**target.scale, 10.0**target.precision
    to_whole = np.rint if target == HUGEINT else half_away

    def convert(column: pa.Array) -> Converted:
        with np.errstate(all="ignore"):
            scaled = to_whole(column.to_numpy(zero_copy_only=False).astype(np.float64) * unit)
            good = np.abs(scaled) < bound
        bad = pc.and_(column.is_valid(), pa.array(~good))
        if target.precision <= 18:
            # What was NULL is NaN here, and so not good either.
            numbers = pa.array(np.where(good, scaled, 0).astype(np.int64), mask=~good)
            return decimals.scaled(numbers, target), bad
        flags = zip(scaled.tolist(), good.tolist(), strict=True)
        return decimals.scaled_exact([int(number) if fine else None for number, fine in flags], target), bad

    return convert


def _from_decimal(source: pa.DataType, target: pa.DataType) -> Converter:
    if is_float(target):
        return lambda column: (_decimal_to_float(column, target), None)
    assert is_integer(target)
    round_off = _to_decimal(source, pa.decimal128(38, 0)) if source.scale else None
    bound = 1 << target.bit_width - 1

    def convert(column: pa.Array) -> Converted:
        rounded = round_off(column)[0] if round_off else column
        numbers = decimals.unscaled(rounded)
        if numbers is not None:
            bad = out_of_range(numbers, target)
            return nulled(numbers, bad).cast(target), bad
        exact = decimals.exact(rounded)
        wrong = [n is not None and not -bound <= n < bound for n in exact]
        kept = [None if w else n for n, w in zip(exact, wrong, strict=True)]
        return pa.array(kept, target), pa.array(wrong, BOOLEAN)

    return convert


def _decimal_to_float(column: pa.Array, target: pa.DataType) -> pa.Array:
    """The nearest DOUBLE, and for REAL the nearest of that."""
    scale = column.type.scale
    numbers = decimals.unscaled(column) if scale <= _EXACT_POWER else None
    if scale == 0 and column.type.precision > 18 and (numbers is None or _beyond_double(numbers)):
        doubles = pa.array([None if n is None else _huge_to_double(n) for n in decimals.exact(column)], DOUBLE)
    elif numbers is not None and not (scale and _beyond_double(numbers)):
        # One operation on two exact floats is the nearest float of the exact result.
        doubles = pc.divide(numbers.cast(DOUBLE, safe=False), pa.scalar(10.0**scale))
    else:
        exact = decimals.exact(column)
        # Python divides integers exactly and rounds once.
        doubles = pa.array([None if n is None else n / 10**scale for n in exact], DOUBLE)
    return doubles if target == DOUBLE else doubles.cast(REAL, safe=False)


def _huge_to_double(number: int) -> float:
    """A HUGEINT as DuckDB has it: the upper and the lower 64 bits rounded one by one, which may miss the nearest."""
    upper, lower = number >> 64, number & (2**64 - 1)
    if upper == -1:
        return -float(2**64 - 1 - lower) - 1.0
    return float(lower) + float(upper) * 2.0**64


def _beyond_double(numbers: pa.Array) -> bool:
    bounds = pc.min_max(numbers).as_py()
    return bounds["min"] is not None and (bounds["min"] < -(2**53) or bounds["max"] > 2**53)
