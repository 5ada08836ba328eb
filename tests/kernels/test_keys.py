"""Keys as bytes: they compare as the values do, column by column, and are equal when SQL's grouping says so."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.stepping import batch
from transom.kernels.key_index import KeyIndex
from transom.kernels.keys import Keys, encode_keys, hash_words, normalised, single_word
from transom.runtimes.reference.history import canonical, grouped, value_order

NANS = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FFFFFFFFFFFFFFF], dtype=np.uint64).view(np.float64)

VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2),
    pa.int8(): st.integers(-128, 127),
    pa.bool_(): st.booleans(),
    pa.float64(): st.floats() | st.sampled_from([0.0, -0.0, *NANS.tolist()]),
    pa.float32(): st.floats(width=32) | st.sampled_from([0.0, -0.0, math.nan]),
    pa.decimal128(38, 3): st.decimals(places=3, min_value=-(10**30), max_value=10**30),
    pa.string(): st.text(max_size=5) | st.text("\0\x01a", max_size=4),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
}


def texts_of(keys: Keys) -> list[bytes]:
    return [bytes(keys.data[a:b]) for a, b in zip(keys.offsets, keys.offsets[1:], strict=False)]


@st.composite
def tables(draw: Any) -> tuple[list[pa.DataType], list[tuple[Any, ...]]]:
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    row = st.tuples(*(st.none() | VALUES[type_] for type_ in types))
    rows = draw(st.lists(row, min_size=2, max_size=8))
    return types, [*rows, rows[0]]


@settings(max_examples=100)
@given(tables())
def test_bytes_compare_as_the_values_do(table: tuple[list[pa.DataType], list[tuple[Any, ...]]]) -> None:
    types, rows = table
    columns = batch(rows, types).columns
    keys = encode_keys(columns, len(rows))
    texts = texts_of(keys)
    known = [grouped(row) for row in zip(*(column.to_pylist() for column in columns), strict=True)]
    for a in range(len(rows)):
        assert keys.null[a] == (None in known[a])
        for b in range(len(rows)):
            assert (texts[a] == texts[b]) == (known[a] == known[b])
            assert (texts[a] < texts[b]) == (value_order(known[a]) < value_order(known[b]))
            if texts[a] == texts[b]:
                assert keys.hashes[a] == keys.hashes[b]


@settings(max_examples=60)
@given(tables())
def test_with_signed_zeros_bytes_tell_them_apart_and_compare_as_before(
    table: tuple[list[pa.DataType], list[tuple[Any, ...]]],
) -> None:
    types, rows = table
    columns = batch(rows, types).columns
    keys = encode_keys(columns, len(rows), signed_zeros=True)
    texts = texts_of(keys)
    known = [canonical(row) for row in zip(*(column.to_pylist() for column in columns), strict=True)]
    shown = zip(*(column.to_pylist() for column in normalised(columns)), strict=True)
    assert [canonical(row) for row in shown] == [grouped(row) for row in known]
    for a in range(len(rows)):
        for b in range(len(rows)):
            assert (texts[a] == texts[b]) == (known[a] == known[b])
            assert texts[a] <= texts[b] or value_order(known[a]) >= value_order(known[b])
            if texts[a] == texts[b]:
                assert keys.hashes[a] == keys.hashes[b]


def test_equal_values_that_are_written_differently_are_one_key() -> None:
    zeros = encode_keys([pa.array([0.0, -0.0])], 2)
    signalling = np.array([0x7FF0000000000001], dtype=np.uint64).view(np.float64)
    nans = encode_keys([pa.array(np.concatenate([NANS, signalling]))], 4)
    nulls = encode_keys([pa.array([None, None], pa.int64())], 2)
    for keys in (zeros, nans, nulls):
        assert len(set(texts_of(keys))) == 1 and len(set(keys.hashes.tolist())) == 1


def test_no_text_is_taken_for_the_beginning_of_another() -> None:
    rows = [("a", "b"), ("ab", ""), ("a\0", "b"), ("a", "\0b"), ("", "ab"), (None, "ab"), ("", None), ("\0", "")]
    keys = encode_keys(batch(rows, [pa.string(), pa.string()]).columns, len(rows))
    assert len(set(texts_of(keys))) == len(rows) == len(set(keys.hashes.tolist()))


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1]),
        (pa.float64(), [-math.inf, -1.0, 0.0, 5e-324, 1.0, math.inf, math.nan]),
        (pa.date32(), [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)]),
        (pa.timestamp("us"), [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)]),
        (pa.bool_(), [False, True]),
    ],
)
def test_the_hash_of_a_single_word_is_a_key_itself(type_: pa.DataType, values: list[Any]) -> None:
    column = pa.array(values, type_)
    assert single_word([column])
    hashes, null = hash_words([column])
    assert len(set(hashes.tolist())) == len(values) and not null.any()
    assert hashes.tolist() == encode_keys([column], len(values)).hashes.tolist()


def test_texts_and_decimals_and_pairs_are_more_than_a_word() -> None:
    number = pa.array([1])
    assert not single_word([pa.array(["a"])])
    assert not single_word([pa.array([Decimal(1)], pa.decimal128(9, 2))])
    assert not single_word([number, number]) and not single_word([])


def test_no_columns_are_one_key_for_everything() -> None:
    keys = encode_keys([], 3)
    assert texts_of(keys) == [b""] * 3 and len(set(keys.hashes.tolist())) == 1 and not keys.null.any()
    assert len(encode_keys([pa.array([], pa.string())], 0)) == 0


def test_null_is_null_whatever_lies_beneath() -> None:
    """A computed column has numbers under its NULLs."""
    beneath = pa.py_buffer(np.array([1, 2, 3], dtype=np.int64))
    none_valid = pa.py_buffer(np.zeros(1, dtype=np.uint8))
    column = pa.Array.from_buffers(pa.int64(), 3, [none_valid, beneath])
    assert column.to_pylist() == [None, None, None]
    numbers, brought = KeyIndex().number(encode_keys([column], 3))
    assert numbers.tolist() == [0, 0, 0] and brought.tolist() == [0]


def test_words_laid_together_are_those_laid_one_by_one() -> None:
    """Keys of numbers alone are written at one blow; with a column of texts in front, one after the other."""
    numbers = [pa.array([3, -1, 2**40]), pa.array([0.5, -0.0, float("nan")]), pa.array([True, False, True])]
    together = encode_keys(numbers, 3)
    texts = encode_keys([pa.array(["", "", ""]), *numbers], 3)
    for row in range(3):
        mine = bytes(together.data[together.offsets[row] : together.offsets[row + 1]])
        behind = bytes(texts.data[texts.offsets[row] : texts.offsets[row + 1]])
        assert len(mine) == 27 and behind == b"\x01\x00\x00" + mine


@pytest.mark.parametrize("columns", range(2, 19))
def test_a_key_has_one_hash_whatever_else_is_in_its_batch(columns: int) -> None:
    """Keys of numbers alone are hashed word by word, and byte by byte where there is a NULL beside them."""
    random = np.random.default_rng(columns)
    numbers = [pa.array(random.integers(-(2**62), 2**62, 50)) for _ in range(columns)]
    plain = encode_keys(numbers, 50)
    beside = encode_keys([pa.concat_arrays([each, pa.array([None], pa.int64())]) for each in numbers], 51)
    assert plain.hashes.tolist() == beside.hashes[:50].tolist() and len(set(plain.hashes.tolist())) == 50
