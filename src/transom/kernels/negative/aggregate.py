"""The aggregates under negative tuples, each also DISTINCT, with or without GROUP BY.

Meaning: as `kernels/aggregate/aggregate.py` has it: one row per group that has rows, without GROUP BY one row always.
Emits: when a group's results change, the departure of the old row and the arrival of the new one, both at that
    instant; of an emptied group the departure alone; nothing while the results stay equal.
Keeps: per group its key and totals, per DISTINCT call each value of a group once; nothing per input row. Only with MIN,
    MAX, FIRST or a quantile each combination of a group and the arguments once, in heaps and trees. Freed with the last
    row.
Needs: nothing.
Costs: for each arrival and each departure a hash look-up, with those another one and, when a combination comes or
    goes for good, O(log n); and sorting them by time.

>>> from transom.state.open_ids import OpenIdPool
>>> schema, greatest = pa.schema([("m", pa.int64())]), AggregateSpec("max", 0, False)
>>> kernel = NegativeAggregateKernel((), (greatest,), schema, (pa.int64(),))
>>> rows = Changelog(pa.record_batch({"x": [4, 3, 4]}), np.array([5, 1, 2]), departed=1, frontier=9)
>>> out = kernel.step(kernel.start(), (rows,), Step(0, 9, 0, OpenIdPool()))
>>> out.values.column(0).to_pylist(), out.t.tolist(), out.departed
([None, 3, 4, None, 3, 4, 3], [1, 2, 5, 0, 1, 2, 5], 3)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transom.core.delta import Changelog, Int64s, no_int64s
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.aggregate import accumulate as loop
from transom.kernels.aggregate.aggregate import AggregateKernel, AggregateSpec, AggregateState, each_once
from transom.kernels.aggregate.cells import to_cells
from transom.kernels.aggregate.ordered import ANY_GROUP
from transom.kernels.columns import empty_batch, fixed_values, is_text, validity
from transom.kernels.jit import jit
from transom.kernels.kernel import OPEN_END, Step
from transom.kernels.key_index import KeyIndex, equal_bytes
from transom.kernels.keys import encode_keys
from transom.kernels.sound import numbered
from transom.kernels.tally import signs
from transom.state.checks import need, within
from transom.state.slots import grown


@dataclass
class NegativeAggregateState:
    """Groups as the direct method keeps them; `shown` is 0 where a group has shown a row, else -1.

    With MIN or MAX its rows are the combinations of a group and the arguments, numbered by `combinations`.
    """

    groups: AggregateState
    combinations: KeyIndex = field(default_factory=KeyIndex)

    def owned(self) -> list[Int64s]:
        """What a group has shown has no open row id."""
        return []


@dataclass(frozen=True)
class NegativeAggregateKernel:
    """`keys` are input columns; none of them is an aggregate over everything. `schema` is keys, then calls."""

    keys: tuple[int, ...]
    calls: tuple[AggregateSpec, ...]
    schema: pa.Schema
    input_types: tuple[pa.DataType, ...]

    def start(self) -> NegativeAggregateState:
        groups = self._direct.start()
        counted = len(groups.pairs) + self._heaps
        groups.row_pair, groups.pair_count = (np.zeros((counted, 0), dtype=np.int64) for _ in range(2))
        return NegativeAggregateState(groups)

    def check(self, state: NegativeAggregateState) -> None:
        groups, combinations = state.groups, state.combinations.slots
        self._direct.check_groups(groups)
        within(groups.shown, 1, -1)
        if not self._heaps:
            return
        slots = combinations.used()  # numbers that were given back at once never had a room
        within(slots, min(len(groups.row_group), groups.pair_count.shape[1]))
        any_group = np.full(len(groups.row_group), ANY_GROUP)
        for d, pairs in enumerate(groups.pairs):
            numbered(groups.row_pair[d, slots], pairs.slots)
        for kind, argument, counted, at, *_ in self._table[self._table[:, loop.KIND] >= loop.LEAST]:
            need(bool((groups.row_pair[counted, slots] == slots).all()))
            members = np.zeros(len(groups.row_group), dtype=np.bool_)
            members[slots] = (groups.valid[argument, slots] != 0) & (groups.pair_count[counted, slots] > 0)
            self._direct.check_order(groups, kind, at, members, any_group)

    def next_timer(self, state: NegativeAggregateState) -> int:
        return FOREVER if self.keys or state.groups.started else BEGINNING

    def step(self, state: NegativeAggregateState, inputs: tuple[Changelog], step: Step) -> Changelog:
        (delta,) = inputs
        groups = state.groups
        first = not self.keys and not groups.started
        if not len(delta) and not first:
            return Changelog(empty_batch(self.schema), no_int64s(), 0, step.frontier)
        if first:
            self._direct.make_groups(groups, np.zeros(1, dtype=np.int64))
            groups.started = True
        group = self._direct.group(groups, delta.values)
        find = self._find_combinations if self._heaps else self._lay_out
        slot, rows, row_pair = find(state, delta.values, group)
        events = loop.GroupEvents(delta.t, slot, group, signs(delta))
        if first:  # the origin is looked at even if nothing comes
            at_origin = loop.GroupEvents(*(np.array([word]) for word in (step.origin, -1, 0, 0)))
            events = loop.GroupEvents(*map(np.append, events, at_origin))
        order = np.argsort(events.t, kind="stable")
        out = self._advance(groups, loop.GroupEvents(*(part[order] for part in events)), rows, row_pair, step)
        self._release(state, group[: delta.departed], slot[: delta.departed], row_pair)
        return out

    def _advance(
        self, state: AggregateState, events: loop.GroupEvents, rows: tuple[Any, ...], row_pair: Int64s, step: Step
    ) -> Changelog:
        touched = each_once(events.group, state.mark)
        # What a group showed before is made of the words that the loop is about to replace. It closes by `shown`.
        words = state.last[touched]
        before = self._list(state, touched, words)
        showing = np.flatnonzero(state.shown[touched] >= 0)
        state.shown[touched[showing]] = showing
        (out_group, ta, te, fresh), (closed, closed_t), listed = self._direct.accumulate(
            state, events, self._table, rows, row_pair
        )
        fresh[:, self._listed + 2] += len(before)
        state.shown[touched] = 0  # an emptied group is about to be forgotten
        group = np.concatenate([touched[closed], out_group])
        shown = np.concatenate([words[closed], fresh])
        ends = np.concatenate([closed_t, te])
        values = pa.RecordBatch.from_arrays(
            self._direct.results(state, group, shown, np.concatenate([before, listed])), schema=self.schema
        )
        leaves, arrives = ends != OPEN_END, np.arange(len(group)) >= len(closed)
        if self._may_look_different:
            before, after = follow_ups(group, ends, ta, len(closed), state.mark)
            same = self._equal(values, shown, before, after)
            leaves[before[same]] = False
            arrives[after[same]] = False
        left, came = np.flatnonzero(leaves), np.flatnonzero(arrives)
        if len(left) != len(closed) or len(came) != len(ta):  # else they lie in this order already
            values = values.take(pa.array(np.concatenate([left, came])))
        return Changelog(values, np.concatenate([ends[left], ta[came - len(closed)]]), len(left), step.frontier)

    def _list(self, state: AggregateState, groups: Int64s, words: Int64s) -> Int64s:
        """The slots of which groups show all, before the loop changes their trees; where they are goes to the words."""
        listed = [no_int64s()]
        for tree, at in zip(self._direct.table[self._listing, loop.OFFSET], self._listed, strict=True):
            slots, counts = loop.list_trees(state.tree_roots[tree], state.tree_nodes[tree], groups)
            words[:, at + 2] = sum(map(len, listed)) + np.cumsum(counts) - counts
            words[:, at + 3] = counts
            listed.append(slots)
        return np.concatenate(listed)

    def _lay_out(
        self, state: NegativeAggregateState, values: pa.RecordBatch, group: Int64s
    ) -> tuple[Int64s, tuple[Any, ...], Int64s]:
        """Rows as they lie: slots, cells and DISTINCT pairs for this step alone."""
        shape = len(self._direct.arguments), len(values)
        hi, lo, valid = np.zeros(shape, np.int64), np.zeros(shape, np.uint64), np.ones(shape, np.uint8)
        for a, column in enumerate(self._direct.arguments):
            array = values.column(column)
            if not is_text(array.type):  # without MIN and MAX texts are only counted
                hi[a], lo[a] = to_cells(array)
            there = validity(array)
            if there is not None:
                valid[a] = there
        pairs = self._direct.pair(state.groups, values, group)
        row_pair = np.array(pairs, dtype=np.int64).reshape(len(pairs), len(values))
        return np.arange(len(values)), (hi, lo, valid), row_pair

    def _find_combinations(
        self, state: NegativeAggregateState, values: pa.RecordBatch, group: Int64s
    ) -> tuple[Int64s, tuple[Any, ...], Int64s]:
        """A slot per combination, for what departs the one in which it arrived: a heap must lose the very entry."""
        columns = [pa.array(group), *(values.column(i) for i in self._direct.arguments)]
        slot, brought = state.combinations.number(encode_keys(columns, len(values)))
        groups = state.groups
        if len(brought):
            new, high = slot[brought], state.combinations.slots.high
            self._direct.keep(groups, values.take(pa.array(brought)), group[brought], new, high)
            if high > groups.pair_count.shape[1]:
                groups.pair_count = grown(groups.pair_count, high)
            groups.row_pair[len(groups.pairs) :, new] = new
        return slot, (groups.cell_hi, groups.cell_lo, groups.valid), groups.row_pair

    def _release(self, state: NegativeAggregateState, group: Int64s, slot: Int64s, row_pair: Int64s) -> None:
        """Forget groups, DISTINCT pairs and combinations of which what departed was the last."""
        if not len(slot):
            return
        groups = state.groups
        if self._heaps:
            slot = np.unique(slot)
            slot = slot[groups.pair_count[-1, slot] == 0]
            self._direct.free_texts(groups, slot)
            state.combinations.forget(slot)
        self._direct.forget(groups, group, row_pair[:, slot])

    def _equal(self, values: pa.RecordBatch, words: Int64s, before: Int64s, after: Int64s) -> Int64s:
        """Which of the results `after` equal the ones `before` that they replace, though their words differ.

        As a SUM does when a 0 is added, and the AVG of 1 and 1 when another 1 is.
        """
        same = np.ones(len(before), dtype=np.bool_)
        others = []
        for c, spec in enumerate(self.calls):
            top, hi, lo, n = self._direct.words_of(c, words)
            column = values.column(len(self.keys) + c)
            if spec.function == "count":
                same &= n[before] == n[after]
                continue
            there = n > 0
            same &= there[before] == there[after]
            if spec.function == "sum":
                same &= (top[before] == top[after]) & (hi[before] == hi[after]) & (lo[before] == lo[after])
            elif pa.types.is_floating(column.type):
                old_values, new_values = (fixed_values(column)[rows] for rows in (before, after))
                both_nan = (old_values != old_values) & (new_values != new_values)
                same &= (old_values == new_values) | both_nan | ~there[before]
            else:
                others.append(column)
        equal: Int64s = np.flatnonzero(same)
        if not others or not len(equal):
            return equal
        old, new = (
            encode_keys([column.take(pa.array(rows[equal])) for column in others], len(equal))
            for rows in (before, after)
        )
        equal = equal[equal_keys(old.data, old.offsets, new.data, new.offsets)]
        return equal

    @cached_property
    def _direct(self) -> AggregateKernel:
        return AggregateKernel(self.keys, self.calls, self.schema, self.input_types)

    @cached_property
    def _listing(self) -> npt.NDArray[np.bool_]:
        flags: npt.NDArray[np.bool_] = self._direct.table[:, loop.KIND] == loop.LISTED
        return flags

    @cached_property
    def _listed(self) -> Int64s:
        """Where what they show begins, of calls that show all rows in order."""
        offsets: Int64s = self._direct.table[self._listing, loop.LAST]
        return offsets

    @cached_property
    def _heaps(self) -> int:
        """How many heaps and trees there are."""
        return len(self._direct.ordered_calls)

    @cached_property
    def _table(self) -> Int64s:
        """The direct method's; but a heap or tree has each combination once, counted like those of a DISTINCT call."""
        table = self._direct.table.copy()
        counters = int((table[:, loop.DISTINCT] >= 0).sum())
        heaps = len(self._direct.heap_calls)
        heap, tree = (table[:, loop.KIND] >= loop.LEAST), (table[:, loop.KIND] >= loop.BETWEEN)
        table[heap, loop.DISTINCT] = counters + table[heap, loop.OFFSET]
        table[tree, loop.DISTINCT] += heaps
        return table

    @cached_property
    def _may_look_different(self) -> bool:
        """Whether equal results may have different words: sums and averages."""
        return any(call.function in ("sum", "avg") for call in self.calls)


@jit
def follow_ups(group, ends, ta, closed, mark):  # type: ignore[no-untyped-def]
    """Pairs of results of which the second begins as the first one of its group ends.

    The first `closed` results began in earlier steps, the others at `ta`, in the order of time. `mark` is 0 everywhere
    before and after.
    """
    before = np.empty(len(ta), dtype=np.int64)
    after = np.empty(len(ta), dtype=np.int64)
    count = 0
    for i in range(len(group)):
        last = mark[group[i]] - 1
        if i >= closed and last >= 0 and ends[last] == ta[i - closed]:
            before[count] = last
            after[count] = i
            count += 1
        mark[group[i]] = i + 1
    for g in group:
        mark[g] = 0
    return before[:count].copy(), after[:count].copy()


@jit
def equal_keys(data, offsets, other_data, other_offsets):  # type: ignore[no-untyped-def]
    equal = np.empty(len(offsets) - 1, dtype=np.bool_)
    for i in range(len(equal)):
        size, other_size = offsets[i + 1] - offsets[i], other_offsets[i + 1] - other_offsets[i]
        equal[i] = equal_bytes(data, offsets[i], size, other_data, other_offsets[i], other_size)
    return equal
