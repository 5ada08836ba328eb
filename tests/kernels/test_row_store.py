"""Rows by slot: what is written comes out again, whatever was freed, moved, sliced or NULL before."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.stepping import batch, ints
from transom.core.errors import EvaluationError
from transom.kernels import columns
from transom.kernels.columns import text_array
from transom.kernels.row_store import RowStore, TextColumn
from transom.pipeline.registry import STATE_CLASSES
from transom.state import codec

TYPES = [pa.string(), pa.int32(), pa.bool_(), pa.decimal128(38, 2), pa.float32(), pa.binary(), pa.timestamp("us")]


def row(random: Random) -> tuple[Any, ...]:
    text = random.choice(["", "x", "fifteen bytes..", "sixteen bytes...", "seventeen bytes..", "long " * 60, "é\0"])
    full = (
        text, random.randrange(-5, 5), random.random() < 0.5, Decimal(random.randrange(-(10**30), 10**30)) / 4,
        0.5, text.encode(), random.randrange(10**6),
    )  # fmt: skip
    return tuple(None if random.random() < 0.2 else value for value in full)


def read(store: RowStore, slots: list[int]) -> list[tuple[Any, ...]]:
    arrays = store.gather(ints(slots), TYPES)
    for array in arrays:
        array.validate(full=True)
    return list(zip(*(array.to_pylist() for array in arrays), strict=True))


def stored(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """As Arrow has them."""
    return list(zip(*(column.to_pylist() for column in batch(rows, TYPES).columns), strict=True))


@settings(max_examples=50)
@given(st.integers(0, 10**9))
def test_what_was_written_is_read(seed: int) -> None:
    random = Random(seed)
    store = RowStore.of(TYPES)
    inside: dict[int, tuple[Any, ...]] = {}
    capacity = 0
    for _ in range(15):
        gone = random.sample(sorted(inside), random.randrange(len(inside) + 1))
        store.free(ints(gone))
        for slot in gone:
            del inside[slot]
        if random.random() < 0.3:
            capacity += random.randrange(1, 70)
            store.reserve(capacity)
            capacity = store.capacity
        unused = sorted(set(range(capacity)) - set(inside))
        slots = random.sample(unused, random.randrange(min(len(unused), 8) + 1))
        rows = [row(random) for _ in slots]
        store.write(ints(slots), batch(rows, TYPES).columns)
        inside |= dict(zip(slots, stored(rows), strict=True))
        if random.random() < 0.2:
            store = codec.decode(codec.encode(store), STATE_CLASSES)
        requested = random.choices(sorted(inside), k=5) if inside else []
        assert read(store, requested) == [inside[slot] for slot in requested]
    assert read(store, sorted(inside)) == [inside[slot] for slot in sorted(inside)]
    for column in store.columns:
        if isinstance(column, TextColumn):
            assert column.alive == int(column.length.sum()) <= column.used <= len(column.arena)


def test_rows_are_laid_anew_as_a_ring_does_it() -> None:
    random = Random(5)
    store = RowStore.of(TYPES)
    store.reserve(8)
    rows = [row(random) for _ in range(8)]
    store.write(ints(range(8)), batch(rows, TYPES).columns)
    store.move(ints(range(8)), ints((i + 11) % 16 for i in range(8)), 16)
    assert store.capacity == 16
    assert read(store, [(i + 11) % 16 for i in range(8)]) == stored(rows)


def test_texts_that_went_make_room_for_those_that_come() -> None:
    store = RowStore.of([pa.string()])
    store.reserve(4)
    for i in range(400):
        slot = i % 4
        if i >= 4:
            store.free(ints([slot]))
        store.write(ints([slot]), [pa.array([f"{i} " * 200])])
        for old in range(max(0, i - 3), i + 1):
            assert store.gather(ints([old % 4]), [pa.string()])[0].to_pylist() == [f"{old} " * 200]
    column = store.columns[0]
    assert isinstance(column, TextColumn) and len(column.arena) < 16_000


def test_null_may_come_late_and_go_again() -> None:
    store = RowStore.of([pa.int64(), pa.string()])
    store.reserve(3)
    store.write(ints([0]), [pa.array([1]), pa.array(["one"])])
    assert store.columns[0].valid is None
    store.write(ints([1]), [pa.array([None], pa.int64()), pa.array([None], pa.string())])
    store.write(ints([2]), [pa.array([3]), pa.array(["three"])])
    store.free(ints([1]))
    store.write(ints([1]), [pa.array([2]), pa.array(["two"])])
    store.reserve(500)
    found = [array.to_pylist() for array in store.gather(ints([2, 1, 0]), [pa.int64(), pa.string()])]
    assert found == [[3, 2, 1], ["three", "two", "one"]]


@pytest.mark.parametrize("first", range(0, 20, 3))
def test_slices_of_larger_arrays_are_read_from_their_offset(first: int) -> None:
    texts = pa.array([None if i % 5 == 0 else f"text {i}" for i in range(40)]).slice(first, 9)
    flags = pa.array([None if i % 7 == 0 else i % 3 == 0 for i in range(40)]).slice(first, 9)
    store = RowStore.of([pa.string(), pa.bool_()])
    store.reserve(9)
    store.write(slice(0, 9), [texts, flags])
    found = store.gather(np.arange(9), [pa.string(), pa.bool_()])
    assert [array.to_pylist() for array in found] == [texts.to_pylist(), flags.to_pylist()]


def test_more_text_than_a_column_can_hold_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MAX_STRING_BYTES", 10)
    store = RowStore.of([pa.string()])
    store.reserve(1)
    store.write(ints([0]), [pa.array(["123456"])])
    assert store.gather(ints([0]), [pa.string()])[0].to_pylist() == ["123456"]
    with pytest.raises(EvaluationError, match="batch_rows"):
        store.gather(ints([0, 0]), [pa.string()])
    assert text_array(pa.string(), ints([0]), np.empty(0, dtype=np.uint8), None).to_pylist() == []
