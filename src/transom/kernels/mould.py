"""Record batches of few rows and many columns, made at one blow out of the row stores that the rows are kept in.

To make a batch column by column takes microseconds for each. Batches of so many rows and these columns differ in their
values alone, though: in Arrow's message format everything else is the same bytes. So such a message is kept as a
**mould**; the values are poured into a copy of it by one compiled call, and Arrow reads it without copying.
Columns that are not plain (texts, booleans, what has had a NULL) are gathered one by one and put in between.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import is_
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s
from transom.kernels.address import byte_at
from transom.kernels.columns import fixed_array, storage_dtype
from transom.kernels.jit import jit

FEW: Final = 32
"""Rows up to which a mould pays."""

DATA, WIDTH, STRIDE, STORE, MASK = range(5)  # columns of `addresses`


class Plain(NamedTuple):
    """Where the values of a column are: the first one, how many bytes each has, and how far it is to the next."""

    address: int
    width: int
    stride: int


class Store(Protocol):
    """Where rows are kept by slot, in columns or side by side."""

    @property
    def width(self) -> int: ...

    def kept_in(self) -> list[Any]: ...

    def plain(self, number: int) -> Plain | None: ...

    def gather(
        self, slots: Int64s, types: Sequence[pa.DataType], columns: Sequence[int] | None = None
    ) -> list[pa.Array]: ...


class ColumnAddresses:
    """Where the columns of some row stores are. No part of any state: it is made anew for one that was read back.

    `refresh` is called after rows were written to a store, which is when its arrays are replaced. The arrays are kept
    here as well, so an address never leads to memory that is gone.
    """

    def __init__(self, stores: Sequence[Store], masks: Sequence[int]) -> None:
        self.stores = stores
        self._first = [0, *np.cumsum([store.width for store in stores], dtype=np.int64).tolist()]
        self._arrays: list[list[Any]] = [[] for _ in stores]
        self.addresses = np.zeros((self._first[-1], 5), dtype=np.int64)
        self.masks = list(masks)
        self.plain = 0  # a bit for each column that is
        for number, mask in enumerate(masks):
            self.refresh(number, mask)

    def refresh(self, number: int, mask: int) -> None:
        """A store may have changed; rows of it are in the slots `position & mask`."""
        store = self.stores[number]
        arrays = store.kept_in()
        before = self._arrays[number]
        same = mask == self.masks[number] and len(before) == len(arrays)
        if same and all(map(is_, arrays, before)):
            return
        self._arrays[number] = arrays
        self.masks[number] = mask
        for column in range(store.width):
            at, plain = self._first[number] + column, store.plain(column)
            if plain is not None:
                self.addresses[at] = *plain, number, mask
                self.plain |= 1 << at
            else:
                self.plain &= ~(1 << at)

    def gather(self, at: int, members: Int64s, type_: pa.DataType) -> pa.Array:
        """Column number `at` of these rows, plain or not."""
        number = bisect_right(self._first, at) - 1
        slots = np.ascontiguousarray(members[:, number]) & self.masks[number]
        return self.stores[number].gather(slots, [type_], [at - self._first[number]])[0]


class Mould:
    """The mould for batches of `rows` rows in these columns, all of fixed width and without NULLs."""

    def __init__(self, schema: pa.Schema, rows: int) -> None:
        empty = [fixed_array(type_, np.zeros(rows, dtype=storage_dtype(type_)), None) for type_ in schema.types]
        message = pa.RecordBatch.from_arrays(empty, schema=schema).serialize()
        self._bytes = np.frombuffer(message, dtype=np.uint8)
        self._schema = schema
        columns = pa.ipc.read_record_batch(message, schema).columns
        self._starts = np.array([column.buffers()[1].address - message.address for column in columns], dtype=np.int64)

    def batch(self, addresses: Int64s, which: Int64s, members: Int64s) -> pa.RecordBatch:
        """`members[row, store]` is the position of a row; `which` of the places the columns come from."""
        message = self._bytes.copy()
        pour(addresses, which, members, self._starts, message)
        return pa.ipc.read_record_batch(pa.py_buffer(message), self._schema)


class Moulds:
    """The moulds for batches of some columns, each made when it is first needed.

    `picks` are the columns of all stores side by side that make the schema.
    """

    def __init__(self, schema: pa.Schema, picks: Sequence[int]) -> None:
        self._schema = schema
        self._picks = picks
        self._moulds: dict[tuple[int, int], tuple[Mould | None, Int64s, list[int]]] = {}

    def batch(self, addresses: ColumnAddresses, members: Int64s) -> pa.RecordBatch | None:
        """The columns of these rows; None where a mould does not pay."""
        rows = len(members)
        if rows > FEW:
            return None
        made = self._moulds.get((rows, addresses.plain))
        if made is None:
            made = self._moulds[rows, addresses.plain] = self._made(rows, addresses.plain)
        mould, which, others = made
        if mould is None:
            return None
        batch = mould.batch(addresses.addresses, which, members)
        for n in others:
            field = self._schema.field(n)
            batch = batch.add_column(n, field, addresses.gather(self._picks[n], members, field.type))
        return batch

    def _made(self, rows: int, plain: int) -> tuple[Mould | None, Int64s, list[int]]:
        """The mould, which places are poured into it, and the columns that are put in between."""
        poured = [n for n, at in enumerate(self._picks) if plain >> at & 1]
        others = [n for n, at in enumerate(self._picks) if not plain >> at & 1]
        which = np.array([self._picks[n] for n in poured], dtype=np.int64)
        if len(poured) <= len(others):
            return None, which, others
        return Mould(pa.schema([self._schema.field(n) for n in poured]), rows), which, others


@jit
def pour(addresses, which, members, starts, out):  # type: ignore[no-untyped-def]
    """The values of the members, column by column, to where the columns start."""
    for column in range(len(which)):
        data = addresses[which[column], DATA]
        width = addresses[which[column], WIDTH]
        stride = addresses[which[column], STRIDE]
        store = addresses[which[column], STORE]
        mask = addresses[which[column], MASK]
        to = starts[column]
        for row in range(len(members)):
            at = data + (members[row, store] & mask) * stride
            for byte in range(width):
                out[to + byte] = byte_at(at, byte)
            to += width
