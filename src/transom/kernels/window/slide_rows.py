"""ROWS N SLIDE M windows.

Meaning: sampled after every M-th row and held: row i lives from the time of row ceil(i / M) M to that of row
    ceil((i + N) / M) M.
Emits: the rows of a step of M once its last row is there, open until the sample that they are no longer in.
Keeps: the rows of the step that is not full, below M; number and open row id of the rows alive, below N + M.
Needs: rows in time order, rows of one instant in arrival order.
Costs: O(1) a row.

>>> import pyarrow as pa
>>> from transom.state.open_ids import OpenIdPool
>>> window = SlideRowsWindow(2, 2)
>>> rows = StreamDelta(pa.record_batch({"a": [1, 2, 3]}), np.array([5, 6, 7]), frontier=8)
>>> out = window.step(window.start(), (rows,), Step(0, 8, 0, OpenIdPool()))
>>> out.ta.tolist(), out.open_id.tolist()
([6, 6], [0, 1])
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, Int64s, StreamDelta
from transom.core.time import FOREVER
from transom.kernels.kernel import OPEN_END, Step, open_rows
from transom.state.checks import need, within
from transom.state.fifo import Fifo


@dataclass
class SlideRowsWindowState:
    """`waiting` holds the rows after the last full step; `open` number and open row id of the rows alive."""

    seen: int = 0
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    open: Fifo = field(default_factory=lambda: Fifo.of(2))

    def check(self) -> None:
        numbers = self.open.column(0)
        need(0 <= self.seen < 1 << 62 and bool((numbers[1:] > numbers[:-1]).all()))
        within(numbers, self.seen + 1, 1)

    def owned(self) -> list[Int64s]:
        return [self.open.column(1)]


@dataclass(frozen=True)
class SlideRowsWindow:
    rows: int
    slide: int

    def start(self) -> SlideRowsWindowState:
        return SlideRowsWindowState()

    def next_timer(self, state: SlideRowsWindowState) -> int:
        return FOREVER

    def step(self, state: SlideRowsWindowState, inputs: tuple[StreamDelta], step: Step) -> Delta:
        (rows,) = inputs
        before, now = state.seen, state.seen + len(rows)
        sampled = now // self.slide * self.slide  # the number of the last row of the last full step
        first = before // self.slide * self.slide + 1  # the number of the oldest waiting row

        numbers = state.open.column(0)
        ended = int(np.searchsorted(numbers, sampled - self.rows, side="right"))
        te = rows.t[self._ceil(numbers[:ended] + self.rows) - 1 - before]
        ends = step.open_ids.close(state.open.column(1)[:ended].copy(), te)
        state.open.drop(ended)

        values = rows.values
        if sampled >= first:
            values = pa.concat_batches([*state.waiting, values]) if state.waiting else values
            state.waiting = []
        numbers = np.arange(first, max(sampled, first - 1) + 1)
        ta = rows.t[self._ceil(numbers) - 1 - before]
        te = np.full(len(numbers), OPEN_END, dtype=np.int64)
        came = numbers <= sampled - self.rows
        te[came] = rows.t[self._ceil(numbers[came] + self.rows) - 1 - before]
        delta, open_id = open_rows(values.slice(0, len(numbers)), ta, te, step, ends)
        alive = te == OPEN_END
        state.open.append(numbers[alive], open_id[alive])
        rest = values.slice(len(numbers))
        if len(rest):
            state.waiting.append(rest)
        state.seen = now
        return delta

    def _ceil(self, numbers: Int64s) -> Int64s:
        return -(-numbers // self.slide) * self.slide
