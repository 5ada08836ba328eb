"""Predicates over rows of several inputs, of which only the columns that they read are gathered."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s
from transom.kernels import scalar
from transom.kernels.multiway.graph import Check, JoinGraph
from transom.kernels.multiway.input_rows import InputRows


def satisfying(
    graph: JoinGraph, inputs: Sequence[InputRows], check: Check, positions: Callable[[int], Int64s], count: int
) -> Int64s | None:
    """Which of `count` tuples pass, None for all; `positions(i)` are those of their members of input i."""
    arrays: list[pa.Array] = []
    for i, columns in check.columns:
        arrays += inputs[i].gather(positions(i), columns, graph.types[i])
    if not arrays:  # a constant
        arrays = [pa.nulls(count)]
    batch = pa.RecordBatch.from_arrays(arrays, names=[str(n) for n in range(len(arrays))])
    kept = scalar.keep(check.predicate, batch)
    return None if kept is None else kept.to_numpy().astype(np.int64)
