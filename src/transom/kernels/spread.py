"""Rows spread over buckets by their keys.

Meaning: rows that agree on the keys get the same bucket, whatever the width of an integer and the sign of a zero.
Emits: the positions of the rows of each bucket, in order.
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


def spread(keys: Sequence[pa.Array], rows: int, buckets: int) -> list[Int64s]:
    """The positions of the rows of each bucket."""
    if buckets == 1 or not rows:
        return [np.arange(rows if b == 0 else 0, dtype=np.int64) for b in range(buckets)]
    positions, bounds = deal(key_hashes(keys, rows), buckets)
    return [positions[bounds[b] : bounds[b + 1]] for b in range(buckets)]


def key_hashes(keys: Sequence[pa.Array], rows: int) -> Hashes:
    if single_word(keys):
        hashes, null = hash_words(keys)
        hashes[null] = 0
        return hashes
    return encode_keys(keys, rows).hashes


@jit
def deal(hashes, buckets):  # type: ignore[no-untyped-def]
    """Positions ordered by bucket, and where each bucket begins. The high half of a hash tells: tables use the low."""
    bucket_of = np.empty(len(hashes), dtype=np.int32)
    bounds = np.zeros(buckets + 1, dtype=np.int64)
    for i in range(len(hashes)):
        bucket_of[i] = np.int32(((hashes[i] >> np.uint64(32)) * np.uint64(buckets)) >> np.uint64(32))
        bounds[bucket_of[i] + 1] += 1
    for b in range(buckets):
        bounds[b + 1] += bounds[b]
    at = bounds[:-1].copy()
    positions = np.empty(len(hashes), dtype=np.int64)
    for i in range(len(hashes)):
        positions[at[bucket_of[i]]] = i
        at[bucket_of[i]] += 1
    return positions, bounds
