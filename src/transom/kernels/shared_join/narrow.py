"""What a query with RANGE, NOW or UNBOUNDED windows sees of a shared join.

Meaning: a pair is the query's if neither row began before the query and the older one is younger than its window; it
    lives until the first of its rows ends in the query's windows.
Emits: the query's columns of each such pair, once, its end determined.
Keeps: nothing.
Needs: windows that are no wider than those of the shared join.
Costs: two comparisons a pair of the shared join; the pairs that are taken stay in their order, which is nearly that of
    time, because whoever counts them next would have to sort them otherwise.

>>> from transom.state.open_ids import OpenIdPool
>>> pairs = pa.record_batch({"k": [7, 8, 9], "age": [-20, 0, 4]})
>>> delta = Delta(pairs, np.array([30, 35, 39]), np.full(3, FOREVER), no_open_ids(3), frontier=40)
>>> narrow = NarrowKernel((0,), 1, (10, 20), None, pa.schema([("k", pa.int64())]))
>>> out = narrow.step(None, (delta,), Step(30, 40, 0, OpenIdPool()))
>>> out.values.column(0).to_pylist(), out.te.tolist()
([8, 9], [45, 45])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.delta import Delta, no_int64s, no_open_ids
from transom.core.time import FOREVER
from transom.kernels.columns import empty_batch
from transom.kernels.jit import jit
from transom.kernels.kernel import Step

_ALWAYS: Final = int(np.iinfo(np.int64).min)


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

    def next_timer(self, state: None) -> int:
        return FOREVER

    def picking(self, picks: Sequence[int], schema: pa.Schema) -> NarrowKernel:
        """The same, giving only some of its columns, in this order and under these names."""
        return replace(self, columns=tuple(self.columns[i] for i in picks), schema=schema)

    def step(self, state: None, inputs: tuple[Delta], step: Step) -> Delta:
        (pairs,) = inputs
        left, right = self.lengths
        age = pairs.values.column(self.age).to_numpy()
        rows = np.empty(len(age), dtype=np.int64)
        begin = _ALWAYS if self.begin is None else self.begin
        count = seen(pairs.ta, age, left, right, begin, rows)
        if not count:
            none = no_int64s()
            return Delta(empty_batch(self.schema), none, none, none, step.frontier)
        columns = [pairs.values.column(i) for i in self.columns]
        if count < len(age):
            rows = rows[:count]
            taken = pa.array(rows)
            columns = [pc.take(column, taken, boundscheck=False) for column in columns]
        ta, te = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
        lifetimes(pairs.ta, age, left, right, rows, ta, te)
        values = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        return Delta(values, ta, te, no_open_ids(count), step.frontier)


@jit
def seen(ta, age, left, right, begin, rows):  # type: ignore[no-untyped-def]
    """The pairs that are the query's, written to `rows`; how many."""
    count = 0
    for i in range(len(ta)):
        rows[count] = i
        younger = age[i]
        count += (younger < left) & (younger > -right) & (ta[i] - abs(younger) >= begin)
    return count


@jit
def lifetimes(ta, age, left, right, rows, begins, ends):  # type: ignore[no-untyped-def]
    """When the pairs `rows` begin, and when the first row of each ends; forever beyond the time domain."""
    for i in range(len(rows)):
        at, younger = ta[rows[i]], age[rows[i]]
        of_left = min(at - max(younger, 0), FOREVER - left) + left
        of_right = min(at + min(younger, 0), FOREVER - right) + right
        begins[i] = at
        ends[i] = min(of_left, of_right)
