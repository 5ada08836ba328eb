"""Variances equal those of exact fractions, whatever came and went before."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from transom.kernels.aggregate.exact_variance import (
    FLOAT_WIDTH,
    SCRATCH,
    WHOLE_WIDTH,
    _divide,
    add_float,
    add_whole,
    variance,
)
from transom.runtimes.reference.exact import exact_variance

NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False), st.floats(-10, 10), st.sampled_from([5e-324, 1.7e308, 1e-160])
)
WHOLE = st.one_of(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(-9, 9), st.just(2**63))


@settings(max_examples=80)
@given(st.lists(NUMBERS, min_size=1, max_size=12), st.lists(NUMBERS, max_size=4))
def test_of_floating_numbers(numbers: list[float], passing: list[float]) -> None:
    total, scratch = np.zeros(FLOAT_WIDTH, dtype=np.int64), np.zeros(SCRATCH, dtype=np.int64)
    for sign, values in ((1, passing), (1, numbers), (-1, passing)):
        for value in values:
            add_float(total, value, sign, scratch)
    for sample in (False, True)[: len(numbers)]:
        assert variance(total, len(numbers), sample, -1) == exact_variance(numbers, sample)


@settings(max_examples=80)
@given(st.lists(WHOLE, min_size=1, max_size=12), st.sampled_from([0, 2, 9, 10, 38]))
def test_of_whole_numbers_and_decimals(numbers: list[int], places: int) -> None:
    total, scratch = np.zeros(WHOLE_WIDTH, dtype=np.int64), np.zeros(SCRATCH, dtype=np.int64)
    for value in [*numbers, 7]:
        add_whole(total, np.int64(value >> 64), np.uint64(value & (1 << 64) - 1), 1, scratch)
    add_whole(total, np.int64(0), np.uint64(7), -1, scratch)
    texts = [f"{value}e-{places}" for value in numbers]
    for sample in (False, True)[: len(numbers)]:
        assert variance(total, len(numbers), sample, places) == exact_variance(texts, sample)


def test_what_is_not_finite_counts_while_it_is_there() -> None:
    total, scratch = np.zeros(FLOAT_WIDTH, dtype=np.int64), np.zeros(SCRATCH, dtype=np.int64)
    for value in (1.0, math.inf, 3.0):
        add_float(total, value, 1, scratch)
    assert math.isnan(variance(total, 3, False, -1))
    add_float(total, math.inf, -1, scratch)
    assert variance(total, 2, False, -1) == 1.0


@given(st.integers(0, (1 << 160) - 1), st.integers(1, (1 << 62) - 1))
def test_long_division(number: int, divisor: int) -> None:
    digits: Any = np.array([number >> 32 * i & 0xFFFFFFFF for i in range(5)], dtype=np.int64)
    assert _divide(digits, np.int64(divisor)) == (number % divisor != 0)
    assert sum(int(digit) << 32 * i for i, digit in enumerate(digits)) == number // divisor
