"""Aggregates over an equi-join of any number of inputs on one key, from the partial aggregates of each input per key.

Meaning: at every instant, the aggregates of the join of the snapshots of all inputs, by group; a NULL key matches
    nothing. Without groups one row always, unless the results are partial.
Emits: an open row when a group's results change, and the end of the one before; nothing while they stay equal.
Keeps: per row alive its key, its group part and its arguments; per key, input and part the partial aggregates
    (`bundles.py`); per group its totals; for MIN and MAX an entry per key and group. Freed with the last row.
Needs: all inputs joined on one set of keys and by nothing else; group columns and arguments of one input each.
Costs: O(1) a row that comes or goes whatever its matches, O(log n) for MIN and MAX, times the groups that the other
    inputs have under its key.

>>> import pyarrow as pa
>>> from transom.kernels.joinagg.spec import JoinCall
>>> from transom.state.open_ids import OpenIdPool
>>> rows = Delta(pa.record_batch({"k": [1, 1]}), np.array([1, 2]), np.array([5, 9]), np.full(2, NO_OPEN_ID), frontier=9)
>>> schema = pa.schema([("k", pa.int64()), ("n", pa.int64())])
>>> spec = JoinAggregateSpec(((pa.int64(),),) * 2, ((0,), (0,)), None, ((0, 0),), (JoinCall("count"),), schema)
>>> kernel = FactorisedKernel(spec)
>>> out = kernel.step(kernel.start(), (rows, rows), Step(0, 9, 0, OpenIdPool()))
>>> out.values.column(1).to_pylist(), out.ta.tolist(), out.te.tolist()[:2]
([1, 4, 1], [1, 2, 5], [2, 5])
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from transom.core.delta import NO_OPEN_ID, Delta, Int64s, no_int64s
from transom.core.time import BEGINNING
from transom.kernels.aggregate.ordered import heap_members
from transom.kernels.columns import empty_batch
from transom.kernels.joinagg.bundles import Bundles, widths
from transom.kernels.joinagg.factorised_loop import (
    CLOCK,
    ENTRIES,
    GROUPS,
    LEFT,
    BundleLayout,
    Entries,
    FreshNumbers,
    Happening,
    factorise,
)
from transom.kernels.joinagg.rows import GroupedRows
from transom.kernels.joinagg.spec import JoinAggregateSpec
from transom.kernels.joinagg.step_delta import show
from transom.kernels.joinagg.totals import StepResults, Totals, settle, touch
from transom.kernels.joinagg.tuple_index import FEW, TupleIndex
from transom.kernels.kernel import Step, select_rows
from transom.kernels.keys import encode_keys
from transom.kernels.lifetimes import LifetimeSet
from transom.kernels.trim import trimmed, trimmed_bytes
from transom.state.checks import need, rooms
from transom.state.slots import grown

AT_ONCE = 1 << 16  # results that there is room for at first


@dataclass
class FactorisedState:
    """`entries` are (key, group), numbered as in the totals; `links` those of the rows in the heaps of their bundle."""

    rows: GroupedRows
    totals: Totals
    bundles: Bundles
    links: Int64s
    lifetimes: list[LifetimeSet]
    row_bundle: Int64s = field(default_factory=no_int64s)
    entries: TupleIndex = field(default_factory=lambda: TupleIndex.of(2))
    alive: Int64s = field(default_factory=no_int64s)

    def compacted(self) -> FactorisedState:
        alive = self.alive[: self.entries.slots.high]
        return trimmed(self, self.rows.slots.high, ("row_bundle", "links"), alive=alive)

    def compacted_bytes(self) -> int:
        return trimmed_bytes(self.compacted())


@dataclass(frozen=True)
class FactorisedKernel:
    spec: JoinAggregateSpec

    def start(self) -> FactorisedState:
        assert self.spec.residual is None and all(self.spec.key_columns)
        return FactorisedState(
            rows=GroupedRows.of(self.spec),
            totals=Totals.of(self.spec),
            bundles=Bundles.of(self.spec),
            links=np.zeros((widths(self.spec)[1], 3, 0), dtype=np.int64),
            lifetimes=[LifetimeSet() for _ in self.spec.input_types],
        )

    def check(self, state: FactorisedState) -> None:
        rows, pool = state.rows, state.rows.slots
        rows.check_spec(self.spec)
        slots = pool.used()
        rooms(pool.high, state.row_bundle, state.links)
        need(state.links.shape[-1] == len(state.row_bundle))
        state.bundles.check_spec(self.spec, state.row_bundle[slots])
        for roots, links in zip(state.bundles.roots, state.links, strict=True):
            need(bool(pool.mask()[heap_members(roots, links, state.row_bundle)].all()))
        rooms(state.entries.slots.high, state.alive)
        state.totals.check_spec(self.spec, len(rows.input), state.entries.words[1])
        for i, lifetimes in enumerate(state.lifetimes):
            used = pool.mask()
            used[slots[rows.input[slots] != i]] = False
            lifetimes.check_slots(used)

    def next_timer(self, state: FactorisedState) -> int:
        if self.spec.everything and not state.totals.started:
            return BEGINNING
        return min(lifetimes.next_timer for lifetimes in state.lifetimes)

    def step(self, state: FactorisedState, inputs: tuple[Delta, ...], step: Step) -> Delta:
        left: list[tuple[Int64s, Int64s, int]] = []  # t, slot, sign
        came: list[tuple[Int64s, Int64s, int]] = []
        for i, delta in enumerate(inputs):
            ended, te = state.lifetimes[i].leave(delta.ends, step.frontier)
            left.append((te, ended, -1))
            if not len(delta):
                continue
            slots, admitted = self._admit(state, i, delta)
            came.append((admitted.ta, slots, 1))
            gone = (admitted.te < step.frontier) & (admitted.open_id == NO_OPEN_ID)
            came.append((admitted.te[gone], slots[gone], -1))
            state.lifetimes[i].add(slots[~gone], admitted.te[~gone], admitted.open_id[~gone])
        parts = [part for part in (*left, *came) if len(part[0])]  # of one instant what ends is taken first
        begun = state.totals.begin(self.spec)
        if not parts and not begun:
            return Delta(empty_batch(self.spec.schema), no_int64s(), no_int64s(), no_int64s(), step.frontier)
        t = np.concatenate([no_int64s(), *[part[0] for part in parts]])
        slot = np.concatenate([no_int64s(), *[part[1] for part in parts]])
        sign = np.concatenate([no_int64s(), *[np.full(len(part[0]), part[2], dtype=np.int64) for part in parts]])
        order = np.argsort(t, kind="stable")
        out = StepResults.of(self.spec, min(len(t), AT_ONCE) + 1)
        if begun:  # looked at once though nothing has come
            groups, results = state.totals.arrays(), out.arrays()
            touch(0, groups, results)
            settle(
                step.origin, True, False, self.spec.table, self.spec.float_width, state.rows.cells(self.spec), groups,
                results,
            )  # fmt: skip
        self._advance(state, t[order], slot[order], sign[order], out)
        shown = show(self.spec, state.totals, state.rows, out, step)
        self._release(state, slot[sign < 0])
        return shown

    def _release(self, state: FactorisedState, ended: Int64s) -> None:
        """Forget rows that ended."""
        state.bundles.release(len(self.spec.input_types), state.row_bundle[ended])
        state.rows.release(self.spec, ended)

    def _admit(self, state: FactorisedState, i: int, delta: Delta) -> tuple[Int64s, Delta]:
        """Slots for the new rows of an input that have a key, and these rows."""
        columns = [delta.values.column(c) for c in self.spec.key_columns[i]]
        keys = encode_keys(columns, len(delta))
        if keys.null.any():
            delta = select_rows(delta, ~keys.null)
            keys = encode_keys([delta.values.column(c) for c in self.spec.key_columns[i]], len(delta))
        slots = state.rows.admit(self.spec, i, delta.values)
        if state.rows.slots.high > len(state.row_bundle):
            state.row_bundle = grown(state.row_bundle, state.rows.slots.high)
            state.links = grown(state.links, len(state.row_bundle), -1)
        state.row_bundle[slots] = state.bundles.number(self.spec, i, keys, state.rows.part[slots])
        return slots, delta

    def _advance(self, state: FactorisedState, t: Int64s, slot: Int64s, sign: Int64s, out: StepResults) -> None:
        """Apply the events, ascending in t."""
        spec, totals = self.spec, state.totals
        clock, done, met, room = BEGINNING, 0, 0, FEW
        group_inputs = np.array(spec.group_inputs, dtype=np.int64)
        bundle_width, _ = widths(spec)
        while done < len(t):
            room = max(2 * room, met)
            out.room(met)
            fresh = FreshNumbers(totals.group_room(spec, room), state.entries.room(room if spec.heap_width else 0))
            totals.reserve_entries(state.entries.slots.high)
            if state.entries.slots.high > len(state.alive):
                state.alive = grown(state.alive, state.entries.slots.high)
            used = np.array([clock, 0, 0, 0], dtype=np.int64)
            empty = np.empty(max(room, 1) if spec.heap_width else 0, dtype=np.int64)
            layout = BundleLayout(
                len(spec.input_types), group_inputs, spec.everything, spec.partial, spec.table, spec.float_width,
                bundle_width, state.row_bundle, state.links,
            )  # fmt: skip
            entries = Entries(state.entries.arrays(), state.alive, empty)
            done, met = factorise(
                done, Happening(t, slot, sign), layout, state.bundles.arrays(), entries, fresh, used,
                state.rows.cells(spec), totals.groups.arrays(), totals.arrays(), out.arrays(),
            )  # fmt: skip
            clock = int(used[CLOCK])
            totals.groups.give_back(fresh.groups[used[GROUPS] :])
            state.entries.give_back(fresh.entries[used[ENTRIES] :])
            emptied = np.unique(empty[: used[LEFT]])
            state.entries.forget(emptied[state.alive[emptied] == 0])
