"""When the rows alive began, found again by their values when they depart.

Per value a queue of beginnings, oldest first. Of several equal rows the oldest departs: which one it is, is nobody's
business, because snapshots are bags.

>>> began = Beginnings.of([pa.int64()])
>>> rows = Changelog(pa.record_batch({"a": [7, 7, 7]}), np.array([5, 1, 3]), departed=1, frontier=9)
>>> began.match(rows).tolist()
[1]
>>> values, ta = began.remaining([pa.int64()])
>>> values[0].to_pylist(), ta.tolist()
([7], [3])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.core.delta import Changelog, Int64s, no_int64s
from transom.kernels.columns import alike
from transom.kernels.jit import jit
from transom.kernels.key_index import KeyIndex
from transom.kernels.keys import encode_keys
from transom.kernels.row_store import RowStore
from transom.kernels.sound import listed_in_use, numbered
from transom.state.checks import need, rooms
from transom.state.slots import SlotPool, grown


@dataclass
class Beginnings:
    """`ends[:, value]`: the first node of a value's queue, or -1, and the last. `nodes[:, n]`: next and beginning."""

    values: RowStore
    keys: KeyIndex = field(default_factory=KeyIndex)
    ends: Int64s = field(default_factory=lambda: np.zeros((2, 0), dtype=np.int64))
    slots: SlotPool = field(default_factory=SlotPool)
    nodes: Int64s = field(default_factory=lambda: np.zeros((2, 0), dtype=np.int64))

    def check(self) -> None:
        rooms(self.keys.slots.high, self.ends)
        rooms(self.slots.high, self.nodes)
        need(self.values.capacity >= self.keys.slots.high)
        first, last = self.ends
        listed_in_use(first, self.nodes[0], self.slots)
        begun = np.flatnonzero(first >= 0)
        need(np.array_equal(begun, self.keys.slots.used()))
        numbered(last[begun], self.slots)
        need(bool((self.nodes[0, last[begun]] == -1).all()) and len(np.unique(last[begun])) == len(begun))

    @staticmethod
    def of(types: Sequence[pa.DataType]) -> Beginnings:
        return Beginnings(RowStore.of(types))

    def match(self, rows: Changelog) -> Int64s:
        """Keep what arrived; the beginnings of the rows that departed, in the order in which they are given."""
        if not len(rows):
            return no_int64s()
        key = self._number(rows.values)
        departed = rows.departed
        if rows.arrived:
            fresh = self.slots.take(rows.arrived)
            if self.slots.high > self.nodes.shape[1]:
                self.nodes = grown(self.nodes, self.slots.high)
            push_last(
                key[departed:], alike(rows.t[departed:]), _by_time(rows.t[departed:]), fresh, self.ends, self.nodes
            )
        # The n-th departure of a value is that of its n-th arrival, so all arrivals may go first.
        order = _by_time(rows.t[:departed])
        began, freed, empty = pop_first(key[:departed], order, self.ends, self.nodes)
        self.slots.give_back(freed)
        self.keys.forget(empty)
        self.values.free(empty)
        return began  # type: ignore[no-any-return]

    def remaining(self, types: Sequence[pa.DataType]) -> tuple[list[pa.Array], Int64s]:
        """The rows that have not departed, and when they began."""
        key, began = list_all(self.keys.slots.used(), self.slots.in_use, self.ends, self.nodes)
        return self.values.gather(key, types), began

    def _number(self, batch: pa.RecordBatch) -> Int64s:
        key, brought = self.keys.number(encode_keys(batch.columns, len(batch), signed_zeros=True))
        if self.keys.slots.high > self.ends.shape[1]:
            self.ends = grown(self.ends, self.keys.slots.high, -1)
        self.values.reserve(self.ends.shape[1])
        if len(brought):
            self.values.write(key[brought], batch.take(pa.array(brought)).columns)
        return key


def _by_time(t: Int64s) -> Int64s:
    return np.argsort(t, kind="stable")


@jit
def push_last(key, t, order, fresh, ends, nodes):  # type: ignore[no-untyped-def]
    for i in range(len(order)):
        k = key[order[i]]
        node = fresh[i]
        nodes[0, node] = -1
        nodes[1, node] = t[order[i]]
        if ends[0, k] < 0:
            ends[0, k] = node
        else:
            nodes[0, ends[1, k]] = node
        ends[1, k] = node


@jit
def pop_first(key, order, ends, nodes):  # type: ignore[no-untyped-def]
    """The beginning of each row, the nodes that are free, and the values of which nothing is left."""
    began = np.empty(len(order), dtype=np.int64)
    freed = np.empty(len(order), dtype=np.int64)
    empty = np.empty(len(order), dtype=np.int64)
    count = 0
    for i in range(len(order)):
        k = key[order[i]]
        node = ends[0, k]
        began[order[i]] = nodes[1, node]
        freed[i] = node
        ends[0, k] = nodes[0, node]
        if ends[0, k] < 0:  # for good: what arrived is in the queue already
            empty[count] = k
            count += 1
    return began, freed, empty[:count].copy()


@jit
def list_all(keys, count, ends, nodes):  # type: ignore[no-untyped-def]
    out_key = np.empty(count, dtype=np.int64)
    began = np.empty(count, dtype=np.int64)
    i = 0
    for k in keys:
        node = ends[0, k]
        while node >= 0:
            out_key[i] = k
            began[i] = nodes[1, node]
            i += 1
            node = nodes[0, node]
    return out_key, began
