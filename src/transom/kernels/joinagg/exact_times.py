"""Exact sums of floating numbers that count many times: a number or a whole sum is added so many times at once.

The sums are those of kernels/aggregate/exact_sum.py; nothing is rounded, so the order and the history do not matter.

>>> from fractions import Fraction
>>> total = np.zeros(exact_sum.WIDTH, dtype=np.int64)
>>> add_value(total, 0.1, 3_000_000_000_000)
>>> exact_sum.rounded(total) == float(3_000_000_000_000 * Fraction(0.1))
True
"""

from __future__ import annotations

import math

import numpy as np

from transom.kernels.aggregate import exact_sum
from transom.kernels.jit import jit

_LOW = np.int64(0xFFFFFFFF)
_HALF = np.int64(32)
_LAST = exact_sum.CHUNKS - 1


@jit
def _add_digit(total, index, digit, low, high, sign):  # type: ignore[no-untyped-def]
    """total += sign * digit * (high, low) * 2^(32 place), with a digit and words below 2^32."""
    product = np.uint64(digit) * np.uint64(low)
    total[index] += sign * np.int64(product & np.uint64(_LOW))
    total[index + 1] += sign * np.int64(product >> np.uint64(32))
    if high:
        product = np.uint64(digit) * np.uint64(high)
        total[index + 1] += sign * np.int64(product & np.uint64(_LOW))
        total[index + 2] += sign * np.int64(product >> np.uint64(32))


@jit
def _put_off(total):  # type: ignore[no-untyped-def]
    total[exact_sum.PUT_OFF] += 1
    if total[exact_sum.PUT_OFF] >= 500:
        exact_sum.carry(total)


@jit
def add_value(total, value, count):  # type: ignore[no-untyped-def]
    """total += count * value."""
    if count == 1 or count == -1 or value == 0.0 or math.isnan(value) or math.isinf(value):
        exact_sum.add(total, value, count)
        return
    sign = np.int64(1) if count > 0 else np.int64(-1)
    many = np.int64(count) if count > 0 else np.int64(-count)
    if value < 0:
        value = -value
        sign = -sign
    mantissa, exponent = math.frexp(value)
    power = exponent + 1074 - 53
    whole = np.int64(mantissa * 9007199254740992.0)
    if power < 0:  # a subnormal: its low bits are zero
        whole >>= np.int64(-power)
        power = 0
    index = power >> 5
    shift = np.int64(power & 31)
    low, high = many & _LOW, many >> _HALF
    above = whole >> (_HALF - shift)
    _add_digit(total, index, (whole << shift) & _LOW, low, high, sign)
    _add_digit(total, index + 1, above & _LOW, low, high, sign)
    if above >> _HALF:
        _add_digit(total, index + 2, above >> _HALF, low, high, sign)
    _put_off(total)


@jit
def add_total(total, other, count):  # type: ignore[no-untyped-def]
    """total += count * other, two different sums."""
    exact_sum.carry(other)
    for kind in range(exact_sum.PLUS_INFINITY, exact_sum.WIDTH):
        total[kind] += count * other[kind]
    sign = np.int64(1) if count > 0 else np.int64(-1)
    many = np.int64(count) if count > 0 else np.int64(-count)
    low, high = many & _LOW, many >> _HALF
    negative = other[_LAST] < 0
    if negative:
        sign = -sign
    over = np.int64(0)
    for i in range(exact_sum.CHUNKS):
        digit = (-other[i] if negative else other[i]) + over
        over = np.int64(0)
        if i < _LAST:
            over = digit >> _HALF
            digit &= _LOW
        if digit == 0:
            continue
        if i + 2 < exact_sum.CHUNKS:
            _add_digit(total, i, digit, low, high, sign)
        else:  # beyond all doubles: there is room up to 2^100 of the greatest, so nothing is lost
            total[i] += sign * digit * low
            if i < _LAST:
                total[i + 1] += sign * digit * high
    _put_off(total)
