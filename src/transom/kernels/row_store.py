"""Rows kept in flat arrays, addressed by slot: written in bulk, gathered in bulk into Arrow columns.

Fixed-width columns are one array each, in `columns.storage_dtype`. Texts are a start and a length per slot into an
arena of bytes that is appended to; when it is full and less than half of it is alive, the living texts are moved
together. Who uses which slot is the caller's business (a ring, a `SlotPool`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s, no_int64s
from transom.kernels.address import address_of
from transom.kernels.columns import (
    Array,
    Bytes,
    bitmap_of,
    fixed_array,
    is_text,
    reject_too_long,
    storage_dtype,
    text_parts,
    validity,
    values_in,
)
from transom.kernels.copying import SLACK, copy_16_bytes
from transom.kernels.jit import jit
from transom.kernels.mould import Plain
from transom.state.checks import need, within
from transom.state.slots import grown


@dataclass
class FixedColumn:
    data: Array
    valid: Bytes | None = None

    def check_room(self, capacity: int) -> None:
        need(self.data.ndim == 1 and len(self.data) == capacity)
        _check_valid(self.valid, capacity)


@dataclass
class TextColumn:
    """`length[slot]` is 0 wherever nothing is alive, so the sum of lengths is what the arena must hold."""

    start: Int64s = field(default_factory=no_int64s)
    length: Int64s = field(default_factory=no_int64s)
    arena: Bytes = field(default_factory=lambda: np.empty(0, dtype=np.uint8))
    used: int = 0
    alive: int = 0
    valid: Bytes | None = None

    def check_room(self, capacity: int) -> None:
        """Texts lie in the part of the arena that is used, behind which there is room to read on a little."""
        need(len(self.start) == len(self.length) == capacity)
        _check_valid(self.valid, capacity)
        need(0 <= self.used <= max(0, len(self.arena) - SLACK))
        within(self.length, self.used + 1)
        within(self.start, 1 << 62)
        there = self.length > 0
        need(bool((self.start[there] + self.length[there] <= self.used).all()))
        need(self.alive == int(self.length.sum()))


def _check_valid(valid: Bytes | None, capacity: int) -> None:
    need(valid is None or (valid.dtype == np.uint8 and valid.shape == (capacity,)))


@dataclass
class RowStore:
    capacity: int
    columns: list[FixedColumn | TextColumn]

    def check(self) -> None:
        for column in self.columns:
            column.check_room(self.capacity)

    @staticmethod
    def of(types: Sequence[pa.DataType]) -> RowStore:
        """An empty store for columns of these types."""
        return RowStore(0, [_column(type_) for type_ in types])

    def reserve(self, capacity: int) -> None:
        """Make room for slots below `capacity`."""
        if capacity <= self.capacity:
            return
        size = max(capacity, 2 * self.capacity, 64)
        for column in self.columns:
            if isinstance(column, FixedColumn):
                column.data = _enlarged(column.data, size)
            else:
                column.start = _enlarged(column.start, size)
                column.length = _enlarged(column.length, size)
            if column.valid is not None:
                column.valid = _enlarged(column.valid, size)
        self.capacity = size

    def write(self, slots: Int64s | slice, arrays: Sequence[pa.Array]) -> None:
        """Put row i of the arrays into slots[i]; the slots hold nothing alive."""
        if not isinstance(slots, slice) and len(slots) == 1:
            slots = slice(slots[0], slots[0] + 1)  # as good, and much faster
        for column, array in zip(self.columns, arrays, strict=True):
            valid = validity(array)
            if valid is not None and column.valid is None:
                column.valid = np.ones(self.capacity, dtype=np.uint8)
            if column.valid is not None:
                column.valid[slots] = 1 if valid is None else valid
            if isinstance(column, FixedColumn):
                column.data[slots] = values_in(array, column.data.dtype)
            else:
                _append_texts(column, slots, array)

    def gather(
        self, slots: Int64s, types: Sequence[pa.DataType], columns: Sequence[int] | None = None
    ) -> list[pa.Array]:
        """The rows in these slots as Arrow arrays, some columns of them or all; a slot may be asked for many times."""
        wanted = self.columns if columns is None else [self.columns[number] for number in columns]
        return [_gather(column, slots, type_) for column, type_ in zip(wanted, types, strict=True)]

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.columns)

    def kept_in(self) -> list[Any]:
        """What is another object when columns are elsewhere, or have had their first NULL."""
        return [of for column in self.columns for of in (getattr(column, "data", None), column.valid)]

    def plain(self, number: int) -> Plain | None:
        """Where the values of a column are, if it has had no NULL and is neither text nor boolean (bits in Arrow)."""
        column = self.columns[number]
        if not isinstance(column, FixedColumn) or column.valid is not None or column.data.dtype == np.uint8:
            return None
        return Plain(address_of(column.data), column.data.itemsize, column.data.itemsize)

    def free(self, slots: Int64s | slice) -> None:
        """Forget the texts in these slots (numbers need no care)."""
        for column in self.columns:
            if isinstance(column, TextColumn):
                column.alive -= int(column.length[slots].sum())
                column.length[slots] = 0

    def picked(self, slots: Int64s, capacity: int) -> RowStore:
        """A copy with the rows of these slots in the first places, texts side by side; the rest is left behind."""
        new = np.arange(len(slots), dtype=np.int64)
        columns: list[FixedColumn | TextColumn] = []
        for column in self.columns:
            valid = None if column.valid is None else _laid(column.valid, slots, new, capacity)
            if isinstance(column, FixedColumn):
                columns.append(FixedColumn(_laid(column.data, slots, new, capacity), valid))
                continue
            length = _laid(column.length, slots, new, capacity)
            start = np.cumsum(length) - length
            size = int(length.sum())
            arena = np.zeros(size + SLACK, dtype=np.uint8)
            copy_texts(column.arena, column.start[slots], length[new], start[new], arena)
            columns.append(TextColumn(start, length, arena, size, size, valid))
        return RowStore(capacity, columns)

    def first(self, capacity: int) -> RowStore:
        """The store without the room for more: all rows are in slots below `capacity`. Nothing is copied."""
        columns: list[FixedColumn | TextColumn] = []
        for column in self.columns:
            valid = None if column.valid is None else column.valid[:capacity]
            if isinstance(column, FixedColumn):
                columns.append(FixedColumn(column.data[:capacity], valid))
            else:
                arena = column.arena[: column.used + SLACK]
                start, length = column.start[:capacity], column.length[:capacity]
                columns.append(TextColumn(start, length, arena, column.used, column.alive, valid))
        return RowStore(capacity, columns)

    def bytes_of(self, rows: int) -> int:
        """About how much so many rows take."""
        fixed = sum(column.data.itemsize for column in self.columns if isinstance(column, FixedColumn))
        texts = [column for column in self.columns if isinstance(column, TextColumn)]
        return rows * (fixed + 16 * len(texts)) + sum(column.alive for column in texts)

    def move(self, old: Int64s, new: Int64s, capacity: int) -> None:
        """Lay the rows of the slots `old` into the slots `new` of arrays with `capacity` places; the rest is lost."""
        for column in self.columns:
            if isinstance(column, FixedColumn):
                column.data = _laid(column.data, old, new, capacity)
            else:
                column.start = _laid(column.start, old, new, capacity)
                column.length = _laid(column.length, old, new, capacity)
            if column.valid is not None:
                column.valid = _laid(column.valid, old, new, capacity)
        self.capacity = capacity


def _column(type_: pa.DataType) -> FixedColumn | TextColumn:
    return TextColumn() if is_text(type_) else FixedColumn(np.zeros(0, dtype=storage_dtype(type_)))


def _enlarged(array: Array, size: int) -> Array:
    bigger = np.zeros(size, dtype=array.dtype)
    bigger[: len(array)] = array
    return bigger


def _laid(array: Array, old: Int64s, new: Int64s, capacity: int) -> Array:
    fresh = np.zeros(capacity, dtype=array.dtype)
    fresh[new] = array[old]
    return fresh


def _append_texts(column: TextColumn, slots: Int64s | slice, array: pa.Array) -> None:
    starts, data = text_parts(array)
    size = int(starts[-1] - starts[0])
    if column.used + size + SLACK > len(column.arena):
        _make_room(column, size + SLACK)
    column.arena[column.used : column.used + size] = data[starts[0] : starts[0] + size]
    column.start[slots] = starts[:-1] + (column.used - starts[0])
    column.length[slots] = starts[1:] - starts[:-1]
    column.used += size
    column.alive += size


def _make_room(column: TextColumn, size: int) -> None:
    if 2 * (column.alive + size) <= len(column.arena):
        slots = np.flatnonzero(column.length)
        lengths = column.length[slots]
        ends = np.cumsum(lengths)
        packed = np.empty(len(column.arena), dtype=np.uint8)
        copy_texts(column.arena, column.start[slots], lengths, ends - lengths, packed)
        column.start[slots] = ends - lengths
        column.arena = packed
        column.used = column.alive
    else:
        column.arena = grown(column.arena, column.used + size)


def _gather(column: FixedColumn | TextColumn, slots: Int64s, type_: pa.DataType) -> pa.Array:
    valid: Any = None if column.valid is None else column.valid.take(slots)
    if isinstance(column, FixedColumn):
        return fixed_array(type_, column.data.take(slots), valid)
    offsets = np.empty(len(slots) + 1, dtype=np.int32)
    total = int(text_offsets(column.length, slots, offsets))
    reject_too_long(total)
    out = np.empty(total + SLACK, dtype=np.uint8)
    gather_texts(column.arena, column.start, slots, offsets, out)
    return pa.Array.from_buffers(
        type_, len(slots), [bitmap_of(valid), pa.py_buffer(offsets), pa.py_buffer(out[:total])]
    )


@jit
def copy_texts(arena, start, length, to, out):  # type: ignore[no-untyped-def]
    for i in range(len(start)):
        done = 0
        while done < length[i]:  # as `copy_run`: to hand it the arrays costs more than to copy
            copy_16_bytes(out, to[i] + done, arena, start[i] + done)
            done += 16


@jit
def text_offsets(length, slots, offsets):  # type: ignore[no-untyped-def]
    """Where the texts of these slots begin, one behind the other; gives where the last one ends."""
    at = np.int64(0)
    for i in range(len(slots)):
        offsets[i] = at
        at += length[slots[i]]
    offsets[len(slots)] = at
    return at


@jit
def gather_texts(arena, start, slots, offsets, out):  # type: ignore[no-untyped-def]
    """Copy the texts of these slots to their offsets."""
    for i in range(len(slots)):
        to = np.int64(offsets[i])
        source = start[slots[i]]
        count = offsets[i + 1] - to
        done = 0
        while done < count:
            copy_16_bytes(out, to + done, arena, source + done)
            done += 16
