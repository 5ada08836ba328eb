"""What the buckets told of a step, as one answer: in time order, of one instant what left first, then by value.

Each bucket tells its rows in that order; together they are in it again after this.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.delta import Int64s
from transom.kernels.columns import empty_batch
from transom.kernels.keys import encode_keys

_OWN_COLUMNS = {"stream": 1, "changes": 2, "latest": 0}


def merged(told: Sequence[pa.RecordBatch], emit_name: str, schema: pa.Schema) -> pa.RecordBatch:
    """The rows in the columns of `emit.py`, as one batch."""
    parts = in_order(told, emit_name, schema)
    return parts[0] if len(parts) == 1 else pa.concat_batches(parts)


def in_order(told: Sequence[pa.RecordBatch], emit_name: str, schema: pa.Schema) -> list[pa.RecordBatch]:
    """The rows in the columns of `emit.py`. Lifetimes have no order, so they stay in the batches in which they came."""
    parts = [part for part in told if len(part)]
    if not parts:
        return [empty_batch(schema)]
    if len(parts) == 1 or emit_name == "lifetimes":
        return parts
    rows = pa.concat_batches(parts)
    own = _OWN_COLUMNS[emit_name]
    if emit_name == "latest":
        return [rows.take(pa.array(np.argsort(value_ranks(rows.columns, len(rows)), kind="stable")))]
    at = rows.column(own - 1).cast(pa.int64()).to_numpy()
    entering = rows.column(0).to_numpy(zero_copy_only=False) == "+" if own > 1 else np.zeros(len(rows), dtype=np.bool_)
    order = np.lexsort((entering, at))
    # Values are looked at only where they decide: of rows that stand at one place in time.
    starts = np.flatnonzero(np.diff(at[order]) | np.diff(entering[order])) + 1
    place = np.repeat(np.arange(len(starts) + 1), np.diff([0, *starts, len(rows)]))
    tied = np.flatnonzero(np.bincount(place)[place] > 1)
    if len(tied):
        some = order[tied]
        ranks = value_ranks(rows.take(pa.array(some)).columns[own:], len(some))
        order[tied] = some[np.lexsort((ranks, place[tied]))]
    return [rows.take(pa.array(order))]


def value_ranks(columns: Sequence[pa.Array], rows: int) -> Int64s:
    """The place of every row in the order of values; equal rows, equal places."""
    keys = encode_keys(columns, rows)
    buffers = [None, pa.py_buffer(keys.offsets), pa.py_buffer(keys.data)]
    texts = pa.Array.from_buffers(pa.large_binary(), rows, buffers).dictionary_encode()
    order = pc.sort_indices(texts.dictionary).to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    found: Int64s = rank[texts.indices.to_numpy()]
    return found
