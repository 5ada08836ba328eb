"""What a slide would cost by either kind of join, as far as the slides before it show, and the choice (Algorithm 2).

C_join is the price of joining all rows of the windows; C_reuse that of joining the new ones, and of writing and reading
those stored results that have no room in memory. Both follow from how many tuples of rows match, how large results are,
and how long a probe and a byte of the disk take: running averages over the slides so far. Windows that are on disk are
read for either kind, and are in neither cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

FADING: Final = 0.7
"""What a slide counts for, compared with the one after it."""


@dataclass
class Average:
    """Of something per something else, in which the older slides count for less and the larger ones for more.

    >>> seconds = Average()
    >>> seconds.value is None
    True
    >>> seconds.learn(1.0, 10)
    >>> seconds.learn(3.0, 13)
    >>> seconds.value
    0.185
    """

    amount: float = 0.0
    count: float = 0.0

    def learn(self, amount: float, count: float) -> None:
        if count:
            self.amount = FADING * self.amount + amount
            self.count = FADING * self.count + count

    @property
    def value(self) -> float | None:
        return self.amount / self.count if self.count else None


@dataclass
class Estimates:
    """Matches per tuple of rows, bytes per result, seconds per row probed or found, per row merged, per byte of disk.

    The costs are those of the last slide for which they were compared, in seconds.
    """

    selectivity: Average = field(default_factory=Average)
    row_bytes: Average = field(default_factory=Average)
    joining: Average = field(default_factory=Average)
    merging: Average = field(default_factory=Average)
    writing: Average = field(default_factory=Average)
    reading: Average = field(default_factory=Average)
    reuse_cost: float | None = None
    join_cost: float | None = None

    def numbers(self) -> list[float | None]:
        """All of it, as JSON can hold it."""
        averages = (self.selectivity, self.row_bytes, self.joining, self.merging, self.writing, self.reading)
        return [*(x for each in averages for x in (each.amount, each.count)), self.reuse_cost, self.join_cost]

    @staticmethod
    def of(numbers: Sequence[float | None]) -> Estimates:
        """
        >>> estimates = Estimates(Average(0.1, 3), join_cost=2.5)
        >>> Estimates.of(estimates.numbers()) == estimates
        True
        """
        filled = [float(x or 0.0) for x in numbers[:12]]
        averages = (Average(amount, count) for amount, count in zip(filled[::2], filled[1::2], strict=True))
        selectivity, row_bytes, joining, merging, writing, reading = averages
        return Estimates(selectivity, row_bytes, joining, merging, writing, reading, numbers[12], numbers[13])

    def values(self) -> dict[str, float | None]:
        """What is known by now, for people and programs."""
        return {
            "selectivity": self.selectivity.value,
            "row_bytes": self.row_bytes.value,
            "joining": self.joining.value,
            "merging": self.merging.value,
            "writing": self.writing.value,
            "reading": self.reading.value,
            "reuse_cost": self.reuse_cost,
            "join_cost": self.join_cost,
        }


class Counted(NamedTuple):
    """Rows of the windows, and the tuples of rows that could match: those of all joins."""

    rows: int
    tuples: int


@dataclass(frozen=True)
class Situation:
    """Before a slide: what there is, how much of it is old, and how many tuples stay for the next slide, of all and of
    the old; bytes of the windows; the room for all in memory.

    `covered`: the results that live on are stored. `lives` is for how many slides a row is alive.
    """

    all: Counted
    old: Counted
    staying: int
    old_staying: int
    window_bytes: int
    windows_fit: bool
    room: float
    covered: bool
    lives: int


@dataclass(frozen=True)
class SlideDecision:
    """The kind of join of a slide, and whether its results are stored for the next ones."""

    kind: str
    stores: bool


_INCREMENTAL: Final = SlideDecision("incremental", True)
_FULL_AND_STORE: Final = SlideDecision("full", True)
_FULL: Final = SlideDecision("full", False)


def choose(forced: str, estimates: Estimates, now: Situation) -> SlideDecision:
    """Algorithm 2; a forced kind is kept to. What is not covered has to be joined in full before it can be reused.

    >>> now = Situation(Counted(200, 10_000), Counted(150, 5_625), 5_625, 2_500, 4000, True, 5000, True, 4)
    >>> slow = Average(1e-5, 1)
    >>> estimates = Estimates(Average(5, 100), Average(10, 1), Average(1e-6, 1), Average(1e-7, 1), slow, slow)
    >>> choose("hybrid", estimates, now).kind  # 2,812 bytes are stored, 1,562 come, 1,000 fit
    'full'
    >>> estimates.writing = estimates.reading = Average(1e-9, 1)  # a fast disk
    >>> choose("hybrid", estimates, now).kind
    'incremental'
    """
    reuse = _INCREMENTAL if now.covered else _FULL_AND_STORE
    if forced != "hybrid":
        return _FULL if forced == "full" else reuse
    matching, seconds = estimates.selectivity.value, estimates.joining.value
    if matching is None or seconds is None:
        return reuse
    row_bytes = estimates.row_bytes.value or 0.0
    results, old = matching * now.all.tuples, matching * now.old.tuples
    new_stored = matching * (now.staying - now.old_staying)
    free = max(now.room - now.window_bytes, 0.0)
    too_many = max((old + new_stored) * row_bytes - free, 0.0)
    if now.windows_fit and not too_many:
        return reuse
    # The new ones push out the old ones, which are read after that: as many of either as there are too many.
    written = min(too_many, new_stored * row_bytes) * (estimates.writing.value or 0.0)
    read = min(too_many, old * row_bytes) * (estimates.reading.value or 0.0)
    # To emit a result again takes no longer than to find it and emit it, whatever a slow moment once made of it.
    merged = old * min(estimates.merging.value or 0.0, seconds)
    estimates.reuse_cost = seconds * (now.all.rows - now.old.rows + results - old) + merged + written + read
    estimates.join_cost = seconds * (now.all.rows + results)
    if estimates.reuse_cost >= estimates.join_cost:
        return _FULL
    if now.covered:
        return _INCREMENTAL
    # To be able to reuse again, all results that live on have to be stored; that must pay within the life of a row.
    price = max(matching * now.staying * row_bytes - free, 0.0) * (estimates.writing.value or 0.0)
    saved = (estimates.join_cost - estimates.reuse_cost) * (now.lives - 1)
    return _FULL_AND_STORE if saved > price else _FULL
