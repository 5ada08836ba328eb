"""The order of rows as bytes: which comes first, which share a rank, and which belong to one partition.

The key of a row is what ORDER BY says (descending columns with their bits turned), then the columns that break ties,
then its partition. Keys of rows that are equal, and of these alone, are equal; here -0.0 comes just before 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s
from transom.kernels.copying import SLACK
from transom.kernels.jit import jit
from transom.kernels.keys import Keys, encode_keys, hash_bytes
from transom.plan.algebra import SortKey

_FIRST, _LAST = 0, 255  # what is written for NULL: a value begins with 1 or, turned, with 254


@dataclass(frozen=True)
class OrderedKeys:
    """The keys of a batch, how many bytes of each are of ORDER BY, and the keys of the partitions."""

    rows: Keys
    prefix: Int64s
    partitions: Keys


@dataclass(frozen=True)
class RowOrder:
    """
    >>> batch = pa.record_batch({"a": [1, None, 2, 2], "b": ["x", "y", "z", "w"]})
    >>> keys = RowOrder((), (SortKey(0, descending=True),)).keys(batch)
    >>> texts = [bytes(keys.rows.data[a:b]) for a, b in zip(keys.rows.offsets, keys.rows.offsets[1:])]
    >>> sorted(range(4), key=texts.__getitem__), [text[:n] for text, n in zip(texts, keys.prefix)][2:]
    ([3, 2, 0, 1], [b'\\xfe\\x7f\\xff\\xff\\xff\\xff\\xff\\xff\\xfd', b'\\xfe\\x7f\\xff\\xff\\xff\\xff\\xff\\xff\\xfd'])
    """

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]

    def keys(self, batch: pa.RecordBatch) -> OrderedKeys:
        count, columns = len(batch), batch.columns
        partitions = encode_keys([columns[i] for i in self.partition], count)
        order = [_part(encode_keys([columns[key.column]], count), key) for key in self.order]
        ties = [
            _part(encode_keys([column], count, signed_zeros=True), SortKey(i))
            for i, column in enumerate(columns)
            if self._breaks_ties(i, column.type)
        ]
        prefix = sum((np.diff(part.keys.offsets) for part in order), np.zeros(count, dtype=np.int64))
        whole = [
            *order,
            *ties,
            _KeyPart(Keys(partitions.hashes, np.zeros(count, np.bool_), partitions.data, partitions.offsets)),
        ]
        return OrderedKeys(_concatenated(whole, count), prefix, partitions)

    def _breaks_ties(self, index: int, type_: pa.DataType) -> bool:
        """What rows that tie agree on need not be looked at again, unless that is a zero without its sign."""
        agreed = {*self.partition, *(key.column for key in self.order)}
        return index not in agreed or bool(pa.types.is_floating(type_))


@dataclass(frozen=True)
class _KeyPart:
    """Bytes to be written one behind the other, with their bits turned by `turn`; `null` is written for NULL."""

    keys: Keys
    turn: int = 0
    null: int = _FIRST


def _part(keys: Keys, key: SortKey) -> _KeyPart:
    return _KeyPart(keys, 255 if key.descending else 0, _FIRST if key.nulls_first else _LAST)


def _concatenated(parts: Sequence[_KeyPart], rows: int) -> Keys:
    offsets = np.zeros(rows + 1, dtype=np.int64)
    for part in parts:
        offsets += part.keys.offsets
    data = np.empty(int(offsets[-1]) + SLACK, dtype=np.uint8)
    cursor = offsets[:-1].copy()
    for part in parts:
        keys = part.keys
        append_part(keys.data, keys.offsets, keys.null, np.uint8(part.turn), np.uint8(part.null), cursor, data)
    return Keys(hash_bytes(data, offsets), np.zeros(rows, dtype=np.bool_), data, offsets)


@jit
def append_part(data, offsets, null, turn, null_byte, cursor, out):  # type: ignore[no-untyped-def]
    for i in range(len(cursor)):
        at = cursor[i]
        for j in range(offsets[i], offsets[i + 1]):
            out[at] = data[j] ^ turn
            at += 1
        if null[i]:
            out[cursor[i]] = null_byte
        cursor[i] = at


@jit
def heads(data, offsets, rows):  # type: ignore[no-untyped-def]
    """The first eight bytes of these keys as words in the same order; what is missing counts as zeros."""
    out = np.empty(len(rows), dtype=np.int64)
    for i in range(len(rows)):
        word = np.uint64(0)
        start, end = offsets[rows[i]], offsets[rows[i] + 1]
        for j in range(start, start + 8):
            word = (word << np.uint64(8)) | (np.uint64(data[j]) if j < end else np.uint64(0))
        out[i] = np.int64(word ^ np.uint64(1 << 63))
    return out
