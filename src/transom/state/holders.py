"""Holders for open ends (paper 1): slots of one int64 array, shared by all operators of a query.

The operator that makes a row with an open end takes a holder for it and is its owner. When the end is learned, the
owner writes it, once; selections, projections and unions carry the number along and never hear of the row again.
Keepers (stateful operators) act on the closing in the step that brings it; after that step the slot is used again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from transom.core.delta import Ends, Int64s, no_int64s
from transom.state.slots import SlotPool, grown

OPEN: Final = np.iinfo(np.int64).min


@dataclass
class HolderPool:
    """`end[h]` is OPEN until it is written. `closed` waits for the end of the step to be reused."""

    slots: SlotPool = field(default_factory=SlotPool)
    end: Int64s = field(default_factory=no_int64s)
    closed: list[Int64s] = field(default_factory=list)

    @property
    def in_use(self) -> int:
        return self.slots.in_use

    def take(self, count: int) -> Int64s:
        holders = self.slots.take(count)
        if self.slots.high > len(self.end):
            self.end = grown(self.end, self.slots.high)
        self.end[holders] = OPEN
        return holders

    def close(self, holders: Int64s, te: Int64s) -> Ends:
        """Write the ends of these holders, each for the first and only time."""
        if not len(holders):
            return Ends()
        assert (self.end[holders] == OPEN).all(), "an end was written twice"
        self.end[holders] = te
        self.closed.append(holders)
        return Ends.of(holders, te)

    def finish_step(self) -> None:
        """From here on the holders closed in this step may be given to other rows."""
        for holders in self.closed:
            self.slots.give_back(holders)
        self.closed.clear()
