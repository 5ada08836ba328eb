"""Sums and averages, rounded once."""

from __future__ import annotations

import math
from itertools import permutations

import pyarrow as pa

from transom.runtimes.reference.exact import exact_average, exact_quotient, exact_sum, quotients, sums


def test_the_sum_is_the_same_in_every_order() -> None:
    assert {exact_sum(order) for order in permutations([1e16, 1.0, -1e16, 2.0**-60])} == {1.0}


def test_an_overflow_on_the_way_is_none_of_the_sum() -> None:
    assert {exact_sum(order) for order in permutations([1e308, 1e308, -1e308])} == {1e308}


def test_what_is_too_large_is_infinite() -> None:
    assert exact_sum([1e308, 1e308]) == math.inf
    assert exact_sum([-1e308, -1e308, -1e308]) == -math.inf


def test_infinities_and_nan_are_as_in_ieee() -> None:
    assert exact_sum([math.inf, -1e308, 1.0]) == math.inf
    assert math.isnan(exact_sum([math.inf, -math.inf]))
    assert math.isnan(exact_sum([1.0, math.nan]))


def test_the_average_of_floats_is_their_sum_divided_by_the_count() -> None:
    assert exact_average([0.1, 0.2, 0.3]) == math.fsum([0.1, 0.2, 0.3]) / 3


def test_the_average_of_integers_is_rounded_once() -> None:
    # The sum, 2^53 + 1 + 2^53 + 1, is no double; half of it rounds to even.
    assert exact_quotient(["9007199254740993", "9007199254740993"]) == 9007199254740992.0
    assert exact_quotient(["1", "2"]) == 1.5


def test_the_average_of_decimals_is_rounded_once() -> None:
    assert exact_quotient(["0.10", "0.20"]) == 0.15


def test_nulls_do_not_count_and_nothing_left_is_null() -> None:
    lists = pa.chunked_array([[[1.0, None], [None], [], None]])
    assert sums(lists).to_pylist() == [1.0, None, None, None]
    assert quotients(pa.chunked_array([[["1", None, "2"], [None]]])).to_pylist() == [1.5, None]
