"""Covariances equal those of exact fractions, whatever came and went before."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.aggregate.test_exact_variance import NUMBERS, WHOLE
from transom.core.delta import Int64s
from transom.kernels.aggregate.exact_covariance import FLOAT_WIDTH, SCRATCH, WHOLE_WIDTH, add, covariance
from transom.runtimes.reference.exact import exact_covariance

Cells = tuple[np.int64, np.uint64]


def of_float(number: float) -> Cells:
    return np.int64(0), np.float64(number).view(np.uint64)


def of_whole(number: int) -> Cells:
    return np.int64(number >> 64), np.uint64(number & (1 << 64) - 1)


def count(total: Int64s, pairs: list[tuple[Cells, Cells]], floating: bool, way: int) -> None:
    scratch = np.zeros(SCRATCH, dtype=np.int64)
    for one, other in pairs:
        add(total, *one, *other, floating, way, scratch)


@settings(max_examples=80)
@given(
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=12), st.lists(st.tuples(NUMBERS, NUMBERS), max_size=4)
)
def test_of_floating_numbers(pairs: list[tuple[float, float]], passing: list[tuple[float, float]]) -> None:
    total = np.zeros(FLOAT_WIDTH, dtype=np.int64)
    for way, some in ((1, passing), (1, pairs), (-1, passing)):
        count(total, [(of_float(one), of_float(other)) for one, other in some], True, way)
    for sample in (False, True)[: len(pairs)]:
        assert covariance(total, len(pairs), sample, -1) == exact_covariance(pairs, sample)


@settings(max_examples=80)
@given(st.lists(st.tuples(WHOLE, WHOLE), min_size=1, max_size=12), st.sampled_from([0, 3, 9, 38]))
def test_of_whole_numbers_and_decimals(pairs: list[tuple[int, int]], places: int) -> None:
    total = np.zeros(WHOLE_WIDTH, dtype=np.int64)
    count(total, [(of_whole(one), of_whole(other)) for one, other in [*pairs, (7, -3)]], False, 1)
    count(total, [(of_whole(7), of_whole(-3))], False, -1)
    texts = [(f"{one}e-{places}", str(other)) for one, other in pairs]
    for sample in (False, True)[: len(pairs)]:
        assert covariance(total, len(pairs), sample, places) == exact_covariance(texts, sample)


def test_what_is_not_finite_counts_while_it_is_there() -> None:
    total = np.zeros(FLOAT_WIDTH, dtype=np.int64)
    count(total, [(of_float(a), of_float(b)) for a, b in ((1.0, 2.0), (3.0, math.inf), (3.0, 6.0))], True, 1)
    assert math.isnan(covariance(total, 3, False, -1))
    count(total, [(of_float(3.0), of_float(math.inf))], True, -1)
    assert covariance(total, 2, False, -1) == 2.0
