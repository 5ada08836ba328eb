"""Partial results of a join-aggregate, one partition's beside another's, merged into one answer.

Meaning: at every instant, per group the sum of the partial results that are alive; without GROUP BY one row always.
Emits: an open row when a group's results change, and the end of the one before; nothing while they stay equal.
Keeps: the partial rows alive (one per partition and group), and the totals of the groups. Freed with the last row.
Needs: partial rows as `partial_columns` of node.py describes them.
Costs: O(1) a partial row, O(log partitions) for MIN and MAX.

>>> from transom.core.delta import NO_OPEN_ID
>>> from transom.state.open_ids import OpenIdPool
>>> rows = pa.record_batch({"rows": [2, 3]})
>>> partial = Delta(rows, np.array([1, 2]), np.array([5, 9]), np.full(2, NO_OPEN_ID), frontier=9)
>>> kernel = MergeAggregateKernel((), (MergeCall("count", None),), pa.schema([("n", pa.int64())]))
>>> out = kernel.step(kernel.start(), (partial,), Step(0, 9, 0, OpenIdPool()))
>>> out.values.column(0).to_pylist(), out.ta.tolist()
([0, 2, 5, 3], [0, 1, 2, 5])
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Delta, Int64s, no_int64s
from transom.kernels.aggregate import exact_sum
from transom.kernels.aggregate.cells import Words
from transom.kernels.columns import empty_batch, fixed_values
from transom.kernels.joinagg.add_up import add_up
from transom.kernels.joinagg.rows import GroupedRows
from transom.kernels.joinagg.spec import KIND, LEAST, OFFSET, JoinAggregateSpec, JoinCall
from transom.kernels.joinagg.step_delta import float_totals, show
from transom.kernels.joinagg.totals import StepResults, Totals
from transom.kernels.kernel import Step
from transom.kernels.lifetimes import LifetimeSet
from transom.kernels.sound import numbered
from transom.kernels.trim import trimmed, trimmed_bytes
from transom.plan.algebra import AggregateName
from transom.state.checks import need, rooms, within
from transom.state.slots import grown


@dataclass(frozen=True)
class MergeCall:
    """One call: its function and the type of its argument (None for COUNT(*))."""

    function: AggregateName
    argument_type: pa.DataType | None


@dataclass
class MergeAggregateState:
    """Partial rows by slot: their group and what they bring."""

    kept: GroupedRows
    totals: Totals
    n: Int64s
    top: Int64s
    hi: Int64s
    lo: Words
    floats: Int64s
    at: Int64s
    group: Int64s = field(default_factory=no_int64s)
    rows: Int64s = field(default_factory=no_int64s)
    lifetimes: LifetimeSet = field(default_factory=LifetimeSet)

    def compacted(self) -> MergeAggregateState:
        high = self.kept.slots.high
        width = len(self.floats) // max(len(self.group), 1)
        return trimmed(self, high, ("n", "top", "hi", "lo", "at", "group", "rows"), floats=self.floats[: high * width])

    def compacted_bytes(self) -> int:
        return trimmed_bytes(self.compacted())


@dataclass(frozen=True)
class MergeAggregateKernel:
    """`keys` are the types of the columns to group by. `schema` is keys, then calls."""

    keys: tuple[pa.DataType, ...]
    calls: tuple[MergeCall, ...]
    schema: pa.Schema

    def start(self) -> MergeAggregateState:
        calls, heaps = len(self.calls), self.spec.heap_width
        return MergeAggregateState(
            kept=GroupedRows.of(self.extremes),
            totals=Totals.of(self.spec),
            n=np.zeros((calls, 0), dtype=np.int64),
            top=np.zeros((calls, 0), dtype=np.int64),
            hi=np.zeros((calls, 0), dtype=np.int64),
            lo=np.zeros((calls, 0), dtype=np.uint64),
            floats=np.zeros((0, exact_sum.WIDTH), dtype=np.int64),
            at=np.zeros((heaps, 0), dtype=np.int64),
        )

    def check(self, state: MergeAggregateState) -> None:
        kept, pool = state.kept, state.kept.slots
        kept.check_spec(self.extremes)
        rooms(pool.high, state.group, state.rows, state.n, state.top, state.hi, state.lo, state.at)
        need(len(state.floats) >= len(state.group) * self.spec.float_width)
        slots = pool.used()
        numbered(state.group[slots], state.totals.groups.slots)
        need(bool(((state.at[:, slots] == slots) | (state.at[:, slots] == -1)).all()))
        of_group = np.full(len(state.group), -1, dtype=np.int64)  # a row is the entry of its own number
        of_group[slots] = state.group[slots]
        within(slots, state.totals.entry_at.shape[1])
        state.totals.check_spec(self.spec, len(kept.input), of_group)
        state.lifetimes.check_slots(pool.mask())

    def step(self, state: MergeAggregateState, inputs: tuple[Delta], step: Step) -> Delta:
        (delta,) = inputs
        parts: list[tuple[Int64s, Int64s, int]] = []  # t, slot, sign
        ended, te = state.lifetimes.leave(delta.ends, step.frontier)
        if len(ended):
            parts.append((te, ended, -1))
        if state.totals.begin(self.spec):
            parts.append((np.array([step.origin]), np.array([-1]), 0))
        if len(delta):
            slots = self._admit(state, delta.values)
            parts.append((delta.ta, slots, 1))
            gone = (delta.te < step.frontier) & (delta.open_id == NO_OPEN_ID)
            if gone.any():
                parts.append((delta.te[gone], slots[gone], -1))
                ended = np.concatenate([ended, slots[gone]])
            state.lifetimes.add(slots[~gone], delta.te[~gone], delta.open_id[~gone])
        if not parts:
            return Delta(empty_batch(self.schema), no_int64s(), no_int64s(), no_int64s(), step.frontier)
        t = np.concatenate([part[0] for part in parts])
        slot = np.concatenate([part[1] for part in parts])
        sign = np.concatenate([np.full(len(part[0]), part[2], dtype=np.int64) for part in parts])
        group = np.where(slot >= 0, state.group[slot], 0) if len(state.group) else np.zeros_like(slot)
        order = np.argsort(t, kind="stable")
        out = StepResults.of(self.spec, len(t) + 1)
        add_up(
            t[order], slot[order], group[order], sign[order],
            (state.rows, state.n, state.top, state.hi, state.lo, state.floats, state.at), self.spec.everything,
            self.spec.table, self.spec.float_width, state.kept.cells(self.spec), state.totals.arrays(), out.arrays(),
        )  # fmt: skip
        shown = show(self.spec, state.totals, state.kept, out, step)
        state.kept.release(self.extremes, ended)
        return shown

    def _admit(self, state: MergeAggregateState, values: pa.RecordBatch) -> Int64s:
        """Slots for new partial rows, with all they bring."""
        spec, count = self.spec, values.num_rows
        slots = state.kept.admit(self.extremes, 0, self._reordered(values))
        if state.kept.slots.high > len(state.group):
            state.group = grown(state.group, state.kept.slots.high)
            size = len(state.group)
            for name in ("rows", "n", "top", "hi", "lo", "at"):
                setattr(state, name, grown(getattr(state, name), size))
            bigger = np.zeros((size * spec.float_width, exact_sum.WIDTH), dtype=np.int64)
            bigger[: len(state.floats)] = state.floats
            state.floats = bigger
            state.totals.reserve_entries(size)
        words = state.kept.part[slots].reshape(1, count)
        state.group[slots] = state.totals.number(spec, words)
        state.rows[slots] = fixed_values(values.column(len(self.keys)))
        for c, index in enumerate(self._indexes):
            call, columns = self.calls[c], values.columns[index:]
            if spec.table[c, KIND] >= LEAST:
                h, a = spec.table[c, OFFSET], self.extremes.arguments[0].index(self._virtual[c])
                state.at[h, slots] = np.where(state.kept.valid[a, slots] > 0, slots, -1)
            elif call.argument_type is not None:
                state.n[c, slots] = fixed_values(columns[0])
                if call.function != "count" and pa.types.is_floating(call.argument_type):
                    state.floats[slots * spec.float_width + spec.table[c, OFFSET]] = float_totals(columns[1])
                elif call.function != "count":
                    state.top[c, slots] = fixed_values(columns[1])
                    state.hi[c, slots] = fixed_values(columns[2])
                    state.lo[c, slots] = fixed_values(columns[3]).view(np.uint64)
        return slots

    def _reordered(self, values: pa.RecordBatch) -> pa.RecordBatch:
        """The keys and the values of MIN and MAX alone."""
        extremes = [index for c, index in enumerate(self._indexes) if self.calls[c].function in ("min", "max")]
        arrays = [values.column(i) for i in (*range(len(self.keys)), *extremes)]
        if not arrays:
            arrays = [values.column(0)]
        return pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])

    @cached_property
    def _indexes(self) -> list[int]:
        """Where the partial columns of each call begin: after the keys and the number of rows."""
        indexes, at = [], len(self.keys) + 1
        for call in self.calls:
            indexes.append(at)
            if call.argument_type is None:
                continue
            if call.function in ("count", "min", "max"):
                at += 1
            else:
                at += 2 if pa.types.is_floating(call.argument_type) else 4
        return indexes

    @cached_property
    def _virtual(self) -> list[int]:
        """Columns of `spec`'s one input: keys, then what MIN and MAX read, then a place for each other argument."""
        extremes = [c for c, call in enumerate(self.calls) if call.function in ("min", "max")]
        others = [c for c in range(len(self.calls)) if c not in extremes]
        order = [*extremes, *others]
        return [len(self.keys) + order.index(c) for c in range(len(self.calls))]

    @cached_property
    def spec(self) -> JoinAggregateSpec:
        """The totals of the merge, as if of one input."""
        types = [*self.keys, *(pa.int64() for _ in self.calls)]
        calls = []
        for c, call in enumerate(self.calls):
            if call.argument_type is None:
                calls.append(JoinCall("count"))
                continue
            calls.append(JoinCall(call.function, 0, self._virtual[c]))
            if call.function != "count":
                types[self._virtual[c]] = call.argument_type
        group = tuple((0, i) for i in range(len(self.keys)))
        return JoinAggregateSpec((tuple(types),), ((),), None, group, tuple(calls), self.schema)

    @cached_property
    def extremes(self) -> JoinAggregateSpec:
        """The spec with MIN and MAX alone: only their arguments are kept as cells."""
        calls = tuple(call for call in self.spec.calls if call.function in ("min", "max"))
        return replace(self.spec, calls=calls)
