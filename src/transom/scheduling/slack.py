"""How long the work could still wait: deadlines against the work before them, the oldest row first.

A row leaves when as many rows came as stand between it and the end of its buffer, at the rate of the last interval.
Till then its work must be done, and that of all rows that leave before it. Rows of one level lie side by side, so the
least slack is found at the ends of levels, without a look at any row. Only the near future counts: rates change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from transom.scheduling.backlog import Backlog, BacklogSide
from transom.scheduling.mqt import Groups

HORIZON: Final = 4.0
"""Intervals that are looked ahead."""


def slack(
    backlog: Backlog,
    groups: Groups,
    came: Sequence[int],
    leaving: Sequence[int],
    capacity: float,
    horizon: float = HORIZON,
) -> tuple[float, ...]:
    """For the first group of every row, the first two, ..: the least of (time to leave - time of work until then).

    Both are in intervals; with nothing to do before the horizon it is endless.
    """
    queues = [
        (side, float(rate), float(rate - going))
        for side, rate, going in zip(backlog.sides, came, leaving, strict=True)
        if rate
    ]
    instants = {
        (mark - side.left + room) / rate
        for side, rate, room in queues
        for mark in (side.left, *side.waiting, side.arrived)
    }
    instants = {instant for instant in instants if instant < horizon} | {horizon}
    begins = [
        min(
            ((side.waiting[group] - side.left + room) / rate for side, rate, room in queues if _pending(side, group)),
            default=float("inf"),
        )
        for group in range(len(groups.ends))
    ]
    least = [float("inf")] * len(groups.ends)
    for instant in instants:
        rows = [(side, min(side.arrived, side.left + max(0.0, instant * rate - room))) for side, rate, room in queues]
        work = 0.0
        for group, cost in enumerate(groups.costs):
            work += cost * sum(max(0.0, target - side.waiting[group]) for side, target in rows)
            if instant >= begins[group]:
                least[group] = min(least[group], instant - work / capacity)
    return tuple(least)


def _pending(side: BacklogSide, group: int) -> bool:
    return side.waiting[group] < side.arrived
