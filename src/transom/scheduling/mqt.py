"""MQT groups: the queries of a row that are worth doing in one go (paper 2, section 3; M. A. Hammad et al., VLDB 2003).

Queries differ in their windows w1 < .. < wn alone, and going from query i to query j costs w_j - w_i. From i the best
step leads to the j with most queries per unit of work, (j - i) / (w_j - w_i); all best steps together are the upper
convex hull of the points (w_i, i), with w_0 = 0. The slope of its group is the weight of a query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Literal

Ties = Literal["farthest", "nearest"]


@dataclass(frozen=True)
class Groups:
    """The groups of these windows: `ends` has for each group how many queries are done after it."""

    windows: tuple[int, ...]
    ends: tuple[int, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many queries each group has."""
        return tuple(end - begin for begin, end in self._spans())

    @cached_property
    def costs(self) -> tuple[int, ...]:
        """The work of each group for one row, in units of window."""
        return tuple(self.work(begin, end) for begin, end in self._spans())

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """The weight of each group for one row: that of its queries together."""
        return tuple(size * size / cost for size, cost in zip(self.sizes, self.costs, strict=True))

    def work(self, done: int, target: int) -> int:
        """What it costs to go from so many queries done to so many."""
        return self.windows[target - 1] - (self.windows[done - 1] if done else 0)

    def __str__(self) -> str:
        """As the paper writes them.

        >>> print(groups_of([500, 600, 700, 2900, 3000]))
        1-3,4-5
        """
        return ",".join(str(end) if end - begin == 1 else f"{begin + 1}-{end}" for begin, end in self._spans())

    def _spans(self) -> list[tuple[int, int]]:
        return list(zip((0, *self.ends), self.ends, strict=False))


def groups_of(windows: Sequence[int], ties: Ties = "farthest") -> Groups:
    """The groups of windows in ascending order. Of equally good steps the farthest is one group, or each its own.

    >>> groups_of([1, 3, 6]).ends, groups_of([10, 20, 30]).ends, groups_of([10, 20, 30], "nearest").ends
    ((1, 2, 3), (3,), (1, 2, 3))
    """
    points = [0, *windows]
    if len(points) == 1 or any(low >= high for low, high in pairwise(points)):
        raise ValueError(f"windows must be above 0 and grow: {list(windows)}")
    ends: list[int] = []
    done = 0
    while done < len(windows):
        slopes = [Fraction(j - done, points[j] - points[done]) for j in range(done + 1, len(points))]
        best = [done + 1 + at for at, slope in enumerate(slopes) if slope == max(slopes)]
        done = best[-1] if ties == "farthest" else best[0]
        ends.append(done)
    return Groups(tuple(windows), tuple(ends))
