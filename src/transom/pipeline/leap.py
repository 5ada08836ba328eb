"""A row that leaps in time: its timestamp is wrong, time goes there with it, and what comes after it in order is late.

A jump of more than a day, and of many times the bound, is noted; gaps are like that, too, so it is named only if rows
come late after it that are nearer to where time was than to where it leapt to. If there are several, the first that did
such harm is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from transom.core.delta import Int64s
from transom.core.time import UNITS, format_instant
from transom.state.checks import need

MANY: Final = 10


@dataclass
class Leap:
    """From where to where time leapt, and how many rows were late because of it.

    >>> print(Leap(0, 2_000_000_000_000_000, 3))
    a row took time from 1970-01-01 00:00:00 to 2033-05-18 03:33:20, and 3 rows after it were late: ahead = '1 DAY' \
rejects such a row
    """

    before: int
    to: int
    late: int = 0

    def check(self) -> None:
        """Check that what a checkpoint holds can be a leap."""
        need(self.before < self.to and self.late >= 0)

    def leave_behind(self, late: Int64s) -> None:
        """Rows with these times came late after it."""
        self.late += int((late < self.before + (self.to - self.before) // 2).sum())

    def __str__(self) -> str:
        rows = "1 row after it was" if self.late == 1 else f"{self.late:,} rows after it were"
        return (
            f"a row took time from {format_instant(self.before)} to {format_instant(self.to)}, and {rows} late: "
            "ahead = '1 DAY' rejects such a row"
        )


def least_leap(bound: int) -> int:
    return max(UNITS["day"], MANY * bound)


def find_leap(indexes: Int64s, t: Int64s, greatest: int, least: int) -> tuple[int, int, int] | None:
    """The largest jump of the greatest time, if it is one: the place of the row, and from where to where it is."""
    before = np.maximum.accumulate(np.concatenate([[greatest], t[:-1]]))
    jump = int((t - before).argmax())
    leap = int(indexes[jump]), int(before[jump]), int(t[jump])
    return leap if leap[2] - leap[1] > least else None
