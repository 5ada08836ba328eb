"""What a query with RANGE, NOW or UNBOUNDED windows sees of a shared join.

Meaning: a pair is the query's if neither row began before the query and the older one is younger than its window; it
    lives until the first of its rows ends in the query's windows.
Emits: the query's columns of each such pair, once, its end determined.
Keeps: nothing.
Needs: windows that are no wider than those of the shared join.
Costs: two comparisons a pair of the shared join; the pairs that are taken stay in their order, which is nearly that of
    time, because whoever counts them next would have to sort them otherwise.

>>> from transom.state.holders import HolderPool
>>> pairs = pa.record_batch({"k": [7, 8, 9], "age": [-20, 0, 4]})
>>> delta = Delta(pairs, np.array([30, 35, 39]), np.full(3, FOREVER), no_holders(3), upto=40)
>>> narrow = NarrowKernel((0,), 1, (10, 20), None, pa.schema([("k", pa.int64())]))
>>> out = narrow.step(None, (delta,), Step(30, 40, 0, HolderPool()))
>>> out.values.column(0).to_pylist(), out.te.tolist()
([8, 9], [45, 45])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, no_holders, no_int64s
from transom.core.time import FOREVER
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Step
from transom.kernels.window.range import end_after


@dataclass(frozen=True)
class NarrowKernel:
    """`columns` and `age` are places among the columns of the pairs; `lengths` are those of the two windows."""

    columns: tuple[int, ...]
    age: int
    lengths: tuple[int, int]
    begin: int | None
    schema: pa.Schema

    def start(self) -> None:
        return None

    def due(self, state: None) -> int:
        return FOREVER

    def step(self, state: None, inputs: tuple[Delta], step: Step) -> Delta:
        (pairs,) = inputs
        left, right = self.lengths
        age = pairs.values.column(self.age).to_numpy()
        mine = age < left
        mine &= age > -right
        if self.begin is not None and step.before - self.begin < max(self.lengths):
            mine &= pairs.ta - np.abs(age) >= self.begin
        rows = np.flatnonzero(mine)
        if not len(rows):
            none = no_int64s()
            return Delta(empty_batch(self.schema), none, none, none, step.upto)
        ta = pairs.ta
        columns = [pairs.values.column(i) for i in self.columns]
        if len(rows) < len(age):
            ta, age = ta[rows], age[rows]
            taken = pa.array(rows)
            columns = [column.take(taken) for column in columns]
        if left == right:
            te = end_after(ta - np.abs(age), left)
        else:
            te = np.minimum(end_after(ta - np.maximum(age, 0), left), end_after(ta + np.minimum(age, 0), right))
        values = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        return Delta(values, ta, te, no_holders(len(ta)), step.upto)
