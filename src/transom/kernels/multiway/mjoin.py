"""MJoin: a join of many inputs without intermediate results (paper 3).

Meaning: a tuple of rows, one of each input, that satisfies the predicate is alive on the intersection of their
    lifetimes.
Emits: each tuple once, in the step in which its last member came; its end at once where it is determined, else when
    the first member ends.
Keeps: the rows alive of each input, once, with a hash table for each set of keys that it shares with another input
    (`input_rows.py`); tuples with open ends (`open_tuples.py`); counts of probes and matches (`probe_order.py`).
Needs: nothing; an input that shares no key with those before it is probed whole.
Costs: a probe on each other input per row, and one per partial tuple that got so far; a row expires in O(1) where
    the rows of its input end in the order in which they came, else in O(log n) moves.

>>> from transom.plan.expression import ColumnRef
>>> from transom.state.open_ids import OpenIdPool
>>> rows = Delta(pa.record_batch({"k": [1]}), np.array([1]), np.array([9]), np.full(1, NO_OPEN_ID), frontier=5)
>>> graph = JoinGraph(((pa.int64(),),) * 3, ((ColumnRef(0, pa.int64(), "k"),),) * 3)
>>> join = MJoinKernel(graph, pa.schema([(name, pa.int64()) for name in "abc"]))
>>> out = join.step(join.start(), (rows, rows, rows), Step(0, 5, 0, OpenIdPool()))
>>> out.values.to_pylist(), out.te.tolist()
([{'a': 1, 'b': 1, 'c': 1}], [9])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Delta, Ends, Int64s, no_int64s, no_open_ids
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Step, open_rows
from transom.kernels.mould import Moulds
from transom.kernels.multiway.directory import Directory
from transom.kernels.multiway.extend import extend
from transom.kernels.multiway.graph import Check, Hop, JoinGraph
from transom.kernels.multiway.input_rows import LazyRows, RingRows, input_rows
from transom.kernels.multiway.newcomers import newcomers
from transom.kernels.multiway.open_tuples import OpenTuples
from transom.kernels.multiway.predicate_check import PredicateCheck
from transom.kernels.multiway.probe_order import ProbeOrder
from transom.kernels.multiway.walk import Walk
from transom.kernels.shorter_steps import in_slices

BLOCK = 1 << 20  # numbers of partial tuples made together
PART = 1 << 13  # rows of an input linked and probed together
AT_ONCE = 1 << 10  # rows up to which tuples are made one by one; beyond that it pays to read ahead at every hop

_NONE = no_int64s()


@dataclass
class MJoinState:
    """The directory and the walks over it are found again from the rest, so they are not saved.

    `idle[i]` is the delta that came from input i when nothing did: the same one for as long as it is left alone.
    """

    inputs: list[LazyRows | RingRows]
    order: ProbeOrder
    open_tuples: OpenTuples

    def check(self) -> None:
        self.open_tuples.check_members(self.inputs)

    def __post_init__(self) -> None:
        self.directory = Directory(self.inputs)
        self.walks: list[Walk | None] = [None] * len(self.inputs)
        self.idle: list[Delta | None] = [None] * len(self.inputs)


@dataclass(frozen=True)
class MJoinKernel:
    """`picks` are the columns of all inputs side by side that make the schema, () for all."""

    graph: JoinGraph
    schema: pa.Schema
    picks: tuple[int, ...] = ()

    def picking(self, picks: Sequence[int], schema: pa.Schema) -> MJoinKernel:
        """The same join, that gives only these of its columns."""
        return MJoinKernel(self.graph, schema, tuple(self._picks[at] for at in picks))

    def start(self) -> MJoinState:
        count = self.graph.count
        inputs = [input_rows(self.graph, i) for i in range(count)]
        order = ProbeOrder.of(self.graph)
        for each in order.orders.tolist():
            self.graph.route(tuple(each))
        return MJoinState(inputs, order, OpenTuples.of(count))

    def next_timer(self, state: MJoinState) -> int:
        return min([own.next_timer for own in state.inputs])

    def step(self, state: MJoinState, inputs: tuple[Delta, ...], step: Step) -> Delta:
        return in_slices(self._step, state, inputs, step)

    def _step(self, state: MJoinState, inputs: tuple[Delta, ...], step: Step) -> Delta:
        fresh: list[tuple[int, Int64s]] = []
        for i, delta in enumerate(inputs):
            if delta is state.idle[i]:
                continue
            if delta.ends.chunks:
                state.inputs[i].end(delta.ends)
            if len(delta.ta):
                fresh.append((i, state.inputs[i].insert(newcomers(self.graph, i, delta))))
                state.directory.refresh(i)
            elif not delta.ends.chunks:
                state.idle[i] = delta
        made: list[Any] = []
        # A row meets those that were linked before it, so the last member to be linked finds the tuple, and it alone.
        for first in range(0, max([len(positions) for _, positions in fresh], default=0), PART):
            for i, positions in fresh:
                part = positions[first : first + PART]
                if len(part):
                    self._meet(state, i, part, step, made)
        out = self._out(state, made, step) if made else Delta(self._no_values, _NONE, _NONE, _NONE, step.frontier)
        return self._expire(state, out, step)

    def _meet(self, state: MJoinState, i: int, rows: Int64s, step: Step, made: list[Any]) -> None:
        """Link these rows of input i, and find their tuples."""
        state.inputs[i].link(rows)
        self._tuples(state, i, rows, step.frontier, made)

    def _out(self, state: MJoinState, made: list[Any], step: Step) -> Delta:
        return self._emit(state, made[0] if len(made) == 1 else np.concatenate(made), step)

    def _tuples(self, state: MJoinState, i: int, positions: Int64s, frontier: int, made: list[Int64s]) -> None:
        """All tuples of these rows of input i with the rows linked before them."""
        walk = state.walks[i]
        if state.order.turn(self.graph, i, len(positions)) or walk is None:
            route = self.graph.route(tuple(state.order.orders[i].tolist()))
            walk = state.walks[i] = Walk(i, route, state.directory)
        if walk.direct and len(positions) <= AT_ONCE:
            for tuples in walk.tuples(positions, frontier, BLOCK // (self.graph.count + 2), state.order):
                self._add_whole(state, tuples, made)
        elif all(own.alive for own in state.inputs):
            tuples = self._begun(state, i, positions)
            if walk.route.check is not None:
                tuples = self._satisfying(state, walk.route.check, tuples)
            self._visit(state, i, walk.route.hops, 0, tuples, frontier, made)

    def _begun(self, state: MJoinState, i: int, positions: Int64s) -> Int64s:
        """Tuples of which only the member of input i is bound."""
        count, own = self.graph.count, state.inputs[i]
        slots = positions & own.mask
        tuples = np.full((len(slots), count + 2), -1, dtype=np.int64)
        tuples[:, i] = positions
        tuples[:, count] = own.ta[slots]
        tuples[:, count + 1] = own.te[slots]
        return tuples

    def _add_whole(self, state: MJoinState, tuples: Int64s, made: list[Int64s]) -> None:
        if self.graph.whole is not None:
            tuples = self._satisfying(state, self.graph.whole, tuples)
        made.append(tuples)

    def _visit(
        self,
        state: MJoinState,
        i: int,
        hops: tuple[Hop, ...],
        at: int,
        tuples: Int64s,
        frontier: int,
        made: list[Int64s],
    ) -> None:
        """Depth first, so that there is never more than a block of partial tuples at each hop."""
        if not len(tuples):
            return
        if at == len(hops):
            self._add_whole(state, tuples, made)
            return
        hop = hops[at]
        source = state.inputs[hop.source].arrays(hop.source_index)
        other = state.inputs[hop.target].arrays(hop.target_index)
        limit = BLOCK // tuples.shape[1]
        row, index, matches = 0, -2, 0
        while row < len(tuples):
            longer, row, index, _ = extend(tuples, hop.source, source, hop.target, other, row, index, limit, frontier)
            if hop.check is not None and len(longer):
                longer = self._satisfying(state, hop.check, longer)
            matches += len(longer)
            self._visit(state, i, hops, at + 1, longer, frontier, made)
        state.order.note(i, hop.target, len(tuples), matches)

    def _satisfying(self, state: MJoinState, check: Check, tuples: Int64s) -> Int64s:
        """The tuples that pass."""
        kept = PredicateCheck(self.graph, state.inputs, state.directory.addresses).tuples(check, tuples)
        return tuples if kept is None else tuples[kept]

    def _emit(self, state: MJoinState, tuples: Int64s, step: Step) -> Delta:
        count = self.graph.count
        values = self._moulds.batch(state.directory.addresses, tuples)
        if values is None:
            arrays: dict[int, pa.Array] = {}
            for i, columns in self._needed:
                gathered = state.inputs[i].gather(np.ascontiguousarray(tuples[:, i]), columns, self.graph.types[i])
                arrays.update(zip([self.graph.bounds[i] + at for at in columns], gathered, strict=True))
            values = pa.RecordBatch.from_arrays([arrays[at] for at in self._picks], schema=self.schema)
        ta, te = np.ascontiguousarray(tuples[:, count]), np.ascontiguousarray(tuples[:, count + 1])
        if not sum([own.lifetimes.undetermined for own in state.inputs]):
            return Delta(values, ta, te, no_open_ids(len(ta)), step.frontier)
        delta, open_id = open_rows(values, ta, te, step, Ends())
        is_open = open_id != NO_OPEN_ID
        state.open_tuples.add(tuples[is_open, :count], open_id[is_open], state.inputs)
        return delta

    def _expire(self, state: MJoinState, out: Delta, step: Step) -> Delta:
        """Drop the rows that ended, and end the open tuples that they were in."""
        frontier = step.frontier
        dead = [(i, own.expire(frontier)) for i, own in enumerate(state.inputs) if own.next_timer < frontier]
        if not dead:
            return out
        ends = Ends()
        if state.open_tuples.slots.in_use:
            of_all = [_NONE] * len(state.inputs)
            for i, positions in dead:
                of_all[i] = positions
            ends = step.open_ids.close(*state.open_tuples.close(of_all, state.inputs))
        for i, positions in dead:
            state.inputs[i].free(positions)
            state.directory.freed(i)
        return replace(out, ends=ends) if ends.chunks else out

    @cached_property
    def _moulds(self) -> Moulds:
        return Moulds(self.schema, self._picks)

    @cached_property
    def _picks(self) -> tuple[int, ...]:
        return self.picks or tuple(range(self.graph.bounds[-1]))

    @cached_property
    def _needed(self) -> list[tuple[int, list[int]]]:
        """Inputs, and the columns of theirs that are given."""
        bounds = self.graph.bounds
        of = [
            sorted({at - bounds[i] for at in self._picks if bounds[i] <= at < bounds[i + 1]})
            for i in range(self.graph.count)
        ]
        return [(i, columns) for i, columns in enumerate(of) if columns]

    @cached_property
    def _no_values(self) -> pa.RecordBatch:
        return empty_batch(self.schema)
