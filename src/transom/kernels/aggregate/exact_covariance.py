"""Covariances without any rounding on the way: the exact sums of both numbers and of their products.

A total is an array as that of `exact_variance.py`, with a sum more: signed digits of 32 bits of the sum of the first
numbers, of the second, and of the products, how many additions since the last carry, and how many pairs have a number
that is infinite or NaN. With n pairs of sums s and t and of products p the covariance is (n p - s t) / (n (n - 1)), or
/ (n n) of all; it is computed as a quotient of integers and rounded once.

>>> total, scratch = np.zeros(WHOLE_WIDTH, dtype=np.int64), np.zeros(SCRATCH, dtype=np.int64)
>>> for a, b in ((1, 5), (2, 3), (4, 1)):
...     add(total, np.int64(0), np.uint64(a), np.int64(0), np.uint64(b), False, 1, scratch)
>>> covariance(total, 3, False, 0), covariance(total, 3, True, 0)
(-2.0, -3.0)
"""

from __future__ import annotations

import math

import numpy as np

from transom.kernels.aggregate.exact_variance import (
    FLOAT_FIRST,
    FLOAT_SECOND,
    WHOLE_FIRST,
    WHOLE_SECOND,
    put,
    quotient,
)
from transom.kernels.jit import jit

FLOAT_WIDTH = 2 * FLOAT_FIRST + FLOAT_SECOND + 2
WHOLE_WIDTH = 2 * WHOLE_FIRST + WHOLE_SECOND + 2
SCRATCH = 16  # four digits of each number and eight of their product

_LOW = np.int64(0xFFFFFFFF)
_PUT_OFF = 1 << 20


@jit
def _first_of(total):  # type: ignore[no-untyped-def]
    """How many digits the sum of one of the numbers has."""
    return FLOAT_FIRST if len(total) == FLOAT_WIDTH else WHOLE_FIRST


@jit
def _digits(hi, lo, floating, digits):  # type: ignore[no-untyped-def]
    """The digits of a number without its sign; by which power of 2 they are multiplied, and the sign."""
    digits[:4] = 0
    if floating:
        value = np.uint64(lo).view(np.float64)
        mantissa, exponent = math.frexp(abs(value))
        power = np.int64(exponent + 1074 - 53)
        whole = np.int64(mantissa * 9007199254740992.0)
        if power < 0:  # a subnormal: its low bits are zero; or 0
            whole >>= min(-power, np.int64(63))
            power = np.int64(0)
        digits[0] = whole & _LOW
        digits[1] = whole >> np.int64(32)
        return power, np.int64(-1 if value < 0 else 1)
    negative = hi < 0
    if negative:
        lo = ~lo + np.uint64(1)
        hi = ~hi + (np.int64(1) if lo == np.uint64(0) else np.int64(0))
    high = np.uint64(hi)
    digits[0] = np.int64(lo & np.uint64(0xFFFFFFFF))
    digits[1] = np.int64(lo >> np.uint64(32))
    digits[2] = np.int64(high & np.uint64(0xFFFFFFFF))
    digits[3] = np.int64(high >> np.uint64(32))
    return np.int64(0), np.int64(-1 if negative else 1)


@jit
def add(total, a_hi, a_lo, b_hi, b_lo, floating, way, scratch):  # type: ignore[no-untyped-def]
    """Count a pair in (way 1) or out (-1)."""
    if floating:
        a, b = np.uint64(a_lo).view(np.float64), np.uint64(b_lo).view(np.float64)
        if not (math.isfinite(a) and math.isfinite(b)):
            total[len(total) - 1] += way
            return
    first = _first_of(total)
    a_power, a_sign = _digits(a_hi, a_lo, floating, scratch)
    b_power, b_sign = _digits(b_hi, b_lo, floating, scratch[4:])
    product = scratch[8:]
    product[:8] = 0
    for i in range(4):
        if scratch[i] == 0:
            continue
        for j in range(4):
            both = np.uint64(scratch[i]) * np.uint64(scratch[4 + j])
            product[i + j] += np.int64(both & np.uint64(0xFFFFFFFF))
            product[i + j + 1] += np.int64(both >> np.uint64(32))
    over = np.int64(0)
    for i in range(8):
        digit = product[i] + over
        over = digit >> np.int64(32)
        product[i] = digit & _LOW
    put(total[:first], scratch, 4, a_power, way * a_sign)
    put(total[first:], scratch[4:], 4, b_power, way * b_sign)
    put(total[2 * first :], product, 8, a_power + b_power, way * a_sign * b_sign)
    total[len(total) - 2] += 1
    if total[len(total) - 2] >= _PUT_OFF:
        _carry(total)


@jit
def _carry(total):  # type: ignore[no-untyped-def]
    """Bring every digit but the last of each sum into 0 .. 2^32 - 1."""
    first = _first_of(total)
    for begin, end in ((0, first), (first, 2 * first), (2 * first, len(total) - 2)):
        over = np.int64(0)
        for i in range(begin, end - 1):
            digit = total[i] + over
            over = digit >> np.int64(32)
            total[i] = digit & _LOW
        total[end - 1] += over
    total[len(total) - 2] = 0


@jit
def _size_of(digits, size):  # type: ignore[no-untyped-def]
    """The digits without their sign, in an array of a size, and whether they are negative."""
    negative = digits[len(digits) - 1] < 0
    out = np.zeros(size, dtype=np.int64)
    over = np.int64(0)
    for i in range(len(digits)):
        digit = (-digits[i] if negative else digits[i]) + over
        over = digit >> np.int64(32)
        out[i] = digit & _LOW
    out[len(digits)] = over
    return out, negative


@jit
def _times(a, b, size):  # type: ignore[no-untyped-def]
    """The product of two numbers in digits."""
    out = np.zeros(size, dtype=np.int64)
    for i in range(len(a)):
        if a[i] == 0:
            continue
        carried = np.uint64(0)
        for j in range(min(len(b), size - i)):
            whole = np.uint64(a[i]) * np.uint64(b[j]) + carried + np.uint64(out[i + j])
            out[i + j] = np.int64(whole & np.uint64(0xFFFFFFFF))
            carried = whole >> np.uint64(32)
        at = i + len(b)
        while carried != np.uint64(0) and at < size:
            whole = np.uint64(out[at]) + carried
            out[at] = np.int64(whole & np.uint64(0xFFFFFFFF))
            carried = whole >> np.uint64(32)
            at += 1
    return out


@jit
def covariance(total, n, sample, places):  # type: ignore[no-untyped-def]
    """Of n pairs, two or more for a sample; `places` behind the point of both numbers, -1 of floating ones."""
    if total[len(total) - 1] > 0:
        return np.nan
    _carry(total)
    first = _first_of(total)
    second = len(total) - 2 - 2 * first
    size = max(second, 2 * first) + 6
    products, less = _size_of(total[2 * first : len(total) - 2], second + 1)
    a, a_less = _size_of(total[:first], first + 1)
    b, b_less = _size_of(total[first : 2 * first], first + 1)
    count = np.zeros(2, dtype=np.int64)
    count[0] = n & _LOW
    count[1] = n >> np.int64(32)
    one, other = _times(products, count, size), _times(a, b, size)
    together = less != (a_less != b_less)  # n p and s t have different signs: their sizes are added up
    negative = less
    if not together:
        for i in range(size - 1, -1, -1):
            if one[i] != other[i]:
                if one[i] < other[i]:
                    one, other, negative = other, one, not less
                break
    over = np.int64(0)
    for i in range(size):
        digit = one[i] + (other[i] if together else -other[i]) + over
        over = digit >> np.int64(32)
        one[i] = digit & _LOW
    value = quotient(one, n, sample, max(places, 0), -2148 if places < 0 else 0)
    return -value if negative and value != 0.0 else value
