"""ORDER BY .. LIMIT, ROW_NUMBER, RANK and DENSE_RANK.

Meaning: at every instant the rows alive whose number within their partition lies between two bounds. Rows are in the
    order of ORDER BY, ties broken by all columns; ROW_NUMBER counts rows, RANK the rows of smaller value, DENSE_RANK
    the smaller values.
Emits: open rows when they take a place (or another number, where that is shown), ends when they lose it.
Keeps: each row alive once, with its place in a tree, and two numbers per input row; of rows that never leave those with
    a place alone.
Needs: rows of one partition together.
Costs: a hash look-up and O(log rows alive) a row; where the number is shown, also the rows behind it that have a place.

>>> from transom.core.delta import NO_OPEN_ID
>>> from transom.plan.algebra import SortKey
>>> from transom.state.open_ids import OpenIdPool
>>> schema = pa.schema([("a", pa.int64())])
>>> rows = Delta(pa.record_batch({"a": [5, 3]}), np.array([1, 2]), np.array([6, 4]), np.full(2, NO_OPEN_ID), frontier=9)
>>> kernel = TopNKernel(RowOrder((), (SortKey(0),)), Places("row_number", 1, 1), schema)
>>> out = kernel.step(kernel.start(), (rows,), Step(0, 9, 0, OpenIdPool()))
>>> out.values.column(0).to_pylist(), out.ta.tolist(), out.te.tolist()
([5, 3, 5], [1, 2, 4], [2, 4, 6])
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, Int64s, no_int64s
from transom.core.time import FOREVER
from transom.kernels.jit import jit
from transom.kernels.kernel import OPEN_END, Step, open_rows
from transom.kernels.key_index import KeyIndex
from transom.kernels.sound import listed_in_use
from transom.kernels.tally import Steps, Tally
from transom.kernels.top_n.places import (
    DENSE_RANK,
    NEW,
    NEW_COUNT,
    NO_BOUND,
    OLD,
    OLD_COUNT,
    RANK,
    ROW_NUMBER,
    VALUE,
    T,
    change_places,
)
from transom.kernels.top_n.row_order import OrderedKeys, RowOrder, heads
from transom.kernels.top_n.tree import HEAD, WEIGHT, WIDTH, grown_nodes, sound_trees
from transom.state.checks import need, rooms, within
from transom.state.slots import SlotPool, grown

_FUNCTIONS: Final = {"row_number": ROW_NUMBER, "rank": RANK, "dense_rank": DENSE_RANK}


@dataclass(frozen=True)
class Places:
    """Which numbers have a place, and whether the number is shown as well; `most` is None: all from `least` on.

    `lasting`: no row that comes ever leaves, so that who has no place never takes one.
    """

    function: str
    least: int
    most: int | None
    numbered: bool = False
    lasting: bool = False

    @property
    def spread(self) -> bool:
        """Whether equal rows have numbers of their own that can be seen."""
        return self.numbered and self.function == "row_number"

    def compiled(self) -> tuple[int, int, int, bool, bool]:
        most = NO_BOUND if self.most is None else min(self.most, NO_BOUND)
        return _FUNCTIONS[self.function], self.least, most, self.numbered, self.lasting and self.most is not None


@dataclass
class TopNState:
    """Values are numbered by the tally: `nodes`, `part`, `prefix`, `shown` and `top` are by that number, `roots` by
    partition.

    `shown` is how often a value is in the answer, where numbers are not. `top[v]` starts the list of its open output
    rows: `rows[:, n]` is next, open row id and number.
    """

    tally: Tally
    partitions: KeyIndex = field(default_factory=KeyIndex)
    roots: Int64s = field(default_factory=no_int64s)
    nodes: Int64s = field(default_factory=lambda: np.zeros((0, WIDTH), dtype=np.int64))
    part: Int64s = field(default_factory=no_int64s)
    prefix: Int64s = field(default_factory=no_int64s)
    shown: Int64s = field(default_factory=no_int64s)
    top: Int64s = field(default_factory=no_int64s)
    slots: SlotPool = field(default_factory=SlotPool)
    rows: Int64s = field(default_factory=lambda: np.zeros((3, 0), dtype=np.int64))

    def check(self) -> None:
        values = self.tally.keys.slots
        rooms(values.high, self.part, self.prefix, self.shown, self.top)
        need(self.nodes.ndim == 2 and self.nodes.shape[1] == WIDTH and len(self.nodes) >= values.high)
        rooms(self.partitions.slots.high, self.roots)
        used = values.mask()
        seen = np.zeros(values.high, dtype=np.bool_)
        need(
            sound_trees(
                self.nodes.copy(), self.roots, self.part, values.high, seen, np.empty(values.high, dtype=np.int64)
            )
        )
        need(bool((seen == used).all()))
        need(bool((self.nodes[: values.high, WEIGHT][used] == self.tally.counts[0, : values.high][used]).all()))
        partitions = np.flatnonzero(self.roots >= 0)
        need(bool((partitions == self.partitions.slots.used()).all()))
        lengths = self.tally.keys.keys.columns[0].length  # type: ignore[union-attr]
        within(self.prefix[: values.high][used] - lengths[: values.high][used], 1, -(1 << 62))
        need(bool((self.prefix >= 0).all() and (self.shown >= 0).all()))
        rooms(self.slots.high, self.rows)
        listed_in_use(self.top[: values.high], self.rows[0], self.slots)
        need(not (self.top[: values.high][~used] >= 0).any() and not (self.top[values.high :] >= 0).any())

    def owned(self) -> list[Int64s]:
        return [self.rows[1, self.slots.used()]]

    def number(self, batch: pa.RecordBatch, keys: OrderedKeys) -> Int64s:
        """The number of each row's value; new ones know their partition."""
        value, brought = self.tally.number_by(batch, keys.rows)
        high = self.tally.keys.slots.high
        if high > len(self.nodes):
            self.nodes = grown_nodes(self.nodes, high)
        if high > len(self.prefix):
            self.part, self.prefix, self.shown = (grown(array, high) for array in (self.part, self.prefix, self.shown))
            self.top = grown(self.top, high, -1)
        if len(brought):
            partition, _ = self.partitions.number(keys.partitions)
            if self.partitions.slots.high > len(self.roots):
                self.roots = grown(self.roots, self.partitions.slots.high, -1)
            self.part[value[brought]] = partition[brought]
            self.nodes[value[brought], HEAD] = heads(keys.rows.data, keys.rows.offsets, brought)
            self.prefix[value[brought]] = keys.prefix[brought]
        return value

    def forget(self, values: Int64s) -> None:
        """Free those of the values, and of their partitions, that have no rows any more."""
        values = np.unique(values)
        gone = values[self.nodes[values, WEIGHT] == 0]
        self.tally.counts[0, values] = self.nodes[values, WEIGHT]
        partitions = np.unique(self.part[values])
        self.tally.forget_values(gone)
        self.partitions.forget(partitions[self.roots[partitions] < 0])

    def change(self, steps: Steps, places: Places) -> tuple[Int64s, Int64s]:
        """Take the changes of a step: who is shown otherwise (entries of `change_places`), and which values changed."""
        if not len(steps.t):
            return np.empty((0, 6), dtype=np.int64), no_int64s()
        order = np.lexsort((self.part[steps.key], steps.t))
        key = steps.key[order]
        diff = (steps.after[0] - steps.before[0])[order]
        column: Any = self.tally.keys.keys.columns[0]
        texts = (column.arena, column.start, column.length, self.prefix)
        entries, gone = change_places(
            steps.t[order],
            key,
            diff,
            places.compiled(),
            self.nodes,
            (self.roots, self.part),
            self.shown,
            self.tally.entry_of,
            texts,
        )
        return entries, np.concatenate([key, gone])


@dataclass(frozen=True)
class TopNKernel:
    """`schema` is that of the input, and behind it the number where it is shown."""

    order: RowOrder
    places: Places
    schema: pa.Schema

    def start(self) -> TopNState:
        types = self.schema.types
        return TopNState(Tally.of(types[:-1] if self.places.numbered else types))

    def check(self, state: TopNState) -> None:
        need(not self.places.numbered or not state.shown.any())

    def next_timer(self, state: TopNState) -> int:
        return FOREVER if self.places.lasting else state.tally.lifetimes.next_timer

    def step(self, state: TopNState, inputs: tuple[Delta], step: Step) -> Delta:
        (rows,) = inputs
        steps = (
            self._lasting(state, rows)
            if self.places.lasting
            else state.tally.advance(inputs, step.frontier, lambda batch: state.number(batch, self.order.keys(batch)))
        )
        entries, values = state.change(steps, self.places)
        out = self._show(state, entries, step)
        if len(values):
            state.forget(values)
        return out

    def _lasting(self, state: TopNState, rows: Delta) -> Steps:
        """Rows that stay need not be known one by one."""
        key = state.number(rows.values, self.order.keys(rows.values)) if len(rows) else no_int64s()
        order = np.argsort(rows.ta, kind="stable")
        return state.tally.apply(rows.ta[order], key[order], np.ones(len(key), dtype=np.int64))

    def _show(self, state: TopNState, entries: Int64s, step: Step) -> Delta:
        fresh = state.slots.take(int(begun(entries, self.places.spread).sum()))
        if state.slots.high > state.rows.shape[1]:
            state.rows = grown(state.rows, state.slots.high)
        value, number, ta, te, closed_id, closed_te, freed = change_rows_shown(
            entries, self.places.spread, fresh, state.top, state.rows
        )
        ends = step.open_ids.close(closed_id, closed_te)
        delta, open_id = open_rows(output(state, value, number, self.schema, self.places), ta, te, step, ends)
        still = te == OPEN_END
        state.rows[1, fresh[still]] = open_id[still]
        state.slots.give_back(freed)
        return delta


def output(state: TopNState, value: Int64s, number: Int64s, schema: pa.Schema, places: Places) -> pa.RecordBatch:
    """The rows of these values, and their numbers where they are shown."""
    types = schema.types[:-1] if places.numbered else schema.types
    columns = state.tally.values.gather(value, types)
    return pa.RecordBatch.from_arrays([*columns, pa.array(number)] if places.numbered else columns, schema=schema)


def begun(entries: Int64s, spread: bool) -> Int64s:
    """How many rows begin with each entry."""
    old, new, before, after = entries[:, OLD], entries[:, NEW], entries[:, OLD_COUNT], entries[:, NEW_COUNT]
    if spread:
        shared = np.minimum(old + before, new + after) - np.maximum(old, new)
        fresh: Int64s = after - np.maximum(shared, 0)
        return fresh
    return np.where(old == new, np.maximum(after - before, 0), after)


@jit
def change_rows_shown(entries, spread, fresh, top, rows):  # type: ignore[no-untyped-def]
    """Ends and beginnings of output rows; the open row id of one is -2 - i while it is output row i of this step."""
    made = closed = gone = 0
    ended = 0
    for e in range(len(entries)):
        ended += entries[e, OLD_COUNT]
    value = np.empty(len(fresh), dtype=np.int64)
    number = np.empty(len(fresh), dtype=np.int64)
    ta = np.empty(len(fresh), dtype=np.int64)
    te = np.full(len(fresh), OPEN_END, dtype=np.int64)
    closed_id = np.empty(ended, dtype=np.int64)
    closed_te = np.empty(ended, dtype=np.int64)
    freed = np.empty(ended, dtype=np.int64)
    for e in range(len(entries)):
        t, v = entries[e, T], entries[e, VALUE]
        old, before, new, after = entries[e, OLD], entries[e, OLD_COUNT], entries[e, NEW], entries[e, NEW_COUNT]
        kept = 0
        previous = -1
        node = top[v]
        while node >= 0:
            following = rows[0, node]
            n = rows[2, node]
            if (spread and new <= n < new + after) or (not spread and n == new and kept < after):
                kept += 1
                previous = node
            else:
                if previous < 0:
                    top[v] = following
                else:
                    rows[0, previous] = following
                open_id = rows[1, node]
                if open_id >= 0:
                    closed_id[closed] = open_id
                    closed_te[closed] = t
                    closed += 1
                else:
                    te[-2 - open_id] = t
                freed[gone] = node
                gone += 1
            node = following
        for i in range(after if spread else after - kept):
            n = new + i if spread else new
            if spread and old <= n < old + before:
                continue
            node = fresh[made]
            rows[0, node] = top[v]
            rows[1, node] = -2 - made
            rows[2, node] = n
            top[v] = node
            value[made] = v
            number[made] = n
            ta[made] = t
            made += 1
    return value, number, ta, te, closed_id[:closed], closed_te[:closed], freed[:gone]
