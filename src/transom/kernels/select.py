"""Selection and projection, of relations and of streams.

Meaning: at every instant the rows that satisfy the predicate; the expressions of each row.
Emits: at most one row per row, with the same lifetime and the same holder.
Keeps: nothing; when an end is written, they do nothing: the ends pass by reference.
Needs: nothing.
Costs: the expressions, column by column.

>>> from transom.core.delta import NO_HOLDER
>>> from transom.core.schema import BOOLEAN
>>> from transom.plan.expression import Literal
>>> from transom.state.holders import HolderPool
>>> rows = Delta(pa.record_batch({"a": [1]}), np.array([1]), np.array([9]), np.full(1, NO_HOLDER), upto=5)
>>> len(FilterKernel(Literal(False, BOOLEAN)).step(None, (rows,), Step(0, 5, 0, HolderPool())))
0
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, StreamDelta
from transom.kernels import scalar
from transom.kernels.kernel import Step
from transom.plan.expression import ColumnRef, Expression

Moving = Delta | StreamDelta  # what comes in goes out


@dataclass(frozen=True)
class FilterKernel:
    predicate: Expression

    def start(self) -> None:
        return None

    def step(self, state: None, inputs: tuple[Moving], step: Step) -> Moving:
        (rows,) = inputs
        if not len(rows):
            return rows
        positions = scalar.keep(self.predicate, rows.values)
        if positions is None:
            return rows
        kept = positions.to_numpy()
        values = rows.values.take(positions)
        if isinstance(rows, Delta):
            return replace(rows, values=values, ta=rows.ta[kept], te=rows.te[kept], holder=rows.holder[kept])
        return replace(rows, values=values, t=rows.t[kept])


@dataclass(frozen=True)
class ProjectKernel:
    expressions: tuple[Expression, ...]
    schema: pa.Schema

    def start(self) -> None:
        return None

    def step(self, state: None, inputs: tuple[Moving], step: Step) -> Moving:
        (rows,) = inputs
        arrays = [
            rows.values.column(e.index) if isinstance(e, ColumnRef) else scalar.evaluate(e, rows.values)
            for e in self.expressions
        ]
        return replace(rows, values=pa.RecordBatch.from_arrays(arrays, schema=self.schema))


@dataclass(frozen=True)
class UnionKernel:
    """UNION ALL: the rows of both, one after the other, with the ends of both."""

    schema: pa.Schema

    def start(self) -> None:
        return None

    def step(self, state: None, inputs: tuple[Delta, Delta], step: Step) -> Delta:
        left, right = inputs
        values = pa.concat_batches([part.values.rename_columns(self.schema.names) for part in inputs])
        return Delta(
            values,
            np.concatenate([left.ta, right.ta]),
            np.concatenate([left.te, right.te]),
            np.concatenate([left.holder, right.holder]),
            step.upto,
            left.ends + right.ends,
        )
