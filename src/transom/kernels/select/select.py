"""Selection and projection, of relations and of streams.

Meaning: at every instant the rows that satisfy the predicate; the expressions of each row.
Emits: at most one row per row, with the same lifetime and the same open row id (a reference to it, as in paper 1).
Keeps: nothing; when an end is written, they do nothing: the ends pass by reference. Negative tuples pass a second time.
Needs: nothing.
Costs: the expressions, column by column.

>>> from transom.core.delta import NO_OPEN_ID
>>> from transom.core.schema import BOOLEAN
>>> from transom.plan.expression import Literal
>>> from transom.state.open_ids import OpenIdPool
>>> rows = Delta(pa.record_batch({"a": [1]}), np.array([1]), np.array([9]), np.full(1, NO_OPEN_ID), frontier=5)
>>> len(FilterKernel(Literal(False, BOOLEAN)).step(None, (rows,), Step(0, 5, 0, OpenIdPool())))
0
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from transom.core.delta import Changelog, Delta, StreamDelta
from transom.core.schema import held_type
from transom.core.time import FOREVER
from transom.kernels import scalar
from transom.kernels.kernel import Step
from transom.plan.expression import ColumnRef, Expression

Moving = Delta | Changelog | StreamDelta  # what comes in goes out


@dataclass(frozen=True)
class FilterKernel:
    predicate: Expression

    def start(self) -> None:
        return None

    def next_timer(self, state: None) -> int:
        return FOREVER

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
            return Delta(values, rows.ta[kept], rows.te[kept], rows.open_id[kept], rows.frontier, rows.ends)
        if isinstance(rows, Changelog):
            departed = int(np.searchsorted(kept, rows.departed))
            return Changelog(values, rows.t[kept], departed, rows.frontier)
        return replace(rows, values=values, t=rows.t[kept])


@dataclass(frozen=True)
class ProjectKernel:
    expressions: tuple[Expression, ...]
    schema: pa.Schema

    def start(self) -> None:
        return None

    def next_timer(self, state: None) -> int:
        return FOREVER

    def step(self, state: None, inputs: tuple[Moving], step: Step) -> Moving:
        (rows,) = inputs
        values = self._picked(rows.values) if self.picks is not None else self._computed(rows.values)
        if isinstance(rows, Delta):  # as `replace` does, which takes its time
            halves = rows.halves
            if halves is not None:
                halves = None if self.picks is None else halves.of_columns(self.picks)
            return Delta(values, rows.ta, rows.te, rows.open_id, rows.frontier, rows.ends, halves)
        return (
            StreamDelta(values, rows.t, rows.frontier)
            if isinstance(rows, StreamDelta)
            else replace(rows, values=values)
        )

    def _computed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            rows.column(e.index) if isinstance(e, ColumnRef) else scalar.evaluate(e, rows) for e in self.expressions
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _picked(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Where nothing is computed no column is looked at: each would take longer than everything else here."""
        values = rows if self.picks == list(range(rows.num_columns)) else rows.select(self.picks)
        return values if values.schema.equals(self.schema) else values.rename_columns(self._names)

    @cached_property
    def picks(self) -> list[int] | None:
        """Which columns it gives, where all expressions are columns as they are."""
        same = all(
            isinstance(e, ColumnRef) and held_type(e.type) == type_
            for e, type_ in zip(self.expressions, self.schema.types, strict=True)
        )
        return [e.index for e in self.expressions if isinstance(e, ColumnRef)] if same and self.expressions else None

    @cached_property
    def _names(self) -> list[str]:
        return list(self.schema.names)


@dataclass(frozen=True)
class UnionKernel:
    """UNION ALL: the rows of both, one after the other, with the ends of both."""

    schema: pa.Schema

    def start(self) -> None:
        return None

    def next_timer(self, state: None) -> int:
        return FOREVER

    def step(self, state: None, inputs: tuple[Delta, Delta], step: Step) -> Delta:
        left, right = inputs
        values = pa.concat_batches([part.values.rename_columns(self.schema.names) for part in inputs])
        return Delta(
            values,
            np.concatenate([left.ta, right.ta]),
            np.concatenate([left.te, right.te]),
            np.concatenate([left.open_id, right.open_id]),
            step.frontier,
            left.ends + right.ends,
        )


@dataclass(frozen=True)
class NegativeUnionKernel:
    """UNION ALL of negative tuples: what departed from both, then what arrived in both."""

    schema: pa.Schema

    def start(self) -> None:
        return None

    def next_timer(self, state: None) -> int:
        return FOREVER

    def step(self, state: None, inputs: tuple[Changelog, Changelog], step: Step) -> Changelog:
        left, right = inputs
        parts = [part.values.rename_columns(self.schema.names) for part in inputs]
        gone = [part.slice(0, rows.departed) for part, rows in zip(parts, inputs, strict=True)]
        came = [part.slice(rows.departed) for part, rows in zip(parts, inputs, strict=True)]
        times = (left.t[: left.departed], right.t[: right.departed], left.t[left.departed :], right.t[right.departed :])
        departed = left.departed + right.departed
        return Changelog(pa.concat_batches([*gone, *came]), np.concatenate(times), departed, step.frontier)
