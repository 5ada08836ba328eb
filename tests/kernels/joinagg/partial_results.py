"""The join-aggregate as partitions run it: a kernel for each, of which the merge puts the partial results together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, Ends
from transom.kernels.joinagg.factorised import FactorisedKernel
from transom.kernels.joinagg.merge import MergeAggregateKernel, MergeCall
from transom.kernels.joinagg.node import partial_columns
from transom.kernels.joinagg.spec import JoinAggregateSpec
from transom.kernels.kernel import Step, select_rows
from transom.kernels.spread import key_hashes
from transom.plan.algebra import AggregateCall
from transom.plan.expression import ColumnRef


@dataclass(frozen=True)
class Merged:
    """`spec` is that of the whole; rows go to one of the partitions by their join key."""

    spec: JoinAggregateSpec
    partitions: int
    tactic: Any = FactorisedKernel

    @cached_property
    def kernels(self) -> list[Any]:
        calls = []
        for index, call in enumerate(self.spec.calls):
            argument = None if call.input is None else ColumnRef(0, self.spec.argument_type(call), "")
            type_ = self.spec.schema.types[len(self.spec.group) + index]
            calls.append(AggregateCall(call.function, argument, type_))
        keys = tuple(self.spec.schema.types[: len(self.spec.group)])
        schema = partial_columns(tuple(self.spec.schema.names), keys, tuple(calls)).arrow()
        return [self.tactic(replace(self.spec, schema=schema, partial=True))] * self.partitions

    @cached_property
    def merge(self) -> MergeAggregateKernel:
        calls = tuple(
            MergeCall(call.function, None if call.input is None else self.spec.argument_type(call))
            for call in self.spec.calls
        )
        return MergeAggregateKernel(tuple(self.spec.schema.types[: len(self.spec.group)]), calls, self.spec.schema)

    def start(self) -> list[Any]:
        return [self.merge.start(), *(kernel.start() for kernel in self.kernels)]

    def step(self, state: list[Any], inputs: tuple[Delta, ...], step: Step) -> Delta:
        partial = []
        for partition, kernel in enumerate(self.kernels):
            mine = tuple(self._mine(i, delta, partition) for i, delta in enumerate(inputs))
            partial.append(kernel.step(state[1 + partition], mine, step))
        values = pa.Table.from_batches([delta.values for delta in partial]).combine_chunks().to_batches()
        together = Delta(
            values[0] if values else partial[0].values,
            np.concatenate([delta.ta for delta in partial]),
            np.concatenate([delta.te for delta in partial]),
            np.concatenate([delta.open_id for delta in partial]),
            step.frontier,
            sum((delta.ends for delta in partial), Ends()),
        )
        return self.merge.step(state[0], (together,), step)

    def _mine(self, i: int, delta: Delta, partition: int) -> Delta:
        columns = [delta.values.column(c) for c in self.spec.key_columns[i]]
        return select_rows(delta, key_hashes(columns, len(delta)) % self.partitions == partition)
