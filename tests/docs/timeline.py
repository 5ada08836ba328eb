"""Lifetimes and rows drawn on a line of time, as text.

`●──○` is alive from the first instant on and no longer at the second; `●──▶` is alive forever; `●┄┄▷` has no end yet;
`●` is a row of a stream, and a digit says that there are several of one kind at one instant.

>>> print(draw([Group("s", (Mark("p", 0, None, POINT),)), Group("answer", (Mark("p", 0, 2_000_000, SPAN),))]))
            0   1   2
            ┼───┼───┼──
s
  p         ●
answer
  p         ●───────○
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from typing import Literal as OneOf

from transom.core.time import FOREVER, SECOND, from_datetime, to_datetime

POINT: Final = "point"
SPAN: Final = "span"
WIDEST: Final = 72
_BEHIND: Final = 3
"""Cells behind the last instant, for what goes on."""


@dataclass(frozen=True)
class Mark:
    """A row of a stream at `begin`, or a row of a relation from `begin` to `end`; None is an open end."""

    label: str
    begin: int
    end: int | None
    kind: OneOf["point", "span"]

    @property
    def instants(self) -> list[int]:
        return [self.begin] + ([self.end] if self.end is not None and self.end < FOREVER else [])


@dataclass(frozen=True)
class Group:
    title: str
    marks: tuple[Mark, ...]


def label(values: Iterable[Any]) -> str:
    """A row as it is written in the pages."""
    return " ".join("NULL" if value is None else _text(value) for value in values)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return seconds(from_datetime(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def seconds(instant: int) -> str:
    """Seconds since 1970, or the time of day where that would be long.

    >>> seconds(1_500_000), seconds(1_714_557_600_000_000)
    ('1.5', '10:00:00')
    """
    if abs(instant) >= 86_400 * SECOND:
        return str(to_datetime(instant).time())
    whole, rest = divmod(abs(instant), SECOND)
    fraction = f".{rest:06}".rstrip("0") if rest else ""
    return f"{'-' if instant < 0 else ''}{whole}{fraction}"


def draw(groups: Sequence[Group], cuts: Sequence[int] = ()) -> str:
    """The figure; `cuts` are instants at which a line goes down through all of it."""
    instants = sorted({t for group in groups for mark in group.marks for t in mark.instants} | set(cuts))
    if not instants:
        raise ValueError("there is nothing to draw")
    scale = _Scale.of(instants)
    rows = [(group.title, _lines(group, scale)) for group in groups]
    names = [f"  {name}" for _, lines in rows for name, _ in lines] + [title for title, _ in rows]
    margin = max(12, max(map(len, names)) + 2)
    numbers, ticks = _axis(scale, instants)
    out = [" " * margin + numbers, " " * margin + ticks]
    for title, lines in rows:
        out.append(title.ljust(margin) + " " * scale.width)
        out += [f"  {name}".ljust(margin) + "".join(cells) for name, cells in lines]
    return "\n".join(_cut(line, [margin + scale.cell(t) for t in cuts]).rstrip() for line in out)


def _cut(line: str, cells: list[int]) -> str:
    shown = list(line)
    for cell in cells:
        shown[cell] = {" ": "┊", "─": "┼", "┄": "┼"}.get(shown[cell], shown[cell])
    return "".join(shown)


@dataclass(frozen=True)
class _Scale:
    """Instants as cells: `per` cells for `unit` microseconds."""

    first: int
    last: int
    unit: int
    per: int

    @staticmethod
    def of(instants: list[int]) -> _Scale:
        first, last = instants[0], instants[-1]
        unit = math.gcd(*(t - first for t in instants)) or SECOND
        if unit % SECOND == 0 and (last - first) // SECOND <= WIDEST // 2:
            unit = SECOND
        steps = (last - first) // unit
        room = max(4, 2 + max(len(seconds(t)) for t in (first, last, last - unit)))
        per = next((per for per in (room, 4, 3, 2, 1) if steps * per <= WIDEST), 0)
        if not per:
            raise ValueError(f"{steps} steps do not fit into {WIDEST} cells: choose rounder times")
        return _Scale(first, last, unit, per)

    def cell(self, instant: int) -> int:
        return (instant - self.first) // self.unit * self.per

    @property
    def width(self) -> int:
        return self.cell(self.last) + _BEHIND


def _axis(scale: _Scale, instants: list[int]) -> tuple[str, str]:
    steps = range((scale.last - scale.first) // scale.unit + 1)
    marks = [scale.first + step * scale.unit for step in steps]
    widest = max(len(seconds(t)) for t in marks)
    every = next(n for n in (1, 2, 5, 10, 20, 50, 100) if n * scale.per >= widest + 2)
    shown = [t for t in marks if t % (every * scale.unit) == 0] or [scale.first]
    numbers = [" "] * (scale.width + widest)
    ticks = ["─"] * scale.width
    for t in marks:
        ticks[scale.cell(t)] = "┼" if scale.per > 1 or t in shown else "─"
    for t in shown:
        numbers[scale.cell(t) : scale.cell(t) + len(seconds(t))] = seconds(t)
    return "".join(numbers), "".join(ticks)


@dataclass
class _Line:
    """Cells with what is drawn in them; those before `free` are taken."""

    label: str
    cells: list[str]
    free: int = -1


def _lines(group: Group, scale: _Scale) -> list[tuple[str, list[str]]]:
    """What is drawn, a line for each row; rows of the same values share a line where they do not touch."""
    lines: list[_Line] = []
    counts = Counter((mark.label, mark.begin) for mark in group.marks if mark.kind == POINT)
    points = [mark for mark in dict.fromkeys(group.marks) if mark.kind == POINT]
    spans = [mark for mark in group.marks if mark.kind == SPAN]
    for mark in sorted([*points, *spans], key=lambda mark: mark.begin):
        begin, count = scale.cell(mark.begin), counts[mark.label, mark.begin]
        drawn = _span(mark, scale) if mark.kind == SPAN else ["●" if count == 1 else str(count)]
        touches = 0 if mark.kind == POINT else 1
        shared = [line for line in lines if line.label == mark.label and begin >= line.free + touches]
        line = shared[0] if shared else _Line(mark.label, [" "] * scale.width)
        if not shared:
            lines.append(line)
        line.cells[begin : begin + len(drawn)] = drawn
        line.free = begin + len(drawn)
    return [(line.label, line.cells) for line in lines]


def _span(mark: Mark, scale: _Scale) -> list[str]:
    begin = scale.cell(mark.begin)
    if mark.end is None:
        return ["●", *"┄" * (scale.width - begin - 2), "▷"]
    if mark.end >= FOREVER:
        return ["●", *"─" * (scale.width - begin - 2), "▶"]
    return ["●", *"─" * (scale.cell(mark.end) - begin - 1), "○"]
