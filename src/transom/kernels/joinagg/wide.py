"""Products of 128-bit numbers and counts, and of counts.

A number is a signed high and an unsigned low word, as in kernels/aggregate/cells.py.
"""

from __future__ import annotations

import numpy as np

from transom.kernels.jit import inlined, jit

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_SMALL = 1 << 31


@jit
def product_of_words(a, b):  # type: ignore[no-untyped-def]
    """High and low word of the product of two unsigned words."""
    a_hi, a_lo = a >> _HALF, a & _LOW
    b_hi, b_lo = b >> _HALF, b & _LOW
    low = a_lo * b_lo
    middle = a_hi * b_lo + (low >> _HALF)
    other = a_lo * b_hi + (middle & _LOW)
    return a_hi * b_hi + (middle >> _HALF) + (other >> _HALF), (other << _HALF) | (low & _LOW)


@jit
def negated(hi, lo):  # type: ignore[no-untyped-def]
    low = ~lo + np.uint64(1)
    return ~hi + (np.int64(1) if low == np.uint64(0) else np.int64(0)), low


@jit
def times(hi, lo, count):  # type: ignore[no-untyped-def]
    """(hi, lo) * count as a 128-bit number, and what is over: the product is that and over * 2^128."""
    value = np.int64(lo)
    if hi == value >> np.int64(63) and -_SMALL <= value < _SMALL and -_SMALL <= count < _SMALL:
        product = value * count
        return product >> np.int64(63), np.uint64(product), np.int64(0)
    negative = (hi < 0) != (count < 0)
    if hi < 0:
        hi, lo = negated(hi, lo)
    factor = np.uint64(-count) if count < 0 else np.uint64(count)
    carried, low = product_of_words(lo, factor)
    beyond, high = product_of_words(np.uint64(hi), factor)
    high += carried
    over = np.int64(beyond) + (np.int64(1) if high < carried else np.int64(0))
    signed = np.int64(high)
    if negative:
        nothing = signed == 0 and low == np.uint64(0)
        signed, low = negated(signed, low)
        over = -over if nothing else ~over
    return signed, low, over + (np.int64(1) if signed < 0 else np.int64(0))


@inlined
def times_count(a, b):  # type: ignore[no-untyped-def]
    """a * b of two counts, none negative, and whether the product has left the range of 63 bits."""
    if a < _SMALL and b < _SMALL:
        return a * b, False
    high, low = product_of_words(np.uint64(a), np.uint64(b))
    return np.int64(low), high != np.uint64(0) or (low >> np.uint64(63)) != np.uint64(0)


@inlined
def add_count(a, b):  # type: ignore[no-untyped-def]
    """a + b as 64-bit numbers, and whether the result has left their range."""
    total = a + b
    return total, ((a ^ total) & (b ^ total)) < 0
