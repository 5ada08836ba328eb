"""The tree of ranked rows against a sorted list, with its links and weights looked at after every change.

A tree with a wrong weight may be walked down for ever, so the weights are looked at before anybody asks for a rank.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from transom.kernels.aggregate import ranked
from transom.kernels.aggregate.accumulate import RANKED, at_fraction, change_tree

SLOTS = 24


class Tree:
    """Slots with whole numbers, and the tree of those that are in, each as often as it came."""

    def __init__(self, values: list[int]) -> None:
        self.values = np.array(values, dtype=np.int64), np.zeros(len(values), dtype=np.uint64)
        empty = np.zeros(0, dtype=np.int64)
        self.texts: Any = (empty, empty, np.zeros(0, dtype=np.uint8), 0, -1)
        self.nodes = np.zeros((len(values), ranked.NODE), dtype=np.int64)
        self.times = [0] * len(values)
        self.root = -1

    def change(self, slot: int, way: int, *, once: bool = False) -> None:
        self.times[slot] += way
        with np.errstate(over="ignore"):  # words of a hash
            self.root = change_tree(self.root, slot, way, self.times[slot], once, self.nodes, self.values, self.texts)

    def check(self) -> None:
        members = np.array(self.times) > 0
        ranked.check_trees(np.array([self.root]), self.nodes, members, np.zeros(len(members), dtype=np.int64))

    def in_order(self) -> list[int]:
        return sorted(int(value) for value, times in zip(self.values[0], self.times, strict=True) for _ in range(times))

    def value_at(self, k: int) -> int:
        return int(self.values[0][ranked.kth(self.root, k, self.nodes)])

    def at_fraction(self, part: int, whole: int) -> int:
        return int(self.values[0][at_fraction(self.root, RANKED, part, whole, self.nodes, self.values[0])])


@pytest.mark.parametrize("once", [False, True])
def test_every_rank_is_that_of_a_sorted_list(once: bool) -> None:
    random = Random("ranks")
    tree = Tree([random.randrange(12) for _ in range(SLOTS)])
    for _ in range(300):
        slot = random.randrange(SLOTS)
        way = random.choice([1, -1]) if tree.times[slot] else 1
        tree.change(slot, way, once=once)
        tree.check()
        expected = tree.in_order()
        if once:
            expected = sorted(set(expected))
        assert [tree.value_at(k) for k in range(len(expected))] == expected


def test_a_quantile_is_the_first_value_that_reaches_the_fraction() -> None:
    """All of them is asked for last: a rank that is too great is looked for without an end."""
    sizes = (1, 2, 3, 4, 10)
    asked = [(n, part, whole) for n in sizes for whole in (2, 4, 10) for part in range(whole)]
    for n, part, whole in [*asked, *((n, 1, 1) for n in sizes)]:
        tree = Tree(list(range(1, n + 1)))
        for slot in range(n):
            tree.change(slot, 1)
        assert tree.at_fraction(part, whole) == next(k for k in range(1, n + 1) if k * whole >= n * part)
