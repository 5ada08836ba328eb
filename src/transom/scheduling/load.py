"""How heavy the load is, once an interval (paper 2, section 4.2), and what the paper leaves open about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from transom.scheduling.backlog import Backlog
from transom.scheduling.mqt import Groups, Ties


class LoadMethod(StrEnum):
    """What is next: the oldest row with all its queries, or the queries that are quickest done."""

    FIFO = "fifo"
    MQT = "mqt"


@dataclass(frozen=True)
class Readings:
    """Where the paper can be read in more than one way. The first of each is the default."""

    rows: Literal["leaving", "newest"] = "leaving"
    """Whose unprocessed queries make the load: the rows next to leave their buffer, or the newest."""
    weights: Literal["slope", "equal"] = "slope"
    """What a query weighs in the load: the slope of its group, or each the same."""
    decide: Literal["after", "before"] = "after"
    """Whether the method is chosen after beta is adjusted to the load, or before, so that it is for the next load."""
    previous: Literal["used", "estimated", "measured"] = "used"
    """beta_prev: the beta in use till now, the last beta_next, or the last beta_now."""
    rates: Literal["zero", "first", "infinite"] = "zero"
    """rate_MQT and rate_FIFO before the first switch: none, so that only a rate that falls by more than half at once is
    low; or the first rate measured; or beyond all, so that every rate is low."""
    otherwise: Literal["next", "keep", "now"] = "next"
    """beta where none of the eight cases holds: beta_next, or as it was, or beta_now, so that FIFO comes."""
    begin: LoadMethod = LoadMethod.FIFO
    """The method before the first measurement."""
    ties: Ties = "farthest"
    """Of queries that are equally good to go to: all as one group, or each its own."""
    interval: float = 0.5
    """What the trend is divided by: the interval as a plain number, in seconds."""


@dataclass(frozen=True)
class Load:
    """One measurement: `rate` rows came in the interval, `load` is S, `row_weight` the weights of one row's queries.

    `slack`, where it was asked for, is how many intervals of work everything could still wait, if only the first group
    of each row is done, or the first two, ..; below 0 some of it will be dropped.
    """

    rate: int
    load: float
    row_weight: float
    slack: tuple[float, ...] = ()

    def threshold(self, beta: float) -> float:
        """alpha"""
        return self.row_weight * beta * self.rate

    @property
    def beta_now(self) -> float:
        """The beta with which the threshold were just this load."""
        return self.load / (self.row_weight * self.rate) if self.rate else 0.0


def measure(backlog: Backlog, groups: Groups, came: list[int], leaving: list[int], readings: Readings) -> Load:
    """The load after an interval in which so many rows of each side `came`, and so many will leave in the next one."""
    weights = groups.weights if readings.weights == "slope" else groups.sizes
    load = 0.0
    for number, side in enumerate(backlog.sides):
        if readings.rows == "leaving":
            first, stop = side.left, min(side.arrived, side.left + leaving[number])
        else:
            first, stop = max(side.left, side.arrived - came[number]), side.arrived
        waiting = backlog.waiting_in(number, first, stop)
        load += sum(count * weight for count, weight in zip(waiting, weights, strict=True))
    return Load(sum(came), load, sum(weights))
