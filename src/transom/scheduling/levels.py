"""Queries with two windows each in the one order that a scheduler needs.

A row of one side meets rows of the other within the window of that other side. So each query has two windows, and a
scheduler wants one number: both together. Queries are taken in that order, and a level reaches, on each side, as far as
the widest window up to it. Then whoever is done up to a level has all pairs of its queries, whichever side came last.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

Windows = tuple[int, int]


@dataclass(frozen=True)
class Levels:
    """`names` are in the order of their levels, `level` of each is above 0; level 0 is nothing done.

    >>> levels = levels_of({"wide": (60, 10), "narrow": (5, 5), "tall": (5, 50)})
    >>> levels.names, levels.level, levels.reach
    (('narrow', 'tall', 'wide'), (1, 2, 3), ((0, 0), (5, 5), (5, 50), (60, 50)))
    """

    names: tuple[str, ...]
    level: tuple[int, ...]
    reach: tuple[Windows, ...]
    """How old rows of the left and of the right side are met up to each level."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """What a scheduler takes for the windows: the two of each level together."""
        return tuple(left + right for left, right in self.reach[1:])

    def span(self, done: int, target: int) -> slice:
        """The places of the queries above one level, up to another."""
        return slice(bisect_right(self.level, done), bisect_right(self.level, target))


def levels_of(windows: Mapping[str, Windows]) -> Levels:
    """A query is of the first level that reaches as far as both of its windows."""
    reach: list[Windows] = [(0, 0)]
    level_of: dict[str, int] = {}
    for name in sorted(windows, key=lambda name: (sum(windows[name]), windows[name])):
        left, right = windows[name]
        level = next((at for at, bounds in enumerate(reach) if left <= bounds[0] and right <= bounds[1]), len(reach))
        if level == len(reach):
            reach.append((max(left, reach[-1][0]), max(right, reach[-1][1])))
        level_of[name] = level
    names = tuple(sorted(level_of, key=lambda name: level_of[name]))
    return Levels(names, tuple(level_of[name] for name in names), tuple(reach))
