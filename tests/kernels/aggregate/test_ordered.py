"""The pairing heap against a sorted list: any row can be put in and taken out, and the least or greatest is on top."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.profile import examples
from transom.kernels.aggregate import ordered
from transom.kernels.aggregate.cells import to_cells
from transom.kernels.columns import text_parts
from transom.kernels.jit import jit

SLOTS = 40
LONG = "the first sixteen bytes are shared by "
POOL: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integers": (pa.int64(), [-(2**63), -1, 0, 1, 5, 2**63 - 1]),
    "floats": (pa.float64(), [float("-inf"), -1.5, 0.0, 3e-310, 2.0, float("inf"), float("nan")]),
    "texts": (pa.string(), ["", "a", "a\0", "b", LONG, LONG + "one", LONG + "one\0", LONG + "two", "é"]),
}


# As loops call them: compiled.


@jit
def insert(root, slot, turn, links, values, texts):  # type: ignore[no-untyped-def]
    return ordered.insert(root, slot, turn, links, values, texts)


@jit
def remove(root, slot, turn, links, values, texts):  # type: ignore[no-untyped-def]
    return ordered.remove(root, slot, turn, links, values, texts)


@jit
def compare(a, b, values, texts):  # type: ignore[no-untyped-def]
    return ordered.compare(a, b, values, texts)


class Heap:
    """Slots with values, and the heap of those that are in."""

    def __init__(self, type_: pa.DataType, values: list[Any], turn: int) -> None:
        array = pa.array(values, type_)
        self.values = to_cells(array)
        if type_ == pa.string():
            starts, data = text_parts(array)
            self.texts: Any = (starts[:-1], np.diff(starts), data, 1, 0)
        else:
            empty = np.zeros(0, dtype=np.int64)
            self.texts = (empty, empty, np.zeros(0, dtype=np.uint8), 0, -1)
        self.turn = turn
        self.links = np.full((3, len(values)), -1, dtype=np.int64)
        self.root = -1

    def insert(self, slot: int) -> None:
        self.root = insert(self.root, slot, self.turn, self.links, self.values, self.texts)

    def remove(self, slot: int) -> None:
        self.root = remove(self.root, slot, self.turn, self.links, self.values, self.texts)

    def compare(self, a: int, b: int) -> int:
        return int(compare(a, b, self.values, self.texts))


@pytest.mark.parametrize("kind", POOL)
@pytest.mark.parametrize("turn", [1, -1])
def test_the_top_is_the_least_or_the_greatest(kind: str, turn: int) -> None:
    type_, pool = POOL[kind]  # the pool is in the order of values
    ranks = {value: rank for rank, value in enumerate(pool)}

    @settings(max_examples=examples(by_day=15, at_night=150))
    @given(st.integers(0, 10**9))
    def check(seed: int) -> None:
        random = Random(seed)
        values = [random.choice(pool) for _ in range(SLOTS)]
        heap = Heap(type_, values, turn)
        inside: set[int] = set()
        for _ in range(150):
            outside = sorted(set(range(SLOTS)) - inside)
            if inside and (not outside or random.random() < 0.5):
                slot = heap.root if random.random() < 0.3 else random.choice(sorted(inside))
                heap.remove(slot)
                inside.remove(slot)
            else:
                slot = random.choice(outside)
                heap.insert(slot)
                inside.add(slot)
            if not inside:
                assert heap.root == -1
                continue
            wanted = (min if turn == 1 else max)(ranks[values[slot]] for slot in inside)
            assert heap.root in inside and ranks[values[heap.root]] == wanted

    check()


@pytest.mark.parametrize("kind", POOL)
def test_values_compare_in_their_order(kind: str) -> None:
    type_, pool = POOL[kind]
    heap = Heap(type_, pool + pool, 1)
    n = len(pool)
    for a in range(n):
        for b in range(n):
            assert np.sign(heap.compare(a, b + n)) == np.sign(a - b)


def test_a_heap_of_many_equal_rows_empties_in_any_order() -> None:
    heap = Heap(pa.int64(), [7] * SLOTS, 1)
    for slot in range(SLOTS):
        heap.insert(slot)
    order = list(range(SLOTS))
    Random(3).shuffle(order)
    for left, slot in zip(range(SLOTS - 1, -1, -1), order, strict=True):
        heap.remove(slot)
        assert (heap.root == -1) == (left == 0)
