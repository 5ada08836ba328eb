"""DISTINCT, INTERSECT and EXCEPT, with and without ALL.

Meaning: at every instant a value that is l times in the left and r times in the right input is there m(l, r) times:
    DISTINCT [l > 0], INTERSECT [l > 0 and r > 0], EXCEPT [l > 0 and r = 0], INTERSECT ALL min(l, r),
    EXCEPT ALL max(l - r, 0).
Emits: open rows when m grows, ends when it falls.
Keeps: each value alive once with its two counts, two numbers per input row alive, one node per output row alive.
Needs: nothing.
Costs: a hash look-up a row, and sorting what begins and ends in the step.

>>> from transom.core.delta import NO_OPEN_ID
>>> from transom.state.open_ids import OpenIdPool
>>> schema = pa.schema([("a", pa.int64())])
>>> rows = Delta(pa.record_batch({"a": [1, 1]}), np.array([1, 2]), np.array([4, 6]), np.full(2, NO_OPEN_ID), frontier=9)
>>> distinct = SetOperationKernel("distinct", False, schema)
>>> out = distinct.step(distinct.start(), (rows,), Step(0, 9, 0, OpenIdPool()))
>>> out.ta.tolist(), out.te.tolist()
([1], [6])
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, Int64s
from transom.kernels.kernel import Step
from transom.kernels.multiplicity import Shown, show
from transom.kernels.tally import Tally


@dataclass
class SetOperationState:
    tally: Tally
    shown: Shown = field(default_factory=Shown)


@dataclass(frozen=True)
class SetOperationKernel:
    kind: str  # distinct, intersect, except
    all: bool
    schema: pa.Schema

    def start(self) -> SetOperationState:
        return SetOperationState(Tally.of(self.schema.types))

    def check(self, state: SetOperationState) -> None:
        state.shown.check_counts(times(self.kind, self.all, state.tally.counts))

    def next_timer(self, state: SetOperationState) -> int:
        return state.tally.lifetimes.next_timer

    def step(self, state: SetOperationState, inputs: tuple[Delta, ...], step: Step) -> Delta:
        steps = state.tally.advance(inputs, step.frontier)
        before, after = (times(self.kind, self.all, counts) for counts in (steps.before, steps.after))
        out = show(state.shown, state.tally, steps.t, steps.key, before, after, self.schema, step)
        state.tally.forget_gone(steps)
        return out


def times(kind: str, all_: bool, counts: Int64s) -> Int64s:
    """m(l, r) for every entry."""
    left, right = counts
    copies: Int64s
    if kind == "distinct":
        copies = left > 0
    elif kind == "intersect":
        copies = np.minimum(left, right) if all_ else (left > 0) & (right > 0)
    else:
        copies = np.maximum(left - right, 0) if all_ else (left > 0) & (right == 0)
    return copies.astype(np.int64)
