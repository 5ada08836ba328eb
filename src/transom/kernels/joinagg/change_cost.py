"""When to change the tactic of an aggregate over a join: what a row and what the change costs.

Costs are microseconds, measured on one core of a server (docs/adapt.md says how). Only how they stand to one another
matters. They depend on what passed and on nothing else, so a step that is taken again decides alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

LOOK: Final = 1 << 14
"""Rows and pairs after which the costs are looked at; that is some milliseconds of work."""


@dataclass(frozen=True)
class Prices:
    """Of a tactic: a row that comes and goes, a pair that it makes, a group that it meets; and the same for rows that
    are alive when the tactic is changed for this one."""

    row: float
    pair: float
    group: float
    taken_row: float
    taken_pair: float

    def a_row(self, pairs: float, groups: float) -> float:
        """What a row costs that makes so many pairs and meets so many groups."""
        return self.row + self.pair * pairs + self.group * groups

    def to_change(self, rows: float, pairs: float) -> float:
        """What a change costs that takes over so many rows, with the pairs that they make."""
        return self.taken_row * rows + self.taken_pair * pairs


PRICES: Final[Mapping[str, Prices]] = {
    "pc": Prices(row=0.15, pair=0.25, group=0.0, taken_row=0.4, taken_pair=0.25),
    "factorised": Prices(row=0.75, pair=0.0, group=0.15, taken_row=0.9, taken_pair=0.0),
}
