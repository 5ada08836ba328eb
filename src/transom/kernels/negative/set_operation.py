"""DISTINCT, INTERSECT and EXCEPT under negative tuples, with and without ALL.

Meaning: as `kernels/set_operation/set_operation.py` has it: a value that is l times in the left and r times in the
    right input is there m(l, r) times.
Emits: arrivals when m grows, departures when it falls, both in the order of time; nothing when it stays.
Keeps: each value alive once with its two counts; nothing per row.
Needs: nothing.
Costs: a hash look-up for each arrival and each departure, and sorting them by time.

>>> from transom.state.open_ids import OpenIdPool
>>> schema = pa.schema([("a", pa.int64())])
>>> rows = Changelog(pa.record_batch({"a": [1, 1, 1, 1]}), np.array([4, 6, 1, 2]), departed=2, frontier=9)
>>> distinct = NegativeSetOperationKernel("distinct", False, schema)
>>> out = distinct.step(distinct.start(), (rows,), Step(0, 9, 0, OpenIdPool()))
>>> out.values.column(0).to_pylist(), out.t.tolist(), out.departed
([1, 1], [6, 1], 1)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transom.core.delta import Changelog
from transom.core.time import FOREVER
from transom.kernels.kernel import Step
from transom.kernels.set_operation.set_operation import times
from transom.kernels.tally import Tally


@dataclass(frozen=True)
class NegativeSetOperationKernel:
    kind: str  # distinct, intersect, except
    all: bool
    schema: pa.Schema

    def start(self) -> Tally:
        return Tally.of(self.schema.types)

    def next_timer(self, state: Tally) -> int:
        return FOREVER

    def step(self, state: Tally, inputs: tuple[Changelog, ...], step: Step) -> Changelog:
        steps = state.advance(inputs, step.frontier)
        grew = times(self.kind, self.all, steps.after) - times(self.kind, self.all, steps.before)
        fewer, more = np.maximum(-grew, 0), np.maximum(grew, 0)
        key = np.concatenate([np.repeat(steps.key, fewer), np.repeat(steps.key, more)])
        t = np.concatenate([np.repeat(steps.t, fewer), np.repeat(steps.t, more)])
        values = pa.RecordBatch.from_arrays(state.values.gather(key, self.schema.types), schema=self.schema)
        state.forget_gone(steps)
        return Changelog(values, t, int(fewer.sum()), step.frontier)
