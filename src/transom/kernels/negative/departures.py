"""From rows with lifetimes to negative tuples: for windows whose rows end in no simple order, and for tables.

Meaning: a row that is alive on [ta, te) arrives at ta and departs at te.
Emits: each row when it begins and, whole, once more when it ends.
Keeps: the rows alive that may end, with their ends in the lazily sorted set of paper 1.
Needs: nothing.
Costs: O(1) a row, O(log n) moves of its end in the sorted set.

>>> from transom.state.holders import HolderPool
>>> schema = pa.schema([("a", pa.int64())])
>>> rows = Delta(pa.record_batch({"a": [1, 2]}), np.array([1, 2]), np.array([4, 9]), np.full(2, NO_HOLDER), upto=9)
>>> kernel = DeparturesKernel(schema)
>>> out = kernel.step(kernel.start(), (rows,), Step(0, 9, 0, HolderPool()))
>>> out.values.column(0).to_pylist(), out.t.tolist(), out.departed
([1, 1, 2], [4, 1, 2], 1)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_HOLDER, Delta, Int64s, SignedDelta
from transom.core.time import FOREVER
from transom.kernels.kernel import Step
from transom.kernels.lifetimes import LifetimeSet
from transom.kernels.row_store import RowStore
from transom.state.checks import need
from transom.state.slots import SlotPool


@dataclass
class DeparturesState:
    """The values of the rows alive, by slot."""

    rows: RowStore
    slots: SlotPool = field(default_factory=SlotPool)
    lifetimes: LifetimeSet = field(default_factory=LifetimeSet)

    def check(self) -> None:
        need(self.rows.capacity >= self.slots.high)
        self.lifetimes.check_slots(self.slots.mask())


@dataclass(frozen=True)
class DeparturesKernel:
    schema: pa.Schema

    def start(self) -> DeparturesState:
        return DeparturesState(RowStore.of(self.schema.types))

    def due(self, state: DeparturesState) -> int:
        return state.lifetimes.due

    def step(self, state: DeparturesState, inputs: tuple[Delta], step: Step) -> SignedDelta:
        (rows,) = inputs
        slots, te = state.lifetimes.leave(rows.ends, step.upto)
        if len(slots):
            order = np.argsort(te, kind="stable")  # what came first departs first among equals
            slots, te = slots[order], te[order]
        earlier = pa.RecordBatch.from_arrays(state.rows.gather(slots, self.schema.types), schema=self.schema)
        state.rows.free(slots)
        state.slots.give_back(slots)
        determined = rows.holder == NO_HOLDER
        gone = np.flatnonzero(determined & (rows.te < step.upto))
        self._keep(state, rows, np.flatnonzero(~determined | ((rows.te >= step.upto) & (rows.te < FOREVER))))
        arrived = pa.RecordBatch.from_arrays(rows.values.columns, schema=self.schema)
        at_once = arrived.take(pa.array(gone)) if len(gone) < len(rows) else arrived
        t = np.concatenate([te, rows.te[gone], rows.ta])
        return SignedDelta(pa.concat_batches([earlier, at_once, arrived]), t, len(te) + len(gone), step.upto)

    def _keep(self, state: DeparturesState, rows: Delta, which: Int64s) -> None:
        if len(which):
            slots = state.slots.take(len(which))
            state.rows.reserve(state.slots.high)
            state.rows.write(slots, rows.values.take(pa.array(which)).columns)
            state.lifetimes.add(slots, rows.te[which], rows.holder[which])
