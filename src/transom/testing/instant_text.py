"""Instants as a test writes them: seconds, times of a day, or whole timestamps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Final
from typing import Literal as OneOf

from transom.core.errors import OptionError
from transom.core.time import BEGINNING, FOREVER, SECOND, format_instant, from_datetime, to_datetime

EXAMPLES: Final = "write seconds (4 or 4.5), a time of the day (10:00:04) or a timestamp (2024-05-01T10:00:04)"

_SECONDS: Final = re.compile(r"-?\d{1,15}(?:\.\d{1,6})?")
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d{1,6})?))?")


@dataclass
class Times:
    """Instants are shown in the way in which the first one was written. `day` is the one of times of a day.

    >>> times = Times(date(2024, 5, 1))
    >>> times.read("10:00:04.5") - times.read("2024-05-01T10:00")
    4500000
    >>> times.show(times.read("2024-05-01T11:30:00"))
    '11:30:00'
    """

    day: date = date(1970, 1, 1)
    style: OneOf["seconds", "clock", "full"] | None = None

    def read(self, word: str) -> int | None:
        """The instant of a word, or None if it is no time."""
        if _SECONDS.fullmatch(word):
            style, instant = "seconds", int(Decimal(word) * SECOND)
        elif clock := _CLOCK.fullmatch(word):
            hours, minutes, seconds = int(clock[1]), int(clock[2]), Decimal(clock[3] or 0)
            if hours > 23 or minutes > 59 or seconds >= 60:
                return None
            style, instant = "clock", self.midnight + int((hours * 3600 + minutes * 60 + seconds) * SECOND)
        else:
            try:
                style, instant = "full", from_datetime(datetime.fromisoformat(word))
            except ValueError:
                return None
        if not BEGINNING <= instant <= FOREVER:
            return None
        if self.style is None:
            self.style = style  # type: ignore[assignment]
        return instant

    def show(self, instant: int) -> str:
        """An instant as it would be read.

        >>> Times(style="seconds").show(4_500_000), Times(style="clock").show(4_500_000), Times().show(4_500_000)
        ('4.5', '00:00:04.500000', '1970-01-01T00:00:04.500000')
        """
        if self.style == "seconds":
            text = f"{Decimal(instant) / SECOND:f}"
            return text.rstrip("0").rstrip(".") if "." in text else text
        if self.style == "clock" and 0 <= instant - self.midnight < 86_400 * SECOND:
            return to_datetime(instant).time().isoformat()
        return "9999-12-31T23:59:59.999999" if instant >= FOREVER else format_instant(instant).replace(" ", "T")

    @property
    def midnight(self) -> int:
        """The instant at which the day begins."""
        return from_datetime(datetime(self.day.year, self.day.month, self.day.day))


def times_of(day: str) -> Times:
    """
    >>> times_of("2024-05-01").day
    datetime.date(2024, 5, 1)
    """
    try:
        return Times(date.fromisoformat(day))
    except ValueError:
        raise OptionError(f"'{day}' is no day", remedy="write a date such as '2024-05-01'") from None
