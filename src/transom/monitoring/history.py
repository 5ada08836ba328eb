"""The last hours of each query, in numbers: the finer the nearer, in memory of fixed size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from transom.core.delta import Int64s

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

SERIES: Final = (
    "rows_per_second",
    "rows_out_per_second",
    "lag_seconds",
    "held_back_seconds",
    "rows_waiting",
    "rows_late",
    "rows_rejected",
    "state_rows",
    "state_bytes",
    "batch_seconds",
)
"""What is remembered. Of several looks that fall into one slot, their mean; of counts that only grow, the last."""

_COUNTS: Final = ("rows_late", "rows_rejected")

TIERS: Final = ((1, 600), (10, 720), (60, 1440))
"""Seconds of a slot, and how many slots: ten minutes, two hours, a day."""

MOST_QUERIES: Final = 200


class SeriesHistory:
    """Series of each query that was looked at; of those that came first none once there are too many.

    >>> history = SeriesHistory()
    >>> for second in range(3):
    ...     history.add("q", 100.0 + second, {"rows_per_second": second, "state_bytes": 8})
    >>> found = history.of("q", seconds=600, now=103)
    >>> found["time"], found["rows_per_second"], found["lag_seconds"]
    ([100, 101, 102], [0.0, 1.0, 2.0], [None, None, None])
    """

    def __init__(self) -> None:
        self._queries: dict[str, list[_Ring]] = {}

    def add(self, query: str, at: float, values: Mapping[str, float | None]) -> None:
        """`at` is in seconds since 1970; what has no value at the moment is a gap."""
        row = np.array([_number(values.get(name)) for name in SERIES])
        measured = ~np.isnan(row)
        row[~measured] = 0.0
        rings = self._queries.get(query)
        if rings is None:
            while len(self._queries) >= MOST_QUERIES:
                del self._queries[next(iter(self._queries))]
            rings = self._queries[query] = [_Ring(*tier) for tier in TIERS]
        for ring in rings:
            ring.add(at, row, measured)

    def of(self, query: str, seconds: float, now: float, since: float = 0.0) -> dict[str, list[Any]]:
        """The last so many seconds, oldest first: `time`, and a list of the same length for each series. `since`: of
        slots that begin there or later, so that what somebody knows already need not be said again."""
        rings = self._queries.get(query)
        if rings is None:
            return {"time": [], **{name: [] for name in SERIES}}
        ring = next((each for each in rings if each.seconds * each.size >= seconds), rings[-1])
        times, rows = ring.since(max(now - seconds, since))
        columns = [[None if np.isnan(value) else float(value) for value in column] for column in rows.T]
        return {"time": times.tolist(), **dict(zip(SERIES, columns, strict=True))}


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)


class _Ring:
    """The newest slots of so many seconds each; a slot that nobody looked in is not there."""

    def __init__(self, seconds: int, size: int) -> None:
        self.seconds, self.size = seconds, size
        self._slots: Int64s = np.full(size, -1, np.int64)
        self._sums = np.zeros((size, len(SERIES)))
        self._looks = np.zeros((size, len(SERIES)), np.int64)
        self._last = [SERIES.index(name) for name in _COUNTS]

    def add(self, at: float, row: Floats, measured: Bools) -> None:
        slot = int(at // self.seconds)
        index = slot % self.size
        if self._slots[index] != slot:
            self._slots[index] = slot
            self._sums[index], self._looks[index] = 0.0, 0
        self._sums[index] += row
        self._looks[index] += measured
        self._sums[index, self._last] = row[self._last]
        self._looks[index, self._last] = measured[self._last]

    def since(self, at: float) -> tuple[Int64s, Floats]:
        order = np.argsort(self._slots)
        order = order[self._slots[order] * self.seconds >= max(at - self.seconds, 0)]
        order = order[self._slots[order] >= 0]
        looks = self._looks[order]
        means = np.divide(self._sums[order], looks, out=np.full(looks.shape, np.nan), where=looks > 0)
        return self._slots[order] * self.seconds, means
