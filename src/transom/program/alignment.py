"""Which inputs are read next, and how far: those that hold time back first, the others to about the same time.

The progress of a query is the least watermark of its inputs, and rows beyond it wait. So to read an input that is ahead
of the others is of no use to anybody, and fills memory. Nothing but that depends on this rule: whoever reads otherwise
comes to the same answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Final

from transom.core.time import BEGINNING, FOREVER

LEAST_PART: Final = 8
"""An input that is to be read at all is read for so large a part of a batch, if there is so much."""


@dataclass(frozen=True)
class InputPace:
    """How far an input has come: `rows` have been read of it, of which so many are `waiting` for the others.

    `density` is how many rows it has for a microsecond of its time, by what it brought last; None: nobody knows yet.
    """

    watermark: int = BEGINNING
    rows: int = 0
    waiting: int = 0
    density: float | None = None

    def after(self, watermark: int, rows: int, waiting: int, first: int | None = None) -> InputPace:
        """How far it is now; `first` is how far it was before any row came, if that is known.

        >>> InputPace(1_000, 10).after(1_200, 20, 0).density
        0.05
        """
        start = first if self.watermark <= BEGINNING else self.watermark
        if start is None or not start < watermark < FOREVER or rows <= self.rows:
            return InputPace(watermark, rows, waiting, self.density)
        return InputPace(watermark, rows, waiting, (rows - self.rows) / (watermark - start))

    def leads_to(self, rows: int) -> float | None:
        """How far it comes with so many rows more, as far as anybody can tell."""
        return None if self.density is None else self.watermark + rows / self.density

    def rows_to(self, time: float | None, most: int) -> int:
        """How many rows lead there, `most` at most: none if it is there already, or nobody knows where that is.

        Less than a part of a batch is not worth another one: rates change.
        """
        if time is None or time <= self.watermark:
            return 0
        if self.density is None:
            return most
        return min(most, max(ceil((time - self.watermark) * self.density), most // LEAST_PART))


def holding_back(watermarks: Mapping[str, int]) -> list[str]:
    """The inputs that the others wait for.

    >>> holding_back({"a": 3, "b": 2, "c": 2})
    ['b', 'c']
    """
    least = min(watermarks.values(), default=BEGINNING)
    return [name for name, watermark in watermarks.items() if watermark == least]


def read_by_need(
    paces: Mapping[str, InputPace], most: int, read: Callable[[str, int], int], most_waiting: int | None = None
) -> None:
    """Read the inputs that have not ended, each at most once and `most` rows at most.

    `read` is called with an input and how many rows to read of it, and says how many there were. Those that have
    nothing now hold nobody: the others are read without them; but if it is to go on like that, no further than
    `most_waiting` rows of each are waiting.
    """
    left, held = dict(paces), False
    while left:
        behind = holding_back({name: pace.watermark for name, pace in left.items()})
        first = {name: left.pop(name) for name in behind}
        bound = most_waiting if held else None
        came = [(pace, rows) for name, pace in first.items() if (rows := _read(name, pace, most, bound, read))]
        if came:
            leads = [time for pace, rows in came if (time := pace.leads_to(rows)) is not None]
            for name, pace in left.items():
                _read(name, pace, pace.rows_to(min(leads, default=None), most), bound, read)
            return
        held = True


def _read(name: str, pace: InputPace, rows: int, most_waiting: int | None, read: Callable[[str, int], int]) -> int:
    rows = rows if most_waiting is None else min(rows, most_waiting - pace.waiting)
    return read(name, rows) if rows > 0 else 0
