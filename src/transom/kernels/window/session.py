"""PARTITION BY .. SESSION windows.

Meaning: a session is rows of a key, each at most G after the one before; a row lives [t, last + G).
Emits: rows whose session is over in the same step with that end, the others open; the ends of earlier rows.
Keeps: per key that has an open session its bounds, and per row of it an open row id; forgotten when it is over.
Needs: rows in time order.
Costs: a hash look-up and O(1) list work a row.

>>> import pyarrow as pa
>>> from transom.state.open_ids import OpenIdPool
>>> window = SessionWindow((0,), 10)
>>> rows = StreamDelta(pa.record_batch({"k": ["x", "y", "x"]}), np.array([5, 6, 15]), frontier=20)
>>> out = window.step(window.start(), (rows,), Step(0, 20, 0, OpenIdPool()))
>>> out.open_id.tolist(), out.te.tolist()[1]
([0, -1, 1], 16)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from transom.core.delta import Delta, Int64s, StreamDelta, no_int64s
from transom.kernels.kernel import OPEN_END, Step, open_rows
from transom.kernels.window.open_sessions import Sessions
from transom.state.checks import need, rooms
from transom.state.slots import grown


@dataclass
class SessionWindowState:
    """`open_ids` by the node of a row."""

    sessions: Sessions = field(default_factory=Sessions)
    open_ids: Int64s = field(default_factory=no_int64s)

    def check(self) -> None:
        rooms(self.sessions.nodes.high, self.open_ids)

    def owned(self) -> list[Int64s]:
        owned = self.open_ids[self.sessions.nodes.used()]
        need(bool((owned >= 0).all()))
        return [owned]


@dataclass(frozen=True)
class SessionWindow:
    partition: tuple[int, ...]
    gap: int

    def start(self) -> SessionWindowState:
        return SessionWindowState()

    def next_timer(self, state: SessionWindowState) -> int:
        return state.sessions.next_timer

    def step(self, state: SessionWindowState, inputs: tuple[StreamDelta], step: Step) -> Delta:
        (rows,) = inputs
        columns = [rows.values.column(i) for i in self.partition]
        nodes, closed = state.sessions.take(columns, rows.t, self.gap, step.frontier)
        if state.sessions.nodes.high > len(state.open_ids):
            state.open_ids = grown(state.open_ids, state.sessions.nodes.high)
        state.open_ids[nodes] = -1 - np.arange(len(rows))  # a row of this step, by its position
        open_ids = state.open_ids[closed.node]
        here = open_ids < 0
        te = np.full(len(rows), OPEN_END, dtype=np.int64)
        te[-1 - open_ids[here]] = closed.end[here]
        ends = step.open_ids.close(open_ids[~here], closed.end[~here])
        delta, open_id = open_rows(rows.values, rows.t, te, step, ends)
        state.open_ids[nodes] = open_id
        state.sessions.give_back(closed)
        return delta
