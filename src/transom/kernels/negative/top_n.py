"""ORDER BY .. LIMIT, ROW_NUMBER, RANK and DENSE_RANK under negative tuples.

Meaning: as `kernels/top_n/top_n.py` has it: the rows alive whose number lies between two bounds.
Emits: arrivals of rows that take a place (or another number, where that is shown), departures of those that lose it, in
    the order of time.
Keeps: each row alive once, with its count and its place in a tree; nothing per input row.
Needs: rows of one partition together.
Costs: a hash look-up and O(log rows alive) for each arrival and each departure; where the number is shown, also the
    rows behind it that have a place.

>>> from transom.plan.algebra import SortKey
>>> from transom.state.open_ids import OpenIdPool
>>> schema = pa.schema([("a", pa.int64())])
>>> rows = Changelog(pa.record_batch({"a": [3, 5, 3]}), np.array([4, 1, 2]), departed=1, frontier=9)
>>> kernel = NegativeTopNKernel(RowOrder((), (SortKey(0),)), Places("row_number", 1, 1), schema)
>>> out = kernel.step(kernel.start(), (rows,), Step(0, 9, 0, OpenIdPool()))
>>> out.values.column(0).to_pylist(), out.t.tolist(), out.departed
([5, 3, 5, 3, 5], [2, 4, 1, 2, 4], 2)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transom.core.delta import Changelog
from transom.core.time import FOREVER
from transom.kernels.jit import jit
from transom.kernels.kernel import Step
from transom.kernels.tally import Tally
from transom.kernels.top_n.places import NEW, NEW_COUNT, OLD, OLD_COUNT, VALUE, T
from transom.kernels.top_n.row_order import RowOrder
from transom.kernels.top_n.top_n import Places, TopNState, begun, output


@dataclass(frozen=True)
class NegativeTopNKernel:
    order: RowOrder
    places: Places
    schema: pa.Schema

    def start(self) -> TopNState:
        types = self.schema.types
        return TopNState(Tally.of(types[:-1] if self.places.numbered else types))

    def next_timer(self, state: TopNState) -> int:
        return FOREVER

    def step(self, state: TopNState, inputs: tuple[Changelog], step: Step) -> Changelog:
        steps = state.tally.advance(inputs, step.frontier, lambda batch: state.number(batch, self.order.keys(batch)))
        entries, values = state.change(steps, self.places)
        spread = self.places.spread
        mirrored = entries[:, [T, VALUE, NEW, NEW_COUNT, OLD, OLD_COUNT]]
        changes = np.concatenate([mirrored, entries])
        counts = begun(changes, spread)
        value, number, t = list_changes(changes, spread, int(counts.sum()))
        out = output(state, value, number, self.schema, self.places)
        if len(values):
            state.forget(values)
        return Changelog(out, t, int(counts[: len(entries)].sum()), step.frontier)


@jit
def list_changes(changes, spread, size):  # type: ignore[no-untyped-def]
    """Value, number and time of the rows that begin with the entries."""
    value = np.empty(size, dtype=np.int64)
    number = np.empty(size, dtype=np.int64)
    t = np.empty(size, dtype=np.int64)
    at = 0
    for e in range(len(changes)):
        old, before, new, after = changes[e, OLD], changes[e, OLD_COUNT], changes[e, NEW], changes[e, NEW_COUNT]
        stay = before if not spread and old == new else 0
        for i in range(stay, after):
            n = new + i if spread else new
            if spread and old <= n < old + before:
                continue
            value[at] = changes[e, VALUE]
            number[at] = n
            t[at] = changes[e, T]
            at += 1
    return value, number, t
