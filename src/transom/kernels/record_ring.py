"""Rows kept in a ring, each of them in one piece: a record of fixed width, and its texts side by side.

A row that is gathered again is two or three cache lines this way, where in columns it is one for every column, and to
wait for those is what a join of large windows does most of the time. So what is read of a row at random lies together,
and the lines of the next rows are fetched while those at hand are copied.

Texts are in an arena of bytes, in the order of the rows. It is a ring as well: what is behind the newest row and before
the oldest is free, so nothing is ever moved but to grow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s
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
    fixed_array,
    is_text,
    reject_too_long,
    storage_dtype,
    text_array,
    text_buffers,
    validity,
    values_in,
)
from transom.kernels.jit import inlined, jit
from transom.kernels.mould import Plain
from transom.state.allocator import aligned_zeros
from transom.state.checks import need
from transom.state.slots import grown

OVERRUN: Final = 32
"""Bytes behind a text that may be read, and written, though it has ended."""

BLOCK: Final = 256  # rows whose lines are fetched together
LINE: Final = 64
MANY: Final = 1 << 16  # rows that are gathered at once to be written elsewhere

_OFFSETS: Final = np.dtype(np.int32)
_BYTES: Final = np.dtype(np.uint8)
ROOM: Final = 1024  # bytes of text, where nothing is known
NOT_WANTED: Final = 0  # instead of an address


class RecordsAt(NamedTuple):
    """Where records are, how far it is from one to the next, where in one it says where its texts are, and where these
    are."""

    records: int
    stride: int
    texts: int
    arena: int


@dataclass(frozen=True)
class _Column:
    """Where a column is in a record; of a text its length is there."""

    offset: int
    valid: int
    dtype: np.dtype[Any] | None  # None: a text

    @property
    def width(self) -> int:
        return 4 if self.dtype is None else self.dtype.itemsize

    @property
    def is_boolean(self) -> bool:
        return self.dtype == np.uint8


class _Room:
    """Memory for some arrays at once: to ask for each and for its address takes longer than to fill a short one."""

    def __init__(self, size: int, arrays: int) -> None:
        self._bytes = np.empty(size + 2 * arrays * LINE, dtype=np.uint8)
        self._address = address_of(self._bytes)
        self._used = 0

    def take(self, count: int, dtype: np.dtype[Any]) -> tuple[Array, int]:
        """An array of so many, each in cache lines of its own, and its address."""
        first, size = self._used, count * dtype.itemsize
        self._used = first + (size + LINE - 1) // LINE * LINE
        return self._bytes[first : first + size].view(dtype), self._address + first


@dataclass
class RecordRing:
    """Of column n a record holds the value `c{n}`, or of a text its length `t{n}`; `texts` is where its texts begin.

    `v{n}` says whether there is a value, of those that are `nullable`: have ever had a NULL. The texts of the oldest
    row begin at `first`, and `used` is behind those of the newest.
    """

    records: Array
    nullable: Bytes
    arena: Bytes = field(default_factory=lambda: np.zeros(OVERRUN, dtype=np.uint8))
    first: int = 0
    used: int = 0

    def __post_init__(self) -> None:
        fields = self.records.dtype.fields
        assert fields is not None
        columns = []
        for number in range(len(self.nullable)):
            is_a_text = f"t{number}" in fields
            dtype, offset = fields[f"t{number}" if is_a_text else f"c{number}"][:2]
            columns.append(_Column(offset, fields[f"v{number}"][1], None if is_a_text else dtype))
        self._columns = columns
        self._texts = [number for number, column in enumerate(columns) if column.dtype is None]
        self._text_offset = fields["texts"][1] if self._texts else 0
        self._guess = [0.0 for _ in self._texts]  # bytes of a text

    def check(self) -> None:
        need(len(self.arena) >= OVERRUN and 0 <= self.first <= self._room and 0 <= self.used <= self._room)

    def check_rows(self, slots: Int64s) -> None:
        """The texts of these rows lie in the arena."""
        if not self._texts:
            return
        rows = self.records[slots]
        at = rows["texts"].copy()
        need(bool((at >= 0).all()))
        for number in self._texts:
            need(bool((rows[f"t{number}"] >= 0).all()))
            at += rows[f"t{number}"]
        need(bool((at <= self._room).all()))

    @staticmethod
    def of(types: Sequence[pa.DataType]) -> RecordRing:
        """An empty ring for rows of these types."""
        return RecordRing(np.zeros(0, dtype=record_dtype(types)), np.zeros(len(types), dtype=np.uint8))

    @property
    def capacity(self) -> int:
        return len(self.records)

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.nullable)

    @property
    def _room(self) -> int:
        return len(self.arena) - OVERRUN

    @property
    def _text_bytes(self) -> int:
        """How many bytes of the arena lie between the oldest text and the newest."""
        return self.used - self.first + (self._room if self.used < self.first else 0)

    def write(self, first: int, arrays: Sequence[pa.Array]) -> None:
        """Put the rows, which are newer than all others, into the slots from `first` on."""
        rows = len(arrays[0]) if arrays else 0
        if not rows:
            return
        copies: list[tuple[Array, int]] = []
        for number, (column, array) in enumerate(zip(self._columns, arrays, strict=True)):
            valid = validity(array)
            if valid is not None and not self.nullable[number]:
                self.records[f"v{number}"] = 1
                self.nullable = self.nullable.copy()  # who knows the old one sees that it is another
                self.nullable[number] = 1
            if self.nullable[number]:
                copies.append((np.ones(rows, dtype=np.uint8) if valid is None else valid, column.valid))
            if column.dtype is not None:
                copies.append((values_in(array, column.dtype), column.offset))
        stride = self.records.itemsize
        to = address_of(self.records) + first * stride
        if copies:
            sources = np.array([(values.itemsize, offset, address_of(values)) for values, offset in copies])
            lay_values(sources, rows, to, stride)
        if self._texts:
            self._append_texts(to, stride, [arrays[number] for number in self._texts])

    def _append_texts(self, to: int, stride: int, arrays: Sequence[pa.Array]) -> None:
        sources = [text_buffers(array) for array in arrays]
        size = sum(int(offsets[-1] - offsets[0]) for offsets, _ in sources)
        self._make_room(size)
        addresses = np.array([(address_of(offsets), address_of(data), len(data)) for offsets, data in sources])
        fields = np.array([self._columns[number].offset for number in self._texts])
        lay_texts(addresses, len(arrays[0]), to, stride, self._text_offset, fields, address_of(self.arena), self.used)
        self.used += size

    def _make_room(self, size: int) -> None:
        """Make the arena such that `size` bytes fit behind `used`."""
        if self.used >= self.first:
            if self.used + size <= self._room:
                return
            if size + OVERRUN <= self.first:
                self.used = 0
                return
        elif self.used + size + OVERRUN <= self.first:
            return
        alive = self._text_bytes
        self.arena = self._unrolled(self.records, 2 * (alive + size))
        self.first, self.used = 0, alive

    def _unrolled(self, records: Array, room: int) -> Bytes:
        """The texts from the oldest to the newest in a new arena; the records learn where theirs are."""
        arena = aligned_zeros(room + OVERRUN, np.uint8)
        if not self._texts:
            return arena
        behind = self._room if self.used < self.first else self.used
        before = behind - self.first
        arena[:before] = self.arena[self.first : behind]
        if self.used < self.first:
            arena[before : before + self.used] = self.arena[: self.used]
        texts = records["texts"]
        texts += np.where(texts < self.first, before, -self.first)
        return arena

    def release(self, oldest: int | None) -> None:
        """All rows that are older than the one in this slot are gone; None: all of them."""
        if not self._texts:
            return
        if oldest is None:
            self.first = self.used = 0
        else:
            self.first = int(self.records["texts"][oldest])

    def gather(
        self,
        slots: Int64s,
        types: Sequence[pa.DataType],
        columns: Sequence[int] | None = None,
        before: int = 0,
        behind: int = 0,
    ) -> list[pa.Array]:
        """The rows in these slots as Arrow arrays, some columns of them or all; a slot may be asked for many times.

        So many rows of NULLs are `before` and `behind` them.
        """
        rows = before + len(slots) + behind
        wanted = range(self.width) if columns is None else columns
        values: dict[int, Array] = {}
        valid: dict[int, Bytes] = {}
        copies: list[tuple[int, int, int]] = []
        offsets: dict[int, int] = {}
        room = _Room(sum(self._columns[n].width + 1 for n in wanted) * rows, 2 * len(wanted))
        for number in dict.fromkeys(wanted):
            column = self._columns[number]
            if column.dtype is not None:
                values[number], address = room.take(rows, column.dtype)
                copies.append((column.width, column.offset, address + before * column.width))
                values[number][:before] = values[number][rows - behind :] = np.zeros((), column.dtype)
            else:
                values[number], address = room.take(rows + 1, _OFFSETS)
                offsets[number] = address + before * _OFFSETS.itemsize
                values[number][: before + 1] = 0
            if self.nullable[number]:
                valid[number], address = room.take(rows, _BYTES)
                copies.append((1, column.valid, address + before))
                valid[number][:before] = valid[number][rows - behind :] = 0
        texts = self._copied(slots, copies, offsets)
        others = _bits(before, len(slots), behind) if before or behind else None
        arrays = []
        for number, type_ in zip(wanted, types, strict=True):
            bitmap = bitmap_of(valid[number]) if number in valid else others
            of_column = values[number]
            if self._columns[number].dtype is None:
                of_column[rows - behind + 1 :] = of_column[rows - behind]
                buffers = [bitmap, pa.py_buffer(of_column), pa.py_buffer(texts[number])]
            else:
                if self._columns[number].is_boolean:
                    of_column = np.packbits(of_column, bitorder="little")
                buffers = [bitmap, pa.py_buffer(of_column)]
            arrays.append(pa.Array.from_buffers(type_, rows, buffers))
        return arrays

    def _copied(
        self, slots: Int64s, copies: Sequence[tuple[int, int, int]], offsets: Mapping[int, int]
    ) -> dict[int, Bytes]:
        """Copy the values of the rows; gives the bytes of the texts whose `offsets` are wanted at these addresses.

        How many bytes there will be nobody knows, so it is begun with room for as many as there were before.
        """
        rows, done = len(slots), 0
        wanted = [number in offsets for number in self._texts]
        read = len(wanted) - wanted[::-1].index(True) if any(wanted) else 0
        outs = [np.empty(int(rows * self._guess[i] * wanted[i]) + ROOM, dtype=np.uint8) for i in range(read)]
        totals = np.zeros(read, dtype=np.int64)
        where = RecordsAt(address_of(self.records), self.records.itemsize, self._text_offset, address_of(self.arena))
        while done < rows:
            texts = _table(
                [
                    (
                        self._columns[number].offset,
                        offsets.get(number, NOT_WANTED),
                        address_of(out),
                        len(out) - OVERRUN,
                    )
                    for number, out in zip(self._texts, outs, strict=False)
                ],
                4,
            )
            done = gather_records(where, slots, done, _table(copies, 3), texts, totals)
            for i, needed in enumerate(texts[:, 3].tolist()):
                if needed > len(outs[i]) - OVERRUN:
                    reject_too_long(needed)
                    outs[i] = grown(outs[i], needed + OVERRUN)
        bytes_of = {}
        for i, number in enumerate(self._texts[:read]):
            if wanted[i]:
                reject_too_long(int(totals[i]))
                bytes_of[number] = outs[i][: totals[i]]
                self._guess[i] = 1.05 * int(totals[i]) / max(rows, 1)
        return bytes_of

    def kept_in(self) -> list[Any]:
        """What is another object when columns are elsewhere, or have had their first NULL."""
        return [self.records, self.nullable]

    def plain(self, number: int) -> Plain | None:
        """Where the values of a column are that is no text and no boolean and has had no NULL."""
        column = self._columns[number]
        if column.dtype is None or column.is_boolean or self.nullable[number]:
            return None
        return Plain(address_of(self.records) + column.offset, column.dtype.itemsize, self.records.itemsize)

    def picked(self, slots: Int64s, capacity: int) -> RecordRing:
        """A copy with the rows of these slots, from the oldest to the newest, in the first ones."""
        records = aligned_zeros(capacity, self.records.dtype)
        records[: len(slots)] = self.records[slots]
        alive = self._text_bytes
        return RecordRing(records, self.nullable.copy(), self._unrolled(records[: len(slots)], alive), 0, alive)

    def carried(self, slots: Int64s, columns: Sequence[int | None], types: Sequence[pa.DataType]) -> RecordRing:
        """The rows of these slots, from the oldest to the newest, where they are, in these columns; None: a new one."""
        fresh = RecordRing(aligned_zeros(self.capacity, record_dtype(types)), np.zeros(len(types), dtype=np.uint8))
        picked = [(column, type_) for column, type_ in zip(columns, types, strict=True) if column is not None]
        for part in np.split(slots, np.flatnonzero(np.diff(slots) != 1) + 1):  # where the ring begins again
            for first in range(0, len(part), MANY):
                some = part[first : first + MANY]
                gathered = iter(self.gather(some, [type_ for _, type_ in picked], [column for column, _ in picked]))
                fresh.write(
                    int(some[0]),
                    [
                        _blank(len(some), type_) if column is None else next(gathered)
                        for column, type_ in zip(columns, types, strict=True)
                    ],
                )
        return fresh

    def bytes_of(self, rows: int) -> int:
        """About how much so many rows take."""
        return rows * self.records.itemsize + self._text_bytes

    def move(self, old: Int64s, new: Int64s, capacity: int) -> None:
        """Lay the rows of the slots `old` into the slots `new` of `capacity`; the rest is lost."""
        records = aligned_zeros(capacity, self.records.dtype)
        records[new] = self.records[old]
        self.records = records


def _bits(before: int, rows: int, behind: int) -> pa.Buffer:
    """That there are values, but for rows before and behind others."""
    there = np.zeros(before + rows + behind, dtype=np.uint8)
    there[before : before + rows] = 1
    return pa.py_buffer(np.packbits(there, bitorder="little"))


def record_dtype(types: Sequence[pa.DataType], more: Sequence[tuple[str, Any]] = ()) -> np.dtype[Any]:
    """The widest values first, so that all are aligned; `more` fields besides."""
    kept: list[tuple[str, Any]] = list(more)
    for number, type_ in enumerate(types):
        dtype = np.dtype(np.int32) if is_text(type_) else storage_dtype(type_)
        if dtype.itemsize == 16:
            dtype = np.dtype("V16")  # in one piece
        kept += [(f"{'t' if is_text(type_) else 'c'}{number}", dtype), (f"v{number}", np.dtype(np.uint8))]
    if any(map(is_text, types)):
        kept.append(("texts", np.dtype(np.int64)))
    kept.sort(key=lambda named: -named[1].itemsize)
    size = sum(dtype.itemsize for _, dtype in kept)
    rest = -size % 8 if size else 8
    return np.dtype([*kept, ("rest", f"V{rest}")] if rest else kept)


def _table(rows: Sequence[tuple[int, ...]], columns: int) -> Int64s:
    return np.array(rows, dtype=np.int64).reshape(-1, columns)


def _blank(rows: int, type_: pa.DataType) -> pa.Array:
    if is_text(type_):
        return text_array(type_, np.zeros(rows + 1, dtype=np.int64), np.empty(0, dtype=np.uint8), None)
    return fixed_array(type_, np.zeros(rows, dtype=storage_dtype(type_)), None)


@jit
def lay_texts(sources, rows, to, stride, text_offset, fields, arena, used):  # type: ignore[no-untyped-def]
    """Copy texts to where they are kept, those of a row side by side, and write into its record where that is.

    `sources` are the addresses of offsets and bytes, and how many bytes there are: behind those nothing is read.
    """
    for row in range(rows):
        store_word(to + text_offset, used)
        for i in range(len(fields)):
            start = np.int64(int_at(sources[i, 0], row))
            length = int_at(sources[i, 0], row + 1) - start
            store_int(to + fields[i], length)
            done = 0
            while done < length and start + done + OVERRUN <= sources[i, 2]:
                copy_32_bytes(arena + used + done, sources[i, 1] + start + done)
                done += 32
            while done < length:
                copy_byte(arena + used + done, sources[i, 1] + start + done)
                done += 1
            used += length
        to += stride


@jit
def lay_values(sources, rows, to, stride):  # type: ignore[no-untyped-def]
    """Copy columns into records. `sources` are (bytes of a value, where it is in a record, address of a column)."""
    for first in range(0, rows, BLOCK):
        count = min(BLOCK, rows - first)
        for i in range(len(sources)):
            width = sources[i, 0]
            record = to + first * stride + sources[i, 1]
            source = sources[i, 2] + first * width
            if width == 8:
                for row in range(count):
                    copy_word(record + row * stride, source + 8 * row)
            elif width == 4:
                for row in range(count):
                    copy_int(record + row * stride, source + 4 * row)
            elif width == 1:
                for row in range(count):
                    copy_byte(record + row * stride, source + row)
            elif width == 2:
                for row in range(count):
                    copy_half(record + row * stride, source + 2 * row)
            else:
                for row in range(count):
                    copy_double_word(record + row * stride, source + 16 * row)


@inlined
def fetch_record(address, stride):  # type: ignore[no-untyped-def]
    for line in range(0, stride, LINE):
        prefetch(address + line)


@jit
def gather_records(at, slots, first, copies, texts, totals):  # type: ignore[no-untyped-def]
    """Copy the values of these rows, from the `first` on, into columns; how far it came.

    `copies` are (bytes of a value, where it is in a record, address of a column). `texts` are (where the length is in a
    record, address of the offsets of a column, or NOT_WANTED, address of its bytes, and how many fit there), in the
    order in which they lie. `totals` are the bytes so far; where some do not fit, it is written there how many would.
    """
    rows = len(slots)
    records = np.empty(BLOCK, dtype=np.int64)
    sources = np.empty(BLOCK, dtype=np.int64)
    for row in range(first, min(first + BLOCK, rows)):
        fetch_record(at.records + slots[row] * at.stride, at.stride)
    for begin in range(first, rows, BLOCK):
        count = min(BLOCK, rows - begin)
        for row in range(count):
            records[row] = at.records + slots[begin + row] * at.stride
        fits = True
        if len(texts):
            for row in range(count):
                sources[row] = at.arena + word_at(records[row] + at.texts, 0)
                prefetch(sources[row])
                prefetch(sources[row] + LINE)
        for i in range(len(texts)):
            if texts[i, 1] != NOT_WANTED:
                offset, size = texts[i, 0], np.int64(0)
                for row in range(count):
                    size += int_at(records[row] + offset, 0)
                if totals[i] + size > texts[i, 3]:
                    texts[i, 3] = totals[i] + size
                    fits = False
        if not fits:
            return begin
        for row in range(begin + count, min(begin + count + BLOCK, rows)):
            fetch_record(at.records + slots[row] * at.stride, at.stride)
        for i in range(len(copies)):
            width, offset = copies[i, 0], copies[i, 1]
            to = copies[i, 2] + begin * width
            if width == 8:
                for row in range(count):
                    copy_word(to + 8 * row, records[row] + offset)
            elif width == 4:
                for row in range(count):
                    copy_int(to + 4 * row, records[row] + offset)
            elif width == 1:
                for row in range(count):
                    copy_byte(to + row, records[row] + offset)
            elif width == 2:
                for row in range(count):
                    copy_half(to + 2 * row, records[row] + offset)
            else:
                for row in range(count):
                    copy_double_word(to + 16 * row, records[row] + offset)
        for i in range(len(texts)):
            offset = texts[i, 0]
            if texts[i, 1] == NOT_WANTED:
                for row in range(count):
                    sources[row] += int_at(records[row] + offset, 0)
                continue
            total, offsets, data = totals[i], texts[i, 1] + 4 * begin, texts[i, 2]
            for row in range(count):
                source = sources[row]
                length = np.int64(int_at(records[row] + offset, 0))
                copy_32_bytes(data + total, source)
                done = 32
                while done < length:
                    copy_32_bytes(data + total + done, source + done)
                    done += 32
                sources[row] = source + length
                total += length
                store_int(offsets + 4 * row + 4, total)
            totals[i] = total
    return rows
