"""Rows by slot in one piece, and rows of a batch beside them: what was written comes out again, in any order."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.kernels.stepping import batch, ints
from tests.kernels.test_row_store import TYPES, row
from transom.core.delta import MISSING, NAMELESS, Halves
from transom.kernels.record_store import BLOCK, RecordStore
from transom.pipeline.registry import STATE_CLASSES
from transom.state import codec
from transom.state.checks import Unsound
from transom.state.slots import SlotPool

SIDES = np.array([number % 2 for number in range(len(TYPES))], dtype=np.uint8)
LONG = tuple("x" * length for length in (0, 31, 32, 33, 64, 100))


def halves(random: Random, rows: list[tuple[Any, ...]]) -> tuple[list[tuple[Any, ...]], Halves]:
    """Some of the rows without one of their halves, and what is to be said of that."""
    names = np.array([[random.choice((NAMELESS, 3, MISSING)) for _ in rows] for _ in range(2)], dtype=np.int64)
    names = names.reshape(2, len(rows))
    shown = [
        tuple(None if names[SIDES[n], i] == MISSING else value for n, value in enumerate(each))
        for i, each in enumerate(rows)
    ]
    return shown, Halves(SIDES, names)


@pytest.mark.parametrize("most", [8, 3 * BLOCK])
@pytest.mark.parametrize("seed", range(4))
def test_what_was_written_is_read(seed: int, most: int) -> None:
    random = Random(seed)
    store, slots = RecordStore.of(TYPES), SlotPool()
    alive: dict[int, tuple[Any, ...]] = {}
    for _ in range(20):
        made, known = halves(random, [row(random) for _ in range(random.randrange(most))])
        arrived = batch(made, TYPES).columns
        made = list(zip(*(column.to_pylist() for column in arrived), strict=True)) if made else []
        beside = store.beside(arrived, known)
        of_batch = [random.randrange(len(made)) for _ in range(random.randrange(most))] if made else []
        of_store = random.choices(sorted(alive), k=random.randrange(most)) if alive else []
        mixed = [*of_batch, *(~slot for slot in of_store)]
        random.shuffle(mixed)
        columns = beside.gather(ints(mixed), TYPES)
        for column in columns:
            column.validate(full=True)
        rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
        assert str(rows) == str([alive[~n] if n < 0 else made[n] for n in mixed])
        which = [n for n in range(len(made)) if random.random() < 0.7]
        if which:
            taken = slots.take(len(which))
            store.reserve(slots.high)
            store.write(taken, store.beside(arrived, known), ints(which))
            alive |= {slot: made[n] for slot, n in zip(taken.tolist(), which, strict=True)}
        gone = [slot for slot in alive if random.random() < 0.4]
        store.free(ints(gone))
        slots.give_back(ints(gone))
        for slot in gone:
            del alive[slot]
        if random.random() < 0.2:
            store = codec.decode(codec.encode(store), STATE_CLASSES)
        store.check()
    wanted = [n for n in range(len(TYPES)) if random.random() < 0.5]
    some = store.gather(ints(sorted(alive)), [TYPES[n] for n in wanted], wanted)
    assert str([c.to_pylist() for c in some]) == str([[alive[slot][n] for slot in sorted(alive)] for n in wanted])


def test_texts_of_any_length_in_any_order() -> None:
    random = Random(1)
    types = [pa.string(), pa.binary()]
    store = RecordStore.of(types)
    made = [(random.choice(LONG), random.choice(LONG).encode()) for _ in range(4 * BLOCK)]
    beside = store.beside(batch(made, types).columns)
    store.reserve(len(made))
    store.write(np.arange(len(made)), beside, np.arange(len(made)))
    order = [random.choice((n, ~n)) for n in random.choices(range(len(made)), k=5 * BLOCK)]
    columns = beside.gather(ints(order), types)
    assert list(zip(*(column.to_pylist() for column in columns), strict=True)) == [made[max(n, ~n)] for n in order]


def test_a_restart_forgets_names_and_remembers_what_is_missing() -> None:
    """The join may count its rows anew, so that two rows of one name would be taken for one."""
    types = [pa.int64(), pa.int64()]
    store = RecordStore.of(types)
    known = Halves(np.array([0, 1], dtype=np.uint8), np.array([[5, MISSING], [MISSING, 7]]))
    store.reserve(2)
    store.write(ints([0, 1]), store.beside(batch([(1, None), (None, 2)], types).columns, known), ints([0, 1]))
    again = codec.decode(codec.encode(store), STATE_CLASSES)
    assert [again.records[name][:2].tolist() for name in ("left", "right")] == [[NAMELESS, -1], [-1, NAMELESS]]
    assert [column.to_pylist() for column in again.gather(ints([0, 1]), types)] == [[1, None], [None, 2]]


def test_halves_of_other_columns_are_not_believed() -> None:
    """What is missing is NULL like anything else then."""
    types, names = [pa.int64(), pa.int64()], np.array([[1], [MISSING]])
    store = RecordStore.of(types)
    store.beside(batch([(1, None)], types).columns, Halves(np.array([0, 1], dtype=np.uint8), names))
    other = store.beside(batch([(1, 2)], types).columns, Halves(np.array([1, 0], dtype=np.uint8), names))
    assert [column.to_pylist() for column in other.gather(ints([0]), types)] == [[1], [2]]


def test_texts_that_lie_are_found() -> None:
    store = RecordStore.of([pa.string()])
    store.reserve(1)
    store.write(ints([0]), store.beside([pa.array(["abc"])]), ints([0]))
    store.records["t0"][0] = 4
    with pytest.raises(Unsound):
        store.check()
