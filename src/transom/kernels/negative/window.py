"""RANGE, NOW, UNBOUNDED and ROWS windows under negative tuples.

Meaning: a row arrives at t and departs at min(t + T, the time of the N-th next row); T or N may be without bound.
Emits: each row when it arrives and, whole, once more when it departs, both in the order in which they came.
Keeps: the rows alive, as the batches in which they came (nothing is copied), freed when the last of a batch departs.
Needs: rows in time order, rows of one instant in arrival order.
Costs: O(1) a row; both bounds grow with the row, so what departs is always the front of the queue.

>>> from transom.state.open_ids import OpenIdPool
>>> window = NegativeWindow(rows=1)
>>> rows = StreamDelta(pa.record_batch({"a": [1, 2]}), np.array([5, 8]), frontier=9)
>>> out = window.step(window.start(), (rows,), Step(0, 9, 0, OpenIdPool()))
>>> out.values.column(0).to_pylist(), out.t.tolist(), out.departed
([1, 1, 2], [8, 5, 8], 1)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.core.delta import Changelog, Int64s, StreamDelta, no_int64s
from transom.core.time import FOREVER, UNBOUNDED
from transom.kernels.kernel import Step
from transom.kernels.window.range import end_after
from transom.state.checks import need


@dataclass
class AliveBatch:
    """Rows that came in one step, with their times; those from `first` on are alive."""

    values: pa.RecordBatch
    t: Int64s
    first: int = 0

    def check(self) -> None:
        need(self.t.dtype == np.int64 and self.t.shape == (len(self.values),) and 0 <= self.first < len(self.t))


@dataclass
class NegativeWindowState:
    """The rows alive, oldest batch first."""

    alive: int = 0
    batches: list[AliveBatch] = field(default_factory=list)

    def check(self) -> None:
        need(self.alive == sum(len(batch.t) - batch.first for batch in self.batches))

    def append(self, rows: StreamDelta) -> None:
        if len(rows):
            self.batches.append(AliveBatch(rows.values, rows.t))
            self.alive += len(rows)

    def before(self, t: int) -> int:
        """How many of the rows alive came before t."""
        count = 0
        for batch in self.batches:
            behind = int(np.searchsorted(batch.t, t))
            count += max(behind - batch.first, 0)
            if behind < len(batch.t):
                break
        return count

    def take(self, count: int) -> tuple[list[pa.RecordBatch], list[Int64s]]:
        """The oldest rows and when they came; from here on they are not alive."""
        self.alive -= count
        values, times = [], []
        while count:
            batch = self.batches[0]
            taken = min(count, len(batch.t) - batch.first)
            values.append(batch.values.slice(batch.first, taken))
            times.append(batch.t[batch.first : batch.first + taken])
            batch.first += taken
            count -= taken
            if batch.first == len(batch.t):
                del self.batches[0]
        return values, times


@dataclass(frozen=True)
class NegativeWindow:
    """`rows` None counts no rows; `length` UNBOUNDED looks at no time."""

    rows: int | None = None
    length: int = UNBOUNDED

    def start(self) -> NegativeWindowState:
        return NegativeWindowState()

    def next_timer(self, state: NegativeWindowState) -> int:
        if self.length >= UNBOUNDED or not state.batches:
            return FOREVER
        oldest = state.batches[0]
        return min(int(oldest.t[oldest.first]) + self.length, FOREVER)

    def step(self, state: NegativeWindowState, inputs: tuple[StreamDelta], step: Step) -> Changelog:
        (arrived,) = inputs
        if self.rows is None and self.length >= UNBOUNDED:
            return Changelog(arrived.values, arrived.t, 0, step.frontier)
        earlier = state.alive
        state.append(arrived)
        by_count = 0 if self.rows is None else max(state.alive - self.rows, 0)
        by_time = 0 if self.length >= UNBOUNDED else state.before(step.frontier - self.length)
        values, times = state.take(max(by_count, by_time))
        if not values:
            return Changelog(arrived.values, arrived.t, 0, step.frontier)
        te = no_int64s()
        if self.rows is not None:  # row j is pushed out by row j + N
            te = arrived.t[self.rows - earlier : self.rows - earlier + by_count]
        if self.length < UNBOUNDED:
            due = end_after(np.concatenate(times), self.length)
            due[: len(te)] = np.minimum(due[: len(te)], te)
            te = due
        own = max(len(te) - earlier, 0)  # departures among the rows that came in this very step
        if own and (te[earlier:] == arrived.t[:own]).any():
            return _without_ghosts(arrived, values, te, earlier, step.frontier)
        t = np.concatenate([te, arrived.t])
        return Changelog(pa.concat_batches([*values, arrived.values]), t, len(te), step.frontier)


def _without_ghosts(
    arrived: StreamDelta, values: list[pa.RecordBatch], te: Int64s, earlier: int, frontier: int
) -> Changelog:
    """Rows that come and go at one instant are left out twice; the first `earlier` departures came in earlier steps."""
    own = len(te) - earlier
    lived = np.ones(len(te) + len(arrived), dtype=np.bool_)
    lived[earlier : len(te)] = lived[len(te) : len(te) + own] = te[earlier:] > arrived.t[:own]
    kept = np.flatnonzero(lived)
    rows = pa.concat_batches([*values, arrived.values]).take(pa.array(kept))
    departed = int(lived[: len(te)].sum())
    return Changelog(rows, np.concatenate([te, arrived.t])[kept], departed, frontier)
