"""Instants and durations: signed 64-bit counts of microseconds since the Unix epoch, UTC.

The time domain is the years 1 to 9999. `FOREVER` is its greatest value and a determined end: whatever would end
later never ends. `tick` is the session's smallest step; instants are floored to it (semantics.md, "Time").
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

SECOND: Final = 1_000_000
FOREVER: Final = 253_402_300_799_999_999  # 9999-12-31 23:59:59.999999
BEGINNING: Final = -62_135_596_800_000_000  # 0001-01-01 00:00:00
UNBOUNDED: Final = FOREVER - BEGINNING  # a duration after which, from any instant, forever is reached

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

UNITS: Final[dict[str, int]] = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": SECOND,
    "minute": 60 * SECOND,
    "hour": 3_600 * SECOND,
    "day": 86_400 * SECOND,
    "week": 7 * 86_400 * SECOND,
}
_ABBREVIATED: Final[dict[str, str]] = {
    "us": "microsecond",
    "usec": "microsecond",
    "micro": "microsecond",
    "ms": "millisecond",
    "msec": "millisecond",
    "milli": "millisecond",
    "s": "second",
    "sec": "second",
    "m": "minute",
    "min": "minute",
    "h": "hour",
    "hr": "hour",
    "d": "day",
    "w": "week",
    "wk": "week",
}


def unit_of(word: str) -> int | None:
    """Microseconds in one of a unit written in any usual way, or None.

    >>> unit_of("mins"), unit_of("Hour"), unit_of("fortnight")
    (60000000, 3600000000, None)
    """
    name = word.lower()
    for candidate in (name, name.removesuffix("s")):
        full = _ABBREVIATED.get(candidate, candidate)
        if full in UNITS:
            return UNITS[full]
    return None


def parse_duration(text: str) -> int | None:
    """Microseconds of a text such as '30 SECONDS', '1.5 min' or '10 s'; None when it is no duration.

    >>> parse_duration("1.5 min"), parse_duration("soon")
    (90000000, None)
    """
    found = re.fullmatch(r"\s*(\d{1,100}(?:\.\d{1,100})?)\s*([A-Za-z]+)\s*", text)
    unit = unit_of(found[2]) if found else None
    if found is None or unit is None:
        return None
    whole, _, fraction = found[1].partition(".")
    scaled = int(whole + fraction) * unit
    micros, rest = divmod(scaled, 10 ** len(fraction))
    return micros if rest == 0 else None


def format_duration(micros: int) -> str:
    """The shortest exact writing of a duration.

    >>> format_duration(90_000_000)
    '90 SECOND'
    """
    for name, size in reversed(UNITS.items()):
        if micros % size == 0:
            return f"{micros // size} {name.upper()}"
    return f"{micros} MICROSECOND"


def floor_to_tick(instant: int, tick: int) -> int:
    return instant // tick * tick


def next_tick(instant: int, tick: int) -> int:
    """The first multiple of the tick after an instant."""
    return floor_to_tick(instant, tick) + tick


def to_datetime(instant: int) -> datetime:
    return (_EPOCH + timedelta(microseconds=instant)).replace(tzinfo=None)


def from_datetime(value: datetime) -> int:
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def format_instant(instant: int) -> str:
    """How people read an instant: '2024-05-01 10:00:00', with a fraction only where there is one."""
    if instant >= FOREVER:
        return "forever"
    return to_datetime(max(instant, BEGINNING)).isoformat(sep=" ")
