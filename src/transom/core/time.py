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
    match = re.fullmatch(r"\s*(\d{1,100}(?:\.\d{1,100})?)\s*([A-Za-z]+)\s*", text)
    unit = unit_of(match[2]) if match else None
    if match is None or unit is None:
        return None
    whole, _, fraction = match[1].partition(".")
    scaled = int(whole + fraction) * unit
    micros, rest = divmod(scaled, 10 ** len(fraction))
    return micros if rest == 0 else None


_CALENDAR: Final = {"month": 1, "mon": 1, "quarter": 3, "year": 12, "yr": 12, "y": 12, "decade": 120, "century": 1200}
_AMOUNT: Final = re.compile(r"([+-]?)(\d{1,100}(?:\.\d{1,100})?)\s*([A-Za-z]+)")
_CLOCK: Final = re.compile(r"([+-]?)(\d{1,18}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?")


def months_of(word: str) -> int | None:
    """Months in one of a unit of the calendar, which has no fixed length; None for other words.

    >>> months_of("years"), months_of("day")
    (12, None)
    """
    name = word.lower()
    return _CALENDAR.get(name, _CALENDAR.get(name.removesuffix("s")))


def parse_interval(text: str) -> tuple[int, int] | None:
    """Months and microseconds of a text such as '1 year -2 days' or '1 day 12:30:00'; None when it is none.

    >>> parse_interval("1 year -2 days"), parse_interval("01:30"), parse_interval("1.5 months")
    ((12, -172800000000), (0, 5400000000), None)
    """
    months, micros, at = 0, 0, 0
    text = text.strip()
    while at < len(text):
        if match := _CLOCK.match(text, at):
            clock = [int(match[i] or 0) for i in (2, 3, 4)]
            if max(clock[1:]) > 59:
                return None
            amount = (clock[0] * 3600 + clock[1] * 60 + clock[2]) * SECOND + int((match[5] or "").ljust(6, "0"))
            micros += -amount if match[1] == "-" else amount
        elif match := _AMOUNT.match(text, at):
            sign = -1 if match[1] == "-" else 1
            in_months, length = months_of(match[3]), parse_duration(f"{match[2]} {match[3]}")
            if in_months is not None and match[2].isdigit():
                months += sign * int(match[2]) * in_months
            elif length is not None:
                micros += sign * length
            else:
                return None
        else:
            return None
        at = match.end()
        at += len(text[at:]) - len(text[at:].lstrip())
    return (months, micros) if text else None


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
