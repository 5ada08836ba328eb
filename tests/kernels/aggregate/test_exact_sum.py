"""Exact sums of floating numbers: what `math.fsum` says, whatever came and went before."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from transom.kernels.aggregate.exact_sum import CHUNKS, WIDTH, add, carry, rounded

LARGEST = 1.7976931348623157e308
SMALLEST = 5e-324

FINITE = st.floats(allow_nan=False, allow_infinity=False)
TINY = st.floats(min_value=-1e-300, max_value=1e-300)
HALVES = st.sampled_from([2.0**53, 1.0, 0.5, -0.5, 2.0**-53, 2.0**-1074, -(2.0**-1074), LARGEST, -LARGEST, 0.0, -0.0])


def total_of(added: list[float], taken: list[float] | None = None) -> float:
    total = np.zeros(WIDTH, dtype=np.int64)
    for value in added:
        add(total, value, 1)
    for value in taken or []:
        add(total, value, -1)
    return float(rounded(total))


def expected(values: list[float]) -> float:
    """The nearest double of the exact sum; too large is infinite."""
    if any(math.isnan(value) for value in values) or {math.inf, -math.inf} <= set(values):
        return math.nan
    if infinite := [value for value in values if math.isinf(value)]:
        return infinite[0]
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


@settings(max_examples=100)
@given(st.lists(FINITE | TINY | HALVES, max_size=30))
@example([LARGEST, LARGEST, -LARGEST])
@example([2.0**53, 1.0, SMALLEST])
@example([-(2.0**53), -1.0])
@example([2.0**53, 3.0])
def test_the_sum_is_the_nearest_double(values: list[float]) -> None:
    found = total_of(values)
    assert same(found, expected(values))
    if math.isfinite(found) and all(abs(value) < 1e300 for value in values):  # fsum may overflow on its way
        assert found == math.fsum(values)


@settings(max_examples=100)
@given(st.lists(st.floats() | HALVES, max_size=15), st.lists(st.floats() | HALVES, max_size=15))
def test_what_came_and_went_leaves_no_trace(stays: list[float], goes: list[float]) -> None:
    assert same(total_of([*goes, *stays], goes), expected(stays))
    assert same(total_of([*stays, *goes], goes), expected(stays))


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([], 0.0),
        ([-0.0], 0.0),
        ([math.inf, 1.0], math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, -math.inf], math.nan),
        ([LARGEST, LARGEST], math.inf),
        ([-LARGEST, -LARGEST], -math.inf),
        ([LARGEST, 2.0**969], LARGEST),
        ([LARGEST, 2.0**970], math.inf),  # half of the last place: to even, which is out of range
        ([SMALLEST] * 3, 3 * SMALLEST),
        ([2.2250738585072014e-308, -SMALLEST], 2.225073858507201e-308),
    ],
)
def test_at_the_ends_of_the_range(values: list[float], total: float) -> None:
    assert same(total_of(values), total)


def test_carries_are_put_off_without_being_lost() -> None:
    total = np.zeros(WIDTH, dtype=np.int64)
    for _ in range(1_300):  # more than go without a carry
        add(total, LARGEST, 1)
        add(total, 1.0 - 2.0**-53, 1)
    assert rounded(total) == math.inf
    for _ in range(1_300):
        add(total, LARGEST, -1)
    assert rounded(total) == 1_300 * (1.0 - 2.0**-53)
    for _ in range(1_300):
        add(total, 1.0 - 2.0**-53, -1)
    carry(total)
    assert not total[:CHUNKS].any() and rounded(total) == 0.0


@settings(max_examples=50)
@given(st.lists(FINITE | TINY, max_size=20))
def test_asking_for_the_sum_does_not_change_it(values: list[float]) -> None:
    total = np.zeros(WIDTH, dtype=np.int64)
    for value in values:
        add(total, value, 1)
        rounded(total)
    assert same(float(rounded(total)), expected(values))
