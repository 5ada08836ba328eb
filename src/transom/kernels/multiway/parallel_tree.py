"""Parallel join trees: the answers for a row of any input are one probe away (paper 3, 3.1).

Meaning: a tuple of rows, one of each input, that satisfies the predicate is alive on the intersection of their
    lifetimes.
Emits: each tuple once, in the step in which its last member came; its end at once where it is determined, else when
    the first member ends.
Keeps: the rows alive of each input, once; the tuples of the nodes of a forest of join trees (`forest.py`), as the
    positions of their members (`kept_tuples.py`); tuples with open ends (`open_tuples.py`).
Needs: nothing; where keys connect the other inputs only by way of a row's own, it probes each component of them.
Costs: a probe for the answer, where the keys connect the other inputs. Then, when the answer is given already and by
    another thread if there is a worker pool, a probe for each of the about two thirds of the nodes that the input is
    in.

>>> from transom.core.delta import NO_OPEN_ID
>>> from transom.plan.expression import ColumnRef
>>> from transom.state.open_ids import OpenIdPool
>>> rows = Delta(pa.record_batch({"k": [1]}), np.array([1]), np.array([9]), np.full(1, NO_OPEN_ID), frontier=5)
>>> graph = JoinGraph(((pa.int64(),),) * 3, ((ColumnRef(0, pa.int64(), "k"),),) * 3)
>>> join = ParallelTreeKernel(graph, pa.schema([(name, pa.int64()) for name in "abc"]))
>>> out = join.step(join.start(), (rows, rows, rows), Step(0, 5, 0, OpenIdPool()))
>>> out.values.to_pylist(), out.te.tolist()
([{'a': 1, 'b': 1, 'c': 1}], [9])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, Ends, Int64s, no_int64s
from transom.core.time import FOREVER
from transom.kernels import scalar
from transom.kernels.columns import alike, validity
from transom.kernels.kernel import Step, select_rows
from transom.kernels.mould import ColumnAddresses
from transom.kernels.multiway.emission import Emission
from transom.kernels.multiway.forest import Forest, TupleGrowth, Visit, forest
from transom.kernels.multiway.graph import Check, JoinGraph
from transom.kernels.multiway.input_rows import LazyRows, RingRows, input_rows
from transom.kernels.multiway.kept_tuples import Arrived, Fresh, KeptTuples, TupleLayout
from transom.kernels.multiway.key_words import KeyWords
from transom.kernels.multiway.newcomers import Newcomers, newcomers
from transom.kernels.multiway.open_tuples import OpenTuples
from transom.kernels.multiway.predicate_check import PredicateCheck
from transom.kernels.multiway.tuple_chains import begun, ends
from transom.kernels.shorter_steps import in_slices
from transom.plan.expression import ColumnRef

BLOCK = 1 << 20  # numbers of partial answers made together
PART = 1 << 13  # rows of an input that are answered together, and pairs that are checked together

_NONE: Final = no_int64s()


@dataclass
class ParallelTreeState:
    """`soonest` is the next end that is known, as the worker pool left it; `next_timer` was reported before it began,
    and may be early.

    Where the columns are is found again from the rest, so it is not saved.
    """

    inputs: list[LazyRows | RingRows]
    keys: KeyWords
    kept: KeptTuples
    open_tuples: OpenTuples
    soonest: int = FOREVER
    next_timer: int = FOREVER

    def check(self) -> None:
        self.open_tuples.check_members(self.inputs)

    def __post_init__(self) -> None:
        self.addresses = ColumnAddresses([own.rows for own in self.inputs], [own.mask for own in self.inputs])


@dataclass(frozen=True)
class ParallelTreeKernel:
    """`picks` are the columns of all inputs side by side that make the schema, () for all.

    `order`: inputs that are next to each other there are joined first; by default, as their keys connect them.
    """

    graph: JoinGraph
    schema: pa.Schema
    picks: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    uses_worker_pool: ClassVar[bool] = True

    def picking(self, picks: Sequence[int], schema: pa.Schema) -> ParallelTreeKernel:
        """The same join, that gives only these of its columns."""
        emission = self._emission.picking(picks, schema)
        return ParallelTreeKernel(self.graph, schema, emission.picks, self.order)

    @cached_property
    def _emission(self) -> Emission:
        return Emission(self.graph, self.schema, self.picks)

    @cached_property
    def forest(self) -> Forest:
        return forest(self.graph, self.order)

    def check(self, state: ParallelTreeState) -> None:
        state.kept.check_layout(self._layout, state.inputs)

    def start(self) -> ParallelTreeState:
        inputs = [input_rows(self._rows, i) for i in range(self.graph.count)]
        kept = KeptTuples.of(self._layout)
        return ParallelTreeState(inputs, KeyWords.of(self.graph), kept, OpenTuples.of(self.graph.count))

    def next_timer(self, state: ParallelTreeState) -> int:
        return state.next_timer

    def step(self, state: ParallelTreeState, inputs: tuple[Delta, ...], step: Step) -> Delta:
        return in_slices(self._step, state, inputs, step)

    def _step(self, state: ParallelTreeState, inputs: tuple[Delta, ...], step: Step) -> Delta:
        if step.worker_pool is not None:
            step.worker_pool.drain()
        arrived: list[tuple[int, Arrived]] = []
        for i, delta in enumerate(inputs):
            if delta.ends.chunks:
                self._end(state, i, delta.ends, step.frontier)
            if len(delta.ta):
                arrived.append((i, self._arrive(state, i, delta)))
        made: list[Int64s] = []
        last: tuple[int, Arrived] | None = None
        # A row meets those that came before it, so the last member to come finds the tuple, and it alone.
        for first in range(0, max([len(rows.ta) for _, rows in arrived], default=0), PART):
            for i, rows in arrived:
                part = rows.part(first, PART)
                if len(part.ta):
                    if last is not None:
                        self._grow(state, *last)
                    self._answer(state, i, part, step.frontier, made)
                    last = i, part
        if not made:
            out = self._emission.nothing(step.frontier)
        else:
            tuples = made[0] if len(made) == 1 else np.concatenate(made)
            out = self._emission.rows(state.inputs, state.addresses, tuples, state.open_tuples, step)
        dead: list[Int64s] | None = None
        if state.open_tuples.slots.in_use:
            dead = [own.expire(step.frontier) for own in state.inputs]
            out = self._emission.ended(out, state.inputs, dead, state.open_tuples, step)
        self._leave(state, arrived, partial(self._keep_up, state, last, dead, step.frontier), step)
        return out

    def _leave(
        self, state: ParallelTreeState, arrived: Sequence[tuple[int, Arrived]], rest: partial[None], step: Step
    ) -> None:
        """The answer is there: the rest is for the worker pool."""
        if step.worker_pool is None:
            rest()
            state.next_timer = state.soonest
            return
        soonest = min([state.soonest, *(int(rows.te.min()) for _, rows in arrived if len(rows.te))])
        state.next_timer = max(soonest, step.frontier)  # what ends before is about to go
        step.worker_pool.later(rest)

    def _end(self, state: ParallelTreeState, i: int, ends: Ends, frontier: int) -> None:
        """Ends that became known: what these rows are in can no longer be met after them."""
        own = state.inputs[i]
        own.end(ends)
        ended = own.ended if isinstance(own, LazyRows) else [own.expire(frontier)]
        for positions in ended:
            state.kept.end(i, own, positions)

    def _arrive(self, state: ParallelTreeState, i: int, delta: Delta) -> Arrived:
        """The new rows of an input, without those that nothing can come of."""
        check = self.forest.nodes[i].check
        if check is not None:
            delta = self._fit_alone(check, delta)
        rows = newcomers(self._rows, i, delta)
        keys = self._keys(i, rows, delta)
        null = [validity(key) == 0 for key in keys if key is not None and key.null_count]
        if null:
            delta = select_rows(delta, ~np.any(null, axis=0))
            rows = newcomers(self._rows, i, delta)
            keys = self._keys(i, rows, delta)
        own = state.inputs[i]
        positions = own.insert(rows)
        state.addresses.refresh(i, own.mask)
        return Arrived(
            positions, state.keys.words(keys, len(delta)), delta.ta, ends(alike(delta.te), alike(delta.open_id))
        )

    def _keys(self, i: int, rows: Newcomers, delta: Delta) -> list[pa.Array | None]:
        return [
            None if key is None
            else rows.columns[key.index] if isinstance(key, ColumnRef)
            else scalar.evaluate(key, delta.values)
            for key in self.graph.keys[i]
        ]  # fmt: skip

    def _fit_alone(self, check: Check, delta: Delta) -> Delta:
        columns = [at for _, own in check.columns for at in own]
        batch = delta.values.select(columns) if columns else pa.record_batch([pa.nulls(len(delta))], names=["none"])
        positions = scalar.keep(check.predicate, batch)
        if positions is None:
            return delta
        mask = np.zeros(len(delta), dtype=np.bool_)
        mask[positions.to_numpy()] = True
        return select_rows(delta, mask)

    def _answer(self, state: ParallelTreeState, i: int, rows: Arrived, frontier: int, made: list[Int64s]) -> None:
        """All tuples of these rows of input i with the tuples that are kept of the others."""
        visits = self.forest.visits[i]
        for node in self._probed[i]:
            if not state.kept.counts[node]:
                return
        tuples = begun(i, self.graph.count, rows.positions, rows.ta, rows.te)
        self._visit(state, visits, rows.words, tuples, frontier, made)

    def _visit(
        self, state: ParallelTreeState, visits: Sequence[Visit], words: Int64s, tuples: Int64s, frontier: int,
        made: list[Int64s],
    ) -> None:  # fmt: skip
        """Depth first, so that there is never more than a block of partial answers at each table."""
        limit = max(1, BLOCK // tuples.shape[1])
        row, at = 0, -2
        while row < len(tuples):
            longer, row, at = state.kept.meet(self._layout, tuples, words, visits[0].table, row, at, limit, frontier)
            if visits[0].check is not None and len(longer):
                longer = self._satisfying(state, visits[0].check, longer)
            if len(longer) and visits[1:]:
                self._visit(state, visits[1:], words, longer, frontier, made)
            elif len(longer):
                if self.graph.whole is not None:
                    longer = self._satisfying(state, self.graph.whole, longer)
                made.append(longer)

    def _satisfying(self, state: ParallelTreeState, check: Check, tuples: Int64s) -> Int64s:
        passed = PredicateCheck(self.graph, state.inputs, state.addresses).tuples(check, tuples)
        return tuples if passed is None else tuples[passed]

    def _keep_up(
        self, state: ParallelTreeState, last: tuple[int, Arrived] | None, dead: list[Int64s] | None, frontier: int
    ) -> None:
        """What is left to do in a step once its answer is there."""
        if last is not None:
            self._grow(state, *last)
        if dead is None:
            dead = [own.expire(frontier) if own.next_timer < frontier else _NONE for own in state.inputs]
        for i, (own, positions) in enumerate(zip(state.inputs, dead, strict=True)):
            if len(positions):
                state.keys.forget(self.graph.classes[i], state.kept.remove(self._layout, i, positions))
                own.free(positions)
        state.soonest = min([own.next_timer for own in state.inputs])

    def _grow(self, state: ParallelTreeState, i: int, rows: Arrived) -> None:
        """Bring every node up to date that input i is in."""
        own = state.inputs[i]
        own.link(rows.positions)
        fresh = state.kept.enter(self._layout, i, own, rows)
        growths = self.forest.growths[i]
        begin = 0
        for number in self._checked[i]:
            if begin < number:
                state.kept.grow(self._layout, i, fresh, number)
            self._grow_checked(state, growths[number], fresh)
            begin = number + 1
        if begin < len(growths):
            state.kept.grow(self._layout, i, fresh, len(growths))

    def _grow_checked(self, state: ParallelTreeState, growth: TupleGrowth, fresh: Fresh) -> None:
        """One node whose tuples are held to a predicate."""
        kept, check = state.kept, self.forest.nodes[growth.node].check
        assert check is not None
        predicates = PredicateCheck(self.graph, state.inputs, state.addresses)
        sources = fresh.of(growth.source)
        kept.begin(fresh, growth.node)
        row, at = 0, -2
        while row < len(sources):
            pairs, row, at = kept.pairs(self._layout, growth, sources, row, at, PART)
            if len(pairs):
                passed = predicates.tuples(check, kept.members(self._layout, pairs))
                kept.join(self._layout, growth.node, pairs if passed is None else pairs[passed], fresh)
        kept.finish(fresh, growth.node)

    @cached_property
    def _layout(self) -> TupleLayout:
        return TupleLayout(self.forest, len(self.graph.keys[0]))

    @cached_property
    def _rows(self) -> JoinGraph:
        """For inputs that nobody probes: what finds their rows is the tables of the forest."""
        return JoinGraph(self.graph.types, ((),) * self.graph.count, growing=self.graph.growing)

    @cached_property
    def _checked(self) -> list[list[int]]:
        """Which growths of each input are of nodes with predicates."""
        nodes = self.forest.nodes
        return [[n for n, g in enumerate(own) if nodes[g.node].check is not None] for own in self.forest.growths]

    @cached_property
    def _probed(self) -> list[list[int]]:
        """The nodes that rows of each input probe."""
        return [[self.forest.tables[visit.table][0] for visit in own] for own in self.forest.visits]
