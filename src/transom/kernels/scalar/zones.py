"""What the clocks of one time zone show when those of another show something, by Python's database of zones.

A local time that a zone skips is taken an hour later, as the clocks go forward; of one that comes twice, the later
instant: as DuckDB does. Rules go on for ever: every 400 years have the same calendar. Before 1800 there are none.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s
from transom.core.schema import BIGINT, TIMESTAMP
from transom.kernels.scalar.dates import reject_beyond_time
from transom.kernels.scalar.values import Kernel, Value, as_arrays, valid_like
from transom.plan.expression import Call, Literal

_DAY: Final = 86_400_000_000
_MICROSECOND: Final = timedelta(microseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST, _CYCLE = 1800, 2499, 400


def change_zone(call: Call) -> Kernel:
    """change_zone(moment, 'from', 'to')."""
    source, target = (each.value for each in call.arguments[1:] if isinstance(each, Literal))

    def run(moment: Value, *zones: Value) -> Value:
        (moments,) = as_arrays((moment,))
        local = moments.cast(BIGINT).fill_null(0).to_numpy()
        instants = _instants(local, source)
        shown = valid_like(pa.array(instants + _offsets(instants, target)), moments)
        reject_beyond_time(call, (moments, *zones), shown, TIMESTAMP)
        return shown.cast(TIMESTAMP)

    return run


def _instants(local: Int64s, zone: str) -> Int64s:
    """When the clocks show it: by what they were set to a day before, or what they are set to a day after."""
    before, after = local - _offsets(local - _DAY, zone), local - _offsets(local + _DAY, zone)
    by_old, by_new = (instant + _offsets(instant, zone) == local for instant in (before, after))
    return np.where(by_old & by_new, np.maximum(before, after), np.where(by_new, after, before))


def _offsets(instants: Int64s, zone: str) -> Int64s:
    """How far the clocks are ahead of UTC, in microseconds."""
    years = instants.astype("datetime64[us]").astype("datetime64[Y]").astype(np.int64) + 1970
    tables = [_of_year(zone, int(year)) for year in np.unique(years)]
    if not tables:
        return instants
    since = np.concatenate([starts for starts, _ in tables])
    return np.concatenate([offsets for _, offsets in tables])[np.searchsorted(since, instants, "right") - 1]


@lru_cache(maxsize=4096)
def _of_year(zone: str, year: int) -> tuple[Int64s, Int64s]:
    """From which instants of a year on the clocks are how far ahead."""
    start = int(np.datetime64(year - 1970, "Y").astype("datetime64[us]").astype(np.int64))
    if year < _FIRST:
        return np.array([start]), np.array([_offset(zone, datetime(_FIRST, 1, 1, tzinfo=UTC))])
    if year > _LAST:
        like = year - (year - _LAST + _CYCLE - 1) // _CYCLE * _CYCLE
        starts, offsets = _of_year(zone, like)
        return starts - starts[0] + start, offsets
    first = datetime(year, 1, 1, tzinfo=UTC)
    days = [first + timedelta(days=day) for day in range((datetime(year + 1, 1, 1, tzinfo=UTC) - first).days + 1)]
    daily_offsets = [_offset(zone, day) for day in days]
    changes = [(start, daily_offsets[0])]
    for day, (old, new) in enumerate(pairwise(daily_offsets)):
        if old != new:
            changes.append((_turn(zone, days[day], old), new))
    return np.array([at for at, _ in changes]), np.array([offset for _, offset in changes])


def _turn(zone: str, day: datetime, old: int) -> int:
    """The second of a day from which on the clocks are no longer so far ahead."""
    low, high = 0, 86_400
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(zone, day + timedelta(seconds=middle)) == old else (low, middle)
    return (day + timedelta(seconds=high) - _EPOCH) // _MICROSECOND


def _offset(zone: str, instant: datetime) -> int:
    ahead = instant.astimezone(ZoneInfo(zone)).utcoffset()
    assert ahead is not None
    return ahead // _MICROSECOND
