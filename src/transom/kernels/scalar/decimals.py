"""Decimals as what they are: whole numbers with a scale.

Arithmetic is done on the unscaled numbers: in int64 columns as long as they fit, which is nearly always, and in
Python's own integers where they do not. Arrow's decimal kernels are not used because they widen every result by a digit
and fail at 38, where DuckDB goes on until a value overflows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.kernels.scalar.values import whole

Exact = list[int | None]


def unscaled(array: pa.Array) -> pa.Array | None:
    """The unscaled numbers as an int64 column, None when one of them needs more than 64 bits.

    >>> from decimal import Decimal
    >>> unscaled(pa.array([Decimal("1.50"), None], pa.decimal128(4, 2))).to_pylist()
    [150, None]
    """
    if len(array) == 0:
        return pa.array([], pa.int64())
    low, high = _limbs(array)
    valid = array.is_valid() if array.null_count else None
    fits = high == (low >> 63)
    if not fits.all() and (valid is None or not (fits | ~_flags(valid)).all()):
        return None
    return _with_validity(np.ascontiguousarray(low), valid, pa.int64())


def exact(array: pa.Array) -> Exact:
    """The unscaled numbers as Python integers."""
    if len(array) == 0:
        return []
    low, high = _limbs(array)
    numbers = [(h << 64) | (n & 0xFFFF_FFFF_FFFF_FFFF) for h, n in zip(high.tolist(), low.tolist(), strict=True)]
    if array.null_count == 0:
        return list(numbers)
    return [n if v else None for n, v in zip(numbers, array.is_valid().to_pylist(), strict=True)]


def scaled(numbers: pa.Array, type_: pa.DataType) -> pa.Array:
    """The decimals of an int64 column of unscaled numbers; the caller has checked that the digits suffice."""
    low = _values(numbers)
    limbs = np.empty((len(low), 2), dtype=np.int64)
    limbs[:, 0] = low
    limbs[:, 1] = low >> 63
    return _with_validity(limbs, numbers.is_valid() if numbers.null_count else None, type_)


def scaled_exact(numbers: Exact, type_: pa.DataType) -> pa.Array:
    """The decimals of unscaled Python integers, each within 38 digits."""
    data = b"".join((n or 0).to_bytes(16, "little", signed=True) for n in numbers)
    valid = pa.array([n is not None for n in numbers], pa.bool_())
    return _with_validity(np.frombuffer(data, dtype=np.int64), valid, type_, len(numbers))


def within(numbers: pa.Array, digits: int) -> pa.Array | None:
    """Which of the int64 numbers have too many digits; None when int64 cannot hold so many anyway."""
    if digits > 18:
        return None
    bound = 10**digits
    return pc.or_(pc.greater_equal(numbers, whole(bound)), pc.less_equal(numbers, whole(-bound)))


def map_exact(function: Callable[..., int | None], *columns: Sequence[int | None]) -> Exact:
    """A function of whole numbers over rows; NULL in, NULL out."""
    return [None if None in row else function(*row) for row in zip(*columns, strict=True)]


def divide_half_away(number: int, divisor: int) -> int:
    """The rounded quotient, halves away from zero.

    >>> divide_half_away(-25, 10)
    -3
    """
    quotient, rest = divmod(abs(number), divisor)
    quotient += rest * 2 >= divisor
    return quotient if number >= 0 else -quotient


def floor_division(numbers: pa.Array, divisor: int) -> pa.Array:
    """Division of an int64 column that rounds down; the divisor has up to 18 digits."""
    return _with_validity(_values(numbers) // divisor, numbers.is_valid() if numbers.null_count else None, pa.int64())


def halves_away(numbers: pa.Array, divisor: int) -> pa.Array:
    """`divide_half_away` of an int64 column; the divisor is a power of ten of up to 18 digits."""
    values = _values(numbers)
    quotient = values // divisor
    rest = values - quotient * divisor
    negative = values < 0
    # // rounds down; a negative number is rounded up unless its rest is at most the half.
    up = np.where(negative, rest * 2 > divisor, rest * 2 >= divisor)
    return _with_validity(quotient + up, numbers.is_valid() if numbers.null_count else None, pa.int64())


def _limbs(array: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    both = np.frombuffer(array.buffers()[1], dtype=np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    return both[:, 0], both[:, 1]


def _values(numbers: pa.Array) -> npt.NDArray[np.int64]:
    """The values of an int64 column, whatever stands in the place of its NULLs."""
    if len(numbers) == 0:
        return np.empty(0, dtype=np.int64)
    return np.frombuffer(numbers.buffers()[1], dtype=np.int64)[numbers.offset : numbers.offset + len(numbers)]


def _flags(valid: pa.Array) -> npt.NDArray[np.bool_]:
    flags: npt.NDArray[np.bool_] = valid.to_numpy(zero_copy_only=False)
    return flags


def _with_validity(
    data: npt.NDArray[np.int64], valid: pa.Array | None, type_: pa.DataType, rows: int | None = None
) -> pa.Array:
    bitmap = None
    if valid is not None:
        # A bitmap may begin in the middle of a byte when the column is a slice; then it is packed again.
        bitmap = (valid if valid.offset == 0 else pa.array(_flags(valid))).buffers()[1]
    return pa.Array.from_buffers(type_, len(data) if rows is None else rows, [bitmap, pa.py_buffer(data)])
