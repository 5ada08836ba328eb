"""Rows in one piece: what was written comes out again, wherever the ring of rows and the ring of texts begin anew."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.stepping import batch, ints
from tests.kernels.test_row_store import TYPES, row
from transom.core.errors import EvaluationError
from transom.kernels import columns
from transom.kernels.mould import ColumnAddresses, Moulds
from transom.kernels.record_ring import BLOCK, RecordRing
from transom.pipeline.registry import STATE_CLASSES
from transom.state import codec
from transom.state.checks import Unsound


class Ring:
    """Positions first .. first + len(rows) - 1 are in a ring."""

    def __init__(self, types: list[pa.DataType], capacity: int = 8) -> None:
        self.types = types
        self.kept = RecordRing.of(types)
        self.rows: list[tuple[Any, ...]] = []
        self.first = 0
        self.kept.move(ints([]), ints([]), capacity)

    def slots(self, positions: Any = None) -> Any:
        return (
            np.arange(len(self.rows)) if positions is None else ints(positions)
        ) + self.first & self.kept.capacity - 1

    def append(self, rows: list[tuple[Any, ...]]) -> None:
        if len(self.rows) + len(rows) > self.kept.capacity:
            capacity = 2 * self.kept.capacity
            self.kept.move(self.slots(), np.arange(len(self.rows)) + self.first & capacity - 1, capacity)
            self.append(rows)
            return
        at = self.first + len(self.rows) & self.kept.capacity - 1
        before_the_end = min(len(rows), self.kept.capacity - at)
        for first, part in ((at, rows[:before_the_end]), (0, rows[before_the_end:])):
            if part:
                self.kept.write(first, batch(part, self.types).columns)
        self.rows += list(zip(*(c.to_pylist() for c in batch(rows, self.types).columns), strict=True)) if rows else []

    def release(self, count: int) -> None:
        self.first += count
        del self.rows[:count]
        self.kept.release(int(self.slots([0])[0]) if self.rows else None)

    def check(self, positions: list[int], wanted: list[int]) -> None:
        arrays = self.kept.gather(self.slots(positions), [self.types[i] for i in wanted], wanted)
        for array in arrays:
            array.validate(full=True)
        assert [array.to_pylist() for array in arrays] == [[self.rows[p][i] for p in positions] for i in wanted]


@settings(max_examples=60)
@given(st.integers(0, 10**9))
def test_what_was_written_is_read(seed: int) -> None:
    random = Random(seed)
    ring = Ring(TYPES)
    for _ in range(20):
        ring.release(random.randrange(len(ring.rows) + 1))
        ring.append([row(random) for _ in range(random.randrange(8))])
        if random.random() < 0.2:
            ring.kept = codec.decode(codec.encode(ring.kept), STATE_CLASSES)
        if random.random() < 0.1:
            ring.kept = ring.kept.picked(ring.slots(), ring.kept.capacity)
            ring.first = 0
        ring.kept.check()
        ring.kept.check_rows(ring.slots())
        wanted = random.choices(range(len(TYPES)), k=random.randrange(4))
        ring.check(random.choices(range(len(ring.rows)), k=5) if ring.rows else [], wanted)
    ring.check(list(range(len(ring.rows))), list(range(len(TYPES))))


@pytest.mark.parametrize("count", [BLOCK - 1, BLOCK, 3 * BLOCK + 7])
def test_rows_are_gathered_in_blocks_of_which_nobody_sees_anything(count: int) -> None:
    random = Random(count)
    ring = Ring(TYPES, 512)
    ring.append([row(random) for _ in range(count)])
    ring.check(random.choices(range(count), k=count), list(range(len(TYPES))))


def test_texts_that_went_make_room_for_those_that_come() -> None:
    ring = Ring([pa.string()], 4)
    for i in range(400):
        if len(ring.rows) == 4:
            ring.release(1)
        ring.append([(f"{i} " * (200 + i % 3),)])
        ring.check(list(range(len(ring.rows))), [0])
    assert len(ring.kept.arena) < 16_000


def test_the_oldest_texts_stay_when_the_newest_come_close() -> None:
    """Of arrays that are part of larger ones, which are copied beyond their ends."""
    random = Random(1)
    types = [pa.string()]
    ring = Ring(types, 512)
    for i in range(900):
        if ring.rows and random.random() < 0.45:
            ring.release(1)
        text = f"{i:04d}" * random.randrange(1, 12)
        ring.kept.write(int(ring.slots([len(ring.rows)])[0]), [pa.array([text, "x" * 100]).slice(0, 1)])
        ring.rows.append((text,))
        ring.check(list(range(len(ring.rows))), [0])


def test_a_text_is_read_to_its_end_and_not_beyond_what_there_is() -> None:
    """Buffers that end with the last text, as others may hand them over."""
    data = b"a" * 31 + b"b" * 64 + b"c"
    offsets = np.array([0, 31, 95, 96], dtype=np.int32)
    texts = pa.Array.from_buffers(pa.binary(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    ring = RecordRing.of([pa.binary()])
    ring.move(ints([]), ints([]), 4)
    ring.write(0, [texts])
    assert ring.gather(ints([2, 1, 0]), [pa.binary()])[0].to_pylist() == [b"c", b"b" * 64, b"a" * 31]


def test_null_may_come_late_and_others_see_it() -> None:
    ring = Ring([pa.int64(), pa.string(), pa.bool_()])
    ring.append([(1, "one", True)])
    indexes = ColumnAddresses([ring.kept], [ring.kept.capacity - 1])
    assert indexes.plain == 0b001
    ring.append([(None, None, None), (3, "three", False)])
    indexes.refresh(0, ring.kept.capacity - 1)
    assert indexes.plain == 0
    ring.check([2, 1, 0], [0, 1, 2])


def test_few_rows_are_poured_from_where_they_are() -> None:
    types = [pa.int64(), pa.int8(), pa.string(), pa.float64()]
    schema = pa.schema([(f"c{i}", type_) for i, type_ in enumerate(types)])
    ring = Ring(types)
    ring.append([(i, -i, "x" * i, i / 2) for i in range(8)])
    ring.release(3)
    ring.append([(i, -i, "x" * i, i / 2) for i in (8, 9)])
    found = Moulds(schema, range(4)).batch(ColumnAddresses([ring.kept], [7]), ints([9, 4]).reshape(-1, 1))
    assert found is not None and found.to_pylist() == [{"c0": i, "c1": -i, "c2": "x" * i, "c3": i / 2} for i in (9, 4)]


def test_rows_are_carried_to_other_columns() -> None:
    random = Random(3)
    ring = Ring(TYPES)
    ring.append([row(random) for _ in range(6)])
    ring.release(4)
    ring.append([row(random) for _ in range(5)])  # slots 4 .. 7, then 0 .. 2
    types = [TYPES[5], pa.int64(), TYPES[1], pa.string()]
    carried = ring.kept.carried(ring.slots(), [5, None, 1, None], types)
    carried.check()
    carried.check_rows(ring.slots())
    found = [array.to_pylist() for array in carried.gather(ring.slots(), types)]
    assert found == [[each[5] for each in ring.rows], [0] * 7, [each[1] for each in ring.rows], [""] * 7]


def test_rows_without_texts_are_rows() -> None:
    ring = Ring([pa.float64(), pa.int8()])
    ring.append([(0.5, 1), (None, 2)])
    ring.kept = codec.decode(codec.encode(ring.kept), STATE_CLASSES)
    ring.kept.check_rows(ring.slots())
    ring.release(1)
    ring.check([0], [1, 0])


def test_rows_without_columns_are_rows() -> None:
    ring = Ring([])
    ring.append([(), ()])
    ring.kept.check_rows(ring.slots())
    assert codec.decode(codec.encode(ring.kept), STATE_CLASSES).gather(ints([0, 1]), []) == []


def test_a_state_whose_texts_are_elsewhere_is_rejected() -> None:
    ring = Ring([pa.string()])
    ring.append([("abc",)])
    ring.kept.records["texts"][0] = 1 << 40
    with pytest.raises(Unsound):
        ring.kept.check_rows(ring.slots())


def test_more_text_than_a_column_can_hold_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MAX_STRING_BYTES", 10)
    ring = Ring([pa.string()])
    ring.append([("123456",)])
    ring.check([0], [0])
    with pytest.raises(EvaluationError, match="batch_rows"):
        ring.check([0, 0], [0])
