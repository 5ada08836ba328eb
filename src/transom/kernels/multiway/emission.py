"""What a join of many inputs does with tuples of positions: gives them out as rows, and ends them.

`tuples[n]` is the positions of the members, one on each input, then ta and te; there may be more behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Delta, Ends, Int64s, no_int64s, no_open_ids
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Step, open_rows
from transom.kernels.mould import ColumnAddresses, Moulds
from transom.kernels.multiway.graph import JoinGraph
from transom.kernels.multiway.input_rows import LazyRows, RingRows
from transom.kernels.multiway.open_tuples import OpenTuples

Inputs = Sequence[LazyRows | RingRows]


@dataclass(frozen=True)
class Emission:
    """`picks` are the columns of all inputs side by side that make the schema, () for all."""

    graph: JoinGraph
    schema: pa.Schema
    picks: tuple[int, ...] = ()

    def picking(self, picks: Sequence[int], schema: pa.Schema) -> Emission:
        """Only these of the columns."""
        return Emission(self.graph, schema, tuple(self._picks[at] for at in picks))

    def nothing(self, frontier: int) -> Delta:
        return Delta(self._no_values, no_int64s(), no_int64s(), no_int64s(), frontier)

    def rows(self, inputs: Inputs, addresses: ColumnAddresses, tuples: Int64s, opened: OpenTuples, step: Step) -> Delta:
        """Whole tuples as rows; those whose ends are open get open row ids, and are `opened`."""
        count = self.graph.count
        values = self._moulds.batch(addresses, tuples)
        if values is None:
            values = self._gathered(inputs, tuples)
        ta, te = np.ascontiguousarray(tuples[:, count]), np.ascontiguousarray(tuples[:, count + 1])
        if not any(own.lifetimes.undetermined for own in inputs):
            return Delta(values, ta, te, no_open_ids(len(ta)), step.frontier)
        delta, open_id = open_rows(values, ta, te, step, Ends())
        is_open = open_id != NO_OPEN_ID
        opened.add(tuples[is_open, :count], open_id[is_open], inputs)
        return delta

    def ended(self, out: Delta, inputs: Inputs, dead: Sequence[Int64s], opened: OpenTuples, step: Step) -> Delta:
        """With the ends of the open tuples that dead rows were in."""
        ends = step.open_ids.close(*opened.close(dead, inputs))
        return replace(out, ends=ends) if ends.chunks else out

    def _gathered(self, inputs: Inputs, tuples: Int64s) -> pa.RecordBatch:
        arrays: dict[int, pa.Array] = {}
        for i, own in enumerate(inputs):
            columns = self._needed[i]
            gathered = own.gather(np.ascontiguousarray(tuples[:, i]), columns, self.graph.types[i])
            arrays.update(zip([self.graph.bounds[i] + at for at in columns], gathered, strict=True))
        return pa.RecordBatch.from_arrays([arrays[at] for at in self._picks], schema=self.schema)

    @cached_property
    def _picks(self) -> tuple[int, ...]:
        return self.picks or tuple(range(self.graph.bounds[-1]))

    @cached_property
    def _needed(self) -> list[list[int]]:
        """The columns of each input that are given."""
        bounds = self.graph.bounds
        return [
            sorted({at - bounds[i] for at in self._picks if bounds[i] <= at < bounds[i + 1]})
            for i in range(self.graph.count)
        ]

    @cached_property
    def _moulds(self) -> Moulds:
        return Moulds(self.schema, self._picks)

    @cached_property
    def _no_values(self) -> pa.RecordBatch:
        return empty_batch(self.schema)
