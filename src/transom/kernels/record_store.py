"""Rows kept by slot, each of them in one piece, and rows of a batch beside them: gathered together, in any order.

As in a `RecordRing`, what is read of a row at random lies together. Slots are given out and taken back in any order, so
texts are appended to an arena in which the living ones are moved together when it is full and less than half of it is
alive. A row that is made of two (`core.delta.Halves`) keeps their names, and what it is without is not copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from transom.core.delta import MISSING, NAMELESS, Halves, Int64s
from transom.kernels.address import (
    address_of,
    copy_32_bytes,
    copy_byte,
    copy_double_word,
    copy_half,
    copy_int,
    copy_word,
    int_at,
    prefetch,
    store_int,
    store_word,
    word_at,
)
from transom.kernels.columns import (
    Array,
    Bytes,
    bitmap_of,
    reject_too_long,
    text_buffers,
    validity,
    values_in,
)
from transom.kernels.jit import inlined, jit
from transom.kernels.record_ring import LINE, OVERRUN, fetch_record, record_dtype
from transom.state.allocator import aligned_zeros
from transom.state.checks import need, within
from transom.state.slots import grown

BLOCK: Final = 256  # rows that are copied together, column by column
AHEAD: Final = 32  # rows of which the records are fetched before they are looked at one by one
WIDTH, SIDE, OFFSET, SOURCE, TO = range(5)  # columns of `copies`: where it is in a record, and in the batch
LENGTH, OFFSETS, DATA, SIZE, OUT_OFFSETS, OUT, OF_SIDE, ROOM_FOR = range(8)  # columns of `texts`
NOT_WANTED: Final = 0  # instead of an address
ROOM: Final = 1024  # bytes of text, where nothing is known


class RowsAt(NamedTuple):
    """Where records are, how far it is from one to the next, and where in one it says where its texts are, and the
    names of its halves. Where these texts are. Where the names of rows of the batch are, and how far it is from one row
    to the next, and from one side to the other."""

    records: int
    stride: int
    texts: int
    names: int
    arena: int
    names_beside: int
    next_name: int
    other_side: int


@dataclass
class RecordStore:
    """Of column n a record holds the value `c{n}`, or of a text its length `t{n}`; `texts` is where its texts begin.

    `v{n}` says whether there is a value, of those that are `nullable`: have ever had a NULL that is not missing with
    its half. `left` and `right` are the names of halves, and `sides` says of which each column is. Lengths are 0
    wherever nothing is alive.
    """

    records: Array
    nullable: Bytes
    sides: Bytes
    arena: Bytes = field(default_factory=lambda: np.zeros(OVERRUN, dtype=np.uint8))
    used: int = 0
    alive: int = 0

    def __post_init__(self) -> None:
        fields = self.records.dtype.fields
        assert fields is not None
        self.is_text = [f"t{number}" in fields for number in range(len(self.nullable))]
        named = [(f"{'t' if text else 'c'}{number}", text) for number, text in enumerate(self.is_text)]
        self.dtypes = [None if text else fields[name][0] for name, text in named]
        self.offsets = [fields[name][1] for name, _ in named]
        self.valid_offsets = [fields[f"v{number}"][1] for number in range(len(named))]
        self.text_numbers = [number for number, text in enumerate(self.is_text) if text]
        self.guess = [0.0 for _ in named]  # bytes of a text
        self._text_fields = np.array([self.offsets[number] for number in self.text_numbers], dtype=np.int64)
        self._text_offset = fields["texts"][1] if self.text_numbers else 0
        self._names_offset = fields["left"][1]

    def check(self) -> None:
        need(self.records.ndim == 1 and len(self.sides) == len(self.nullable))
        within(self.sides, 2)
        need(0 <= self.used <= len(self.arena) - OVERRUN)
        if not self.text_numbers:
            return
        lengths = np.stack([self.records[f"t{number}"] for number in self.text_numbers]).astype(np.int64)
        within(lengths, self.used + 1)
        size, at = lengths.sum(axis=0), self.records["texts"]
        there = size > 0
        need(bool((at[there] >= 0).all() and (at[there] + size[there] <= self.used).all()))
        need(self.alive == int(size.sum()))

    @staticmethod
    def of(types: Sequence[pa.DataType]) -> RecordStore:
        """An empty store for rows of these types."""
        dtype = record_dtype(types, [("left", np.dtype(np.int64)), ("right", np.dtype(np.int64))])
        return RecordStore(np.zeros(0, dtype=dtype), *np.zeros((2, len(types)), dtype=np.uint8))

    def compacted(self) -> RecordStore:
        """With halves that have no name: whoever is asked after a restart may give the rows other ones."""
        records = self.records.copy()
        for side in ("left", "right"):
            records[side][records[side] >= 0] = NAMELESS
        return RecordStore(records, self.nullable, self.sides, self.arena, self.used, self.alive)

    @property
    def capacity(self) -> int:
        return len(self.records)

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.nullable)

    def reserve(self, capacity: int) -> None:
        """Make room for slots below `capacity`."""
        if capacity <= self.capacity:
            return
        records = aligned_zeros(max(capacity, 2 * self.capacity, 64), self.records.dtype)
        records[: self.capacity] = self.records
        self.records = records

    def beside(self, columns: Sequence[pa.Array], halves: Halves | None = None) -> RowsBeside:
        """These rows and those of a batch; nothing may be written to the store as long as this is used."""
        if halves is not None and not np.array_equal(self.sides, halves.sides):
            if self.sides.any():
                halves = None  # then what is missing is NULL like anything else
            else:
                self.sides = halves.sides.copy()
        return RowsBeside(self, columns, halves)

    def make_nullable(self, number: int) -> None:
        if not self.nullable[number]:
            self.records[f"v{number}"] = 1
            self.nullable[number] = 1

    def write(self, slots: Int64s, batch: RowsBeside, rows: Int64s) -> None:
        """Put these rows of the batch into the slots, which hold nothing alive."""
        at = self._at(batch)
        copies = []
        for number in range(self.width):
            side = int(self.sides[number])
            if not self.is_text[number]:
                width = self.dtypes[number].itemsize  # type: ignore[union-attr]
                copies.append((width, side, self.offsets[number], batch.sources[number], 0))
            if self.nullable[number]:
                copies.append((1, side, self.valid_offsets[number], batch.valid_source(number), 0))
        lay_values(at, slots, rows, _table(copies, 5))
        if self.text_numbers:
            self._make_room(sum(batch.text_bytes(number) for number in self.text_numbers))
            at = self._at(batch)
            texts = [
                (self.offsets[n], batch.sources[n], batch.data[n], batch.sizes[n], 0, 0, int(self.sides[n]))
                for n in self.text_numbers
            ]
            behind = int(lay_texts(at, slots, rows, _table(texts, 7), self.used))
            self.alive += behind - self.used
            self.used = behind

    def gather(
        self, slots: Int64s, types: Sequence[pa.DataType], columns: Sequence[int] | None = None
    ) -> list[pa.Array]:
        """The rows in these slots as Arrow arrays, some columns of them or all; a slot may be asked for many times."""
        return RowsBeside(self, (), None).gather(~slots, types, columns)

    def free(self, slots: Int64s) -> None:
        """Forget the texts in these slots (numbers need no care)."""
        if self.text_numbers and len(slots):
            self.alive -= int(forget_texts(self._at(None), slots, self._text_fields))

    def _at(self, batch: RowsBeside | None) -> RowsAt:
        names = (_NAMELESS_AT, 0, 0) if batch is None else batch.names
        records, arena = address_of(self.records), address_of(self.arena)
        return RowsAt(records, self.records.itemsize, self._text_offset, self._names_offset, arena, *names)

    def _make_room(self, size: int) -> None:
        """So that `size` bytes fit behind `used`."""
        if self.used + size + OVERRUN <= len(self.arena):
            return
        enough = 2 * (self.alive + size) + OVERRUN <= len(self.arena)
        room = len(self.arena) if enough else 2 * (self.alive + size) + OVERRUN
        arena = aligned_zeros(room, np.uint8)
        self.used = int(move_texts(self._at(None), self.capacity, self._text_fields, address_of(arena)))
        self.arena = arena


class RowsBeside:
    """Rows of a store, each named by the complement of its slot, and rows of a batch, named by their numbers."""

    def __init__(self, store: RecordStore, columns: Sequence[pa.Array], halves: Halves | None) -> None:
        self.store = store
        self._held: list[Any] = [columns]  # while somebody reads there by address
        self.types = [column.type for column in columns]
        self._rows = len(columns[0]) if len(columns) else 0
        self.names = (_NAMELESS_AT, 0, 0)
        missed = (0, 0)
        if halves is not None and self._rows:
            names = np.ascontiguousarray(halves.names)
            self._held.append(names)
            self.names = (address_of(names), names.strides[1], names.strides[0])
            missed = (int(np.count_nonzero(names[0] == MISSING)), int(np.count_nonzero(names[1] == MISSING)))
        width = store.width
        self.sources, self.data = [_NOTHING_AT] * width, [_NOTHING_AT] * width
        self.sizes, self.valid = [0] * width, [0] * width
        self._text_bytes = [0] * width
        for number, column in enumerate(columns):
            if store.is_text[number]:
                offsets, data = text_buffers(column)
                self._held += [offsets, data]
                self.sources[number], self.data[number] = address_of(offsets), address_of(data)
                self.sizes[number], self._text_bytes[number] = len(data), int(offsets[-1] - offsets[0])
            else:
                values = values_in(column, _storage(store.dtypes[number]))
                self._held.append(values)
                self.sources[number] = address_of(values)
            if column.null_count > missed[store.sides[number]]:
                store.make_nullable(number)
                valid = validity(column)
                self._held.append(valid)
                self.valid[number] = address_of(valid)
        self._ones = 0

    def text_bytes(self, number: int) -> int:
        return self._text_bytes[number]

    def valid_source(self, number: int) -> int:
        """Where it says of the rows of the batch which have a value in this column."""
        if self.valid[number] or not self._rows:
            return self.valid[number]
        if not self._ones:
            ones = np.ones(self._rows, dtype=np.uint8)
            self._held.append(ones)
            self._ones = address_of(ones)
        return self._ones

    @property
    def at(self) -> RowsAt:
        return self.store._at(self)

    def gather(
        self, rows: Int64s, types: Sequence[pa.DataType], columns: Sequence[int] | None = None
    ) -> list[pa.Array]:
        """These rows as Arrow arrays, some columns of them or all; a row may be asked for many times."""
        store, count = self.store, len(rows)
        wanted = range(store.width) if columns is None else columns
        copies: list[tuple[int, int, int, int, int]] = []
        values: dict[int, Array] = {}
        valid: dict[int, Bytes] = {}
        for number in wanted:
            side = int(store.sides[number])
            dtype = store.dtypes[number]
            if dtype is None:
                values[number] = np.empty(count + 1, dtype=np.int32)
                values[number][0] = 0
            else:
                values[number] = np.empty(count, dtype=_storage(dtype))
                to = address_of(values[number])
                copies.append((dtype.itemsize, side, store.offsets[number], self.sources[number], to))
            if store.nullable[number]:
                valid[number] = np.zeros(count, dtype=np.uint8)
                to = address_of(valid[number])
                copies.append((1, side, store.valid_offsets[number], self.valid_source(number), to))
        sides = 1 + int(store.sides.any())
        present = np.empty((sides, count), dtype=np.uint8)
        offsets = {number: values[number] for number in wanted if store.is_text[number]}
        missed, texts = self._copied(rows, copies, present, offsets)
        shared = [bitmap_of(present[side]) if missed >> side & 1 else None for side in range(sides)]
        arrays = []
        for number, type_ in zip(wanted, types, strict=True):
            bitmap = bitmap_of(valid[number]) if number in valid else shared[store.sides[number]]
            data = values[number]
            if store.is_text[number]:
                buffers = [bitmap, pa.py_buffer(data), pa.py_buffer(texts[number])]
            elif pa.types.is_boolean(type_):
                buffers = [bitmap, pa.py_buffer(np.packbits(data, bitorder="little"))]
            else:
                buffers = [bitmap, pa.py_buffer(data)]
            arrays.append(pa.Array.from_buffers(type_, count, buffers))
        return arrays

    def _copied(
        self, rows: Int64s, copies: Sequence[tuple[int, ...]], present: Bytes, offsets: dict[int, Array]
    ) -> tuple[int, dict[int, Bytes]]:
        """Copy the values of the rows; gives the sides that some are without, and the bytes of the texts.

        How many bytes there will be nobody knows, so it is begun with room for as many as there were before.
        """
        store, count = self.store, len(rows)
        numbers = store.text_numbers
        outs = [
            np.empty(int(count * store.guess[n]) + ROOM + OVERRUN if n in offsets else 0, dtype=np.uint8)
            for n in numbers
        ]
        totals = np.zeros(len(numbers), dtype=np.int64)
        done = np.zeros(2, dtype=np.int64)
        at, table = self.at, _table(copies, 5)
        while done[0] < count:
            texts = _table(
                [
                    (
                        store.offsets[number],
                        self.sources[number],
                        self.data[number],
                        self.sizes[number],
                        address_of(offsets[number]) if number in offsets else 0,
                        address_of(out) if number in offsets else NOT_WANTED,
                        int(store.sides[number]),
                        len(out) - OVERRUN,
                    )
                    for number, out in zip(numbers, outs, strict=True)
                ],
                8,
            )
            gather_rows(at, rows, table, present, texts, totals, done)
            for i, needed in enumerate(texts[:, ROOM_FOR].tolist()):
                if numbers[i] in offsets and needed > len(outs[i]) - OVERRUN:
                    reject_too_long(needed)
                    outs[i] = grown(outs[i], needed + OVERRUN)
        bytes_of = {}
        for i, number in enumerate(numbers):
            if number in offsets:
                reject_too_long(int(totals[i]))
                bytes_of[number] = outs[i][: totals[i]]
                store.guess[number] = 1.05 * int(totals[i]) / max(count, 1)
        return int(done[1]), bytes_of


_NAMELESS: Final = np.full(2, NAMELESS, dtype=np.int64)
_NAMELESS_AT: Final = address_of(_NAMELESS)
_NOTHING: Final = np.zeros(16, dtype=np.int64)
_NOTHING_AT: Final = address_of(_NOTHING)
"""Where a loop may read that never uses what it reads there."""


def _storage(dtype: np.dtype[Any] | None) -> np.dtype[Any]:
    assert dtype is not None
    return _DECIMAL if dtype.itemsize == 16 else dtype


_DECIMAL: Final = np.dtype([("lo", np.uint64), ("hi", np.int64)])


def _table(rows: Sequence[tuple[int, ...]], columns: int) -> Int64s:
    return np.array(rows, dtype=np.int64).reshape(-1, columns)


@inlined
def name_of(at, row, side):  # type: ignore[no-untyped-def]
    """The name of a half of a row; without a branch, since nobody can foretell of which kind the next row is."""
    kept = at.records + ~row * at.stride + at.names + 8 * side
    beside = at.names_beside + row * at.next_name + side * at.other_side
    return word_at(kept if row < 0 else beside, 0)


@inlined
def fetch_kept(at, row):  # type: ignore[no-untyped-def]
    """Fetch the record of a row that is in the store; which rows are nobody can foretell, so for others it is the first
    one that is fetched."""
    fetch_record(at.records + (~row if row < 0 else 0) * at.stride, at.stride)


@jit
def gather_rows(at, rows, copies, present, texts, totals, done):  # type: ignore[no-untyped-def]
    """Copy the values and texts of these rows, from number `done[0]` on, into columns, but of halves they are without.

    `present[side, i]` becomes 1 where row i has that half, and `done[1]` has a bit for each side that some row is
    without. `texts` are all columns of texts, in the order in which they lie in the store; those that are not wanted
    are passed over. `totals` are the bytes so far; where some do not fit, it is written to `texts` how many would. So
    many as OVERRUN bytes are copied too far, where the next text comes.
    """
    sides = len(present)
    kept = np.empty((2, BLOCK), dtype=np.int64)  # rows of the store, by side: which of the block, ..
    kept_at = np.empty((2, BLOCK), dtype=np.int64)  # .. and where their records are
    others = np.empty((2, BLOCK), dtype=np.int64)  # rows of the batch: which of the block, ..
    numbers = np.empty((2, BLOCK), dtype=np.int64)  # .. and their numbers
    counts = np.zeros((2, 2), dtype=np.int64)
    text_at = np.empty(BLOCK, dtype=np.int64)
    lengths = np.empty(BLOCK, dtype=np.int64)
    sources = np.empty(BLOCK, dtype=np.int64)
    reached = np.empty(len(texts), dtype=np.int64)  # the totals before this block
    for i in range(done[0], min(done[0] + BLOCK, len(rows))):
        fetch_kept(at, rows[i])
    for begin in range(done[0], len(rows), BLOCK):
        count = min(BLOCK, len(rows) - begin)
        for side in range(sides):
            some, more = 0, 0
            for k in range(count):
                row = rows[begin + k]
                there = np.int64(name_of(at, row, side) != MISSING)
                present[side, begin + k] = there
                kept[side, some] = k
                kept_at[side, some] = at.records + ~row * at.stride
                others[side, more] = k
                numbers[side, more] = row
                is_kept = (row >> 63) & 1
                some += there & is_kept
                more += there & (1 - is_kept)
            counts[side, 0], counts[side, 1] = some, more
            done[1] |= np.int64(some + more < count) << side
        if len(texts):
            for side in range(sides):
                for j in range(counts[side, 0]):
                    text = at.arena + word_at(kept_at[side, j] + at.texts, 0)
                    text_at[kept[side, j]] = text
                    prefetch(text)
                    prefetch(text + LINE)
        for i in range(begin + count, min(begin + count + BLOCK, len(rows))):
            fetch_kept(at, rows[i])
        for c in range(len(copies)):
            side, width, offset, source = copies[c, SIDE], copies[c, WIDTH], copies[c, OFFSET], copies[c, SOURCE]
            some, more = counts[side, 0], counts[side, 1]
            to = copies[c, TO] + begin * width
            if width == 8:
                for j in range(some):
                    copy_word(to + 8 * kept[side, j], kept_at[side, j] + offset)
                for j in range(more):
                    copy_word(to + 8 * others[side, j], source + 8 * numbers[side, j])
            elif width == 1:
                for j in range(some):
                    copy_byte(to + kept[side, j], kept_at[side, j] + offset)
                for j in range(more):
                    copy_byte(to + others[side, j], source + numbers[side, j])
            elif width == 4:
                for j in range(some):
                    copy_int(to + 4 * kept[side, j], kept_at[side, j] + offset)
                for j in range(more):
                    copy_int(to + 4 * others[side, j], source + 4 * numbers[side, j])
            elif width == 2:
                for j in range(some):
                    copy_half(to + 2 * kept[side, j], kept_at[side, j] + offset)
                for j in range(more):
                    copy_half(to + 2 * others[side, j], source + 2 * numbers[side, j])
            else:
                for j in range(some):
                    copy_double_word(to + 16 * kept[side, j], kept_at[side, j] + offset)
                for j in range(more):
                    copy_double_word(to + 16 * others[side, j], source + 16 * numbers[side, j])
        for c in range(len(texts)):
            reached[c] = totals[c]
        for c in range(len(texts)):
            side, length, offsets, data = texts[c, OF_SIDE], texts[c, LENGTH], texts[c, OFFSETS], texts[c, DATA]
            if texts[c, OUT] == NOT_WANTED:
                for j in range(counts[side, 0]):
                    text_at[kept[side, j]] += int_at(kept_at[side, j] + length, 0)
                continue
            if counts[side, 0] + counts[side, 1] < count:
                for k in range(count):
                    lengths[k] = 0
                    sources[k] = at.arena
            for j in range(counts[side, 0]):
                k, left = kept[side, j], np.int64(int_at(kept_at[side, j] + length, 0))
                lengths[k] = left
                sources[k] = text_at[k]
                text_at[k] += left
            furthest = np.int64(0)
            for j in range(counts[side, 1]):
                k, row = others[side, j], numbers[side, j]
                at_text = np.int64(int_at(offsets, row))
                lengths[k] = int_at(offsets, row + 1) - at_text
                sources[k] = data + at_text
                furthest = max(furthest, int_at(offsets, row + 1))
            total, out, offset = totals[c], texts[c, OUT], texts[c, OUT_OFFSETS] + 4 * begin
            size = total
            for k in range(count):
                size += lengths[k]
            if size > texts[c, ROOM_FOR]:
                texts[c, ROOM_FOR] = size
                for before in range(c):
                    totals[before] = reached[before]
                done[0] = begin
                return
            if furthest + OVERRUN <= texts[c, SIZE]:  # it may be read behind all of these
                for k in range(count):
                    left = lengths[k]
                    copy_32_bytes(out + total, sources[k])
                    at_byte = 32
                    while at_byte < left:
                        copy_32_bytes(out + total + at_byte, sources[k] + at_byte)
                        at_byte += 32
                    total += left
                    store_int(offset + 4 * k + 4, np.int32(total))
            else:
                for k in range(count):
                    for at_byte in range(lengths[k]):
                        copy_byte(out + total + at_byte, sources[k] + at_byte)
                    total += lengths[k]
                    store_int(offset + 4 * k + 4, np.int32(total))
            totals[c] = total
    done[0] = len(rows)


@jit
def lay_values(at, slots, rows, copies):  # type: ignore[no-untyped-def]
    """Copy values of these rows of the batch into the records of the slots, with the names of their halves."""
    active = np.empty(BLOCK, dtype=np.int64)
    for begin in range(0, len(rows), BLOCK):
        count = min(BLOCK, len(rows) - begin)
        for k in range(count):
            fetch_record(at.records + slots[begin + k] * at.stride, at.stride)
        for side in range(2):
            some = 0
            for k in range(begin, begin + count):
                name = name_of(at, rows[k], side)
                store_word(at.records + slots[k] * at.stride + at.names + 8 * side, name)
                active[some] = k
                some += name != MISSING
            for c in range(len(copies)):
                if copies[c, SIDE] != side:
                    continue
                width, source = copies[c, WIDTH], copies[c, SOURCE]
                to = at.records + copies[c, OFFSET]
                if width == 8:
                    for j in range(some):
                        copy_word(to + slots[active[j]] * at.stride, source + 8 * rows[active[j]])
                elif width == 1:
                    for j in range(some):
                        copy_byte(to + slots[active[j]] * at.stride, source + rows[active[j]])
                elif width == 4:
                    for j in range(some):
                        copy_int(to + slots[active[j]] * at.stride, source + 4 * rows[active[j]])
                elif width == 2:
                    for j in range(some):
                        copy_half(to + slots[active[j]] * at.stride, source + 2 * rows[active[j]])
                else:
                    for j in range(some):
                        copy_double_word(to + slots[active[j]] * at.stride, source + 16 * rows[active[j]])


@jit
def lay_texts(at, slots, rows, texts, used):  # type: ignore[no-untyped-def]
    """Copy texts to where they are kept, those of a row side by side, and write into its record where that is; gives
    where the last one ends. Of a half that is missing no text is read."""
    for i in range(len(rows)):
        if i + AHEAD < len(rows):
            fetch_record(at.records + slots[i + AHEAD] * at.stride, at.stride)
        record = at.records + slots[i] * at.stride
        row = rows[i]
        store_word(record + at.texts, used)
        left_name, right_name = name_of(at, row, 0), name_of(at, row, 1)
        for c in range(len(texts)):
            missing = (left_name if texts[c, OF_SIDE] == 0 else right_name) == MISSING
            source = np.int64(int_at(texts[c, OFFSETS], row))
            left = np.int64(0) if missing else int_at(texts[c, OFFSETS], row + 1) - source
            to, source = at.arena + used, texts[c, DATA] + source
            last = texts[c, DATA] + texts[c, SIZE] - OVERRUN  # from where so much may be read
            done = np.int64(0)
            if source <= last:  # whether there is any nobody can foretell
                copy_32_bytes(to, source)
                done += 32
            while done < left and source + done <= last:
                copy_32_bytes(to + done, source + done)
                done += 32
            while done < left:
                copy_byte(to + done, source + done)
                done += 1
            store_int(record + texts[c, LENGTH], np.int32(left))
            used += left
    return used


@jit
def forget_texts(at, slots, fields):  # type: ignore[no-untyped-def]
    """The texts of these slots are gone; how many bytes they had."""
    size = np.int64(0)
    for i in range(len(slots)):
        if i + AHEAD < len(slots):
            fetch_record(at.records + slots[i + AHEAD] * at.stride, at.stride)
        record = at.records + slots[i] * at.stride
        for c in range(len(fields)):
            size += int_at(record + fields[c], 0)
            store_int(record + fields[c], np.int32(0))
    return size


@jit
def move_texts(at, capacity, fields, arena):  # type: ignore[no-untyped-def]
    """Copy the texts that are alive to another arena, one behind the other; how far it is filled."""
    used = np.int64(0)
    for slot in range(capacity):
        record = at.records + slot * at.stride
        left = np.int64(0)
        for c in range(len(fields)):
            left += int_at(record + fields[c], 0)
        if left == 0:
            continue
        source = at.arena + word_at(record + at.texts, 0)
        to = arena + used
        store_word(record + at.texts, used)
        used += left
        while left > 0:
            copy_32_bytes(to, source)
            to += 32
            source += 32
            left -= 32
    return used
