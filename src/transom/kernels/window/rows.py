"""ROWS windows over a whole stream, alone or with RANGE.

Meaning: row j is alive on [t_j, min(t_{j+N}, t_j + T)), where row j + N is the N-th row after it; T may be forever.
Emits: rows whose end came in the same step with that end, the others open; the ends of earlier rows.
Keeps: time and open row id of the open rows, at most N, freed when they end.
Needs: rows in time order, rows of one instant in arrival order.
Costs: O(1) a row; both bounds grow with j, so what ended is always the front of the queue.

>>> import pyarrow as pa
>>> from transom.state.open_ids import OpenIdPool
>>> window, open_ids = RowsWindow(1), OpenIdPool()
>>> state = window.start()
>>> rows = StreamDelta(pa.record_batch({"a": [1, 2]}), np.array([5, 8]), frontier=9)
>>> out = window.step(state, (rows,), Step(0, 9, 0, open_ids))
>>> out.te.tolist()[0], out.open_id.tolist()
(8, [-1, 0])
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from transom.core.delta import Delta, Int64s, StreamDelta, forever, no_open_ids
from transom.core.time import FOREVER, UNBOUNDED
from transom.kernels.kernel import Step, select_rows
from transom.kernels.window.range import end_after
from transom.state.checks import need
from transom.state.fifo import Fifo
from transom.state.open_ids import OpenIdQueue


@dataclass
class RowsWindowState:
    """The open row ids of the open rows and, where a RANGE may end them, their times."""

    open: OpenIdQueue = field(default_factory=OpenIdQueue)
    times: Fifo = field(default_factory=lambda: Fifo.of(1))

    def check(self) -> None:
        need(len(self.times) in (0, len(self.open)))


@dataclass(frozen=True)
class RowsWindow:
    rows: int
    length: int = UNBOUNDED

    def start(self) -> RowsWindowState:
        return RowsWindowState()

    def next_timer(self, state: RowsWindowState) -> int:
        return int(end_after(state.times.column(0)[:1], self.length)[0]) if len(state.times) else FOREVER

    def step(self, state: RowsWindowState, inputs: tuple[StreamDelta], step: Step) -> Delta:
        (rows,) = inputs
        fresh, waiting = len(rows), len(state.open)
        # Row j is pushed out by row j + N, and the open rows are the youngest before those that come now.
        pushed = max(waiting + fresh - self.rows, 0)
        te = rows.t[self.rows - waiting : self.rows - waiting + pushed]
        if self.length < UNBOUNDED:
            te = self._by_time(state, rows.t, te, step.frontier)
        own = max(len(te) - waiting, 0)  # rows that come and go in this step
        open_id = state.open.take(step.open_ids, fresh - own, self.rows)
        ends = state.open.close(step.open_ids, te[:waiting])
        if not own:
            return Delta(rows.values, rows.t, forever(fresh), open_id, step.frontier, ends)
        own_te = te[waiting:]
        all_te = np.concatenate([own_te, forever(fresh - own)])
        delta = Delta(rows.values, rows.t, all_te, np.concatenate([no_open_ids(own), open_id]), step.frontier, ends)
        return delta if (own_te > rows.t[:own]).all() else select_rows(delta, all_te > rows.t)

    def _by_time(self, state: RowsWindowState, arrived: Int64s, pushed: Int64s, frontier: int) -> Int64s:
        """The ends of all rows that end before `frontier`, by count or by time; both grow, so they are the oldest."""
        state.times.append(arrived)
        times = state.times.column(0)
        by_time = end_after(times, self.length)
        te = by_time[: max(len(pushed), int(np.searchsorted(by_time, frontier)))]
        te[: len(pushed)] = np.minimum(te[: len(pushed)], pushed)
        state.times.drop(len(te))
        return te
