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
>>> from transom.state.holders import HolderPool
>>> rows = Delta(pa.record_batch({"k": [1]}), np.array([1]), np.array([9]), np.full(1, NO_HOLDER), upto=5)
>>> graph = JoinGraph(((pa.int64(),),) * 3, ((ColumnRef(0, pa.int64(), "k"),),) * 3)
>>> join = MJoinKernel(graph, pa.schema([(name, pa.int64()) for name in "abc"]))
>>> out = join.step(join.start(), (rows, rows, rows), Step(0, 5, 0, HolderPool()))
>>> out.values.to_pylist(), out.te.tolist()
([{'a': 1, 'b': 1, 'c': 1}], [9])
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_HOLDER, Delta, Ends, Int64s, no_holders, no_int64s
from transom.kernels import scalar
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Step, open_rows
from transom.kernels.multiway.extend import extend
from transom.kernels.multiway.graph import Check, Hop, JoinGraph
from transom.kernels.multiway.input_rows import LazyRows, RingRows, input_rows
from transom.kernels.multiway.newcomers import newcomers
from transom.kernels.multiway.open_tuples import OpenTuples
from transom.kernels.multiway.probe_order import ProbeOrder

BLOCK = 1 << 20  # numbers of partial tuples made together
PART = 1 << 13  # rows of an input linked and probed together


@dataclass
class MJoinState:
    inputs: list[LazyRows | RingRows]
    order: ProbeOrder
    open_tuples: OpenTuples


@dataclass(frozen=True)
class MJoinKernel:
    graph: JoinGraph
    schema: pa.Schema

    def start(self) -> MJoinState:
        count = self.graph.count
        inputs = [input_rows(self.graph, i) for i in range(count)]
        return MJoinState(inputs, ProbeOrder.of(self.graph), OpenTuples.of(count))

    def due(self, state: MJoinState) -> int:
        return min(own.due for own in state.inputs)

    def step(self, state: MJoinState, inputs: tuple[Delta, ...], step: Step) -> Delta:
        fresh: list[Int64s] = []
        for i, (own, delta) in enumerate(zip(state.inputs, inputs, strict=True)):
            if delta.ends.chunks:
                own.end(delta.ends)
            fresh.append(own.insert(newcomers(self.graph, i, delta)) if len(delta) else delta.ta)
        made: list[Int64s] = []
        # A row meets those that were linked before it, so the last member to be linked finds the tuple, and it alone.
        for first in range(0, max(map(len, fresh)), PART):
            for i, positions in enumerate(fresh):
                part = positions[first : first + PART]
                if len(part):
                    state.inputs[i].link(part)
                    self._tuples(state, i, part, step.upto, made)
        if not made:
            out = Delta(self._no_values, no_int64s(), no_int64s(), no_int64s(), step.upto)
        else:
            out = self._emit(state, made[0] if len(made) == 1 else np.concatenate(made), step)
        return self._expire(state, out, step)

    def _tuples(self, state: MJoinState, i: int, positions: Int64s, upto: int, made: list[Int64s]) -> None:
        """All tuples of these rows of input i with the rows linked before them."""
        if not all(own.alive for own in state.inputs):
            return
        count, own = self.graph.count, state.inputs[i]
        route = self.graph.route(state.order.order(self.graph, i, len(positions)))
        slots = positions & own.mask
        tuples = np.full((len(slots), count + 2), -1, dtype=np.int64)
        tuples[:, i] = positions
        tuples[:, count] = own.ta[slots]
        tuples[:, count + 1] = own.te[slots]
        if route.check is not None:
            tuples = self._satisfying(state, route.check, tuples)
        self._visit(state, i, route.hops, 0, tuples, upto, made)

    def _visit(
        self, state: MJoinState, i: int, hops: tuple[Hop, ...], at: int, tuples: Int64s, upto: int, made: list[Int64s]
    ) -> None:
        """Depth first, so that there is never more than a block of partial tuples at each hop."""
        if not len(tuples):
            return
        if at == len(hops):
            if self.graph.whole is not None:
                tuples = self._satisfying(state, self.graph.whole, tuples)
            made.append(tuples)
            return
        hop = hops[at]
        mine = state.inputs[hop.source].arrays(hop.source_index)
        other = state.inputs[hop.target].arrays(hop.target_index)
        limit = BLOCK // tuples.shape[1]
        row, place, matches = 0, -2, 0
        while row < len(tuples):
            found, row, place, _ = extend(tuples, hop.source, mine, hop.target, other, row, place, limit, upto)
            if hop.check is not None and len(found):
                found = self._satisfying(state, hop.check, found)
            matches += len(found)
            self._visit(state, i, hops, at + 1, found, upto, made)
        state.order.note(i, hop.target, len(tuples), matches)

    def _satisfying(self, state: MJoinState, check: Check, tuples: Int64s) -> Int64s:
        """The tuples that pass; only the columns that the predicate reads are gathered."""
        arrays: list[pa.Array] = []
        for i, columns in check.columns:
            arrays += state.inputs[i].gather(np.ascontiguousarray(tuples[:, i]), columns, self.graph.types[i])
        if not arrays:  # a constant
            arrays = [pa.nulls(len(tuples))]
        batch = pa.RecordBatch.from_arrays(arrays, names=[str(n) for n in range(len(arrays))])
        positions = scalar.keep(check.predicate, batch)
        return tuples if positions is None else tuples[positions.to_numpy().astype(np.int64)]

    def _emit(self, state: MJoinState, tuples: Int64s, step: Step) -> Delta:
        count = self.graph.count
        arrays: list[pa.Array] = []
        for i, (own, types) in enumerate(zip(state.inputs, self.graph.types, strict=True)):
            arrays += own.gather(np.ascontiguousarray(tuples[:, i]), range(len(types)), types)
        values = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        ta, te = np.ascontiguousarray(tuples[:, count]), np.ascontiguousarray(tuples[:, count + 1])
        if not any(own.lifetimes.undetermined for own in state.inputs):
            return Delta(values, ta, te, no_holders(len(ta)), step.upto)
        delta, holder = open_rows(values, ta, te, step, Ends())
        is_open = holder != NO_HOLDER
        state.open_tuples.add(tuples[is_open, :count], holder[is_open], state.inputs)
        return delta

    def _expire(self, state: MJoinState, out: Delta, step: Step) -> Delta:
        """Drop the rows that ended, and end the open tuples that they were in."""
        dead = [own.expire(step.upto) for own in state.inputs]
        if not any(map(len, dead)):
            return out
        ends = Ends()
        if state.open_tuples.slots.in_use:
            ends = step.holders.close(*state.open_tuples.close(dead, state.inputs))
        for own, positions in zip(state.inputs, dead, strict=True):
            own.free(positions)
        return replace(out, ends=ends) if ends.chunks else out

    @cached_property
    def _no_values(self) -> pa.RecordBatch:
        return empty_batch(self.schema)
