"""PARTITION BY .. ROWS windows, alone or with RANGE.

Meaning: as `rows.py`, counted among the rows of the same key; all rows with NULL keys alike are one partition.
Emits: rows whose end came in the same step with that end, the others open; the ends of earlier rows.
Keeps: per partition a list of its last N rows (time, open row id); a partition is kept forever, as its rows are alive
until
    others come. With RANGE also a queue of the rows whose time has not come.
Needs: rows in time order, rows of one instant in arrival order.
Costs: a hash look-up and O(1) list work a row.

>>> import pyarrow as pa
>>> from transom.state.open_ids import OpenIdPool
>>> window, open_ids = PartitionRowsWindow((0,), 1), OpenIdPool()
>>> rows = StreamDelta(pa.record_batch({"k": ["x", "y", "x"]}), np.array([5, 6, 7]), frontier=9)
>>> out = window.step(window.start(), (rows,), Step(0, 9, 0, open_ids))
>>> out.open_id.tolist(), out.te.tolist()[0]
([-1, 0, 1], 7)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from transom.core.delta import Delta, Int64s, StreamDelta
from transom.core.time import FOREVER, UNBOUNDED
from transom.kernels.columns import alike
from transom.kernels.jit import jit
from transom.kernels.kernel import OPEN_END, Step, open_rows
from transom.kernels.key_index import KeyIndex
from transom.kernels.keys import encode_keys
from transom.kernels.sound import lengths, listed_in_use, numbered
from transom.kernels.window.range import end_after
from transom.state.checks import need, rooms, within
from transom.state.fifo import Fifo
from transom.state.slots import SlotPool, grown

_OPEN_ID, _TIME, _SERIAL = 1, 2, 3  # rows of `nodes`; row 0 is the next node of the partition


@dataclass
class PartitionRowsWindowState:
    """The partitions, each a list of rows.

    `lists[:, p]` is head, tail and length of partition p; `nodes[:, n]` next, open row id, time and serial number of a
    row; a column of `timers` time, node, serial number and partition.
    """

    STATE_VERSION: ClassVar[int] = 2

    keys: KeyIndex = field(default_factory=KeyIndex)
    lists: Int64s = field(default_factory=lambda: np.zeros((3, 0), dtype=np.int64))
    node_slots: SlotPool = field(default_factory=SlotPool)
    nodes: Int64s = field(default_factory=lambda: np.zeros((4, 0), dtype=np.int64))
    timers: Fifo = field(default_factory=lambda: Fifo.of(4))
    serial: int = 0

    def check(self) -> None:
        high = self.keys.slots.high
        rooms(high, self.lists)
        rooms(self.node_slots.high, self.nodes)
        partitions = self.keys.slots.used()
        head, tail, length = self.lists[:, partitions]
        within(length, self.node_slots.high + 1)
        heads = np.where(length > 0, head, -1)
        listed_in_use(heads, self.nodes[0], self.node_slots)
        need(bool((lengths(heads, self.nodes[0]) == length).all()))
        tails = tail[length > 0]
        numbered(tails, self.node_slots)
        need(bool((self.nodes[0, tails] == -1).all()) and len(np.unique(tails)) == len(tails))
        node, partition = self.timers.column(1), self.timers.column(3)
        within(node, self.nodes.shape[1])
        alive = self.nodes[_SERIAL, node] == self.timers.column(2)
        numbered(partition[alive], self.keys.slots)
        # Those of a list come in its order, which is that of the queue: each is at the head when its time comes.
        if len(self.timers):
            need(int(alive.sum()) == int(length.sum()))
            head_of = self.lists[0, partition[alive]]
            _, first = np.unique(partition[alive], return_index=True)
            need(bool((node[alive][first] == head_of[first]).all()))

    def owned(self) -> list[Int64s]:
        open_ids = self.nodes[1, self.node_slots.used()]
        need(bool((open_ids >= -1).all()))  # -1: it ended when it came
        return [open_ids[open_ids >= 0]]


@dataclass(frozen=True)
class PartitionRowsWindow:
    partition: tuple[int, ...]
    rows: int
    length: int = UNBOUNDED

    def start(self) -> PartitionRowsWindowState:
        return PartitionRowsWindowState()

    def next_timer(self, state: PartitionRowsWindowState) -> int:
        return int(state.timers.column(0)[0]) if len(state.timers) else FOREVER

    def step(self, state: PartitionRowsWindowState, inputs: tuple[StreamDelta], step: Step) -> Delta:
        (rows,) = inputs
        count = len(rows)
        partitions, _ = state.keys.number(encode_keys([rows.values.column(i) for i in self.partition], count))
        if state.keys.slots.high > state.lists.shape[1]:
            state.lists = grown(state.lists, state.keys.slots.high)
        nodes = state.node_slots.take(count)
        if state.node_slots.high > state.nodes.shape[1]:
            state.nodes = grown(state.nodes, state.node_slots.high)
        serials = np.arange(state.serial, state.serial + count)
        state.nodes[_SERIAL, nodes] = serials
        state.serial += count

        te = np.full(count, OPEN_END, dtype=np.int64)
        by_time = end_after(rows.t, self.length)
        state.nodes[_TIME, nodes] = by_time
        closed, freed = push_rows(partitions, alike(rows.t), nodes, self.rows, state.lists, state.nodes, te)
        if self.length < UNBOUNDED:
            state.timers.append(by_time, nodes, serials, partitions)
            passed = int(np.searchsorted(state.timers.column(0), step.frontier))
            due = (state.timers.column(i)[:passed] for i in range(4))
            late, ended, over = close_by_time(*due, state.lists, state.nodes, te)
            state.timers.drop(passed)
            closed = (np.concatenate([closed[0], late[0]]), np.concatenate([closed[1], late[1]]))
            freed = np.concatenate([freed, ended])
            state.keys.forget(over)
        ends = step.open_ids.close(*closed)
        delta, open_id = open_rows(rows.values, rows.t, te, step, ends)
        waiting = state.nodes[_OPEN_ID, nodes] <= -2
        state.nodes[_OPEN_ID, nodes[waiting]] = open_id[waiting]
        state.node_slots.give_back(freed)
        return delta


@jit
def push_rows(partitions, t, new_nodes, limit, lists, nodes, te):  # type: ignore[no-untyped-def]
    """Append each row to its partition and end the one it pushes out.

    A node's open row id is -2 - i while it is row i of this step (its end goes to te[i]), -1 once it has ended.
    """
    closed_id = np.empty(len(t), dtype=np.int64)
    closed_te = np.empty(len(t), dtype=np.int64)
    freed = np.empty(len(t), dtype=np.int64)
    closed = 0
    gone = 0
    for i in range(len(t)):
        p = partitions[i]
        node = new_nodes[i]
        nodes[1, node] = -2 - i
        nodes[0, node] = -1
        if lists[2, p] == 0:
            lists[0, p] = node
        else:
            nodes[0, lists[1, p]] = node
        lists[1, p] = node
        lists[2, p] += 1
        if lists[2, p] > limit:
            old = lists[0, p]
            lists[0, p] = nodes[0, old]
            lists[2, p] -= 1
            end = min(t[i], nodes[2, old])
            open_id = nodes[1, old]
            if open_id <= -2:
                te[-2 - open_id] = end
            elif open_id >= 0:
                closed_id[closed] = open_id
                closed_te[closed] = end
                closed += 1
            nodes[1, old] = -1
            nodes[3, old] = -1
            freed[gone] = old
            gone += 1
    return (closed_id[:closed], closed_te[:closed]), freed[:gone]


@jit
def close_by_time(by_time, expired_nodes, serials, partitions, lists, nodes, te):  # type: ignore[no-untyped-def]
    """End the rows whose time has come, and say which nodes are free and which partitions have no row any more.

    A node that was freed or given to another row has another serial number. The others are the heads of their lists,
    for the rows of a partition end in the order in which they came.
    """
    closed_id = np.empty(len(by_time), dtype=np.int64)
    closed_te = np.empty(len(by_time), dtype=np.int64)
    freed = np.empty(len(by_time), dtype=np.int64)
    over = np.empty(len(by_time), dtype=np.int64)
    closed = 0
    gone = 0
    left = 0
    for i in range(len(by_time)):
        node = expired_nodes[i]
        if nodes[3, node] != serials[i]:
            continue
        open_id = nodes[1, node]
        if open_id <= -2:
            te[-2 - open_id] = by_time[i]
        elif open_id >= 0:
            closed_id[closed] = open_id
            closed_te[closed] = by_time[i]
            closed += 1
        nodes[1, node] = -1
        nodes[3, node] = -1
        freed[gone] = node
        gone += 1
        p = partitions[i]
        lists[0, p] = nodes[0, node]
        lists[2, p] -= 1
        if lists[2, p] == 0:
            over[left] = p
            left += 1
    return (closed_id[:closed], closed_te[:closed]), freed[:gone], over[:left]
