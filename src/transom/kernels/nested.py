"""Arrays and structs as byte strings: what the engine holds of a nested value wherever it is.

The bytes compare like the values (DuckDB's order: element by element, what is a beginning of the other first, NULL
behind all values and equal to itself), and say by themselves where each part ends. So to stores, keys, windows and
joins a nested column is a column of byte strings like a text; a part of a value is a part of its bytes, an array of
values is their bytes one after the other. Each value is a mark, and then:

- FIXED, WIDE: 8 or 16 bytes, most significant first, as in keys.py; one zero and one NaN, as in keys;
- TEXT: its bytes, with 0 written as 0 255, and 0 0 at the end;
- ARRAY, STRUCT: the elements or fields, and END;
- NULL: nothing. A column that is NULL itself has Arrow's NULL instead of bytes.

>>> lists = pa.array([[1, None], [], None, [3]], pa.list_(pa.int32()))
>>> bytes_of = encoded(lists)
>>> decoded(bytes_of, lists.type).to_pylist()
[[1, None], [], None, [3]]
>>> lengths(bytes_of).to_pylist()
[2, 0, None, 1]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.delta import Int64s
from transom.core.schema import arrow_type, held_type, is_held_otherwise, is_nested
from transom.kernels.columns import (
    Bytes,
    bitmap_of,
    fixed_array,
    fixed_values,
    is_text,
    storage_dtype,
    text_array,
    text_parts,
    validity,
)
from transom.kernels.jit import borrowing, jit
from transom.kernels.keys import ordered

END, FIXED, WIDE, TEXT, ARRAY, STRUCT, NULL = 0, 1, 2, 3, 4, 5, 255
NOWHERE: Final = -1
"""Where a value begins that is not there: NULL."""

_SIGN: Final = np.uint64(1 << 63)


@dataclass(frozen=True)
class EncodedValues:
    """The bytes of a value in every row: `data[offsets[i]:offsets[i + 1]]`, with its mark, NULL or not."""

    data: Bytes
    offsets: Int64s

    def __len__(self) -> int:
        return len(self.offsets) - 1


# --- to bytes --------------------------------------------------------------------------------------------------------


def encoded(array: pa.Array) -> pa.Array:
    """Arrays or structs as byte strings."""
    return _column(parts_of(array), validity(array))


def _column(parts: EncodedValues, valid: Bytes | None) -> pa.Array:
    return text_array(pa.binary(), parts.offsets, parts.data, valid)


def parts_of(array: pa.Array) -> EncodedValues:
    """The values of a column as parts of others. One of byte strings holds nested values already."""
    type_ = array.type
    if pa.types.is_null(type_):
        return EncodedValues(np.full(len(array), NULL, dtype=np.uint8), np.arange(len(array) + 1))
    valid = validity(array)
    there = np.ones(len(array), dtype=np.uint8) if valid is None else valid
    if pa.types.is_binary(type_):
        starts, data = text_parts(array)
        return _filled(np.where(there, np.diff(starts), 1), lambda *to: write_whole(data, starts, there, *to))
    if pa.types.is_string(type_):
        starts, data = text_parts(array)
        lengths = np.empty(len(array), dtype=np.int64)
        measure(starts, data, there, lengths)
        return _filled(lengths, lambda *to: write_texts(starts, data, there, *to))
    if pa.types.is_struct(type_):
        return struct_of([parts_of(child) for child in array.flatten()], there)
    if pa.types.is_list(type_):
        begins = np.zeros(1, np.int32)
        if len(array):  # what a cut leaves of nothing still begins somewhere
            begins = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
        first, last = int(begins[0]), int(begins[-1])
        elements = parts_of(array.values.slice(first, last - first))
        return arrays_of(elements, begins.astype(np.int64) - first, there)
    values = fixed_values(array)
    if pa.types.is_decimal(type_):
        high = np.ascontiguousarray(values["hi"]).view(np.uint64) ^ _SIGN
        low = np.ascontiguousarray(values["lo"])
        return _filled(np.where(there, 17, 1), lambda *to: write_wide(high, low, there, *to))
    words = ordered(values)
    return _filled(np.where(there, 9, 1), lambda *to: write_fixed(words, there, *to))


def _filled(lengths: Int64s, write) -> EncodedValues:  # type: ignore[no-untyped-def]
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = np.empty(int(offsets[-1]), dtype=np.uint8)
    write(offsets, data)
    return EncodedValues(data, offsets)


def struct_of(fields: Sequence[EncodedValues], there: Bytes, mark: int = STRUCT) -> EncodedValues:
    """Structs of these fields, or arrays that have one element of each."""
    lengths = np.sum([np.diff(field.offsets) for field in fields], axis=0, dtype=np.int64) if fields else 0
    lengths = np.where(there, lengths + 2, 1)

    def write(offsets: Int64s, data: Bytes) -> None:
        cursor = offsets[:-1].copy()
        write_marks(there, mark, cursor, data)
        for field in fields:
            append(field.data, field.offsets, there, cursor, data)
        data[cursor[there == 1]] = END

    return _filled(lengths, write)


def arrays_of(elements: EncodedValues, begins: Int64s, there: Bytes) -> EncodedValues:
    """Arrays of the elements [begins[i], begins[i + 1])."""
    ends = elements.offsets[begins]
    return _filled(np.where(there, np.diff(ends) + 2, 1), lambda *to: write_arrays(elements.data, ends, there, *to))


def arrays_from(data: Bytes, ends: Int64s, there: Bytes) -> pa.Array:
    """Arrays of elements that lie one after the other, those of a row in data[ends[i]:ends[i + 1]]."""
    return _column(arrays_of(EncodedValues(data, ends), np.arange(len(ends)), there), there)


def elements(array: pa.Array) -> pa.Array:
    """Values as the elements of arrays, of which none is NULL."""
    return _column(parts_of(array), None)


def array_values(values: Sequence[pa.Array], rows: int) -> pa.Array:
    """In every row the array of these values."""
    return _column(struct_of([parts_of(value) for value in values], np.ones(rows, dtype=np.uint8), ARRAY), None)


def struct_values(values: Sequence[pa.Array], rows: int) -> pa.Array:
    """In every row the struct of these values."""
    return _column(struct_of([parts_of(value) for value in values], np.ones(rows, dtype=np.uint8)), None)


# --- from bytes ------------------------------------------------------------------------------------------------------


def decoded(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Byte strings as the arrays or structs that they are."""
    data, starts = _starts(array)
    return _decoded(type_, data, starts)


def _starts(array: pa.Array) -> tuple[Bytes, Int64s]:
    offsets, data = text_parts(array)
    valid = validity(array)
    starts = offsets[:-1] if valid is None else np.where(valid, offsets[:-1], NOWHERE)
    return data, starts


def _decoded(type_: pa.DataType, data: Bytes, starts: Int64s) -> pa.Array:
    rows = len(starts)
    valid = np.empty(rows, dtype=np.uint8)
    if pa.types.is_null(type_):
        return pa.nulls(rows)
    if pa.types.is_list(type_):
        offsets = np.zeros(rows + 1, dtype=np.int64)
        count_elements(data, starts, valid, offsets)
        begins = np.empty(int(offsets[-1]), dtype=np.int64)
        find_elements(data, starts, offsets, begins)
        elements = _decoded(type_.value_type, data, begins)
        buffers = [bitmap_of(valid), pa.py_buffer(offsets.astype(np.int32))]
        return pa.Array.from_buffers(type_, rows, buffers, children=[elements])
    if pa.types.is_struct(type_):
        begins = np.empty((type_.num_fields, rows), dtype=np.int64)
        find_fields(data, starts, valid, begins)
        fields = [_decoded(field.type, data, begins[i]) for i, field in enumerate(type_)]
        return pa.Array.from_buffers(type_, rows, [bitmap_of(valid)], children=fields)
    if is_text(type_):
        offsets = np.zeros(rows + 1, dtype=np.int64)
        measure_encoded(data, starts, valid, offsets)
        texts = np.empty(int(offsets[-1]), dtype=np.uint8)
        read_texts(data, starts, valid, offsets, texts)
        return text_array(type_, offsets, texts, valid)
    high, low = np.zeros((2, rows), dtype=np.uint64)
    read_words(data, starts, valid, high, low)
    dtype = storage_dtype(type_)
    if pa.types.is_decimal(type_):
        values = np.empty(rows, dtype=dtype)
        values["hi"], values["lo"] = (high ^ _SIGN).view(np.int64), low
    elif dtype.kind == "f":
        bits = np.where(high & _SIGN, high ^ _SIGN, ~high)
        values = bits.view(np.float64).astype(dtype)
    else:
        values = (high ^ _SIGN).view(np.int64).astype(dtype)
    return fixed_array(type_, values, valid)


def values_at(type_: pa.DataType, data: Bytes, starts: Int64s) -> pa.Array:
    """The values that begin there, as a column of the engine: nested ones as byte strings, others as they are."""
    if not is_nested(type_):
        return _decoded(held_type(type_), data, starts)
    valid = np.empty(len(starts), dtype=np.uint8)
    offsets = np.zeros(len(starts) + 1, dtype=np.int64)
    measure_values(data, starts, valid, offsets)
    out = np.empty(int(offsets[-1]), dtype=np.uint8)
    copy_values(data, starts, offsets, out)
    return text_array(pa.binary(), offsets, out, valid)


def held(array: pa.Array) -> pa.Array:
    """Values as they come in, as the engine holds them."""
    return encoded(array) if is_nested(array.type) else array.view(held_type(array.type))


def shown(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Values that the engine holds, as people see them."""
    return decoded(array, type_) if is_nested(type_) else array.view(arrow_type(type_))


def held_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows as they come in, as the engine holds them."""
    if not any(map(is_held_otherwise, rows.schema.types)):
        return rows
    return pa.RecordBatch.from_arrays(list(map(held, rows.columns)), names=rows.schema.names)


def shown_rows(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of the engine as people see them: in the columns of `schema`."""
    if not any(map(is_held_otherwise, schema.types)):
        return rows
    columns = list(map(shown, rows.columns, schema.types))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


# --- parts of arrays and structs -------------------------------------------------------------------------------------


def lengths(arrays: pa.Array) -> pa.Array:
    """How many elements each has."""
    data, starts = _starts(arrays)
    valid = np.empty(len(starts), dtype=np.uint8)
    offsets = np.zeros(len(starts) + 1, dtype=np.int64)
    count_elements(data, starts, valid, offsets)
    return fixed_array(pa.int64(), np.diff(offsets), valid)


def field_of(structs: pa.Array, number: int, fields: int, type_: pa.DataType) -> pa.Array:
    """The field of this number of structs with so many."""
    data, starts = _starts(structs)
    begins = np.empty((fields, len(starts)), dtype=np.int64)
    find_fields(data, starts, np.empty(len(starts), dtype=np.uint8), begins)
    return values_at(type_, data, begins[number])


def elements_at(arrays: pa.Array, indexes: pa.Array, type_: pa.DataType) -> pa.Array:
    """The element at an index, 1 the first and -1 the last; NULL where there is none."""
    data, starts = _starts(arrays)
    wanted = fixed_values(indexes).astype(np.int64)
    valid = validity(indexes)
    if valid is not None:
        wanted = np.where(valid, wanted, 0)  # there is no element of this number
    begins = np.empty(len(starts), dtype=np.int64)
    find_element(data, starts, wanted, begins)
    return values_at(type_, data, begins)


def unnested(arrays: pa.Array, type_: pa.DataType, outer: bool = False) -> tuple[Int64s, Int64s, pa.Array]:
    """The elements of all arrays: of which row each is, its number from 1 on, and the elements.

    With `outer` an array without elements has one that is NULL, and its number is 0.
    """
    data, starts = _starts(arrays)
    valid = np.empty(len(starts), dtype=np.uint8)
    offsets = np.zeros(len(starts) + 1, dtype=np.int64)
    count_elements(data, starts, valid, offsets)
    begins = np.empty(int(offsets[-1]), dtype=np.int64)
    find_elements(data, starts, offsets, begins)
    counts = np.diff(offsets)
    rows = np.repeat(np.arange(len(starts)), counts)
    numbers = np.arange(len(begins)) - np.repeat(offsets[:-1], counts) + 1
    if outer and not counts.all():
        empty = np.flatnonzero(counts == 0)
        at = offsets[empty]
        rows, numbers, begins = np.insert(rows, at, empty), np.insert(numbers, at, 0), np.insert(begins, at, NOWHERE)
    return rows, numbers, values_at(type_, data, begins)


def most_frequent(arrays: pa.Array, type_: pa.DataType) -> pa.Array:
    """Of arrays in which equal elements stand together that which is there most often; of several the first."""
    data, starts = _starts(arrays)
    begins = np.empty(len(starts), dtype=np.int64)
    find_most_frequent(data, starts, begins)
    return values_at(type_, data, begins)


def joined(arrays: Sequence[pa.Array]) -> pa.Array:
    """In every row the elements of all, one array after the other; NULL has none."""
    empty = pa.scalar(bytes((ARRAY, END)), pa.binary())
    inner = [pc.binary_slice(pc.coalesce(array, empty), 1, -1) for array in arrays]
    return pc.binary_join_element_wise(pa.scalar(bytes((ARRAY,))), *inner, pa.scalar(bytes((END,))), pa.scalar(b""))


def reversed_elements(arrays: pa.Array) -> pa.Array:
    """The elements from the last to the first."""

    def order(data: Bytes, begins: Int64s, offsets: Int64s) -> tuple[Int64s, Int64s]:
        counts = np.diff(offsets)
        return np.repeat(offsets[:-1] + offsets[1:] - 1, counts) - np.arange(len(begins)), counts

    return _rearranged(arrays, order)


def sorted_elements(arrays: pa.Array, once: bool) -> pa.Array:
    """The elements in order, NULL last; `once`: of equal ones one, and no NULL."""

    def order(data: Bytes, begins: Int64s, offsets: Int64s) -> tuple[Int64s, Int64s]:
        chosen, counts = np.arange(len(begins)), np.diff(offsets)
        kept = sort_elements(data, begins, offsets, once, chosen, counts)
        return chosen[:kept], counts

    return _rearranged(arrays, order)


def elements_between(arrays: pa.Array, first: pa.Array, last: pa.Array) -> pa.Array:
    """The elements from one number to another, both counted from 1, or from the end below 0."""

    def order(data: Bytes, begins: Int64s, offsets: Int64s) -> tuple[Int64s, Int64s]:
        counts = np.diff(offsets)
        low, high = (column.fill_null(0).to_numpy().astype(np.int64) for column in (first, last))
        low, high = (np.where(bound < 0, bound + counts + 1, bound) for bound in (low, high))
        rows = np.repeat(np.arange(len(counts)), counts)
        before = np.arange(len(begins)) - offsets[rows]
        within = (before >= low[rows] - 1) & (before < high[rows])
        return np.flatnonzero(within), np.bincount(rows[within], minlength=len(counts))

    cut = _rearranged(arrays, order)
    return pc.if_else(pc.and_(first.is_valid(), last.is_valid()), cut, pa.scalar(None, pa.binary()))


def _rearranged(arrays: pa.Array, order: Callable[[Bytes, Int64s, Int64s], tuple[Int64s, Int64s]]) -> pa.Array:
    """Arrays of some of their elements: `order` says of which, and of how many in each row."""
    data, starts = _starts(arrays)
    valid = np.empty(len(starts), dtype=np.uint8)
    offsets = np.zeros(len(starts) + 1, dtype=np.int64)
    count_elements(data, starts, valid, offsets)
    begins = np.empty(int(offsets[-1]), dtype=np.int64)
    find_elements(data, starts, offsets, begins)
    chosen, counts = order(data, begins, offsets)
    begins = begins[chosen]
    ends = np.zeros(len(begins) + 1, dtype=np.int64)
    measure_elements(data, begins, ends)
    out = np.empty(int(ends[-1]), dtype=np.uint8)
    copy_values(data, begins, ends, out)
    rows = np.zeros(len(starts) + 1, dtype=np.int64)
    np.cumsum(counts, out=rows[1:])
    return _column(arrays_of(EncodedValues(out, ends), rows, valid), valid)


def positions(arrays: pa.Array, wanted: pa.Array) -> pa.Array:
    """Where the first element is that equals the wanted value, NULL equal to NULL; 0: nowhere."""
    data, starts = _starts(arrays)
    valid = np.empty(len(starts), dtype=np.uint8)
    numbers = np.empty(len(starts), dtype=np.int64)
    value = parts_of(wanted)
    find_value(data, starts, value.data, value.offsets, valid, numbers)
    return fixed_array(pa.int64(), numbers, valid)


# --- the loops -------------------------------------------------------------------------------------------------------


@borrowing
def behind(data, at):  # type: ignore[no-untyped-def]
    """Where the value ends that begins here."""
    depth = 0
    while True:
        mark = data[at]
        at += 1
        if mark == 1:
            at += 8
        elif mark == 2:
            at += 16
        elif mark == 3:
            while data[at] != 0 or data[at + 1] != 0:
                at += 1 + (data[at] == 0)
            at += 2
        elif mark == 4 or mark == 5:
            depth += 1
        elif mark == 0:
            depth -= 1
        if depth == 0:
            return at


@borrowing
def is_there(data, at):  # type: ignore[no-untyped-def]
    return at >= 0 and data[at] != 255


@borrowing
def put_word(word, to, out):  # type: ignore[no-untyped-def]
    for byte in range(8):
        out[to + byte] = np.uint8((word >> np.uint64(56 - 8 * byte)) & np.uint64(255))


@borrowing
def word_from(data, at):  # type: ignore[no-untyped-def]
    word = np.uint64(0)
    for byte in range(8):
        word = (word << np.uint64(8)) | np.uint64(data[at + byte])
    return word


@jit
def write_fixed(words, there, offsets, out):  # type: ignore[no-untyped-def]
    for i in range(len(there)):
        out[offsets[i]] = 1 if there[i] else 255
        if there[i]:
            put_word(words[i], offsets[i] + 1, out)


@jit
def write_wide(high, low, there, offsets, out):  # type: ignore[no-untyped-def]
    for i in range(len(there)):
        out[offsets[i]] = 2 if there[i] else 255
        if there[i]:
            put_word(high[i], offsets[i] + 1, out)
            put_word(low[i], offsets[i] + 9, out)


@jit
def measure(starts, data, there, lengths):  # type: ignore[no-untyped-def]
    for i in range(len(there)):
        lengths[i] = 1
        if there[i]:
            lengths[i] = 3 + starts[i + 1] - starts[i]
            for j in range(starts[i], starts[i + 1]):
                if data[j] == 0:
                    lengths[i] += 1


@jit
def write_texts(starts, data, there, offsets, out):  # type: ignore[no-untyped-def]
    for i in range(len(there)):
        at = offsets[i]
        if not there[i]:
            out[at] = 255
            continue
        out[at] = 3
        at += 1
        for j in range(starts[i], starts[i + 1]):
            out[at] = data[j]
            at += 1
            if data[j] == 0:
                out[at] = 255
                at += 1
        out[at] = 0
        out[at + 1] = 0


@jit
def write_whole(data, starts, there, offsets, out):  # type: ignore[no-untyped-def]
    """What is in bytes already."""
    for i in range(len(there)):
        if not there[i]:
            out[offsets[i]] = 255
            continue
        for j in range(starts[i + 1] - starts[i]):
            out[offsets[i] + j] = data[starts[i] + j]


@jit
def write_marks(there, mark, cursor, out):  # type: ignore[no-untyped-def]
    for i in range(len(there)):
        out[cursor[i]] = mark if there[i] else 255
        cursor[i] += 1


@jit
def append(data, starts, there, cursor, out):  # type: ignore[no-untyped-def]
    for i in range(len(there)):
        if there[i]:
            at = cursor[i]
            for j in range(starts[i], starts[i + 1]):
                out[at] = data[j]
                at += 1
            cursor[i] = at


@jit
def write_arrays(data, ends, there, offsets, out):  # type: ignore[no-untyped-def]
    for i in range(len(there)):
        at = offsets[i]
        if not there[i]:
            out[at] = 255
            continue
        out[at] = 4
        at += 1
        for j in range(ends[i], ends[i + 1]):
            out[at] = data[j]
            at += 1
        out[at] = 0


@jit
def count_elements(data, starts, valid, offsets):  # type: ignore[no-untyped-def]
    for i in range(len(starts)):
        count = 0
        valid[i] = is_there(data, starts[i])
        if valid[i]:
            at = starts[i] + 1
            while data[at] != 0:
                at = behind(data, at)
                count += 1
        offsets[i + 1] = offsets[i] + count


@jit
def find_elements(data, starts, offsets, begins):  # type: ignore[no-untyped-def]
    for i in range(len(starts)):
        at = starts[i] + 1
        for j in range(offsets[i], offsets[i + 1]):
            begins[j] = at
            at = behind(data, at)


@jit
def find_element(data, starts, wanted, begins):  # type: ignore[no-untyped-def]
    for i in range(len(starts)):
        begins[i] = -1
        if not is_there(data, starts[i]) or wanted[i] == 0:
            continue
        index = wanted[i]
        if index < 0:  # from the end: they have to be counted
            at = starts[i] + 1
            while data[at] != 0:
                at = behind(data, at)
                index += 1
            index += 1
            if index <= 0:
                continue
        at = starts[i] + 1
        while data[at] != 0:
            index -= 1
            if index == 0:
                begins[i] = at
                break
            at = behind(data, at)


@jit
def find_fields(data, starts, valid, begins):  # type: ignore[no-untyped-def]
    for i in range(len(starts)):
        valid[i] = is_there(data, starts[i])
        at = starts[i] + 1
        for field in range(len(begins)):
            begins[field, i] = at if valid[i] else -1
            if valid[i]:
                at = behind(data, at)


@jit
def find_value(data, starts, wanted, wanted_at, valid, numbers):  # type: ignore[no-untyped-def]
    for i in range(len(starts)):
        numbers[i] = 0
        valid[i] = is_there(data, starts[i])
        if not valid[i]:
            continue
        at = starts[i] + 1
        number = 0
        size = wanted_at[i + 1] - wanted_at[i]
        while data[at] != 0:
            number += 1
            after = behind(data, at)
            if after - at == size:
                same = True
                for j in range(size):
                    if data[at + j] != wanted[wanted_at[i] + j]:
                        same = False
                        break
                if same:
                    numbers[i] = number
                    break
            at = after


@borrowing
def same_bytes(data, at, other, size):  # type: ignore[no-untyped-def]
    same = True
    for j in range(size):
        same = same and data[at + j] == data[other + j]
    return same


@jit
def find_most_frequent(data, starts, begins):  # type: ignore[no-untyped-def]
    for i in range(len(starts)):
        begins[i] = -1
        if not is_there(data, starts[i]):
            continue
        at = starts[i] + 1
        first = at
        size = most = count = 0
        while data[at] != 0:
            after = behind(data, at)
            if count == 0 or after - at != size or not same_bytes(data, first, at, size):
                first, size, count = at, after - at, 0
            count += 1
            if count > most:
                most = count
                begins[i] = first
            at = after


@borrowing
def is_before(data, at, other):  # type: ignore[no-untyped-def]
    """Whether one value is less than another; none is the beginning of another one."""
    size = min(behind(data, at) - at, behind(data, other) - other)
    for j in range(size):
        if data[at + j] != data[other + j]:
            return data[at + j] < data[other + j]
    return False


@jit
def sort_elements(data, begins, offsets, once, chosen, counts):  # type: ignore[no-untyped-def]
    """The numbers of elements in the order of each array, and with `once` each value once; how many are left."""
    kept = 0
    for i in range(len(counts)):
        first = kept
        for element in range(offsets[i], offsets[i + 1]):
            if once and data[begins[element]] == 255:
                continue
            to = kept
            while to > first and is_before(data, begins[element], begins[chosen[to - 1]]):
                to -= 1
            if once and to > first and not is_before(data, begins[chosen[to - 1]], begins[element]):
                continue
            for j in range(kept, to, -1):
                chosen[j] = chosen[j - 1]
            chosen[to] = element
            kept += 1
        counts[i] = kept - first
    return kept


@jit
def measure_elements(data, begins, ends):  # type: ignore[no-untyped-def]
    for i in range(len(begins)):
        ends[i + 1] = ends[i] + behind(data, begins[i]) - begins[i]


@jit
def measure_values(data, starts, valid, offsets):  # type: ignore[no-untyped-def]
    for i in range(len(starts)):
        valid[i] = is_there(data, starts[i])
        offsets[i + 1] = offsets[i] + (behind(data, starts[i]) - starts[i] if valid[i] else 0)


@jit
def copy_values(data, starts, offsets, out):  # type: ignore[no-untyped-def]
    for i in range(len(starts)):
        for j in range(offsets[i + 1] - offsets[i]):
            out[offsets[i] + j] = data[starts[i] + j]


@jit
def measure_encoded(data, starts, valid, offsets):  # type: ignore[no-untyped-def]
    for i in range(len(starts)):
        size = 0
        valid[i] = is_there(data, starts[i])
        if valid[i]:
            at = starts[i] + 1
            while data[at] != 0 or data[at + 1] != 0:
                at += 1 + (data[at] == 0)
                size += 1
        offsets[i + 1] = offsets[i] + size


@jit
def read_texts(data, starts, valid, offsets, out):  # type: ignore[no-untyped-def]
    for i in range(len(starts)):
        at = starts[i] + 1
        for to in range(offsets[i], offsets[i + 1]):
            out[to] = data[at]
            at += 1 + (data[at] == 0)


@jit
def read_words(data, starts, valid, high, low):  # type: ignore[no-untyped-def]
    for i in range(len(starts)):
        valid[i] = is_there(data, starts[i])
        if valid[i]:
            high[i] = word_from(data, starts[i] + 1)
            if data[starts[i]] == 2:
                low[i] = word_from(data, starts[i] + 9)
