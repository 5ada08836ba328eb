"""TUMBLE and HOP as tables.

Meaning: a row of instant t is there once for each window [k S + offset, k S + offset + T) that holds t, with its
    bounds, on [window_end - tick, forever).
Emits: the rows of a window together, once progress is past window_end - tick; their end, forever, is determined.
Keeps: the rows whose last window is not over: those of the last T.
Needs: rows in time order.
Costs: O(1) a row and window that holds it.

>>> import pyarrow as pa
>>> from transom.state.open_ids import OpenIdPool
>>> rows = StreamDelta(pa.record_batch({"a": [1, 2]}), np.array([3, 12]), frontier=16)
>>> tumble = TimeWindows(TimeGrid(10, 10, 0, 1))
>>> out = tumble.step(tumble.start(), (rows,), Step(0, 16, 0, OpenIdPool()))
>>> out.values.column(0).to_pylist(), out.values.column(1).cast(pa.int64()).to_pylist(), out.ta.tolist()
([1], [0], [9])
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, Int64s, StreamDelta, forever, no_int64s, no_open_ids
from transom.core.schema import TIMESTAMP
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Step
from transom.plan.algebra import WINDOW_COLUMNS


@dataclass(frozen=True)
class TimeGrid:
    """The windows [k slide + offset, k slide + offset + size) that lie within the time domain, by their number k."""

    size: int
    slide: int
    offset: int
    tick: int

    def first_holding(self, t: Int64s) -> Int64s:
        """The number of the first window that holds each instant."""
        number: Int64s = np.maximum((t - self.offset - self.size) // self.slide + 1, self._first)
        return number

    def last_holding(self, t: Int64s) -> Int64s:
        number: Int64s = np.minimum((t - self.offset) // self.slide, self._last)
        return number

    def enters(self, k: int) -> int:
        """The instant at which the rows of a window enter."""
        return k * self.slide + self.offset + self.size - self.tick

    def first_entering(self, instant: int) -> int:
        """The number of the first window whose rows do not enter before an instant."""
        return -((self.enters(0) - instant) // self.slide)

    def bounds(self, k: Int64s) -> tuple[pa.Array, pa.Array, pa.Array, Int64s]:
        """The columns of windows, and when their rows enter."""
        start = k * self.slide + self.offset
        enter = start + (self.size - self.tick)
        return (*(instants(each) for each in (start, start + self.size, enter)), enter)

    @property
    def _first(self) -> int:
        return -((self.offset - BEGINNING) // self.slide)

    @property
    def _last(self) -> int:
        """A window that ends beyond the time domain, or enters where it ends, is none."""
        return min((FOREVER - self.size - self.offset) // self.slide, self.first_entering(FOREVER) - 1)


def instants(values: Int64s) -> pa.Array:
    return pa.array(values).view(TIMESTAMP)


def with_bounds(values: pa.RecordBatch, bounds: tuple[pa.Array, ...]) -> pa.RecordBatch:
    """The columns of a stream, then those of its windows."""
    names = [*values.schema.names, *WINDOW_COLUMNS]
    return pa.RecordBatch.from_arrays([*values.columns, *bounds], names=names)


def repeated(first: Int64s, last: Int64s) -> tuple[Int64s, Int64s]:
    """Each row as often as it has numbers from `first` to `last`: its position, and the number."""
    counts = np.maximum(last - first + 1, 0)
    position = np.repeat(np.arange(len(counts)), counts)
    begins = np.cumsum(counts) - counts
    return position, np.arange(len(position)) - begins[position] + first[position]


@dataclass
class HeldRows:
    """Rows that came in one step."""

    values: pa.RecordBatch
    t: Int64s


@dataclass
class TimeWindowsState:
    """Rows of windows that are not over, in time order; the rows of windows that enter before `released` are out."""

    held: list[HeldRows] = field(default_factory=list)
    released: int = BEGINNING


@dataclass(frozen=True)
class TimeWindows:
    grid: TimeGrid

    def start(self) -> TimeWindowsState:
        return TimeWindowsState()

    def next_timer(self, state: TimeWindowsState) -> int:
        """When the first window of the oldest row is over that is not out yet: no other row has an earlier one."""
        if not state.held:
            return FOREVER
        first = int(self.grid.first_holding(state.held[0].t[:1])[0])
        return self.grid.enters(max(first, self.grid.first_entering(state.released)))

    def step(self, state: TimeWindowsState, inputs: tuple[StreamDelta], step: Step) -> Delta:
        (rows,) = inputs
        grid = self.grid
        if len(rows):
            inside = np.flatnonzero(grid.first_holding(rows.t) <= grid.last_holding(rows.t))
            if len(inside) == len(rows):
                state.held.append(HeldRows(rows.values, rows.t))
            elif len(inside):
                state.held.append(HeldRows(rows.values.take(pa.array(inside)), rows.t[inside]))
        empty = with_bounds(empty_batch(rows.values.schema), grid.bounds(no_int64s())[:3])
        if self.next_timer(state) >= step.frontier:
            state.released = step.frontier
            return Delta(empty, no_int64s(), no_int64s(), no_int64s(), step.frontier)
        due = range(grid.first_entering(state.released), grid.first_entering(step.frontier))
        parts, numbers, later = [], [], []
        for held in state.held:
            first, last = grid.first_holding(held.t), grid.last_holding(held.t)
            at, k = repeated(np.maximum(first, due.start), np.minimum(last, due.stop - 1))
            if len(at):
                parts.append(held.values.take(pa.array(at)))
                numbers.append(k)
            done = int(np.searchsorted(last, due.stop))
            if done < len(held.t):
                later.append(HeldRows(held.values.slice(done), held.t[done:]))
        state.held, state.released = later, step.frontier
        values, k = pa.concat_batches(parts), np.concatenate(numbers)
        if (k[1:] < k[:-1]).any():
            order = np.argsort(k, kind="stable")
            values, k = values.take(pa.array(order)), k[order]
        *columns, enter = grid.bounds(k)
        bound = with_bounds(values, tuple(columns))
        return Delta(bound, enter, forever(len(k)), no_open_ids(len(k)), step.frontier)
