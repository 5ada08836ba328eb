"""Batches poured into a mould are those gathered column by column."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from transom.core.schema import TIMESTAMP
from transom.kernels.address import address_of, byte_at, word_at
from transom.kernels.jit import jit
from transom.kernels.mould import FEW, ColumnAddresses, Moulds
from transom.kernels.row_store import RowStore

TYPES = [pa.int64(), pa.int8(), pa.float32(), pa.decimal128(30, 2), TIMESTAMP, pa.string(), pa.bool_(), pa.int32()]


def rows(first: int, count: int, null: int | None = None) -> list[pa.Array]:
    """Of the columns; row `null` has a NULL in the last one."""
    values: list[list[Any]] = [[] for _ in TYPES]
    for i in range(first, first + count):
        texts = "x" * (i % 5)
        row = [-i, i % 100, i / 4, Decimal(i) / 2, i * 10**6, texts, i % 3 == 0, None if i == null else i]
        for column, value in zip(values, row, strict=True):
            column.append(value)
    return [pa.array(column, type_) for column, type_ in zip(values, TYPES, strict=True)]


def store(capacity: int) -> RowStore:
    made = RowStore.of(TYPES)
    made.reserve(capacity)
    return made


SCHEMA = pa.schema([(f"c{n}", type_) for n, type_ in enumerate(TYPES + TYPES)])


def by_columns(stores: list[RowStore], members: np.ndarray[Any, Any], picks: list[int]) -> list[pa.Array]:
    found = [own.gather(members[:, i] & 63, TYPES) for i, own in enumerate(stores)]
    return [(found[0] + found[1])[at] for at in picks]


@pytest.mark.parametrize("picks", [list(range(16)), [9, 0, 5, 0, 12, 3, 10], [8]])
@pytest.mark.parametrize("count", [1, 2, FEW])
def test_a_poured_batch_is_what_columns_say(picks: list[int], count: int) -> None:
    stores = [store(64), store(64)]
    for number, own in enumerate(stores):
        own.write(np.arange(64), rows(100 * number, 64))
    addresses = ColumnAddresses(stores, [63, 63])
    members = np.random.default_rng(count).integers(0, 64, (count, 2)) + 64 * 7  # positions of a ring
    schema = pa.schema([SCHEMA.field(at) for at in picks])
    batch = Moulds(schema, picks).batch(addresses, members)
    assert batch is not None
    batch.validate(full=True)
    assert batch.equals(pa.RecordBatch.from_arrays(by_columns(stores, members, picks), schema=schema))


def test_columns_are_found_again_when_they_move_and_when_they_get_a_null() -> None:
    stores = [store(64), store(64)]
    for own in stores:
        own.write(np.arange(10), rows(0, 10))
    addresses, moulds = ColumnAddresses(stores, [-1, -1]), Moulds(SCHEMA, range(16))
    members = np.array([[3, 9], [0, 0]])
    before = moulds.batch(addresses, members)
    stores[1].reserve(5000)
    stores[1].write(np.arange(4000, 4030), rows(4000, 30, null=4011))
    assert before is not None and before.column(15).to_pylist() == [9, 0]  # what was poured stays
    addresses.refresh(1, -1)
    members = np.array([[3, 4011], [0, 4012]])
    after = moulds.batch(addresses, members)
    assert (
        after is not None
        and after.column(15).to_pylist() == [None, 4012]
        and after.column(8).to_pylist() == [-4011, -4012]
    )
    arrays = [own.gather(np.ascontiguousarray(members[:, i]), TYPES) for i, own in enumerate(stores)]
    assert after.equals(pa.RecordBatch.from_arrays(arrays[0] + arrays[1], schema=SCHEMA))


def test_many_rows_and_columns_that_are_not_plain_are_left_to_others() -> None:
    stores = [store(64), store(64)]
    addresses = ColumnAddresses(stores, [63, 63])
    assert Moulds(SCHEMA, range(16)).batch(addresses, np.zeros((FEW + 1, 2), dtype=np.int64)) is None
    texts = pa.schema([SCHEMA.field(5), SCHEMA.field(0)])
    assert Moulds(texts, [5, 0]).batch(addresses, np.zeros((1, 2), dtype=np.int64)) is None


@jit
def read(address, index):  # type: ignore[no-untyped-def]
    return word_at(address, index), byte_at(address, 8 * index)


def test_memory_is_read_by_its_address() -> None:
    words = np.array([5, -7, 1 << 40])
    assert [read(address_of(words), index) for index in range(3)] == [(5, 5), (-7, 249), (1 << 40, 0)]
    assert read(address_of(words[1:]), 1) == (1 << 40, 0)
