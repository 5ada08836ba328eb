"""Tables from outside: static ones, and changing ones given by + and - or by upserts.

Meaning: a static row is alive from the origin forever. A changing row lives from its + to its -, which is known by all
    columns but the time (the youngest of several goes first); with a primary key a + replaces the row of that key.
    Changes of one instant apply in arrival order and then count net: what begins and ends there is a ghost.
Emits: open rows and their ends.
Keeps: the key of each row alive, and a list node per row.
Needs: changes in time order, changes of one instant in arrival order.
Costs: a hash look-up a change.

>>> from transom.state.open_ids import OpenIdPool
>>> table = ChangesTable(pa.schema([("a", pa.int64())]), (0,), upsert=False, has_change_column=True)
>>> changes = StreamDelta(pa.record_batch({"a": [1, 1], "op": ["+", "-"]}), np.array([3, 5]), frontier=9)
>>> out, rejected = table.apply(table.start(), changes, Step(0, 9, 0, OpenIdPool()))
>>> out.ta.tolist(), out.te.tolist(), rejected.tolist()
([3], [5], [])
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.delta import NO_OPEN_ID, Delta, Int64s, StreamDelta, no_int64s
from transom.core.time import FOREVER
from transom.kernels.columns import empty_batch
from transom.kernels.jit import jit
from transom.kernels.kernel import OPEN_END, Step, open_rows
from transom.kernels.key_index import KeyIndex
from transom.kernels.keys import encode_keys
from transom.kernels.sound import listed_in_use
from transom.state.checks import need, rooms
from transom.state.slots import SlotPool, grown


@dataclass(frozen=True)
class StaticTable:
    """The input delta of the first step holds all rows; they begin at the origin."""

    def start(self) -> None:
        return None

    def next_timer(self, state: None) -> int:
        return FOREVER

    def step(self, state: None, inputs: tuple[StreamDelta], step: Step) -> Delta:
        (rows,) = inputs
        count = rows.values.num_rows
        ta = np.full(count, step.origin, dtype=np.int64)
        forever = np.full(count, FOREVER, dtype=np.int64)
        return Delta(rows.values, ta, forever, np.full(count, NO_OPEN_ID, dtype=np.int64), step.frontier)


@dataclass
class ChangesTableState:
    """`top[key]` starts the list of the rows with that key; `nodes[:, n]` is next and open row id."""

    keys: KeyIndex = field(default_factory=KeyIndex)
    top: Int64s = field(default_factory=no_int64s)
    slots: SlotPool = field(default_factory=SlotPool)
    nodes: Int64s = field(default_factory=lambda: np.zeros((2, 0), dtype=np.int64))

    def check(self) -> None:
        rooms(self.slots.high, self.nodes)
        rooms(self.keys.slots.high, self.top)
        listed_in_use(self.top, self.nodes[0], self.slots)
        with_rows = np.flatnonzero(self.top >= 0)
        need(np.array_equal(with_rows, self.keys.slots.used()))

    def owned(self) -> list[Int64s]:
        return [self.nodes[1, self.slots.used()]]


@dataclass(frozen=True)
class ChangesTable:
    """`identity` are the columns by which a row is known.

    The change column, if there is one, is the last of the input.
    """

    schema: pa.Schema
    identity: tuple[int, ...]
    upsert: bool
    has_change_column: bool

    def start(self) -> ChangesTableState:
        return ChangesTableState()

    def next_timer(self, state: ChangesTableState) -> int:
        return FOREVER

    def apply(self, state: ChangesTableState, changes: StreamDelta, step: Step) -> tuple[Delta, Int64s]:
        """The delta, and the changes that took away a row which was not there."""
        count = len(changes)
        if not count:
            return Delta(empty_batch(self.schema), no_int64s(), no_int64s(), no_int64s(), step.frontier), no_int64s()
        batch = changes.values.select(range(len(self.schema)))
        enters = np.ones(count, dtype=np.bool_)
        if self.has_change_column:
            enters = pc.equal(changes.values.column(len(self.schema)), "+").to_numpy(zero_copy_only=False)
        key, _ = state.keys.number(encode_keys([batch.column(i) for i in self.identity], count))
        if state.keys.slots.high > len(state.top):
            state.top = grown(state.top, state.keys.slots.high, -1)
        nodes = state.slots.take(count)
        if state.slots.high > state.nodes.shape[1]:
            state.nodes = grown(state.nodes, state.slots.high)
        te, closed_id, closed_te, freed, rejected = change_rows(
            changes.t, key, enters, self.upsert, nodes, state.top, state.nodes
        )
        ends = step.open_ids.close(closed_id, closed_te)
        te[~enters] = changes.t[~enters]  # a - is no row: a ghost, left out below
        delta, open_id = open_rows(batch, changes.t, te, step, ends)
        still = te == OPEN_END
        state.nodes[1, nodes[still]] = open_id[still]
        state.slots.give_back(freed)
        touched = np.unique(key)
        state.keys.forget(touched[state.top[touched] == -1])
        return delta, rejected


@jit
def change_rows(t, key, enters, upsert, fresh, top, nodes):  # type: ignore[no-untyped-def]
    """A node's open row id is -2 - i while it is row i of this step; the node of a - is not used and is freed at
    once."""
    n = len(t)
    te = np.full(n, OPEN_END, dtype=np.int64)
    closed_id = np.empty(n, dtype=np.int64)
    closed_te = np.empty(n, dtype=np.int64)
    freed = np.empty(2 * n, dtype=np.int64)
    rejected = np.empty(n, dtype=np.int64)
    closed = 0
    gone = 0
    count = 0
    for i in range(n):
        k = key[i]
        old = top[k]
        if old >= 0 and (upsert or not enters[i]):
            top[k] = nodes[0, old]
            open_id = nodes[1, old]
            if open_id >= 0:
                closed_id[closed] = open_id
                closed_te[closed] = t[i]
                closed += 1
            else:
                te[-2 - open_id] = t[i]
            freed[gone] = old
            gone += 1
        elif not enters[i]:
            rejected[count] = i
            count += 1
        if enters[i]:
            node = fresh[i]
            nodes[0, node] = top[k]
            nodes[1, node] = -2 - i
            top[k] = node
        else:
            freed[gone] = fresh[i]
            gone += 1
    return te, closed_id[:closed], closed_te[:closed], freed[:gone], rejected[:count]
