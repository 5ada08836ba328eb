"""The experiment of paper 2: ten queries, two buffers of 5,000 rows, nine sets of windows, four stages of arrivals.

| case | least window | gaps between windows | MQT groups |
| --- | --- | --- | --- |
| P1 | 1 | growing | 1,2,3,4,5,6,7,8,9,10 |
| P2 | 500 | not growing | 1-10 |
| P3, P5, P7 | 1 | growing, but for a big one after 50, 20, 80 % of the queries | 1,2,3,4,5,6-10 and so on |
| P4, P6, P8 | 500 | not growing, but for a big one after 50, 20, 80 % | 1-5,6-10 and so on |
| random | drawn | nine different windows are drawn, the tenth is the greatest | as they fall |

The greatest window is 3,000. Gaps other than the big one are 1, 2, .. 8 times a step, or 8, 7, .. 1 times. The groups
hold for growing gaps with a step up to 46 and for the others up to 38; 40 and 30 are the round numbers below.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from transom.scheduling.simulation import ArrivalPlan, World

QUERIES: Final = 10
GREATEST: Final = 3_000
GROUPS: Final = {
    "P1": "1,2,3,4,5,6,7,8,9,10",
    "P2": "1-10",
    "P3": "1,2,3,4,5,6-10",
    "P4": "1-5,6-10",
    "P5": "1,2,3-10",
    "P6": "1-10",
    "P7": "1,2,3,4,5,6,7,8,9-10",
    "P8": "1-8,9-10",
}
"""What the paper lists for its windows, which are only in a figure."""

ROWS_AN_INTERVAL: Final = 400
"""All queries of so many rows can be done in an interval of half a second."""

WORLD: Final = World(capacity=ROWS_AN_INTERVAL * GREATEST)
PLAN: Final = ArrivalPlan(rates=(560, 400, 120, 408), intervals=40)
"""What `shared_plan_search` found. Rates are rows of both sides in an interval; a stage is 20 seconds."""

OTHER_PLANS: Final = tuple(
    ArrivalPlan(rates, intervals)
    for rates, intervals in (
        ((560, 360, 240, 408), 40),
        ((600, 120, 320, 412), 30),
        ((560, 400, 200, 404), 40),
        ((600, 320, 120, 404), 30),
        ((560, 240, 280, 412), 40),
        ((560, 200, 160, 404), 40),
        ((560, 120, 160, 404), 40),
        ((560, 400, 160, 408), 40),
    )
)
"""The best plans of the search before that one: they show the whole fingerprint, too, by a smaller margin."""

_GROWING_STEP: Final = 40
_FALLING_STEP: Final = 30


def growing(big_gap_after: int | None) -> tuple[int, ...]:
    """Windows from 1 on, with gaps that grow, and a big one after so many queries."""
    if big_gap_after is None:
        every = sum(range(1, QUERIES))
        return (1, *(1 + (GREATEST - 1) * sum(range(1, at + 1)) // every for at in range(1, QUERIES)))
    return _windows(1, [_GROWING_STEP * at for at in range(1, QUERIES - 1)], big_gap_after)


def falling(big_gap_after: int | None) -> tuple[int, ...]:
    """Windows from 500 on, with gaps that do not grow, and a big one after so many queries."""
    if big_gap_after is None:
        return _windows(500, [-(-(GREATEST - 500) // (QUERIES - 1))] * (QUERIES - 2), QUERIES - 1)
    return _windows(500, [_FALLING_STEP * at for at in range(QUERIES - 2, 0, -1)], big_gap_after)


def _windows(least: int, gaps: list[int], after: int) -> tuple[int, ...]:
    """The gap that is left over goes after so many queries."""
    gaps = [*gaps[: after - 1], GREATEST - least - sum(gaps), *gaps[after - 1 :]]
    return tuple(least + sum(gaps[:at]) for at in range(QUERIES))


def random_windows(seed: int = 0) -> tuple[int, ...]:
    """Nine different windows below the greatest, so that a row is as much work as in every other case."""
    drawn = np.random.default_rng(seed).choice(np.arange(1, GREATEST), QUERIES - 1, replace=False)
    return (*sorted(drawn.tolist()), GREATEST)


CASES: Final[dict[str, tuple[int, ...]]] = {
    "random": random_windows(),
    "P1": growing(None),
    "P2": falling(None),
    "P3": growing(5),
    "P4": falling(5),
    "P5": growing(2),
    "P6": falling(2),
    "P7": growing(8),
    "P8": falling(8),
}
