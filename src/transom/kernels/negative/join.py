"""The join of two relations under negative tuples.

Meaning: a row that arrives makes a pair with every row of the other side that satisfies the predicate and is there;
    when the row departs, so do its pairs with the rows that are there then.
Emits: each pair when its younger row arrives and, whole, once more when its first row departs; both in order of time.
Keeps: the rows of both sides that are there (`ring_side.py`, `counting_side.py`).
Needs: for `ring_hash` that the rows of both sides depart in the order in which they arrived; `lazy_hash` takes any
    order, and `nested_loop` is the same with one chain for everything and takes any predicate.
Costs: a probe per row when it arrives and one when it departs, and what the tactic says; payload columns are gathered
    once the pairs are known, those of a pair twice.

>>> import pyarrow as pa
>>> from transom.plan.expression import ColumnRef
>>> from transom.state.open_ids import OpenIdPool
>>> rows = Changelog(pa.record_batch({"k": [1, 1]}), np.array([4, 2]), departed=1, frontier=5)
>>> schema = pa.schema([("k", pa.int64()), ("j", pa.int64())])
>>> key = ColumnRef(0, pa.int64(), "k")
>>> join = NegativeJoinKernel("ring_hash", (key,), (key,), None, schema, 1)
>>> out = join.step(join.start(), (rows, rows), Step(0, 5, 0, OpenIdPool()))
>>> out.values.to_pylist(), out.t.tolist(), out.departed
([{'k': 1, 'j': 1}, {'k': 1, 'j': 1}], [4, 2], 1)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transom.core.delta import Changelog, no_int64s
from transom.core.time import FOREVER
from transom.kernels import scalar
from transom.kernels.join.predicate import JoinPredicate
from transom.kernels.kernel import Step
from transom.kernels.negative.counting_side import CountedRows
from transom.kernels.negative.events import ARRIVES, ChangeEvents, Changes
from transom.kernels.negative.pair_match import START, PairBuffer, match
from transom.kernels.negative.ring_side import NegativeRing
from transom.plan.expression import Expression

BLOCK = 1 << 18  # candidate pairs looked at together


@dataclass
class NegativeJoinState:
    left: NegativeRing | CountedRows
    right: NegativeRing | CountedRows


@dataclass(frozen=True)
class NegativeJoinKernel(JoinPredicate):
    """Rows that arrive and depart in, pairs that arrive and depart out."""

    def start(self) -> NegativeJoinState:
        side = NegativeRing if self.tactic == "ring_hash" else CountedRows
        types = self.schema.types
        left, right = types[: self.left_width], types[self.left_width :]
        return NegativeJoinState(side.of(left, self.keyed), side.of(right, self.keyed))

    def next_timer(self, state: NegativeJoinState) -> int:
        return FOREVER

    def step(self, state: NegativeJoinState, inputs: tuple[Changelog, Changelog], step: Step) -> Changelog:
        left = self._take(state.left, inputs[0], self.left_keys)
        right = self._take(state.right, inputs[1], self.right_keys)
        events = ChangeEvents.of(left, right)
        out = self._emit(state, events, self._pairs(state, events), step)
        state.left.settle(left)
        state.right.settle(right)
        return out

    def _take(self, side: NegativeRing | CountedRows, delta: Changelog, keys: tuple[Expression, ...]) -> Changes:
        if not len(delta):
            return Changes(no_int64s(), no_int64s(), no_int64s(), no_int64s())
        return side.take(delta, [scalar.evaluate(key, delta.values) for key in keys])

    def _pairs(self, state: NegativeJoinState, events: ChangeEvents) -> PairBuffer:
        """The pairs that arrive or depart in order of time, those that satisfy the whole predicate."""
        left, right = state.left.chains(), state.right.chains()
        cursor = np.array([0, START, state.left.oldest, state.right.oldest])
        size = min(BLOCK, 2 * len(events.t) + 1024)
        parts: list[PairBuffer] = []
        while cursor[0] < len(events.t):
            pairs = PairBuffer.room(size, left.counting)
            pairs = pairs.first(match(events, left, right, cursor, pairs))
            if self.residual is not None and len(pairs.event):
                kept = self.satisfying(state.left, state.right, pairs.left, pairs.right)
                pairs = pairs if kept is None else pairs.picked(kept)
            parts.append(pairs)
            size = min(BLOCK, 2 * size)
        if not parts:
            return PairBuffer.room(0, left.counting)
        if len(parts) == 1:
            return parts[0]
        return PairBuffer(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _emit(self, state: NegativeJoinState, events: ChangeEvents, pairs: PairBuffer, step: Step) -> Changelog:
        if not len(pairs.event):
            return Changelog(self.no_values, no_int64s(), 0, step.frontier)
        arrives = (events.kind & ARRIVES)[pairs.event]
        departing = np.flatnonzero(arrives == 0)
        order = np.concatenate([departing, np.flatnonzero(arrives)])
        departed = len(departing)
        if len(pairs.times):
            times = pairs.times[order]
            departed = int(times[:departed].sum())
            order = np.repeat(order, times)
        values = self.values(state.left, state.right, pairs.left[order], pairs.right[order])
        return Changelog(values, events.t[pairs.event[order]], departed, step.frontier)
