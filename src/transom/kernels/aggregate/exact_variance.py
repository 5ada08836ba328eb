"""Variances without any rounding on the way: the exact sums of the numbers and of their squares.

A total is an array: `first` signed digits of 32 bits of the sum, `second` of the sum of squares, how many additions
since the last carry, and how many of the numbers are infinite or NaN. Floating numbers count in units of 2^-1074 (their
squares of 2^-2148), whole numbers and decimals in units of their last place. With n numbers of sum s and squares q the
variance is (n q - s s) / (n (n - 1)), or / (n n) of all; it is computed as a quotient of integers and rounded once.

>>> total = np.zeros(WHOLE_WIDTH, dtype=np.int64)
>>> for value in (1, 2, 4):
...     add_whole(total, np.int64(0), np.uint64(value), 1, np.zeros(SCRATCH, dtype=np.int64))
>>> variance(total, 3, False, 0), variance(total, 3, True, 0)
(1.5555555555555556, 2.3333333333333335)
"""

from __future__ import annotations

import math

import numpy as np

from transom.kernels.jit import jit

FLOAT_FIRST, FLOAT_SECOND = 70, 140
WHOLE_FIRST, WHOLE_SECOND = 8, 14
FLOAT_WIDTH = FLOAT_FIRST + FLOAT_SECOND + 2
WHOLE_WIDTH = WHOLE_FIRST + WHOLE_SECOND + 2
SCRATCH = 12  # four digits of a number and eight of its square

_LOW = np.int64(0xFFFFFFFF)
_PUT_OFF = 1 << 20
_NINE = np.int64(1_000_000_000)


@jit
def part_of(total):  # type: ignore[no-untyped-def]
    """As much of a total as a variance takes, of one that has room for a covariance."""
    return total[: FLOAT_WIDTH if len(total) >= FLOAT_WIDTH else WHOLE_WIDTH]


@jit
def first_of(total):  # type: ignore[no-untyped-def]
    """How many digits the sum has."""
    return FLOAT_FIRST if len(total) == FLOAT_WIDTH else WHOLE_FIRST


@jit
def add_float(total, value, sign, scratch):  # type: ignore[no-untyped-def]
    """Count a floating number in (sign 1) or out (-1)."""
    if math.isnan(value) or math.isinf(value):
        total[len(total) - 1] += sign
        return
    if value == 0.0:
        return
    mantissa, exponent = math.frexp(abs(value))
    power = exponent + 1074 - 53
    whole = np.int64(mantissa * 9007199254740992.0)
    if power < 0:  # a subnormal: its low bits are zero
        whole >>= np.int64(-power)
        power = 0
    scratch[0] = whole & _LOW
    scratch[1] = whole >> np.int64(32)
    _add(total, 2, power, -sign if value < 0 else sign, sign, scratch)


@jit
def add_whole(total, hi, lo, sign, scratch):  # type: ignore[no-untyped-def]
    """Add a 128-bit whole number to a total, or take it away."""
    negative = hi < 0
    if negative:
        lo = ~lo + np.uint64(1)
        hi = ~hi + (np.int64(1) if lo == np.uint64(0) else np.int64(0))
    high = np.uint64(hi)
    scratch[0] = np.int64(lo & np.uint64(0xFFFFFFFF))
    scratch[1] = np.int64(lo >> np.uint64(32))
    scratch[2] = np.int64(high & np.uint64(0xFFFFFFFF))
    scratch[3] = np.int64(high >> np.uint64(32))
    used = 4 if high != np.uint64(0) else 2
    _add(total, used, 0, -sign if negative else sign, sign, scratch)


@jit
def _add(total, used, power, sign, sign_of_square, scratch):  # type: ignore[no-untyped-def]
    """The first `used` digits of scratch, times 2^power, and their square."""
    first = first_of(total)
    for i in range(4, 4 + 2 * used):
        scratch[i] = 0
    for i in range(used):
        for j in range(used):
            product = np.uint64(scratch[i]) * np.uint64(scratch[j])
            scratch[4 + i + j] += np.int64(product & np.uint64(0xFFFFFFFF))
            scratch[5 + i + j] += np.int64(product >> np.uint64(32))
    over = np.int64(0)
    for i in range(4, 4 + 2 * used):
        digit = scratch[i] + over
        over = digit >> np.int64(32)
        scratch[i] = digit & _LOW
    put(total, scratch[:4], used, power, sign)
    put(total[first:], scratch[4:], 2 * used, 2 * power, sign_of_square)
    total[len(total) - 2] += 1
    if total[len(total) - 2] >= _PUT_OFF:
        _carry(total)


@jit
def put(digits, number, used, power, sign):  # type: ignore[no-untyped-def]
    at = power >> 5
    shift = np.int64(power & 31)
    for i in range(used):
        if number[i] != 0:
            digits[at + i] += sign * ((number[i] << shift) & _LOW)
            digits[at + i + 1] += sign * (number[i] >> (np.int64(32) - shift))


@jit
def _carry(total):  # type: ignore[no-untyped-def]
    """Bring every digit but the last of both sums into 0 .. 2^32 - 1."""
    first = first_of(total)
    for begin, end in ((0, first), (first, len(total) - 2)):
        over = np.int64(0)
        for i in range(begin, end - 1):
            digit = total[i] + over
            over = digit >> np.int64(32)
            total[i] = digit & _LOW
        total[end - 1] += over
    total[len(total) - 2] = 0


@jit
def variance(total, n, sample, places):  # type: ignore[no-untyped-def]
    """Of n numbers, two or more for a sample; `places` behind the point of whole ones, -1 of floating ones."""
    if total[len(total) - 1] > 0:
        return np.nan
    _carry(total)
    first = first_of(total)
    second = len(total) - 2 - first
    negative = total[first - 1] < 0
    sum_ = np.zeros(first, dtype=np.int64)
    over = np.int64(0)
    low, high = first, -1
    for i in range(first):
        digit = (-total[i] if negative else total[i]) + over
        if i < first - 1:
            over = digit >> np.int64(32)
            digit &= _LOW
        sum_[i] = digit
        if digit != 0:
            high = i
            low = min(low, i)
    # n q - s s, a number that is not negative
    size = max(second, 2 * first) + 3
    numerator = np.zeros(size, dtype=np.int64)
    for part in range(2):
        factor = np.uint64((n >> np.int64(32 * part)) & _LOW)
        carried = np.uint64(0)
        if factor == np.uint64(0):
            continue
        for i in range(second + 2):
            digit = np.uint64(total[first + i]) if i < second else np.uint64(0)
            whole = digit * factor + carried + np.uint64(numerator[i + part])
            numerator[i + part] = np.int64(whole & np.uint64(0xFFFFFFFF))
            carried = whole >> np.uint64(32)
    if high >= 0:
        square = np.zeros(size, dtype=np.int64)
        for i in range(low, high + 1):
            carried = np.uint64(0)
            for j in range(low, high + 2):
                factor = np.uint64(sum_[j]) if j <= high else np.uint64(0)
                whole = np.uint64(sum_[i]) * factor + carried + np.uint64(square[i + j])
                square[i + j] = np.int64(whole & np.uint64(0xFFFFFFFF))
                carried = whole >> np.uint64(32)
        borrowed = np.int64(0)
        for i in range(size):
            digit = numerator[i] - square[i] + borrowed
            borrowed = digit >> np.int64(32)
            numerator[i] = digit & _LOW
    return quotient(numerator, n, sample, 2 * max(places, 0), -2148 if places < 0 else 0)


@jit
def quotient(numerator, n, sample, scale, exponent):  # type: ignore[no-untyped-def]
    """numerator * 2^exponent / 10^scale / (n (n - 1)), or / (n n), rounded once."""
    size = len(numerator)
    top = size - 1
    while top >= 0 and numerator[top] == 0:
        top -= 1
    if top < 0:
        return 0.0
    # The highest digits, so many that the quotient has more than 64 bits; of those below it matters whether they are 0.
    kept = (130 + (scale * 10) // 3 + 64) // 32 + 2
    digits = np.zeros(kept, dtype=np.int64)
    sticky = False
    for i in range(top + 1):
        at = i - (top - kept + 1)
        if at >= 0:
            digits[at] = numerator[i]
        elif numerator[i] != 0:
            sticky = True
    sticky = _divide(digits, n) or sticky
    sticky = _divide(digits, n - 1 if sample else n) or sticky
    while scale > 0:
        step = min(scale, 9)
        sticky = _divide(digits, _NINE if step == 9 else np.int64(10) ** np.int64(step)) or sticky
        scale -= step
    return _rounded(digits, exponent + 32 * (top - kept + 1), sticky)


@jit
def _divide(digits, divisor):  # type: ignore[no-untyped-def]
    """digits //= divisor, from the highest down; whether something was left."""
    left = np.int64(0)
    for i in range(len(digits) - 1, -1, -1):
        if divisor < 1 << 31:
            whole = (left << np.int64(32)) | digits[i]
            digits[i] = whole // divisor
            left = whole - digits[i] * divisor
            continue
        digit = np.int64(0)
        for bit in range(31, -1, -1):
            left = (left << np.int64(1)) | ((digits[i] >> np.int64(bit)) & np.int64(1))
            digit <<= np.int64(1)
            if left >= divisor:
                left -= divisor
                digit |= np.int64(1)
        digits[i] = digit
    return left != 0


@jit
def _rounded(digits, exponent, sticky):  # type: ignore[no-untyped-def]
    """The nearest double of digits * 2^exponent and, if `sticky`, a little more; ties to even."""
    top = len(digits) - 1
    while digits[top] == 0:
        top -= 1
    bits = 0
    while digits[top] >> np.int64(bits) != 0:
        bits += 1
    length = 32 * top + bits
    drop = max(length - 53, -1074 - exponent)  # bits below the last place of the result
    if drop > length:
        return 0.0
    mantissa = np.int64(0)
    half = False
    for position in range(length - 1, -1, -1):
        bit = (digits[position >> 5] >> np.int64(position & 31)) & np.int64(1)
        if position >= drop:
            mantissa = (mantissa << np.int64(1)) | bit
        elif position == drop - 1:
            half = bit != 0
        elif bit != 0:
            sticky = True
            break
    if half and (sticky or mantissa & np.int64(1)):
        mantissa += np.int64(1)
    return math.ldexp(np.float64(mantissa), drop + exponent)
