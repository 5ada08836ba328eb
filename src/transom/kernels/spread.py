"""Rows spread over partitions by their keys.

Meaning: rows that agree on the keys get the same partition, whatever the width of an integer and the sign of a zero.
Emits: the positions of the rows of each partition, in order.
Keeps: nothing.
Needs: keys of the same kinds on all sides that are to meet.
Costs: a hash and a move a row.

>>> [part.tolist() for part in spread([pa.array([7, 8, 7])], 3, 2)]
[[1], [0, 2]]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s
from transom.kernels.jit import jit
from transom.kernels.keys import Hashes, encode_keys, hash_words, single_word


def spread(keys: Sequence[pa.Array], rows: int, partitions: int) -> list[Int64s]:
    """The positions of the rows of each partition."""
    if partitions == 1 or not rows:
        return [np.arange(rows if b == 0 else 0, dtype=np.int64) for b in range(partitions)]
    positions, bounds = deal(key_hashes(keys, rows), partitions)
    return [positions[bounds[b] : bounds[b + 1]] for b in range(partitions)]


def key_hashes(keys: Sequence[pa.Array], rows: int) -> Hashes:
    if single_word(keys):
        hashes, null = hash_words(keys)
        hashes[null] = 0
        return hashes
    return encode_keys(keys, rows).hashes


@jit
def deal(hashes, partitions):  # type: ignore[no-untyped-def]
    """Positions ordered by partition, and where each partition begins. The high half of a hash decides: tables use the
    low."""
    partition_of = np.empty(len(hashes), dtype=np.int32)
    bounds = np.zeros(partitions + 1, dtype=np.int64)
    for i in range(len(hashes)):
        partition_of[i] = np.int32(((hashes[i] >> np.uint64(32)) * np.uint64(partitions)) >> np.uint64(32))
        bounds[partition_of[i] + 1] += 1
    for b in range(partitions):
        bounds[b + 1] += bounds[b]
    at = bounds[:-1].copy()
    positions = np.empty(len(hashes), dtype=np.int64)
    for i in range(len(hashes)):
        positions[at[partition_of[i]]] = i
        at[partition_of[i]] += 1
    return positions, bounds
