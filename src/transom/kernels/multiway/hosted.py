"""Tactics of a join of many inputs as they are hosted by the adaptive one: each can hand over all that it knows.

Meaning: that of the tactic that is hosted.
Emits: the same; of a tree that is what its root gives, in the order of columns that is asked for.
Keeps: what it keeps; a tree the states of its joins of two.
Needs: what the tactic needs.
Costs: as it costs.

What is known is the rows alive, and which tuples of them are in the answer with an open end. So any of them can go on
where another stopped: it takes the rows as if they had all come at the last instant that is over. Where ends may be
open every row has a number behind its columns, which it keeps: by these the tuples of one tactic are found in another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, Ends, Int64s, no_int64s
from transom.kernels.alive_rows import KeptRows, replace_ids
from transom.kernels.columns import empty_batch
from transom.kernels.join.join import JoinKernel, JoinState
from transom.kernels.join.lazy_hash import LazySide
from transom.kernels.join.open_pairs import LEFT, OPEN_ID, RIGHT
from transom.kernels.join.ring_hash import RingSide
from transom.kernels.kernel import Step
from transom.kernels.multiway.graph import JoinGraph
from transom.kernels.multiway.join_tree import Tree, leaves
from transom.kernels.multiway.mjoin import MJoinKernel, MJoinState
from transom.kernels.multiway.newcomers import newcomers
from transom.kernels.multiway.open_tuples import MEMBERS
from transom.kernels.multiway.open_tuples import OPEN_ID as TUPLE_ID
from transom.plan.expression import Expression, columns_of, conjunction, remap


class TuplesShown(NamedTuple):
    """Tuples of the answer whose ends are open: the numbers of their rows, one on each input, and open row ids."""

    numbers: Int64s
    open_ids: Int64s


class HostedJoin(Protocol):
    """A join of many that can hand over what it knows, and go on from what another one knew."""

    @property
    def name(self) -> str: ...

    @property
    def graph(self) -> JoinGraph: ...

    def start(self) -> Any: ...

    def next_timer(self, state: Any) -> int: ...

    def step(self, state: Any, inputs: tuple[Delta, ...], step: Step) -> tuple[Delta, int]:
        """The answer, and how many tuples were made on the way to it."""

    def inputs(self, state: Any) -> tuple[KeptRows, ...]:
        """Where the rows alive of each input are."""

    def take(self, state: Any, rows: tuple[Delta, ...], step: Step) -> None:
        """Go on from these rows alive; what is in the answer with an open end is given ids that nobody has heard of."""

    def open_tuples(self, state: Any) -> TuplesShown: ...

    def adopt(self, state: Any, open_ids: Int64s, instead: Int64s) -> None:
        """What is in the answer under `open_ids` is there under the ids of `instead` from now on."""

    def within(self, state: Any) -> Int64s:
        """Open row ids that the tactic alone knows."""


class Branch(NamedTuple):
    """A join of a tree, and what comes to it: numbers of inputs, or of joins behind those."""

    kernel: JoinKernel
    left: int
    right: int


@dataclass
class TreeState:
    """The joins of a tree, those below before those above."""

    joins: list[JoinState]


@dataclass(frozen=True)
class TreeHost:
    """A tree of joins of two. `picks` are the columns of all inputs side by side that make the schema."""

    graph: JoinGraph
    schema: pa.Schema
    picks: tuple[int, ...]
    tree: Tree
    numbered: bool

    @cached_property
    def name(self) -> str:
        return f"tree {_shape(self.tree)}"

    @cached_property
    def branches(self) -> tuple[Branch, ...]:
        return tuple(_Planted(self.graph).branches(self.tree))

    def start(self) -> TreeState:
        return TreeState([branch.kernel.start() for branch in self.branches])

    def next_timer(self, state: TreeState) -> int:
        return min([branch.kernel.next_timer(own) for branch, own in zip(self.branches, state.joins, strict=True)])

    def step(self, state: TreeState, inputs: tuple[Delta, ...], step: Step) -> tuple[Delta, int]:
        deltas = list(inputs)
        made = 0
        for branch, own in zip(self.branches, state.joins, strict=True):
            left, right = deltas[branch.left], deltas[branch.right]
            if _idle(left) and _idle(right) and branch.kernel.next_timer(own) >= step.frontier:
                deltas.append(_nothing(branch.kernel.no_values, step.frontier))
                continue
            out = branch.kernel.step(own, (left, right), step)
            made += len(out)
            deltas.append(out)
        return self._picked(deltas[-1]), made

    def _picked(self, delta: Delta) -> Delta:
        if self._at is None:
            return delta
        if not len(delta):
            return replace(delta, values=self._no_values, halves=None)
        values = pa.RecordBatch.from_arrays([delta.values.column(at) for at in self._at], schema=self.schema)
        halves = None if delta.halves is None else delta.halves.of_columns(self._at)
        return replace(delta, values=values, halves=halves)

    @cached_property
    def _at(self) -> list[int] | None:
        """Where the columns that are given are among those of the root; None where it gives the very same."""
        bounds = self.graph.bounds
        columns = [at for i in leaves(self.tree) for at in range(bounds[i], bounds[i + 1])]
        where = {column: at for at, column in enumerate(columns)}
        picked = [where[column] for column in self.picks]
        whole = self.branches[-1].kernel.schema
        return None if picked == list(range(len(columns))) and whole.names == self.schema.names else picked

    @cached_property
    def _no_values(self) -> pa.RecordBatch:
        return empty_batch(self.schema)

    def inputs(self, state: TreeState) -> tuple[KeptRows, ...]:
        return tuple(self._side(state, i) for i in range(self.graph.count))

    def _side(self, state: TreeState, i: int) -> RingSide | LazySide:
        """Where the rows of an input are."""
        for branch, own in zip(self.branches, state.joins, strict=True):
            if branch.left == i:
                return own.left
            if branch.right == i:
                return own.right
        raise AssertionError

    def take(self, state: TreeState, rows: tuple[Delta, ...], step: Step) -> None:
        if self.numbered:
            self.step(state, rows, step)
            return
        deltas = list(rows)
        for branch, own in zip(self.branches[:-1], state.joins[:-1], strict=True):
            deltas.append(branch.kernel.step(own, (deltas[branch.left], deltas[branch.right]), step))
        root = self.branches[-1]
        root.kernel.load(state.joins[-1], (deltas[root.left], deltas[root.right]))

    def open_tuples(self, state: TreeState) -> TuplesShown:
        root = state.joins[-1]
        pairs = root.open_pairs.pairs[:, root.open_pairs.slots.used()]
        numbers = np.empty((pairs.shape[1], self.graph.count), dtype=np.int64)
        branch = self.branches[-1]
        width, types = branch.kernel.left_width, branch.kernel.schema.types
        left, right = self._numbers
        for (at, inputs), side, positions, own in (
            (left, root.left, pairs[LEFT], types[:width]),
            (right, root.right, pairs[RIGHT], types[width:]),
        ):
            columns = side.gather(np.ascontiguousarray(positions), at, own)
            for i, column in zip(inputs, columns, strict=True):
                numbers[:, i] = column.to_numpy()
        return TuplesShown(numbers, pairs[OPEN_ID])

    @cached_property
    def _numbers(self) -> tuple[tuple[list[int], list[int]], tuple[list[int], list[int]]]:
        """Of both sides of the root the columns that are numbers of rows, ascending, and of which inputs."""
        assert not isinstance(self.tree, int)
        of_sides = []
        for side in self.tree:
            inputs = leaves(side)
            ends = np.cumsum([len(self.graph.types[i]) for i in inputs])
            of_sides.append(((ends - 1).tolist(), inputs))
        return of_sides[0], of_sides[1]

    def adopt(self, state: TreeState, open_ids: Int64s, instead: Int64s) -> None:
        replace_ids(state.joins[-1].open_pairs.pairs[OPEN_ID], open_ids, instead)

    def within(self, state: TreeState) -> Int64s:
        return np.concatenate([no_int64s(), *(ids for own in state.joins[:-1] for ids in own.open_pairs.owned())])


@dataclass(frozen=True)
class MJoinHost:
    """mjoin, with what it is asked for."""

    graph: JoinGraph
    schema: pa.Schema
    picks: tuple[int, ...]
    numbered: bool
    name = "mjoin"

    @cached_property
    def kernel(self) -> MJoinKernel:
        return MJoinKernel(self.graph, self.schema, self.picks)

    def start(self) -> MJoinState:
        return self.kernel.start()

    def next_timer(self, state: MJoinState) -> int:
        return self.kernel.next_timer(state)

    def step(self, state: MJoinState, inputs: tuple[Delta, ...], step: Step) -> tuple[Delta, int]:
        before = int(state.order.probes.sum())
        out = self.kernel.step(state, inputs, step)
        return out, max(0, int(state.order.probes.sum()) - before)  # fewer where what was long ago counts half now

    def inputs(self, state: MJoinState) -> tuple[KeptRows, ...]:
        return tuple(state.inputs)

    def take(self, state: MJoinState, rows: tuple[Delta, ...], step: Step) -> None:
        if self.numbered:
            self.kernel.step(state, rows, step)
            return
        for i, delta in enumerate(rows):
            if len(delta):
                own = state.inputs[i]
                own.link(own.insert(newcomers(self.graph, i, delta)))
                state.directory.refresh(i)

    def open_tuples(self, state: MJoinState) -> TuplesShown:
        tuples = state.open_tuples.tuples[state.open_tuples.slots.used()]
        numbers = np.empty((len(tuples), self.graph.count), dtype=np.int64)
        for i, own in enumerate(state.inputs):
            positions = np.ascontiguousarray(tuples[:, MEMBERS + 3 * i])
            (column,) = own.gather(positions, [len(self.graph.types[i]) - 1], self.graph.types[i])
            numbers[:, i] = column.to_numpy()
        return TuplesShown(numbers, np.ascontiguousarray(tuples[:, TUPLE_ID]))

    def adopt(self, state: MJoinState, open_ids: Int64s, instead: Int64s) -> None:
        used = state.open_tuples.slots.used()
        ids = np.ascontiguousarray(state.open_tuples.tuples[used, TUPLE_ID])
        replace_ids(ids, open_ids, instead)
        state.open_tuples.tuples[used, TUPLE_ID] = ids

    def within(self, state: MJoinState) -> Int64s:
        return no_int64s()


class _Planted:
    """The joins of a tree over a graph: of each the keys that both sides have, and what can be asked then."""

    def __init__(self, graph: JoinGraph) -> None:
        self.graph = graph
        self.waiting = list(graph.residual)
        self.made: list[Branch] = []

    def branches(self, tree: Tree) -> list[Branch]:
        self._number(tree)
        return self.made

    def _number(self, tree: Tree) -> int:
        """Of what comes from this part of the tree."""
        if isinstance(tree, int):
            return tree
        left, right = (self._number(side) for side in tree)
        self.made.append(Branch(self._kernel(leaves(tree[0]), leaves(tree[1])), left, right))
        return self.graph.count + len(self.made) - 1

    def _kernel(self, left: list[int], right: list[int]) -> JoinKernel:
        graph = self.graph
        where: dict[int, int] = {}
        for i in (*left, *right):
            for at in range(graph.bounds[i], graph.bounds[i + 1]):
                where[at] = len(where)
        keys: tuple[list[Expression], list[Expression]] = ([], [])
        for c in range(len(graph.keys[0])):
            owners = [next((i for i in side if graph.keys[i][c] is not None), None) for side in (left, right)]
            if None not in owners:
                for own, side, owner in zip(keys, (left, right), owners, strict=True):
                    assert owner is not None
                    own.append(self._key(owner, c, where, where[graph.bounds[side[0]]]))
        parts = [part for part in self.waiting if columns_of(part) <= where.keys()]
        self.waiting = [part for part in self.waiting if part not in parts]
        if len(where) == graph.bounds[-1] and graph.last is not None:
            parts.append(graph.last)
        residual = conjunction(tuple(remap(part, where) for part in parts))
        types = [type_ for i in (*left, *right) for type_ in graph.types[i]]
        schema = pa.schema([(str(at), type_) for at, type_ in enumerate(types)])
        width = sum(len(graph.types[i]) for i in left)
        grow = len(left) == len(right) == 1 and graph.growing[left[0]] and graph.growing[right[0]]
        tactic = "nested_loop" if not keys[0] else "ring_hash" if grow else "lazy_hash"
        return JoinKernel(tactic, tuple(keys[0]), tuple(keys[1]), residual, schema, width)

    def _key(self, i: int, c: int, where: dict[int, int], first: int) -> Expression:
        """The key of class c of input i, over the columns of its side, which begins with column `first`."""
        key = self.graph.keys[i][c]
        assert key is not None
        return remap(key, {at: where[self.graph.bounds[i] + at] - first for at in columns_of(key)})


def _shape(tree: Tree) -> str:
    """With inputs counted from one.

    >>> _shape(((0, 2), (1, 3)))
    '((1, 3), (2, 4))'
    """
    return str(tree + 1) if isinstance(tree, int) else f"({_shape(tree[0])}, {_shape(tree[1])})"


def _idle(delta: Delta) -> bool:
    return not len(delta.ta) and not delta.ends.chunks


def _nothing(values: pa.RecordBatch, frontier: int) -> Delta:
    return Delta(values, no_int64s(), no_int64s(), no_int64s(), frontier, Ends())
