"""The keys of a join, as both kinds of sides under negative tuples take them. A NULL in a key matches nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transom.core.delta import Int64s
from transom.kernels.columns import validity
from transom.kernels.keys import Hashes, encode_keys, hash_words, single_word
from transom.kernels.negative.pair_match import Chains
from transom.kernels.row_store import RowStore, TextColumn


def key_nulls(keys: Sequence[pa.Array]) -> npt.NDArray[np.bool_] | None:
    """Which rows have a NULL in their key; None when none has.

    >>> key_nulls([pa.array([1, None, 2]), pa.array(["a", "b", None])]).tolist()
    [False, True, True]
    """
    nulls = [valid == 0 for valid in map(validity, keys) if valid is not None]
    return np.logical_or.reduce(nulls) if nulls else None


def key_hashes(keys: Sequence[pa.Array], rows: int) -> tuple[Hashes, pa.Array | None]:
    """Hashes of keys without NULLs, and their bytes where the hash does not tell; no keys at all is one for everything.

    >>> key_hashes([], 2)
    (array([0, 0], dtype=uint64), None)
    """
    if not keys:
        return np.zeros(rows, dtype=np.uint64), None
    if single_word(keys):
        return hash_words(keys)[0], None
    encoded = encode_keys(keys, rows)
    buffers = [None, pa.py_buffer(encoded.offsets.astype(np.int32)), pa.py_buffer(encoded.data)]
    return encoded.hashes, pa.Array.from_buffers(pa.binary(), rows, buffers)


def chains(rows: RowStore, keyed: bool, head: Int64s, entries: Int64s, mask: int, counting: bool) -> Chains:
    """Chains over rows whose last column holds the bytes of their keys if `keyed`."""
    key = rows.columns[-1] if keyed else TextColumn()
    assert isinstance(key, TextColumn)
    return Chains(head, entries, mask, counting, keyed, key.start, key.length, key.arena)
