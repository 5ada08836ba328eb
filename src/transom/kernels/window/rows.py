"""ROWS windows over a whole stream, alone or with RANGE.

Meaning: row j is alive on [t_j, min(t_{j+N}, t_j + T)), where row j + N is the N-th row after it; T may be forever.
Emits: rows whose end came in the same step with that end, the others open; the ends of earlier rows.
Keeps: time and holder of the open rows, at most N, freed when they end.
Needs: rows in time order, rows of one instant in arrival order.
Costs: O(1) a row; both bounds grow with j, so what ended is always the front of the queue.

>>> import pyarrow as pa
>>> from transom.state.holders import HolderPool
>>> window, holders = RowsWindow(1), HolderPool()
>>> state = window.start()
>>> rows = StreamDelta(pa.record_batch({"a": [1, 2]}), np.array([5, 8]), upto=9)
>>> out = window.step(state, (rows,), Step(0, 9, 0, holders))
>>> out.te.tolist()[0], out.holder.tolist()
(8, [-1, 0])
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from transom.core.delta import NO_HOLDER, Delta, Int64s, StreamDelta
from transom.core.time import UNBOUNDED
from transom.kernels.kernel import OPEN_END, Step, open_rows
from transom.kernels.window.range import end_after
from transom.state.fifo import Fifo


@dataclass
class RowsWindowState:
    """Open rows in order: their time and their holder. `seen` rows came before the next one."""

    seen: int = 0
    open: Fifo = field(default_factory=lambda: Fifo.of(2))


@dataclass(frozen=True)
class RowsWindow:
    rows: int
    length: int = UNBOUNDED

    def start(self) -> RowsWindowState:
        return RowsWindowState()

    def step(self, state: RowsWindowState, inputs: tuple[StreamDelta], step: Step) -> Delta:
        (rows,) = inputs
        fresh = len(rows)
        times = state.open.column(0)
        oldest = state.seen - len(times)  # its number in the stream; row j is pushed out by row j + N
        by_count = min(max(state.seen + fresh - self.rows - oldest, 0), len(times))
        by_time = int(np.searchsorted(times, step.upto - self.length)) if self.length < UNBOUNDED else 0
        old = max(by_count, by_time)
        te = self._ends(times[:old], oldest - state.seen, rows.t, step.upto)
        ends = step.holders.close(state.open.column(1)[:old].copy(), te)

        te = self._ends(rows.t, 0, rows.t, step.upto)
        delta, holder = open_rows(rows.values, rows.t, te, step, ends)
        state.open.drop(old)
        state.open.append(rows.t, holder)
        state.open.drop(len(state.open) - int((holder != NO_HOLDER).sum()) if old == len(times) else 0)
        state.seen += fresh
        return delta

    def _ends(self, times: Int64s, first: int, arrivals: Int64s, upto: int) -> Int64s:
        """Ends of the rows numbered first, first + 1, .. (arrivals are 0, 1, ..).

        OPEN_END where none came before upto.
        """
        te = np.full(len(times), OPEN_END, dtype=np.int64)
        pushed = min(max(len(arrivals) - self.rows - first, 0), len(times))
        te[:pushed] = arrivals[first + self.rows : first + self.rows + pushed]
        by_time = end_after(times, self.length)
        passed = by_time < upto
        te[passed] = np.minimum(te[passed], by_time[passed])
        return te
