"""How long rows take from their arrival to the output of what follows from them, for streams stamped on arrival.

Durations are counted in a histogram of fixed size: below 256 nanoseconds each has a bucket of its own, above that every
power of two has 128, so that a quantile is at most 1/128 too great, however many rows were counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from transom.core.delta import Int64s

_FINE: Final = 7
"""There are two to this power buckets for every power of two."""

_LONGEST: Final = (1 << 48) - 1
"""Nanoseconds, about three days; what takes longer is counted here."""


def _bucket(nanos: int) -> int:
    shift = max(nanos.bit_length() - _FINE - 1, 0)
    return (shift << _FINE) + (nanos >> shift)


def _greatest_in(bucket: int) -> int:
    """The longest duration that falls into a bucket."""
    shift = max((bucket >> _FINE) - 1, 0)
    return ((bucket - (shift << _FINE) + 1) << shift) - 1


@dataclass
class Histogram:
    """Durations in nanoseconds, each of so many rows.

    >>> histogram = Histogram()
    >>> histogram.add(100, rows=99)
    >>> histogram.add(5_000)
    >>> histogram.quantile(0.5), histogram.quantile(0.99), histogram.quantile(1), histogram.count
    (100, 100, 5000, 100)
    """

    counts: Int64s = field(default_factory=lambda: np.zeros(_bucket(_LONGEST) + 1, dtype=np.int64))
    count: int = 0
    greatest: int = 0

    def add(self, nanos: int, rows: int = 1) -> None:
        nanos = max(nanos, 0)
        self.counts[_bucket(min(nanos, _LONGEST))] += rows
        self.count += rows
        if rows:
            self.greatest = max(self.greatest, nanos)

    def quantile(self, part: float) -> int:
        """A duration that this part of the rows did not exceed; 0 if there are none."""
        if not self.count:
            return 0
        needed = max(int(np.ceil(part * self.count)), 1)
        bucket = int(np.searchsorted(np.cumsum(self.counts), needed))
        return min(_greatest_in(bucket), self.greatest)


@dataclass(frozen=True)
class Latency:
    """From the moment at which a source handed a row over until the sink had what followed from it, in microseconds.

    `count` rows were measured. Rows that were handed over together took as long as each other.

    >>> print(Latency(1200, 90.5, 310.0, 1500.0, 12_000.0))
    latency of 1,200 rows: p50 90.5 us, p99 310 us, p99.9 1.5 ms, at most 12 ms
    """

    count: int
    p50: float
    p99: float
    p999: float
    max: float

    def __str__(self) -> str:
        marks = zip(("p50", "p99", "p99.9", "at most"), (self.p50, self.p99, self.p999, self.max), strict=True)
        return f"latency of {self.count:,} rows: " + ", ".join(f"{mark} {_duration(micros)}" for mark, micros in marks)


class Stopwatch:
    """Measures rows from their arrival until they are out; those that have not left yet are not counted.

    >>> moments = iter([1_000, 4_000])
    >>> watch = Stopwatch(lambda: next(moments))
    >>> watch.arrive(3)
    >>> watch.leave()
    >>> watch.latency
    Latency(count=3, p50=3.0, p99=3.0, p999=3.0, max=3.0)
    """

    def __init__(self, nanos: Callable[[], int] = time.perf_counter_ns) -> None:
        self._nanos = nanos
        self._histogram = Histogram()
        self._inside: list[tuple[int, int]] = []

    def arrive(self, rows: int) -> None:
        """A source has just handed over so many rows."""
        if rows:
            self._inside.append((self._nanos(), rows))

    def leave(self) -> None:
        """The sink has got everything that follows from the rows which arrived."""
        if self._inside:
            now = self._nanos()
            for arrived, rows in self._inside:
                self._histogram.add(now - arrived, rows)
            self._inside.clear()

    @property
    def latency(self) -> Latency:
        """The latency of the rows that have left."""
        histogram = self._histogram
        p50, p99, p999 = (histogram.quantile(part) / 1_000 for part in (0.5, 0.99, 0.999))
        return Latency(histogram.count, p50, p99, p999, histogram.greatest / 1_000)


def _duration(micros: float) -> str:
    """
    >>> [_duration(micros) for micros in (0.25, 12.34, 999.0, 1_234.5, 2_500_000.0)]
    ['0.25 us', '12.3 us', '999 us', '1.23 ms', '2.5 s']
    """
    for unit, size in (("s", 1_000_000.0), ("ms", 1_000.0)):
        if micros >= size:
            return f"{micros / size:.3g} {unit}"
    return f"{micros:.3g} us"
