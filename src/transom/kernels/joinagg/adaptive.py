"""An aggregate over a join of two inputs whose tactic changes while it runs.

Meaning: at every instant, the aggregates of the join of the snapshots of both inputs, by group, whatever the tactic.
Emits: as the tactic in force; what was shown when the tactic changes stays as it is.
Keeps: what the tactic in force keeps, beside factorised all columns of the rows alive; counts of what has passed.
Needs: what both tactics need: two inputs joined on one set of keys and by nothing else.
Costs: as the tactic in force; a change costs what the rows alive, and for pc their pairs, cost when they come.

Rows, the pairs that they make and the groups that they meet are counted, and what the tactics would have cost follows
from that (change_cost.py): from input and state alone, never from a clock, so a step that is taken again changes where
it did. A tactic changes at the beginning of a step that brings something. All instants before that step are over; what
is alive is brought to the new tactic as of the last of them (hosted.py), and what it shows is then what is shown.

>>> from transom.core.delta import NO_OPEN_ID
>>> from transom.kernels.joinagg.spec import JoinCall
>>> from transom.state.open_ids import OpenIdPool
>>> def rows(t): return Delta(pa.record_batch({"k": [1]}), np.array([t]), np.array([9]), np.full(1, NO_OPEN_ID), t + 1)
>>> schema = pa.schema([("k", pa.int64()), ("n", pa.int64())])
>>> spec = JoinAggregateSpec(((pa.int64(),),) * 2, ((0,), (0,)), None, ((0, 0),), (JoinCall("count"),), schema)
>>> kernel, open_ids = AdaptiveKernel(spec, "ring_hash", "pc", watch=SHUFFLE), OpenIdPool()
>>> state = kernel.start()
>>> for t in range(1, 5):
...     out = kernel.step(state, (rows(t), rows(t)), Step(t, t + 1, 0, open_ids))
>>> out.values.column(1).to_pylist(), {change.after for change in state.changes} <= {"pc", "factorised"}
([16], True)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Delta, Ends, Int64s, forever
from transom.kernels.alive_rows import as_of
from transom.kernels.changing import LEAST_ROWS, SHUFFLE, WATCH, ChangingState, TacticChange, at_random
from transom.kernels.joinagg.change_cost import LOOK, PRICES
from transom.kernels.joinagg.hosted import (
    FactorisedHost,
    HostedTactic,
    JoinedState,
    MovableState,
    PipelineHost,
    Traffic,
)
from transom.kernels.joinagg.spec import KIND, SUM_FLOAT, JoinAggregateSpec
from transom.kernels.kernel import Step, select_rows
from transom.kernels.key_index import KeyIndex
from transom.kernels.keys import encode_keys
from transom.state.checks import need


@dataclass
class TrafficCount:
    """What has passed since costs were last looked at."""

    rows: int = 0
    pairs: float = 0.0
    groups: float = 0.0


@dataclass
class AdaptiveState(ChangingState):
    """Of an aggregate over a join of two."""

    hosted: list[JoinedState | MovableState]
    passed: TrafficCount = field(default_factory=TrafficCount)


@dataclass(frozen=True)
class AdaptiveKernel:
    """`join_tactic` is that of the join of pc, `first` the tactic that is in force at first; `final` as for aggregates.

    `watch`: whether and how tactics change.
    """

    spec: JoinAggregateSpec
    join_tactic: str
    first: str
    watch: str = WATCH
    final: bool = False

    def whole(self, schema: pa.Schema, final: bool) -> AdaptiveKernel:
        """The kernel where there is nothing to merge: it gives the results, in this schema."""
        return replace(self, spec=replace(self.spec, partial=False, schema=schema), final=final)

    @cached_property
    def tactics(self) -> tuple[HostedTactic, ...]:
        factorised = FactorisedHost(self.spec)
        if self.spec.partial and SUM_FLOAT in self.spec.table[:, KIND]:
            return (factorised,)  # of the aggregate nobody knows the exact total behind a result
        return (PipelineHost(self.spec, self.join_tactic, self.final), factorised)

    def start(self) -> AdaptiveState:
        names = [each.name for each in self.tactics]
        first = names.index(self.first) if self.first in names else 0
        return AdaptiveState([each.start() for each in self.tactics], first, names[first])

    def check(self, state: AdaptiveState) -> None:
        need(state.tactic == self.tactics[state.in_force].name)
        for host, own in zip(self.tactics, state.hosted, strict=True):
            host.check(own)

    def next_timer(self, state: AdaptiveState) -> int:
        return self.tactics[state.in_force].next_timer(state.hosted[state.in_force])

    def step(self, state: AdaptiveState, inputs: tuple[Delta, ...], step: Step) -> Delta:
        moved = None
        brings = any(len(delta) or delta.ends.chunks for delta in inputs)
        if brings and step.before > step.origin and len(self.tactics) > 1:
            change = self._shuffled(state, step) if self.watch == SHUFFLE else self._looked(state, step)
            if change is not None:
                moved = self._change(state, change, step)
        out, traffic = self.tactics[state.in_force].step(state.hosted[state.in_force], inputs, step)
        self._count(state, traffic)
        return out if moved is None else _both(moved, out)

    def _count(self, state: AdaptiveState, traffic: Traffic) -> None:
        state.rows += traffic.rows
        state.passed.rows += traffic.rows
        state.passed.pairs += traffic.pairs
        state.passed.groups += traffic.groups

    def _shuffled(self, state: AdaptiveState, step: Step) -> TacticChange | None:
        return at_random(state, [each.name for each in self.tactics], step)

    def _looked(self, state: AdaptiveState, step: Step) -> TacticChange | None:
        """The change that is due, if one is."""
        passed = state.passed
        if passed.rows < LEAST_ROWS or passed.rows + passed.pairs < LOOK:
            return None
        pairs, groups = passed.pairs / passed.rows, passed.groups / passed.rows
        costs = [PRICES[host.name].a_row(pairs, groups) for host in self.tactics]
        host, own = self.tactics[state.in_force], state.hosted[state.in_force]

        def to_change(number: int) -> float:
            return PRICES[self.tactics[number].name].to_change(host.alive(own), host.pairs_alive(own))

        state.passed = TrafficCount()
        best = state.due(costs, passed.rows, to_change)
        if best is None:
            return None
        now, other = costs[state.in_force], costs[best]
        after = self.tactics[best].name
        return TacticChange(
            step.before, state.rows, host.name, after, pairs, "pairs", now, other, state.lost[best] / 1_000
        )

    def _change(self, state: AdaptiveState, change: TacticChange, step: Step) -> Delta | None:
        """Take over what is alive and what is shown; gives what that changes in the answer, which is hardly ever more
        than nothing: a partial result without rows is shown by one tactic and not by the other."""
        names = [each.name for each in self.tactics]
        was, old = self.tactics[state.in_force], state.hosted[state.in_force]
        host = self.tactics[names.index(change.after)]
        new = host.start()
        at = step.before
        given = tuple(as_of(rows, at) for rows in was.rows(old))
        out, _ = host.step(new, given, replace(step, before=step.origin, frontier=at, emit_rows=None))
        out = select_rows(out, out.open_id != NO_OPEN_ID)
        keys, shown = was.shown(old)
        positions, gone = matched(keys, len(shown), out.values.columns[: len(keys)], len(out))
        still = positions >= 0
        step.open_ids.close(out.open_id[still], np.full(int(still.sum()), at, dtype=np.int64))  # nobody heard of them
        instead = out.open_id.copy()
        instead[still] = shown[positions[still]]
        host.adopt(new, out.open_id, instead)
        was.close(old, step)
        state.put_in_force(names.index(change.after), new, was.start(), change)
        state.passed = TrafficCount()
        if still.all() and not len(gone):
            return None
        ends = step.open_ids.close(shown[gone], np.full(len(gone), at, dtype=np.int64))
        fresh = select_rows(replace(out, ends=ends, frontier=step.frontier), ~still)
        return replace(fresh, ta=np.full(len(fresh), at, dtype=np.int64), te=forever(len(fresh)))


def matched(old: list[pa.Array], shown: int, new: list[pa.Array], count: int) -> tuple[Int64s, Int64s]:
    """Where each new group is among the old ones, -1 for one that is not there; and the old ones that are not new."""
    if not old:
        positions = np.zeros(count, dtype=np.int64) if shown else np.full(count, -1, dtype=np.int64)
        return positions, np.arange(shown) if not count else np.arange(0)
    index = KeyIndex()
    numbers, _ = index.number(encode_keys(old, shown))
    others, _ = index.number(encode_keys(new, count))
    where = np.full(index.slots.high, -1, dtype=np.int64)
    where[numbers] = np.arange(shown)
    there = np.zeros(index.slots.high, dtype=np.bool_)
    there[others] = True
    return where[others], np.flatnonzero(~there[numbers])


def _both(moved: Delta, out: Delta) -> Delta:
    """One delta of what the change made and of the step after it, which may end rows that the change began."""
    te, open_id = moved.te.copy(), moved.open_id.copy()
    closed, at = out.ends.arrays()
    begun = np.isin(closed, open_id)
    if begun.any():
        for ended, when in zip(closed[begun].tolist(), at[begun].tolist(), strict=True):
            te[open_id == ended] = when
            open_id[open_id == ended] = NO_OPEN_ID
        rest = Ends.of(closed[~begun], at[~begun])
    else:
        rest = out.ends
    moved = select_rows(replace(moved, te=te, open_id=open_id), moved.ta < te)
    return Delta(
        pa.concat_batches([moved.values, out.values]),
        np.concatenate([moved.ta, out.ta]),
        np.concatenate([moved.te, out.te]),
        np.concatenate([moved.open_id, out.open_id]),
        out.frontier,
        moved.ends + rest,
    )
