"""From rows with lifetimes to negative tuples: for windows whose rows end in no simple order, and for tables.

Meaning: a row that is alive on [ta, te) arrives at ta and departs at te.
Emits: each row when it begins and, whole, once more when it ends.
Keeps: the rows alive that may end, with their ends in the lazily sorted set of paper 1.
Needs: nothing.
Costs: O(1) a row, O(log n) moves of its end in the sorted set.

>>> from transom.state.open_ids import OpenIdPool
>>> schema = pa.schema([("a", pa.int64())])
>>> rows = Delta(pa.record_batch({"a": [1, 2]}), np.array([1, 2]), np.array([4, 9]), np.full(2, NO_OPEN_ID), frontier=9)
>>> kernel = DeparturesKernel(schema)
>>> out = kernel.step(kernel.start(), (rows,), Step(0, 9, 0, OpenIdPool()))
>>> out.values.column(0).to_pylist(), out.t.tolist(), out.departed
([1, 1, 2], [4, 1, 2], 1)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Changelog, Delta
from transom.core.time import FOREVER
from transom.kernels.kernel import Step
from transom.kernels.to_stream.direct_stream import AliveRows


@dataclass(frozen=True)
class DeparturesKernel:
    schema: pa.Schema

    def start(self) -> AliveRows:
        return AliveRows.of(self.schema.types)

    def next_timer(self, state: AliveRows) -> int:
        return state.lifetimes.next_timer

    def step(self, state: AliveRows, inputs: tuple[Delta], step: Step) -> Changelog:
        (rows,) = inputs
        slots, te = state.lifetimes.leave(rows.ends, step.frontier)
        if len(slots):
            order = np.argsort(te, kind="stable")  # what came first departs first among equals
            slots, te = slots[order], te[order]
        earlier = pa.RecordBatch.from_arrays(state.rows.gather(slots, self.schema.types), schema=self.schema)
        state.rows.free(slots)
        state.slots.give_back(slots)
        determined = rows.open_id == NO_OPEN_ID
        gone = np.flatnonzero(determined & (rows.te < step.frontier))
        state.keep(
            rows, rows.values.columns, np.flatnonzero(~determined | ((rows.te >= step.frontier) & (rows.te < FOREVER)))
        )
        arrived = pa.RecordBatch.from_arrays(rows.values.columns, schema=self.schema)
        at_once = arrived.take(pa.array(gone)) if len(gone) < len(rows) else arrived
        t = np.concatenate([te, rows.te[gone], rows.ta])
        return Changelog(pa.concat_batches([earlier, at_once, arrived]), t, len(te) + len(gone), step.frontier)
