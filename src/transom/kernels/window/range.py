"""RANGE, NOW and UNBOUNDED windows.

Meaning: a row that arrived at t is alive on [t, t + T); NOW is T = 1 tick, UNBOUNDED is T = forever.
Emits: one row per row, its end determined at once.
Keeps: nothing.
Needs: rows in time order.
Costs: one addition a row.

>>> import pyarrow as pa
>>> from transom.state.open_ids import OpenIdPool
>>> rows = StreamDelta(pa.record_batch({"a": [1]}), np.array([5]), frontier=6)
>>> RangeWindow(10).step(None, (rows,), Step(0, 6, 0, OpenIdPool())).te.tolist()
[15]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transom.core.delta import Delta, Int64s, StreamDelta, no_open_ids
from transom.core.time import FOREVER
from transom.kernels.kernel import Step


@dataclass(frozen=True)
class RangeWindow:
    """`length` UNBOUNDED is the unbounded window."""

    length: int

    def start(self) -> None:
        return None

    def next_timer(self, state: None) -> int:
        return FOREVER

    def step(self, state: None, inputs: tuple[StreamDelta], step: Step) -> Delta:
        (rows,) = inputs
        te = end_after(rows.t, self.length)
        return Delta(rows.values, rows.t, te, no_open_ids(len(rows)), step.frontier)


def end_after(t: Int64s, length: int) -> Int64s:
    """t + length, forever beyond the time domain."""
    if len(t) == 1 and t[0] <= FOREVER - length:
        return t + length
    return np.minimum(t, FOREVER - length) + length
