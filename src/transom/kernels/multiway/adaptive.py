"""A join of many inputs whose tactic changes while it runs: trees of joins of two, and mjoin.

Meaning: a tuple of rows, one of each input, that satisfies the predicate is alive on the intersection of their
    lifetimes, whatever the tactic.
Emits: as the tactic in force; a tuple that is in the answer with an open end keeps its open row id when it changes.
Keeps: what the tactic in force keeps; counts of what has passed. Where ends may be open, a number with every row.
Needs: nothing; all rows that may meet come to one partition, as for mjoin.
Costs: as the tactic in force; a look at the keys of the rows alive after so much work that it hardly counts; a change
    costs what the rows alive, and for a tree the tuples between its joins, cost when they come.

Rows and the tuples that they make are counted. After some work the keys of the rows alive are counted, too
(`counted.py`), and the cost model of the planner says what a row has cost, and what it would have cost the others
(`cost.py`): from input and state alone, never from a clock, so a step that is taken again changes where it did. A
tactic changes at the beginning of a step that brings something. All instants before that step are over; the rows alive
are brought to the new tactic as of the last of them (`hosted.py`).

>>> from transom.plan.expression import ColumnRef
>>> from transom.state.open_ids import OpenIdPool
>>> def rows(t): return Delta(pa.record_batch({"k": [1]}), np.array([t]), np.array([9]), np.full(1, -1), t + 1)
>>> graph = JoinGraph(((pa.int64(),),) * 3, ((ColumnRef(0, pa.int64(), "k"),),) * 3)
>>> schema, trees = pa.schema([(name, pa.int64()) for name in "abc"]), (((0, 1), 2),)
>>> join, open_ids = AdaptiveJoinKernel(None, graph, schema, trees, "mjoin", SHUFFLE), OpenIdPool()
>>> state, made = join.start(), 0
>>> for t in range(1, 7):
...     made += len(join.step(state, (rows(t),) * 3, Step(t, t + 1, 0, open_ids)))
>>> made, {change.after for change in state.changes} == {"tree ((1, 2), 3)", "mjoin"}
(216, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, Ends, Int64s
from transom.kernels.alive_rows import alive_rows, as_of
from transom.kernels.changing import LEAST_ROWS, SHUFFLE, STAY, WATCH, ChangingState, TacticChange, at_random
from transom.kernels.kernel import Step
from transom.kernels.multiway.cost import ChangingCosts
from transom.kernels.multiway.counted import Passed, counted
from transom.kernels.multiway.graph import JoinGraph
from transom.kernels.multiway.hosted import HostedJoin, MJoinHost, TreeHost, TreeState, TuplesShown
from transom.kernels.multiway.join_tree import Tree
from transom.kernels.multiway.mjoin import MJoinState
from transom.kernels.multiway.node import MultiwayJoin
from transom.plan.expression import Expression, columns_of, remap
from transom.state.checks import need

LOOK, SELDOM = 1 << 16, 1 << 20
"""Rows, and tuples that they make, after which costs are looked at: at first, and once nothing has come of that for a
while. The former are some tens of milliseconds of work, a look takes some."""

UNLIKE = 1.5
"""If rows make so many times as many tuples as before, or as few, costs are looked at soon."""


@dataclass
class AdaptiveJoinState(ChangingState):
    """Since costs were last looked at: `came` are the rows by input, `results` those of the answer, `work` all rows and
    the tuples on the way to the answer, and `steps` those that brought something. `made` were the tuples a row then,
    and `wait` the work until the next look. `looks` counts looks, and `numbers[i]` the rows of input i where they are
    numbered."""

    hosted: list[TreeState | MJoinState]
    came: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    results: int = 0
    work: int = 0
    steps: int = 0
    looks: int = 0
    made: float = 0.0
    wait: int = LOOK

    def look_again(self) -> None:
        self.came = [0] * len(self.came)
        self.results = self.work = self.steps = 0


@dataclass(frozen=True)
class AdaptiveJoinKernel:
    """`node` is what the costs are of, `first` the tactic that is in force at first, `watch` whether and how tactics
    change. `numbered`: ends may be open. `picks` are as for mjoin."""

    node: MultiwayJoin
    graph: JoinGraph
    schema: pa.Schema
    trees: tuple[Tree, ...]
    first: str
    watch: str = WATCH
    numbered: bool = False
    picks: tuple[int, ...] = ()

    def picking(self, picks: Sequence[int], schema: pa.Schema) -> AdaptiveJoinKernel:
        """The same join, that gives only these of its columns."""
        return replace(self, schema=schema, picks=tuple(self._picks[at] for at in picks))

    @cached_property
    def _picks(self) -> tuple[int, ...]:
        return self.picks or tuple(range(self.graph.bounds[-1]))

    @cached_property
    def tactics(self) -> tuple[HostedJoin, ...]:
        graph, picks = (_numbered(self.graph, self._picks)) if self.numbered else (self.graph, self._picks)
        trees = [TreeHost(graph, self.schema, picks, tree, self.numbered) for tree in self.trees]
        return (*trees, MJoinHost(graph, self.schema, picks, self.numbered))

    @cached_property
    def names(self) -> list[str]:
        return [each.name for each in self.tactics]

    def start(self) -> AdaptiveJoinState:
        first = self.names.index(self.first) if self.first in self.names else 0
        nothing = [0] * self.graph.count
        hosted = [each.start() for each in self.tactics]
        return AdaptiveJoinState(hosted, first, self.names[first], came=nothing, numbers=list(nothing))

    def check(self, state: AdaptiveJoinState) -> None:
        need(state.tactic == self.names[state.in_force])
        need(len(state.came) == len(state.numbers) == self.graph.count and min(*state.came, *state.numbers) >= 0)

    def next_timer(self, state: AdaptiveJoinState) -> int:
        return self.tactics[state.in_force].next_timer(state.hosted[state.in_force])

    def step(self, state: AdaptiveJoinState, inputs: tuple[Delta, ...], step: Step) -> Delta:
        rows = [len(delta.ta) for delta in inputs]
        came = sum(rows)
        moved = Ends()
        if self.watch != STAY and step.before > step.origin and (came or any(delta.ends.chunks for delta in inputs)):
            change = self._shuffled(state, step) if self.watch == SHUFFLE else self._looked(state, step)
            if change is not None:
                moved = self._change(state, change, step)
        if self.numbered and came:
            inputs = tuple(map(self._with_numbers, inputs, range(len(inputs)), [state] * len(inputs)))
        out, made = self.tactics[state.in_force].step(state.hosted[state.in_force], inputs, step)
        if came:
            state.rows += came
            state.came = [before + more for before, more in zip(state.came, rows, strict=True)]
            state.results += len(out)
            state.work += came + made
            state.steps += 1
        return replace(out, ends=moved + out.ends) if moved.chunks else out

    def _with_numbers(self, delta: Delta, i: int, state: AdaptiveJoinState) -> Delta:
        """The rows with their numbers behind their columns; what brings none stays the very same."""
        count = len(delta.ta)
        if not count:
            return delta
        first = state.numbers[i]
        state.numbers[i] += count
        columns = [*delta.values.columns, pa.array(np.arange(first, first + count))]
        values = pa.RecordBatch.from_arrays(columns, names=[str(at) for at in range(len(columns))])
        return replace(delta, values=values, halves=None)

    def _shuffled(self, state: AdaptiveJoinState, step: Step) -> TacticChange | None:
        return at_random(state, self.names, step)

    def _looked(self, state: AdaptiveJoinState, step: Step) -> TacticChange | None:
        """The change that is due, if one is."""
        rows = sum(state.came)
        if rows < LEAST_ROWS or state.work < LOOK:
            return None
        made = state.work / rows - 1
        as_before = state.made / UNLIKE - 0.1 < made < state.made * UNLIKE + 0.1
        if as_before and state.work < state.wait:
            return None
        host = self.tactics[state.in_force]
        kept = host.inputs(state.hosted[state.in_force])
        if state.work < sum(own.alive for own in kept):
            return None
        passed = Passed(state.came, state.results, state.looks)
        model = ChangingCosts(self.node, counted(self.node, host.graph, kept, passed), min(1.0, state.steps / rows))
        costs = model.a_row(self.trees)
        state.looks += 1
        state.wait = min(2 * state.wait, SELDOM) if as_before else LOOK
        state.made = made
        state.look_again()
        best = state.due(costs, rows, lambda number: model.to_change((*self.trees, None)[number]))
        if best is None:
            return None
        now, other = costs[state.in_force], costs[best]
        what = "probes" if host.name == "mjoin" else "tuples"
        return TacticChange(
            step.before, state.rows, host.name, self.names[best], made, what, now, other, state.lost[best] / 1_000
        )

    def _change(self, state: AdaptiveJoinState, change: TacticChange, step: Step) -> Ends:
        """Take over what is alive and what is in the answer; gives the ends that are due now."""
        number, at = self.names.index(change.after), step.before
        was, old = self.tactics[state.in_force], state.hosted[state.in_force]
        host = self.tactics[number]
        new = host.start()
        kept = zip(was.inputs(old), was.graph.types, strict=True)
        rows = tuple(as_of(self._in_order(alive_rows(own, types)), at) for own, types in kept)
        host.take(new, rows, replace(step, before=step.origin, frontier=at, emit_rows=None))
        ends = Ends()
        if self.numbered:
            shown, fresh = was.open_tuples(old), host.open_tuples(new)
            instead, gone = matched(shown, fresh)
            self._forget(step, np.concatenate([fresh.open_ids, was.within(old)]))
            host.adopt(new, fresh.open_ids, instead)
            # One of its rows ends now, as was known, and nobody ended it any earlier.
            ends = step.open_ids.close(gone, np.full(len(gone), at, dtype=np.int64))
        state.put_in_force(number, new, was.start(), change)
        state.made, state.wait = 0.0, LOOK
        state.look_again()
        return ends

    def _in_order(self, rows: Delta) -> Delta:
        """The rows as they came: by their numbers, or by their ends, which grow where it matters."""
        by = rows.values.columns[-1].to_numpy() if self.numbered else rows.te
        if (by[1:] >= by[:-1]).all():
            return rows
        order = np.argsort(by, kind="stable")
        return replace(rows, values=rows.values.take(pa.array(order)), te=rows.te[order], open_id=rows.open_id[order])

    def _forget(self, step: Step, open_ids: Int64s) -> None:
        """Nobody has heard of them, or will."""
        step.open_ids.close(open_ids, np.full(len(open_ids), step.before, dtype=np.int64))


def matched(shown: TuplesShown, fresh: TuplesShown) -> tuple[Int64s, Int64s]:
    """By fresh tuple the open row id that it has in the answer; and those of tuples that are not there any more."""
    if not len(shown.open_ids):
        return shown.open_ids, shown.open_ids
    both = np.concatenate([fresh.numbers, shown.numbers])
    _, which = np.unique(both, axis=0, return_inverse=True)
    which = which.reshape(-1)
    stays = np.isin(which[len(fresh.numbers) :], which[: len(fresh.numbers)])
    gone = shown.open_ids[~stays]
    ids = np.empty(int(which.max(initial=-1)) + 1, dtype=np.int64)
    ids[which[len(fresh.numbers) :]] = shown.open_ids
    instead = ids[which[: len(fresh.numbers)]]
    assert len(instead) == int(stays.sum()), "a tuple with an open end is in the answer"
    return instead, gone


def _numbered(graph: JoinGraph, picks: tuple[int, ...]) -> tuple[JoinGraph, tuple[int, ...]]:
    """The graph where every row has a number behind its columns, and where what is given is then."""
    bounds = graph.bounds
    where = {at: at + i for i in range(graph.count) for at in range(bounds[i], bounds[i + 1])}

    def moved(expression: Expression) -> Expression:
        return remap(expression, {at: where[at] for at in columns_of(expression)})

    wider = JoinGraph(
        tuple((*types, pa.int64()) for types in graph.types),
        graph.keys,
        tuple(map(moved, graph.residual)),
        None if graph.last is None else moved(graph.last),
        graph.growing,
    )
    return wider, tuple(where[at] for at in picks)
