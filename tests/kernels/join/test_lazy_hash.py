"""Lazily sorted hash: rows end in any order, and their slots are used again."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.join import pairs
from tests.kernels.stepping import Life, Relation, Stepped
from transom.core.schema import BOOLEAN
from transom.kernels import keys as key_bytes
from transom.plan.expression import Call, ColumnRef


@pytest.mark.parametrize("kind", pairs.KINDS)
def test_pairs_are_those_of_the_definition(kind: str) -> None:
    @settings(max_examples=20)
    @given(pairs.relations(kind, False), pairs.relations(kind, False), pairs.CUTS, st.booleans())
    def check(left: Relation, right: Relation, cuts: list[int], restart: bool) -> None:
        stepped = pairs.joined(pairs.join(kind, "lazy_hash"), left, right, cuts, restart)
        assert stepped.all_lives() == pairs.by_definition(kind, left.lives, right.lives)
        assert stepped.state.left.alive == pairs.kept(left.lives, kind)
        assert stepped.state.right.alive == pairs.kept(right.lives, kind)
        assert stepped.state.open_pairs.slots.in_use == len(stepped.open)

    check()


@pytest.mark.parametrize("kind", ["text", "three"])
def test_rows_whose_hashes_collide_are_reported_apart_by_their_keys(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_bytes, "hash_bytes", lambda data, offsets: np.full(len(offsets) - 1, 5, dtype=np.uint64))

    @settings(max_examples=15)
    @given(pairs.relations(kind, False), pairs.relations(kind, False), pairs.CUTS)
    def check(left: Relation, right: Relation, cuts: list[int]) -> None:
        stepped = pairs.joined(pairs.join(kind, "lazy_hash"), left, right, cuts)
        assert stepped.all_lives() == pairs.by_definition(kind, left.lives, right.lives)

    check()


def test_what_else_must_hold_of_a_pair_is_asked_too() -> None:
    number = len(pairs.types_of("text")) - 1
    first, second = ColumnRef(number, pairs.PAYLOAD[1], "a"), ColumnRef(2 * number + 1, pairs.PAYLOAD[1], "b")
    kernel = pairs.join("text", "lazy_hash", Call("<", (first, second), BOOLEAN))

    @settings(max_examples=15)
    @given(pairs.relations("text", False), pairs.CUTS)
    def check(relation: Relation, cuts: list[int]) -> None:
        other = Relation(relation.lives, relation.types, frozenset(range(0, 12, 2)))
        stepped = pairs.joined(kernel, relation, other, cuts)
        expected = pairs.by_definition("text", relation.lives, other.lives, lambda a, b: bool(a[number] < b[number]))
        assert stepped.all_lives() == expected

    check()


def test_memory_is_that_of_the_rows_alive() -> None:
    random = Random(1)
    lives: list[Life] = [((i % 5, "t" * (i % 40), i), i, i + random.choice([1, 5, 30])) for i in range(1_500)]
    relation = Relation(lives, pairs.types_of("integer"), frozenset(range(0, 1_500, 3)))
    other = Relation(lives[::40], relation.types)
    stepped = Stepped(pairs.join("integer", "lazy_hash")).feed((relation, other), range(5, 1_600, 5))
    assert stepped.all_lives() == pairs.by_definition("integer", lives, other.lives)
    side = stepped.state.left
    assert side.alive == 0 and side.capacity <= 128 and len(side.head) <= 256
    assert (side.head == -1).all() and not side.lifetimes.runs and not side.lifetimes.unsorted
    assert side.rows.columns[1].alive == 0 and len(side.rows.columns[1].arena) < 10_000
    assert stepped.open_ids.in_use == 0
