"""Sums and averages that depend on the numbers alone, not on their order (semantics.md, "The one law")."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa

from transom.core.schema import DOUBLE

_WIDE: Final = Context(prec=100)  # as many numbers of 38 digits as there can ever be


def exact_sum(numbers: Sequence[float]) -> float:
    """The correctly rounded exact sum; infinities and NaN as IEEE has them, and what is too large is infinite.

    >>> exact_sum([1e16, 1.0, -1e16]), exact_sum([1e308, 1e308, -1e308])
    (1.0, 1e+308)
    """
    if not all(math.isfinite(number) for number in numbers):
        return sum(number for number in numbers if not math.isfinite(number))
    try:
        return math.fsum(numbers)
    except OverflowError:  # perhaps on the way only: the sum itself may be finite
        return nearest(sum(map(Fraction, numbers), Fraction(0)))


def exact_average(numbers: Sequence[float]) -> float:
    """The exact sum divided by the count; what is too small to be told from 0 is 0.0, whatever its sign."""
    return exact_sum(numbers) / len(numbers) + 0.0


def exact_quotient(texts: Sequence[str]) -> float:
    """The average of integers or decimals given as text: their exact sum divided by the count, rounded once.

    >>> exact_quotient(["9007199254740993", "9007199254740993"])
    9007199254740992.0
    """
    return nearest(sum(map(Fraction, texts), Fraction(0)) / len(texts))


def exact_variance(numbers: Sequence[float] | Sequence[str], sample: bool) -> float | None:
    """The variance of floats, or of integers or decimals given as text: that of their exact values, rounded once.

    Of a sample of one there is none; with an infinite number or NaN it is NaN.

    >>> exact_variance([1e16, 1e16 + 2], False), exact_variance(["0.1"], True)
    (1.0, None)
    """
    n = len(numbers)
    if sample and n < 2:
        return None
    if not all(math.isfinite(number) for number in numbers if isinstance(number, float)):
        return math.nan
    exact = [Fraction(number) for number in numbers]
    apart = n * sum(number * number for number in exact) - sum(exact) ** 2
    return nearest(Fraction(apart) / (n * (n - 1 if sample else n)))


def exact_covariance(pairs: Sequence[Sequence[float] | Sequence[str]], sample: bool) -> float | None:
    """The covariance of pairs, in the same way.

    >>> exact_covariance([(1.0, 5.0), (2.0, 3.0), (4.0, 1.0)], False), exact_covariance([("1", "0.5")], True)
    (-2.0, None)
    """
    n = len(pairs)
    if sample and n < 2:
        return None
    if not all(math.isfinite(number) for pair in pairs for number in pair if isinstance(number, float)):
        return math.nan
    exact = [(Fraction(a), Fraction(b)) for a, b in pairs]
    sums = [sum(side, Fraction(0)) for side in zip(*exact, strict=True)]
    apart = n * sum(a * b for a, b in exact) - sums[0] * sums[1]
    return nearest(Fraction(apart) / (n * (n - 1 if sample else n)))


def exact_total(texts: Sequence[str]) -> str:
    """The sum of integers or decimals given as text, as text: nothing is lost on the way, whatever the order.

    >>> exact_total(["9" * 38, "9" * 38, "-" + "9" * 38])
    '99999999999999999999999999999999999999'
    """
    total = Decimal(0)
    for text in texts:
        total = _WIDE.add(total, Decimal(text))
    return f"{total:f}"


def nearest(number: Fraction) -> float:
    """The nearest float; Python divides integers with one correct rounding."""
    try:
        return number.numerator / number.denominator
    except OverflowError:
        return math.inf if number > 0 else -math.inf


# DuckDB calls these with a column of lists. NULLs do not count; where nothing is left to aggregate the answer is NULL.


def sums(lists: pa.ChunkedArray) -> pa.Array:
    return _each(lists, exact_sum)


def averages(lists: pa.ChunkedArray) -> pa.Array:
    return _each(lists, exact_average)


def quotients(lists: pa.ChunkedArray) -> pa.Array:
    return _each(lists, exact_quotient)


def totals(lists: pa.ChunkedArray) -> pa.Array:
    return _each(lists, exact_total, pa.string())


def exact_quantile(numbers: Sequence[float], part: int, whole: int) -> float:
    """What lies at part / whole of the way through the numbers in order, between two of them in proportion.

    >>> exact_quantile([3.0, 1.0, 2.0, 10.0], 1, 2), exact_quantile([1.0, 2.0], 95, 100)
    (2.5, 1.95)
    """
    ordered = sorted(numbers, key=lambda number: (math.isnan(number), number))
    at, left = divmod((len(ordered) - 1) * part, whole)
    low, high = ordered[at], ordered[min(at + 1, len(ordered) - 1)]
    if left == 0 or low == high:
        return low + 0.0
    return low + (high - low) * (left / whole) + 0.0


def quantiles(lists: pa.ChunkedArray, parts: pa.ChunkedArray, wholes: pa.ChunkedArray) -> pa.Array:
    triples = zip(lists.to_pylist(), parts.to_pylist(), wholes.to_pylist(), strict=True)
    return pa.array(
        [exact_quantile(values, part, whole) if values else None for values, part, whole in triples], DOUBLE
    )


def variances(sample: bool) -> Callable[[pa.ChunkedArray], pa.Array]:
    return lambda lists: _each(lists, lambda numbers: exact_variance(numbers, sample))


def covariances(sample: bool) -> Callable[[pa.ChunkedArray], pa.Array]:
    return lambda lists: _each(lists, lambda pairs: exact_covariance(pairs, sample))


def _each(lists: pa.ChunkedArray, aggregate: Callable[[list[Any]], Any], type_: pa.DataType = DOUBLE) -> pa.Array:
    not_null = [[value for value in values or () if value is not None] for values in lists.to_pylist()]
    return pa.array([aggregate(values) if values else None for values in not_null], type_)
