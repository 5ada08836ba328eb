"""New rows of an input of a join of many: their keys, computed once, and the hashes for each of its tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, Int64s
from transom.kernels import scalar
from transom.kernels.columns import validity, values_in
from transom.kernels.keys import Hashes, encode_keys, mix_all, ordered
from transom.kernels.multiway.graph import JoinGraph
from transom.plan.expression import ColumnRef


@dataclass
class Newcomers:
    """New rows of an input without those that have a NULL in a key, and their hashes and keys for each table."""

    columns: list[pa.Array]
    hashes: list[Hashes]
    keys: list[pa.Array | None]
    ta: Int64s
    te: Int64s
    open_id: Int64s


def newcomers(graph: JoinGraph, i: int, delta: Delta) -> Newcomers:
    """The rows of a delta, prepared for input i."""
    columns, ta, te, open_id = delta.values.columns, delta.ta, delta.te, delta.open_id
    keys = {
        c: columns[key.index] if isinstance(key, ColumnRef) else scalar.evaluate(key, delta.values)
        for c, key in enumerate(graph.keys[i])
        if key is not None
    }
    if any(key.null_count for key in keys.values()):
        null = np.zeros(len(delta), dtype=np.bool_)
        for key in keys.values():
            valid = validity(key)
            if valid is not None:
                null |= valid == 0
        rows = np.flatnonzero(~null)
        take = pa.array(rows)
        columns = delta.values.take(take).columns
        keys = {c: key.take(take) for c, key in keys.items()}
        ta, te, open_id = ta[rows], te[rows], open_id[rows]
    hashes: list[Hashes] = []
    texts: list[pa.Array | None] = []
    for classes, word in zip(graph.indexes[i], graph.words[i], strict=True):
        text = None
        if not classes:
            hashed = np.zeros(len(ta), dtype=np.uint64)
        elif word is not None:
            hashed = mix_all(ordered(values_in(keys[classes[0]], word)))
        else:
            parts = [keys[c] for c in classes]
            encoded = encode_keys(parts, len(ta))
            hashed = encoded.hashes
            buffers = [None, pa.py_buffer(encoded.offsets.astype(np.int32)), pa.py_buffer(encoded.data)]
            text = pa.Array.from_buffers(pa.binary(), len(ta), buffers)
        hashes.append(hashed)
        texts.append(text)
    return Newcomers(columns, hashes, texts, ta, te, open_id)
