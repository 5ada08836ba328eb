"""Keys of any number and type as byte strings that compare like the values.

The bytes of a row's key are equal exactly when SQL's grouping calls the values equal (NULL with NULL, NaN with NaN,
-0.0 with 0.0), and their order is the order of values of semantics.md: column by column, NULL first, strings by bytes,
NaN last. Each column writes 0 for NULL, or 1 and then:

- a fixed width: 8 bytes, most significant first, with the sign turned (decimals: 16 bytes);
- a text: its bytes, with 0 written as 0 255, and 0 0 at the end, so that no text is the beginning of another.

The 64-bit hash of a single fixed-width column is a bijection of its value, so there equal hashes are equal keys.

Whoever keeps a value for a key keeps the one that stands for all that are equal to it (`normalised`): an answer must
not depend on which of them came first. Whoever looks for a row that is to be shown as it came tells -0.0 from 0.0
(`signed_zeros`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transom.core.delta import Int64s
from transom.kernels.columns import (
    Array,
    Bytes,
    fixed_array,
    fixed_values,
    is_text,
    storage_dtype,
    text_parts,
    validity,
    values_in,
)
from transom.kernels.copying import SLACK
from transom.kernels.jit import jit

Hashes = npt.NDArray[np.uint64]

_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True)
class Keys:
    """The keys of a batch.

    `data[offsets[i]:offsets[i + 1]]` is the key of row i (`data` is longer); `null[i]` says whether a NULL is in it.
    """

    hashes: Hashes
    null: npt.NDArray[np.bool_]
    data: Bytes
    offsets: Int64s

    def __len__(self) -> int:
        return len(self.hashes)


@dataclass(frozen=True)
class _Prepared:
    """A column to be written: `words` (and `low` for decimals) of a fixed width, or `starts` and `data` of a text."""

    valid: Bytes
    words: Hashes | None = None
    low: Hashes | None = None
    starts: Int64s | None = None
    data: Bytes | None = None


def normalised(columns: Sequence[pa.Array]) -> list[pa.Array]:
    """The columns with one zero and one NaN: of values that are equal as keys the one that stands for all of them.

    >>> [str(value) for value in normalised([pa.array([-0.0, None, 1.5])])[0]]
    ['0.0', 'None', '1.5']
    """
    return [_normalised(array) if pa.types.is_floating(array.type) else array for array in columns]


def _normalised(array: pa.Array) -> pa.Array:
    return fixed_array(array.type, one_of_equals(fixed_values(array)), validity(array))


def one_of_equals(values: Array, signed_zeros: bool = False) -> Array:
    """Floating numbers with one NaN and, unless zeros are signed, one zero."""
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN like any other
        unified = values.copy() if signed_zeros else values + values.dtype.type(0.0)  # -0.0 + 0.0 is 0.0
    np.copyto(unified, np.nan, where=np.isnan(unified))
    return unified


def order_words(array: pa.Array) -> Hashes:
    """Values of a fixed-width column other than decimals as unsigned words in the same order."""
    return ordered(fixed_values(array))


def ordered(values: Array, signed_zeros: bool = False) -> Hashes:
    """Numbers as unsigned words in the same order; with signed zeros -0.0 comes just before 0.0."""
    if values.dtype.kind == "f":
        return ordered_doubles(one_of_equals(values, signed_zeros).astype(np.float64, copy=False))
    return values.astype(np.int64, copy=False).view(np.uint64) ^ _SIGN


def ordered_doubles(values: npt.NDArray[np.float64]) -> Hashes:
    """Doubles, with one NaN and one zero among them, as unsigned words in the same order."""
    bits = values.view(np.uint64)
    negative = (bits & _SIGN) != 0
    return np.where(negative, ~bits, bits | _SIGN)


def single_word(columns: Sequence[pa.Array]) -> bool:
    """Whether the hash alone identifies the key (no bytes needed) as long as it is not NULL."""
    return len(columns) == 1 and not is_text(columns[0].type) and not pa.types.is_decimal(columns[0].type)


def hash_words(columns: Sequence[pa.Array]) -> tuple[Hashes, npt.NDArray[np.bool_]]:
    """Hashes and NULLs of a single-word key, without its bytes."""
    valid = validity(columns[0])
    null = np.zeros(len(columns[0]), dtype=np.bool_) if valid is None else valid == 0
    return mix_all(order_words(columns[0])), null


def encode_keys(columns: Sequence[pa.Array], rows: int, *, signed_zeros: bool = False) -> Keys:
    """The keys of all rows; no columns at all is one key for everything. With signed zeros -0.0 is not 0.0.

    >>> keys = encode_keys([pa.array([2, None, -1]), pa.array(["a", "b", ""])], 3)
    >>> texts = [bytes(keys.data[a:b]) for a, b in zip(keys.offsets, keys.offsets[1:])]
    >>> sorted(range(3), key=texts.__getitem__)
    [1, 2, 0]
    """
    null = np.zeros(rows, dtype=np.bool_)
    lengths = np.zeros(rows, dtype=np.int64)
    all_there = np.ones(rows, dtype=np.uint8)
    every = 0  # bytes that each row takes
    prepared: list[_Prepared] = []
    for array in columns:
        type_ = array.type
        valid = validity(array)
        if valid is None:
            valid = all_there
        else:
            null |= valid == 0
        if is_text(type_):
            starts, data = text_parts(array)
            measure_text(starts, data, valid, lengths)
            prepared.append(_Prepared(valid, starts=starts, data=data))
            continue
        values = values_in(array, storage_dtype(type_))
        is_decimal = pa.types.is_decimal(type_)
        size = 16 if is_decimal else 8
        every += 1
        if valid is all_there:
            every += size
        else:
            lengths += size * valid.astype(np.int64)
        if is_decimal:
            words = np.ascontiguousarray(values["hi"]).view(np.uint64) ^ _SIGN
            prepared.append(_Prepared(valid, words, np.ascontiguousarray(values["lo"])))
        else:
            prepared.append(_Prepared(valid, ordered(values, signed_zeros)))
    lengths += every
    offsets = np.zeros(rows + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    out = np.empty(int(offsets[-1]) + SLACK, dtype=np.uint8)
    cursor = offsets[:-1].copy()
    plain = [column.words for column in prepared if column.words is not None and column.valid is all_there]
    together = len(plain) == len(prepared) > 1 and every == 9 * len(plain)
    if together:
        words = np.concatenate(plain).reshape(len(plain), rows)
        write_rows(words, out)
        return Keys(hash_rows(words), null, out, offsets)
    for column in prepared:
        if column.words is not None:
            write_words(column.words, column.valid, cursor, out)
            if column.low is not None:
                write_low_words(column.low, column.valid, cursor, out)
        else:
            write_text(column.starts, column.data, column.valid, cursor, out)
    if single_word(columns):
        hashes = mix_all(prepared[0].words)
        hashes[null] = np.uint64(0x9E3779B97F4A7C15)
    else:
        hashes = hash_bytes(out, offsets)
    return Keys(hashes, null, out, offsets)


@jit
def mix(word):  # type: ignore[no-untyped-def]
    """A bijection of 64-bit words whose low bits depend on all bits (the finisher of MurmurHash3)."""
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xFF51AFD7ED558CCD)
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xC4CEB9FE1A85EC53)
    word ^= word >> np.uint64(33)
    return word


@jit
def mix_all(words):  # type: ignore[no-untyped-def]
    out = np.empty(len(words), dtype=np.uint64)
    for i in range(len(words)):
        out[i] = mix(words[i])
    return out


@jit
def hash_bytes(data, offsets):  # type: ignore[no-untyped-def]
    rows = len(offsets) - 1
    out = np.empty(rows, dtype=np.uint64)
    for i in range(rows):
        h = np.uint64(offsets[i + 1] - offsets[i])
        word = np.uint64(0)
        filled = 0
        for j in range(offsets[i], offsets[i + 1]):
            word = (word << np.uint64(8)) | np.uint64(data[j])
            filled += 1
            if filled == 8:
                h = mix(h ^ word) * np.uint64(0x9E3779B97F4A7C15)
                word = np.uint64(0)
                filled = 0
        out[i] = mix(h ^ word)
    return out


@jit
def hash_rows(words):  # type: ignore[no-untyped-def]
    """What `hash_bytes` gives for the keys that `write_rows` writes, without looking at every byte."""
    columns, rows = words.shape
    out = np.empty(rows, dtype=np.uint64)
    for row in range(rows):
        h = np.uint64(9 * columns)
        word = np.uint64(0)
        filled = np.uint64(0)  # bits of `word`
        for column in range(columns):
            word = (word << np.uint64(8)) | np.uint64(1)
            filled += np.uint64(8)
            if filled == np.uint64(64):
                h = mix(h ^ word) * np.uint64(0x9E3779B97F4A7C15)
                h = mix(h ^ words[column, row]) * np.uint64(0x9E3779B97F4A7C15)
                word = np.uint64(0)
                filled = np.uint64(0)
                continue
            whole = (word << (np.uint64(64) - filled)) | (words[column, row] >> filled)
            h = mix(h ^ whole) * np.uint64(0x9E3779B97F4A7C15)
            word = words[column, row] & ((np.uint64(1) << filled) - np.uint64(1))
        out[row] = mix(h ^ word)
    return out


@jit
def measure_text(starts, data, valid, lengths):  # type: ignore[no-untyped-def]
    for i in range(len(valid)):
        if valid[i] == 0:
            lengths[i] += 1
            continue
        size = starts[i + 1] - starts[i]
        for j in range(starts[i], starts[i + 1]):
            if data[j] == 0:
                size += 1
        lengths[i] += size + 3


@jit
def write_rows(words, out):  # type: ignore[no-untyped-def]
    """Keys of words alone, words[column, row], and no NULL among them."""
    at = 0
    for row in range(words.shape[1]):
        for column in range(words.shape[0]):
            out[at] = 1
            for byte in range(8):
                out[at + 1 + byte] = np.uint8((words[column, row] >> np.uint64(56 - 8 * byte)) & np.uint64(255))
            at += 9


@jit
def write_words(words, valid, cursor, out):  # type: ignore[no-untyped-def]
    for i in range(len(valid)):
        at = cursor[i]
        out[at] = valid[i]
        at += 1
        if valid[i]:
            word = words[i]
            for byte in range(8):
                out[at + byte] = np.uint8((word >> np.uint64(56 - 8 * byte)) & np.uint64(255))
            at += 8
        cursor[i] = at


@jit
def write_low_words(words, valid, cursor, out):  # type: ignore[no-untyped-def]
    for i in range(len(valid)):
        if valid[i]:
            at = cursor[i]
            word = words[i]
            for byte in range(8):
                out[at + byte] = np.uint8((word >> np.uint64(56 - 8 * byte)) & np.uint64(255))
            cursor[i] = at + 8


@jit
def write_text(starts, data, valid, cursor, out):  # type: ignore[no-untyped-def]
    for i in range(len(valid)):
        at = cursor[i]
        out[at] = valid[i]
        at += 1
        if valid[i]:
            for j in range(starts[i], starts[i + 1]):
                out[at] = data[j]
                at += 1
                if data[j] == 0:
                    out[at] = 255
                    at += 1
            out[at] = 0
            out[at + 1] = 0
            at += 2
        cursor[i] = at
