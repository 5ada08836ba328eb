"""Pairs with an open end: closed once, at the earlier end of their two rows, and taken out of both lists."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.join import pairs
from tests.kernels.stepping import Relation, Stepped, ints
from transom.kernels.join.open_pairs import OpenPairs


class Rows:
    """One side of the pairs: ends by slot and the heads of their lists, as a side keeps them."""

    def __init__(self, slots: int) -> None:
        self.te = np.zeros(slots, dtype=np.int64)
        self.first_pair = np.full(slots, -1, dtype=np.int64)
        self.mask = slots - 1


@settings(max_examples=50)
@given(st.integers(0, 10**6))
def test_each_pair_is_closed_once_at_the_earlier_end(seed: int) -> None:
    random = Random(seed)
    left, right, open_pairs = Rows(16), Rows(8), OpenPairs()
    known: dict[int, tuple[int, int]] = {}  # open row id -> positions
    open_ids = iter(range(10_000))
    for _ in range(12):
        # Positions beyond the mask, as a ring has them; each pair of rows at most once.
        fresh = {(random.randrange(16, 32), random.randrange(8, 16)) for _ in range(random.randrange(12))}
        fresh -= set(known.values())
        made = dict(zip(open_ids, sorted(fresh), strict=False))
        known |= made
        open_pairs.add(
            ints(a for a, _ in made.values()), ints(b for _, b in made.values()), ints(made),
            left.first_pair, left.mask, right.first_pair, right.mask,
        )  # fmt: skip
        left.te[:] = [random.randrange(50) for _ in left.te]
        right.te[:] = [random.randrange(50) for _ in right.te]
        side = random.randrange(2)
        dead = random.sample(range(16, 32) if side == 0 else range(8, 16), 3)
        closed, te, _ = open_pairs.close(ints(dead), side, left, right)
        expected = {open_id: pair for open_id, pair in known.items() if pair[side] in dead}
        assert sorted(closed.tolist()) == sorted(expected)
        for open_id, end in zip(closed.tolist(), te.tolist(), strict=True):
            a, b = known.pop(open_id)
            assert end == min(left.te[a & left.mask], right.te[b & right.mask])
        assert open_pairs.slots.in_use == len(known)
    assert open_pairs.slots.high <= 16 * 8


@pytest.mark.parametrize("tactic", ["ring_hash", "lazy_hash", "nested_loop"])
def test_a_pair_of_two_open_rows_ends_in_the_step_that_passes_the_first_end(tactic: str) -> None:
    types = pairs.types_of("integer")
    left = Relation([((1, None, 0), 2, 9), ((1, None, 1), 3, 12)], types, frozenset({0, 1}))
    right = Relation([((1, None, 0), 4, 9), ((1, None, 1), 5, 30)], types, frozenset({0, 1}))
    stepped = Stepped(pairs.join("integer", tactic))
    open_after = {}
    for frontier in (3, 6, 9, 10, 12, 13, 31):
        stepped.feed((left, right), [frontier])
        open_after[frontier] = len(stepped.open)
    assert open_after == {3: 0, 6: 4, 9: 4, 10: 1, 12: 1, 13: 0, 31: 0}
    assert stepped.all_lives() == pairs.by_definition("integer", left.lives, right.lives)
    assert stepped.open_ids.in_use == 0 and stepped.state.open_pairs.slots.in_use == 0


def test_a_known_end_makes_no_open_pair_when_time_has_passed_it_anyway() -> None:
    types = pairs.types_of("integer")
    left = Relation([((1, None, 0), 2, None)], types)
    right = Relation([((1, None, 0), 4, 7), ((1, None, 1), 4, 8), ((1, None, 2), 4, 9)], types)
    stepped = Stepped(pairs.join("integer", "lazy_hash")).feed((left, right), [8])
    # An open row ends at 8 or later: the pairs that end at 7 and at 8 are known, the third is not.
    assert [(ta, te) for _, ta, te in stepped.all_lives()] == [(4, 7), (4, 8), (4, None)]
