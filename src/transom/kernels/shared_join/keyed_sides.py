"""Both sides of a shared join on a key whose work is put in order: who of the other side has the key of a row.

It is made of the rows that are kept, so none of it is saved.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.delta import Int64s
from transom.kernels import scalar
from transom.kernels.keys import Hashes, encode_keys, hash_words, single_word
from transom.kernels.shared_join.arrived import ArrivedRows
from transom.kernels.shared_join.join import SharedJoinKernel
from transom.kernels.shared_join.key_order import KeyOrder, KeyRanges
from transom.state.fifo import Fifo


class KeyedSides:
    def __init__(self, kernel: SharedJoinKernel, sides: Sequence[ArrivedRows]) -> None:
        self._kernel = kernel
        self._sides = sides
        self._keys = (kernel.left_keys, kernel.right_keys)
        self._orders = [KeyOrder() for _ in sides]
        self._hashes = [Fifo.of(1) for _ in sides]
        """Of the rows that are kept; what NULL has for one is never looked at."""
        self._nulls = [Fifo.of(1) for _ in sides]
        for number, side in enumerate(sides):
            if len(side):
                self.append(number, self._rows(number, np.arange(side.first, side.arrived)), side.first)

    def append(self, number: int, rows: pa.RecordBatch, first: int) -> None:
        """Rows of a side that come now, from this number on."""
        if not rows.num_rows:
            return
        hashes, null = self._hashed(number, rows)
        self._orders[number].append(hashes, null, first)
        self._hashes[number].append(hashes.view(np.int64))
        self._nulls[number].append(null.astype(np.int64))

    def forget(self) -> None:
        """What the sides have forgotten."""
        for side, order, *columns in zip(self._sides, self._orders, self._hashes, self._nulls, strict=True):
            for column in columns:
                column.drop(len(column) - len(side))
            order.drop_until(side.first)

    def ranges(self, number: int, first: int, begin: Int64s, end: Int64s) -> KeyRanges:
        """Of the other side, for rows of this one from a number on, those of their keys in these ranges of numbers."""
        at = first - self._sides[number].first
        rows = slice(at, at + len(begin))
        null = self._nulls[number].column(0)[rows] != 0
        hashes = self._hashes[number].column(0)[rows].view(np.uint64)
        return self._orders[1 - number].ranges(hashes, begin, np.where(null, begin, end))

    def equal(self, left: Int64s, right: Int64s) -> tuple[Int64s, Int64s]:
        """Those pairs whose keys are equal, of pairs whose keys have equal hashes."""
        if not self._kernel.keyed or not len(left):
            return left, right
        bytes_of = [self._bytes(number, numbers) for number, numbers in enumerate((left, right))]
        kept = pc.equal(*bytes_of).to_numpy(zero_copy_only=False)
        return (left, right) if kept.all() else (left[kept], right[kept])

    def _rows(self, number: int, numbers: Int64s) -> pa.RecordBatch:
        """Rows of a side as they came."""
        width, schema = self._kernel.left_width, self._kernel.schema
        fields = list(schema)[:width] if number == 0 else list(schema)[width:]
        arrays = self._sides[number].gather(numbers, range(len(fields)), [field.type for field in fields])
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _hashed(self, number: int, rows: pa.RecordBatch) -> tuple[Hashes, npt.NDArray[np.bool_]]:
        keys = [scalar.evaluate(key, rows) for key in self._keys[number]]
        if single_word(keys):
            return hash_words(keys)
        encoded = encode_keys(keys, rows.num_rows)
        return encoded.hashes, encoded.null

    def _bytes(self, number: int, numbers: Int64s) -> pa.Array:
        rows = self._rows(number, numbers)
        encoded = encode_keys([scalar.evaluate(key, rows) for key in self._keys[number]], len(numbers))
        buffers = [None, pa.py_buffer(encoded.offsets.astype(np.int64)), pa.py_buffer(encoded.data)]
        return pa.Array.from_buffers(pa.large_binary(), len(numbers), buffers)
