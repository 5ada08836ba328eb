"""The answer of one of several queries, packed.

Meaning: the rows that a step brings to the answer, in its form (`emit.py`).
Emits: one row with all of them, at the last instant of the step; nothing where there are none.
Keeps: what its form keeps.
Needs: equal rows in one bucket if changes are told.
Costs: as its form; the rows are written once.

>>> from transom.core.schema import INTEGER, Schema
>>> from transom.pipeline.emit import emit_of
>>> from transom.state.holders import HolderPool
>>> schema = pa.schema([("outlet", pa.int32()), ("rows", pa.binary())])
>>> outlet = OutletKernel(3, OutputWriter("stream", emit_of("stream", Schema.of(("a", INTEGER)))), schema)
>>> rows = StreamDelta(pa.record_batch({"a": pa.array([7], INTEGER)}), np.array([5]), upto=6)
>>> out = outlet.step(None, (rows,), Step(0, 6, 0, HolderPool()))
>>> out.values.column(0).to_pylist(), unpacked(out.values.column(1)[0]).to_pylist()[0]["a"]
([3], 7)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from transom.core.delta import StreamDelta, no_int64s
from transom.core.time import FOREVER
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Step
from transom.pipeline.agenda import Brought
from transom.pipeline.merge import merged
from transom.pipeline.output import OutputWriter


@dataclass(frozen=True)
class OutletKernel:
    number: int
    output: OutputWriter
    schema: pa.Schema

    def start(self) -> Any:
        return self.output.start()

    def due(self, state: Any) -> int:
        return self.output.due(state)

    def step(self, state: Any, inputs: tuple[Brought], step: Step) -> StreamDelta:
        (answer,) = inputs
        rows = self.output.write(state, answer, step)
        if not len(rows):
            return StreamDelta(empty_batch(self.schema), no_int64s(), step.upto)
        blob = _packed(rows)
        values = pa.RecordBatch.from_arrays(
            [pa.array([self.number], pa.int32()), pa.array([blob], pa.binary())], schema=self.schema
        )
        return StreamDelta(values, np.array([step.upto - 1]), step.upto)


@dataclass(frozen=True)
class OutletsKernel:
    """The packed answers of all queries, one after the other."""

    schema: pa.Schema

    def start(self) -> None:
        return None

    def due(self, state: None) -> int:
        return FOREVER

    def step(self, state: None, inputs: tuple[StreamDelta, ...], step: Step) -> StreamDelta:
        told = [rows for rows in inputs if len(rows)]
        if not told:
            return StreamDelta(empty_batch(self.schema), no_int64s(), step.upto)
        t = np.concatenate([rows.t for rows in told])
        return StreamDelta(pa.concat_batches([rows.values for rows in told]), t, step.upto)


def _packed(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpacked(blob: pa.Scalar) -> pa.RecordBatch:
    """The rows of an answer."""
    with pa.ipc.open_stream(blob.as_buffer()) as reader:
        return reader.read_next_batch()


def divided(told: Sequence[pa.RecordBatch], emits: Sequence[str], schemas: Sequence[pa.Schema]) -> list[pa.RecordBatch]:
    """What `OutletsKernel` told in all buckets of a batch, as the rows of each answer in their order."""
    parts: list[list[pa.RecordBatch]] = [[] for _ in emits]
    for batch in told:
        for outlet, blob in zip(batch.column("outlet").to_pylist(), batch.column("rows"), strict=True):
            parts[outlet].append(unpacked(blob))
    return [merged(part, emit, schema) for part, emit, schema in zip(parts, emits, schemas, strict=True)]
