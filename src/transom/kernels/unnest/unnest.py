"""A row for every element of an array.

Meaning: at every instant each row once for every element of its array, with that element (and its number) beside it.
Emits: as many rows as there are elements, all with the lifetime and the open row id of the row that they come from.
Keeps: nothing; when an end is written, it reaches all of them: the ends pass by reference. Negative tuples pass twice.
Needs: nothing.
Costs: the bytes of the arrays, and a copy of the other columns for every element.

>>> from transom.core.delta import NO_OPEN_ID
>>> from transom.kernels.nested import encoded
>>> from transom.plan.expression import ColumnRef
>>> from transom.state.open_ids import OpenIdPool
>>> batch = pa.record_batch({"a": encoded(pa.array([[5, 6], []]))})
>>> rows = Delta(batch, np.array([1, 2]), np.array([9, 9]), np.full(2, NO_OPEN_ID), frontier=5)
>>> array = ColumnRef(0, pa.list_(pa.int64()), "a")
>>> schema = pa.schema([("a", pa.binary()), ("x", pa.int64())])
>>> out = UnnestKernel(array, schema).step(None, (rows,), Step(0, 5, 0, OpenIdPool()))
>>> out.values.column("x").to_pylist(), out.ta.tolist()
([5, 6], [1, 1])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transom.core.delta import Changelog, Delta
from transom.core.time import FOREVER
from transom.kernels import scalar
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Step
from transom.kernels.nested import unnested
from transom.plan.expression import Expression


@dataclass(frozen=True)
class UnnestKernel:
    """`outer`: a row whose array has no element stays, with NULL beside it. `numbered`: elements have numbers."""

    array: Expression
    schema: pa.Schema
    outer: bool = False
    numbered: bool = False

    def start(self) -> None:
        return None

    def next_timer(self, state: None) -> int:
        return FOREVER

    def step(self, state: None, inputs: tuple[Delta | Changelog], step: Step) -> Delta | Changelog:
        (rows,) = inputs
        if len(rows):
            which, numbers, elements = unnested(
                scalar.evaluate(self.array, rows.values), self.array.type.value_type, self.outer
            )
            columns = [*rows.values.take(pa.array(which)).columns, elements]
            if self.numbered:
                columns.append(pa.array(numbers, mask=numbers == 0))
            values = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        else:
            which, values = np.empty(0, dtype=np.int64), empty_batch(self.schema)
        if isinstance(rows, Delta):
            return Delta(values, rows.ta[which], rows.te[which], rows.open_id[which], rows.frontier, rows.ends)
        return Changelog(values, rows.t[which], int(np.searchsorted(which, rows.departed)), rows.frontier)
