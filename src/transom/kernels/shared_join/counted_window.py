"""The window below a shared join whose rows some query counts.

Meaning: row j is alive on [t_j, max(t_j + T, t_{j+N})), as long as any window up to RANGE T or ROWS N holds it.
Emits: every row with its running number, its end where it is known at once, else open; the ends of earlier rows.
Keeps: time and open row id of the rows whose end is not reached, freed when they end.
Needs: rows in time order, rows of one instant in arrival order. Nobody above may mind a row that ends when it begins.
Costs: O(1) a row; both bounds grow with j, so what ended is always the front of the queue.

>>> from transom.state.open_ids import OpenIdPool
>>> window = CountedWindowKernel(0, 1, pa.schema([("a", pa.int64()), ("number", pa.int64())]))
>>> rows = StreamDelta(pa.record_batch({"a": [1, 2]}), np.array([5, 8]), frontier=9)
>>> out = window.step(window.start(), (rows,), Step(0, 9, 0, OpenIdPool()))
>>> out.te.tolist()[0], out.open_id.tolist(), out.values.column("number").to_pylist()
(8, [-1, 0], [0, 1])
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, StreamDelta, forever, no_open_ids
from transom.core.time import FOREVER, UNBOUNDED
from transom.kernels.kernel import Step
from transom.kernels.window.range import end_after
from transom.state.checks import need
from transom.state.fifo import Fifo
from transom.state.open_ids import OpenIdQueue


@dataclass
class CountedWindowState:
    """The open row ids and times of the open rows; `seen` is the number of the next row."""

    seen: int = 0
    open: OpenIdQueue = field(default_factory=OpenIdQueue)
    times: Fifo = field(default_factory=lambda: Fifo.of(1))

    def check(self) -> None:
        need(0 <= self.seen < 1 << 62 and len(self.times) >= len(self.open))


@dataclass(frozen=True)
class CountedWindowKernel:
    length: int
    rows: int
    schema: pa.Schema

    def start(self) -> CountedWindowState:
        return CountedWindowState()

    def next_timer(self, state: CountedWindowState) -> int:
        times = state.times.column(0)
        return int(end_after(times[:1], self.length)[0]) if len(times) > self.rows else FOREVER

    def step(self, state: CountedWindowState, inputs: tuple[StreamDelta], step: Step) -> Delta:
        (rows,) = inputs
        fresh, waiting = len(rows), len(state.open)
        numbers = pa.array(np.arange(state.seen, state.seen + fresh))
        values = pa.RecordBatch.from_arrays([*rows.values.columns, numbers], schema=self.schema)
        state.seen += fresh
        if not waiting and (not self.rows or self.length == UNBOUNDED):
            return Delta(values, rows.t, end_after(rows.t, self.length), no_open_ids(fresh), step.frontier)
        state.times.append(rows.t)
        times = state.times.column(0)
        by_time = end_after(times, self.length)
        ended = min(int(np.searchsorted(by_time, step.frontier)), max(len(times) - self.rows, 0))
        te = np.maximum(by_time[:ended], times[self.rows : self.rows + ended])
        state.times.drop(ended)
        own = max(ended - waiting, 0)  # rows that come and go in this step
        open_id = state.open.take(step.open_ids, fresh - own, len(times))
        ends = state.open.close(step.open_ids, te[:waiting])
        if own:
            all_te = np.concatenate([te[waiting:], forever(fresh - own)])
            return Delta(values, rows.t, all_te, np.concatenate([no_open_ids(own), open_id]), step.frontier, ends)
        return Delta(values, rows.t, forever(fresh), open_id, step.frontier, ends)
