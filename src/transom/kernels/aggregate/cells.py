"""Arguments of aggregates as 128-bit cells, and results of aggregates as Arrow columns.

A cell is a signed high and an unsigned low word that order like the values: whole numbers, dates, times and decimals as
128-bit integers; floating numbers as an order word and the bits of the double; texts by their first 16 bytes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transom.core.delta import Int64s
from transom.core.errors import EvaluationError
from transom.kernels.columns import Array, fixed_array, fixed_values, is_text, storage_dtype, text_parts
from transom.kernels.jit import jit
from transom.kernels.keys import one_of_equals, ordered_doubles

Words = npt.NDArray[np.uint64]

_SIGN = np.uint64(1 << 63)
_EXACT = 2**53  # whole numbers up to here are doubles
_TOO_WIDE = 10**38


def to_cells(array: pa.Array) -> tuple[Int64s, Words]:
    """High and low words of a column."""
    if is_text(array.type):
        starts, data = text_parts(array)
        hi, lo = first_words(starts, data)
        return hi, lo
    if pa.types.is_decimal(array.type):
        values = fixed_values(array)
        return values["hi"], values["lo"]
    if pa.types.is_floating(array.type):
        doubles = one_of_equals(fixed_values(array)).astype(np.float64, copy=False)
        return (ordered_doubles(doubles) ^ _SIGN).view(np.int64), doubles.view(np.uint64)
    whole = fixed_values(array).astype(np.int64)
    return whole >> 63, whole.view(np.uint64)


@jit
def first_words(starts, data):  # type: ignore[no-untyped-def]
    """The first 16 bytes of each text, most significant first, padded with zeros; the high word's sign turned."""
    n = len(starts) - 1
    hi = np.empty(n, dtype=np.int64)
    lo = np.empty(n, dtype=np.uint64)
    for i in range(n):
        a = np.uint64(0)
        b = np.uint64(0)
        size = starts[i + 1] - starts[i]
        for j in range(16):
            byte = np.uint64(data[starts[i] + j]) if j < size else np.uint64(0)
            if j < 8:
                a = (a << np.uint64(8)) | byte
            else:
                b = (b << np.uint64(8)) | byte
        hi[i] = np.int64(a ^ np.uint64(1 << 63))
        lo[i] = b
    return hi, lo


def from_cells(type_: pa.DataType, hi: Int64s, lo: Words, valid: npt.NDArray[np.bool_]) -> pa.Array:
    """The column of a type (no text) from its cells."""
    flags = valid.astype(np.uint8)
    if pa.types.is_decimal(type_):
        return _decimals(type_, hi, lo, flags)
    if pa.types.is_floating(type_):
        return fixed_array(type_, lo.view(np.float64).astype(storage_dtype(type_)), flags)
    return fixed_array(type_, lo.view(np.int64).astype(storage_dtype(type_)), flags)


def sums(type_: pa.DataType, top: Int64s, hi: Int64s, lo: Words, n: Int64s) -> pa.Array:
    """SUM: NULL over nothing. What a SUM is at an instant has 38 digits; what it was on the way there is all one."""
    if pa.types.is_floating(type_):
        return fixed_array(type_, lo.view(np.float64), (n > 0).astype(np.uint8))
    wide = np.flatnonzero((top != 0) | (hi != lo.view(np.int64) >> 63) & (np.abs(hi.astype(np.float64)) > 5e18))
    if any(abs(_whole(top[i], hi[i], lo[i])) >= _TOO_WIDE for i in wide):
        raise EvaluationError(
            "a SUM has left the range of 38 digits", remedy="cast the column to DOUBLE before summing"
        )
    return _decimals(type_, hi, lo, (n > 0).astype(np.uint8))


def averages(floating: bool, scale: int, top: Int64s, hi: Int64s, lo: Words, n: Int64s) -> pa.Array:
    """AVG: the sum, which for floating numbers is rounded already, divided by the count."""
    count = np.maximum(n, 1)
    if floating:
        with np.errstate(invalid="ignore", over="ignore"):
            quotient = lo.view(np.float64) / count + 0.0  # no -0.0 of what is too small
        return fixed_array(pa.float64(), quotient, (n > 0).astype(np.uint8))
    whole = lo.view(np.int64)
    divisor = count.astype(np.float64) * 10.0**scale
    quotient = whole.astype(np.float64) / divisor
    fits = (top == 0) & (hi == whole >> 63) & (whole < _EXACT) & (whole > -_EXACT) & (divisor < _EXACT)
    for i in np.flatnonzero(~fits):  # rare: the division of integers is rounded once, whatever their size
        quotient[i] = _whole(top[i], hi[i], lo[i]) / (int(count[i]) * 10**scale)
    return fixed_array(pa.float64(), quotient, (n > 0).astype(np.uint8))


def _whole(top: np.int64, hi: np.int64, lo: np.uint64) -> int:
    return (int(top) << 128) + (int(hi) << 64) + int(lo)


def _decimals(type_: pa.DataType, hi: Int64s, lo: Words, flags: Array) -> pa.Array:
    pairs = np.empty(len(hi), dtype=storage_dtype(type_))
    pairs["lo"], pairs["hi"] = lo, hi
    return fixed_array(type_, pairs, flags)
