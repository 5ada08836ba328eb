"""The arithmetic below the totals against plain Python: products of wide numbers and counts, exact sums, tuples."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transom.kernels.aggregate import exact_sum
from transom.kernels.aggregate.accumulate import add_wide
from transom.kernels.joinagg import exact_times, wide
from transom.kernels.joinagg.tuple_index import TupleIndex
from transom.runtimes.reference.exact import exact_sum as sum_by_definition

WIDE = st.one_of(
    st.integers(-(2**127), 2**127 - 1),
    st.integers(-(2**32), 2**32),
    st.sampled_from([2**63, -(2**63), 2**64 - 1, -(2**64), 2**127 - 1, -(2**127), -1, 0, 1]),
)
COUNTS = st.one_of(st.integers(0, 2**63 - 1), st.sampled_from([0, 1, 2**31, 2**31 - 1, 2**32, 2**63 - 1]))
DOUBLES = st.one_of(
    st.floats(),
    st.sampled_from([0.1, -0.1, 5e-324, -5e-324, 1.7976931348623157e308, -0.0, math.inf, -math.inf, math.nan]),
)


@settings(max_examples=300)
@given(WIDE, COUNTS)
def test_a_product_of_a_wide_number_and_a_count(value: int, count: int) -> None:
    hi, lo, over = wide.times(*words(value), np.int64(count))
    assert (int(over) << 128) + (int(hi) << 64) + int(lo) == value * count


@settings(max_examples=300)
@given(WIDE, WIDE, st.sampled_from([1, -1]))
def test_a_sum_of_wide_numbers(value: int, other: int, sign: int) -> None:
    hi, lo, over = add_wide(*words(value), *words(other), np.int64(sign))
    assert (int(over) << 128) + (int(hi) << 64) + int(lo) == value + sign * other


def words(value: int) -> tuple[np.int64, np.uint64]:
    return np.int64(value >> 64), np.uint64(value & (2**64 - 1))


@settings(max_examples=200)
@given(COUNTS, COUNTS)
def test_products_and_sums_of_counts(a: int, b: int) -> None:
    product, left = wide.times_count(np.int64(a), np.int64(b))
    assert left == (a * b >= 2**63)
    assert left or product == a * b
    total, left = wide.add_count(np.int64(-a), np.int64(-b))
    assert left == (-a - b < -(2**63))
    assert left or total == -a - b


def rounded(total: object) -> float:
    return float(exact_sum.rounded(total))


def by_definition(terms: list[tuple[float, int]]) -> float:
    """The sum of values that count so many times, rounded once."""
    special = [value for value, count in terms if count and not math.isfinite(value)]
    if special:
        return sum_by_definition(special)
    exact = sum((Fraction(value) * count for value, count in terms if count), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


@settings(max_examples=200)
@given(st.lists(st.tuples(DOUBLES, COUNTS), max_size=6), st.lists(st.tuples(DOUBLES, COUNTS), max_size=6), COUNTS)
def test_exact_sums_of_what_counts_many_times(
    terms: list[tuple[float, int]], others: list[tuple[float, int]], times: int
) -> None:
    total = np.zeros(exact_sum.WIDTH, dtype=np.int64)
    other = np.zeros(exact_sum.WIDTH, dtype=np.int64)
    terms = [(value, count >> 4) for value, count in terms]  # all together are not more than can be counted
    few = [(value, count % 1_000) for value, count in others]
    for value, count in terms:
        exact_times.add_value(total, value, np.int64(count))
    for value, count in few:
        exact_times.add_value(other, value, np.int64(count))
    assert same(rounded(total), by_definition(terms))
    times %= 2**48
    exact_times.add_total(total, other, np.int64(times))
    assert same(rounded(total), by_definition([*terms, *((value, count * times) for value, count in few)]))
    exact_times.add_total(total, other, np.int64(-times))
    for value, count in terms:
        exact_times.add_value(total, value, np.int64(-count))
    assert rounded(total) == 0.0


def test_a_total_bears_millions_of_updates() -> None:
    random = Random(5)
    total = np.zeros(exact_sum.WIDTH, dtype=np.int64)
    one = np.zeros(exact_sum.WIDTH, dtype=np.int64)
    exact_sum.add(one, -0.3, 1)
    count = 0
    for _ in range(20_000):
        times = random.randint(1, 2**40)
        count += times
        exact_times.add_total(total, one, np.int64(times))
    assert rounded(total) == float(Fraction(-0.3) * count)


@pytest.mark.parametrize("width", [1, 3])
def test_tuples_are_numbered_forgotten_and_numbered_again(width: int) -> None:
    random = Random(width)
    index = TupleIndex.of(width)
    known: dict[tuple[int, ...], int] = {}
    for _ in range(60):
        tuples = [tuple(random.randint(0, 6) for _ in range(width)) for _ in range(random.randint(1, 150))]
        numbers, brought = index.number(np.array(tuples, dtype=np.int64).T)
        fresh = {tuples[i] for i in brought.tolist()}
        assert len(fresh) == len(brought) and fresh == set(tuples) - set(known)
        for key, number in zip(tuples, numbers.tolist(), strict=True):
            assert known.setdefault(key, number) == number
        assert len(set(known.values())) == len(known) == index.slots.in_use
        gone = random.sample(sorted(known), random.randint(0, len(known)))
        index.forget(np.array([known.pop(key) for key in gone], dtype=np.int64))
    assert index.slots.high <= 7**width + 200
