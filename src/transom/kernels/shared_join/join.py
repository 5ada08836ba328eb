"""The join that queries share.

Meaning: the pairs of the widest windows, each with its age: how much younger its right row is than its left one.
Emits: each pair once, in the step in which its younger row came; how long it lives is for each query to say.
Keeps: both sides, as a join does; no pairs.
Needs: what the tactic needs.
Costs: as the join, once for all queries.

>>> import numpy as np
>>> from transom.core.delta import NO_OPEN_ID
>>> from transom.plan.expression import ColumnRef
>>> from transom.state.open_ids import OpenIdPool
>>> def rows(*times):
...     t = np.array(times)
...     return Delta(pa.record_batch({"k": [1] * len(t)}), t, t + 9, np.full(len(t), NO_OPEN_ID), frontier=8)
>>> key = ColumnRef(0, pa.int64(), "k")
>>> columns = [("k", pa.int64()), ("j", pa.int64())]
>>> join = SharedJoinKernel("ring_hash", (key,), (key,), None, pa.schema(columns), 1)
>>> out = join.step(join.start(), (rows(1, 7), rows(5)), Step(0, 8, 0, OpenIdPool()))
>>> out.ta.tolist(), out.values.column("age").to_pylist()
([5, 7], [4, -2])
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from transom.core.delta import Delta, Int64s, forever, no_open_ids
from transom.kernels.columns import empty_batch
from transom.kernels.join.join import JoinKernel, JoinState
from transom.kernels.join.side import TA
from transom.kernels.kernel import Step
from transom.kernels.shared_join.node import AGE


@dataclass(frozen=True)
class SharedJoinKernel(JoinKernel):
    """`schema` has the columns of the two sides; the age comes behind them."""

    @cached_property
    def emitted(self) -> pa.Schema:
        return self.schema.append(pa.field(AGE, pa.int64()))

    @cached_property
    def no_values(self) -> pa.RecordBatch:
        return empty_batch(self.emitted)

    def _emit(self, state: JoinState, pairs: Int64s, step: Step) -> Delta:
        left, right, ta, _ = pairs
        age = state.right.entries[state.right.slots(right), TA] - state.left.entries[state.left.slots(left), TA]
        pair = self.values(state.left, state.right, left, right)
        values = pa.RecordBatch.from_arrays([*pair.columns, pa.array(age)], schema=self.emitted)
        return Delta(values, ta, forever(len(ta)), no_open_ids(len(ta)), step.frontier)
