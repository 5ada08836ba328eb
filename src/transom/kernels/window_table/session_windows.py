"""SESSION as a table.

Meaning: each row with the bounds of its session, the instant of its first row and G after that of its last, on
    [window_end, forever).
Emits: the rows of a session together, once progress is past its end; their end, forever, is determined.
Keeps: the rows of the sessions that are not over.
Needs: rows in time order.
Costs: a hash look-up and O(1) a row.

>>> from transom.state.open_ids import OpenIdPool
>>> rows = StreamDelta(pa.record_batch({"k": ["x", "y"]}), np.array([5, 9]), frontier=16)
>>> kernel = SessionWindows((0,), 10, rows.values.schema)
>>> out = kernel.step(kernel.start(), (rows,), Step(0, 16, 0, OpenIdPool()))
>>> out.values.column(0).to_pylist(), out.ta.tolist()
(['x'], [15])
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, StreamDelta, forever, no_open_ids
from transom.core.time import FOREVER
from transom.kernels.kernel import Step
from transom.kernels.row_store import RowStore
from transom.kernels.window.open_sessions import Sessions
from transom.kernels.window_table.time_windows import instants, with_bounds
from transom.state.checks import within


@dataclass
class SessionWindowsState:
    """The rows by their node."""

    rows: RowStore
    sessions: Sessions = field(default_factory=Sessions)

    def check(self) -> None:
        within(self.sessions.nodes.used(), max(self.rows.capacity, 1))


@dataclass(frozen=True)
class SessionWindows:
    partition: tuple[int, ...]
    gap: int
    schema: pa.Schema

    def start(self) -> SessionWindowsState:
        return SessionWindowsState(RowStore.of(self.schema.types))

    def next_timer(self, state: SessionWindowsState) -> int:
        return state.sessions.next_timer

    def step(self, state: SessionWindowsState, inputs: tuple[StreamDelta], step: Step) -> Delta:
        (rows,) = inputs
        columns = [rows.values.column(i) for i in self.partition]
        nodes, closed = state.sessions.take(columns, rows.t, self.gap, step.frontier)
        state.rows.reserve(state.sessions.nodes.high)
        state.rows.write(nodes, rows.values.columns)
        order = np.lexsort((closed.node, closed.end))
        node, start, end = closed.node[order], closed.start[order], closed.end[order]
        gathered = state.rows.gather(node, self.schema.types)
        state.rows.free(node)
        state.sessions.give_back(closed)
        within_time = np.flatnonzero(end < FOREVER)
        values = with_bounds(
            pa.RecordBatch.from_arrays(gathered, schema=self.schema), (instants(start), instants(end), instants(end))
        )
        if len(within_time) < len(end):
            values, end = values.take(pa.array(within_time)), end[within_time]
        return Delta(values, end, forever(len(end)), no_open_ids(len(end)), step.frontier)
