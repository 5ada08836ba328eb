"""What the partitions emitted in a step, as one answer: in time order, of one instant what left first, then by value.

Each partition emits its rows in that order; together they are in it again after this.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.delta import Int64s
from transom.kernels.columns import empty_batch
from transom.kernels.keys import encode_keys

_OWN_COLUMNS = {"stream": 1, "changes": 2, "latest": 0}


def merged(answers: Sequence[pa.RecordBatch], emit_name: str, schema: pa.Schema) -> pa.RecordBatch:
    """The rows in the columns of `emit.py`, as one batch."""
    parts = in_order(answers, emit_name, schema)
    return parts[0] if len(parts) == 1 else pa.concat_batches(parts)


def in_order(answers: Sequence[pa.RecordBatch], emit_name: str, schema: pa.Schema) -> list[pa.RecordBatch]:
    """The rows in the columns of `emit.py`. Lifetimes and net changes have no order: they stay in their batches."""
    parts = [part for part in answers if len(part)]
    if not parts:
        return [empty_batch(schema)]
    if len(parts) == 1 or emit_name in ("lifetimes", "net"):
        return parts
    rows = pa.concat_batches(parts)
    own = _OWN_COLUMNS[emit_name]
    if emit_name == "latest":
        return [rows.take(pa.array(np.argsort(value_ranks(rows.columns, len(rows)), kind="stable")))]
    at = rows.column(own - 1).cast(pa.int64()).to_numpy()
    comes = entering(rows) if own > 1 else np.zeros(len(rows), dtype=np.bool_)
    order = np.lexsort((comes, at))
    # Values are looked at only where they decide: of rows that stand at one place in time.
    starts = np.flatnonzero(np.diff(at[order]) | np.diff(comes[order])) + 1
    index = np.repeat(np.arange(len(starts) + 1), np.diff([0, *starts, len(rows)]))
    tied = np.flatnonzero(np.bincount(index)[index] > 1)
    if len(tied):
        some = order[tied]
        ranks = value_ranks(rows.take(pa.array(some)).columns[own:], len(some))
        order[tied] = some[np.lexsort((ranks, index[tied]))]
    return [rows.take(pa.array(order))]


def entering(rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """Which rows of changes are +."""
    flags: npt.NDArray[np.bool_] = pc.equal(rows.column(0), "+").to_numpy(zero_copy_only=False)
    return flags


def value_numbers(columns: Sequence[pa.Array], rows: int) -> Int64s:
    """Equal rows, equal numbers; in no order."""
    numbers: Int64s = _encoded(columns, rows).indices.to_numpy()
    return numbers


def _encoded(columns: Sequence[pa.Array], rows: int) -> pa.DictionaryArray:
    keys = encode_keys(columns, rows)
    buffers = [None, pa.py_buffer(keys.offsets), pa.py_buffer(keys.data)]
    return pa.Array.from_buffers(pa.large_binary(), rows, buffers).dictionary_encode()


def value_ranks(columns: Sequence[pa.Array], rows: int) -> Int64s:
    """The place of every row in the order of values; equal rows, equal places."""
    texts = _encoded(columns, rows)
    order = pc.sort_indices(texts.dictionary).to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    ranks: Int64s = rank[texts.indices.to_numpy()]
    return ranks
