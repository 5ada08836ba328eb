"""Sums of floating numbers without rounding, to which numbers can be added and from which they can be taken away again.

A sum is an integer multiple of 2^-1074 in `CHUNKS` signed digits of 32 bits (a small superaccumulator). Adding touches
two digits; carries are put off. `rounded` gives the nearest double, ties to even: what `math.fsum` says, whatever the
order and the history. Infinities and NaN are counted apart, in the last three entries.

>>> total = np.zeros(WIDTH, dtype=np.int64)
>>> for value in (1e16, 1.0, -1e16):
...     add(total, value, 1)
>>> rounded(total)
1.0
"""

from __future__ import annotations

import math

import numpy as np

from transom.kernels.jit import jit

CHUNKS = 70  # 2098 bits of doubles, and room for 2^100 of them
PUT_OFF = CHUNKS  # how many additions since the last carry
PLUS_INFINITY = CHUNKS + 1
MINUS_INFINITY = CHUNKS + 2
NOT_A_NUMBER = CHUNKS + 3
WIDTH = CHUNKS + 4

_LOW = np.int64(0xFFFFFFFF)


@jit
def add(total, value, sign):  # type: ignore[no-untyped-def]
    """total += sign * value, with sign 1 or -1."""
    if math.isnan(value):
        total[NOT_A_NUMBER] += sign
        return
    if math.isinf(value):
        total[PLUS_INFINITY if value > 0 else MINUS_INFINITY] += sign
        return
    if value == 0.0:
        return
    if value < 0:
        value = -value
        sign = -sign
    mantissa, exponent = math.frexp(value)
    power = exponent + 1074 - 53  # value = (mantissa * 2^53) * 2^(power - 1074)
    whole = np.int64(mantissa * 9007199254740992.0)
    if power < 0:  # a subnormal: its low bits are zero
        whole >>= np.int64(-power)
        power = 0
    digit = power >> 5
    shift = np.int64(power & 31)
    total[digit] += sign * ((whole << shift) & _LOW)
    total[digit + 1] += sign * (whole >> (np.int64(32) - shift))
    total[PUT_OFF] += 1
    if total[PUT_OFF] >= 500:
        carry(total)


@jit
def carry(total):  # type: ignore[no-untyped-def]
    """Bring every digit but the last into 0 .. 2^32 - 1."""
    over = np.int64(0)
    for i in range(CHUNKS - 1):
        digit = total[i] + over
        over = digit >> np.int64(32)
        total[i] = digit & _LOW
    total[CHUNKS - 1] += over
    total[PUT_OFF] = 0


@jit
def rounded(total):  # type: ignore[no-untyped-def]
    """The sum as the nearest double, ties to even."""
    if total[NOT_A_NUMBER] > 0 or (total[PLUS_INFINITY] > 0 and total[MINUS_INFINITY] > 0):
        return np.nan
    if total[PLUS_INFINITY] > 0:
        return np.inf
    if total[MINUS_INFINITY] > 0:
        return -np.inf
    carry(total)
    negative = total[CHUNKS - 1] < 0
    digits = np.empty(CHUNKS, dtype=np.int64)
    over = np.int64(0)
    top = -1
    for i in range(CHUNKS):
        digit = (-total[i] if negative else total[i]) + over
        if i < CHUNKS - 1:
            over = digit >> np.int64(32)
            digit &= _LOW
        digits[i] = digit
        if digit != 0:
            top = i
    if top < 0:
        return 0.0
    bits = 0  # of the top digit
    while digits[top] >> np.int64(bits) != 0:
        bits += 1
    # The 54 highest bits as an integer (the last one decides the rounding), and whether anything is below them.
    length = 32 * top + bits
    if length <= 53:
        whole = np.float64(digits[0])
        if top >= 1:
            whole += np.float64(digits[1]) * 4294967296.0
        value = math.ldexp(whole, -1074)
        return -value if negative else value
    lowest = length - 54
    kept = np.int64(0)
    position = lowest
    taken = 0
    while taken < 54:
        digit = digits[position >> 5]
        offset = position & 31
        width = min(32 - offset, 54 - taken)
        part = (digit >> np.int64(offset)) & ((np.int64(1) << np.int64(width)) - np.int64(1))
        kept |= part << np.int64(taken)
        taken += width
        position += width
    sticky = False
    for i in range(lowest >> 5):
        if digits[i] != 0:
            sticky = True
            break
    if not sticky and (digits[lowest >> 5] & ((np.int64(1) << np.int64(lowest & 31)) - np.int64(1))) != 0:
        sticky = True
    mantissa = kept >> np.int64(1)
    if kept & np.int64(1) and (sticky or mantissa & np.int64(1)):
        mantissa += np.int64(1)
    value = math.ldexp(np.float64(mantissa), lowest + 1 - 1074)
    return -value if negative else value
