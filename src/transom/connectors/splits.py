"""The splits of a batch in groups of about equal work, one a task."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from transom.connectors.connector import Split

SPLIT_RECORDS: Final = 1 << 16
"""A source cuts longer splits at the first good place behind so many records."""

_SLACK: Final = 8
"""A good place is taken for a cut when it is within this fraction of a share from where the cut should be."""


def divide(splits: Iterable[Split], parts: int, least_rows: int) -> list[list[Split]]:
    """The splits in at most `parts` groups of about equal work, in order; none of less than `least_rows` records,
    unless it is the only one.

    >>> whole = [Split("a", 0, 10, True), Split("b", 0, 2, True)]
    >>> [[(part.partition, part.at, part.rows) for part in group] for group in divide(whole, 2, 1)]
    [[('a', 0, 6)], [('a', 6, 4), ('b', 0, 2)]]
    """
    splits = [split for split in splits if split.rows]
    behind = list(itertools.accumulate(split.rows for split in splits))
    if not splits:
        return []
    least = max(1, least_rows)
    groups = max(1, min(parts, behind[-1] // least))
    cuts = [0]
    for number in range(1, groups):
        cut = _cut_near(behind[-1] * number // groups, behind[-1] // groups // _SLACK, splits, behind)
        if cut - cuts[-1] >= least and behind[-1] - cut >= least:
            cuts.append(cut)
    cuts.append(behind[-1])
    return [list(_between(splits, behind, first, last)) for first, last in itertools.pairwise(cuts)]


def _cut_near(wanted: int, slack: int, splits: Sequence[Split], behind: Sequence[int]) -> int:
    """Where to cut: where a split ends if that is near enough, else at the very record if its split can be cut."""
    at = bisect.bisect_left(behind, wanted)
    before = behind[at] - splits[at].rows
    nearest = before if wanted - before < behind[at] - wanted else behind[at]
    return wanted if splits[at].divisible and abs(nearest - wanted) > slack else nearest


def _between(splits: Sequence[Split], behind: Sequence[int], first: int, last: int) -> Iterator[Split]:
    """The records [first, last) of the splits."""
    for split, end in zip(splits, behind, strict=True):
        start = end - split.rows
        if start < last and first < end:
            inside = first <= start and end <= last
            yield split if inside else split.part(max(first, start) - start, min(last, end) - start)
