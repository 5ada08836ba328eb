"""Rows by key and age: whatever came and went, a range has the very rows that a look at all of them gives."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from transom.kernels.shared_join.key_order import KeyOrder


@pytest.mark.parametrize("seed", range(8))
def test_ranges_are_those_of_a_look_at_all_rows(seed: int) -> None:
    random = Random(seed)
    order, hashes, null, first = KeyOrder(), np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.bool_), 0
    most = random.choice([3, 400, 3000])
    for _ in range(30):
        count, keys = random.randrange(most), random.choice([1, 4, 1000])
        came = np.array([random.randrange(keys) << 40 for _ in range(count)], dtype=np.uint64)
        gone = np.array([random.random() < 0.1 for _ in range(count)], dtype=np.bool_)
        order.append(came, gone, len(hashes))
        hashes, null = np.concatenate([hashes, came]), np.concatenate([null, gone])
        first += random.randrange(1 + (len(hashes) - first) // random.choice([2, 9]))
        order.drop_until(first)
        wanted = np.array([random.randrange(keys + 1) << 40 for _ in range(5)], dtype=np.uint64)
        begin = np.array([random.randint(first, len(hashes)) for _ in range(5)])
        end = np.array([random.randint(low, len(hashes)) for low in begin.tolist()])
        ranges = order.ranges(wanted, begin, end)
        expected = [
            (7 + row, number)
            for row in range(5)
            for number in range(int(begin[row]), int(end[row]))
            if hashes[number] == wanted[row] and not null[number]
        ]
        mine, others = ranges.pairs(7, 5)
        assert list(zip(mine.tolist(), others.tolist(), strict=True)) == expected
        assert ranges.counts.tolist() == [sum(row == 7 + i for row, _ in expected) for i in range(5)]
        three = [pair for pair in expected if pair[0] < 10]
        assert list(zip(*(column.tolist() for column in ranges.pairs(7, 3)), strict=True)) == three
