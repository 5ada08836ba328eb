"""Ring hash: ends that grow with arrival; the ring grows, wraps around and forgets."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.join import pairs
from tests.kernels.stepping import Life, Relation, Stepped, ints
from transom.core.delta import Ends
from transom.kernels import keys as key_bytes
from transom.kernels.join import join as driver
from transom.kernels.join import ring_sweep
from transom.kernels.join.ring_hash import RingSide
from transom.kernels.join.side import Arrivals


@pytest.mark.parametrize("kind", pairs.KINDS)
def test_pairs_are_those_of_the_definition(kind: str) -> None:
    @settings(max_examples=20)
    @given(pairs.relations(kind, True), pairs.relations(kind, True), pairs.CUTS, st.booleans())
    def check(left: Relation, right: Relation, cuts: list[int], restart: bool) -> None:
        stepped = pairs.joined(pairs.join(kind, "ring_hash"), left, right, cuts, restart)
        assert stepped.all_lives() == pairs.by_definition(kind, left.lives, right.lives)
        assert stepped.state.left.alive == pairs.kept(left.lives, kind)
        assert stepped.state.right.alive == pairs.kept(right.lives, kind)
        assert stepped.state.open_pairs.slots.in_use == len(stepped.open)

    check()


@pytest.mark.parametrize("kind", ["text", "decimal", "both", "three"])
def test_rows_whose_hashes_collide_are_reported_apart_by_their_keys(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_bytes, "hash_bytes", lambda data, offsets: np.zeros(len(offsets) - 1, dtype=np.uint64))

    @settings(max_examples=15)
    @given(pairs.relations(kind, True), pairs.relations(kind, True), pairs.CUTS)
    def check(left: Relation, right: Relation, cuts: list[int]) -> None:
        stepped = pairs.joined(pairs.join(kind, "ring_hash"), left, right, cuts)
        assert stepped.all_lives() == pairs.by_definition(kind, left.lives, right.lives)

    check()


@pytest.mark.parametrize("block", [1, 3])
def test_pairs_may_be_looked_at_in_blocks_of_any_size(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "BLOCK", block)
    lives: list[Life] = [((k, None, i), i, 40) for i, k in enumerate([0, 1, 0, 0, None, 1, 0])]
    types = pairs.types_of("integer")
    stepped = pairs.joined(pairs.join("integer", "ring_hash"), Relation(lives, types), Relation(lives, types), [20, 60])
    assert stepped.all_lives() == pairs.by_definition("integer", lives, lives)


@pytest.mark.parametrize("kind", ["integer", "text"])
@pytest.mark.parametrize("keys", [3, pytest.param(40, marks=pytest.mark.nightly), 4_000])
@pytest.mark.parametrize("block", [pytest.param(100, marks=pytest.mark.nightly), 3_000, driver.BLOCK])
def test_many_rows_meet_in_one_step(kind: str, keys: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains are followed together, or one by one where they are long; with some rows of the other side, or none."""
    monkeypatch.setattr(driver, "BLOCK", block)
    random = Random(keys)
    lives: list[list[Life]] = [[], []]
    for t in range(700):
        number = random.randrange(keys)
        key = number if kind == "integer" else f"key {number}"
        lives[t < 150 or random.random() < 0.4].append(((key, None, t), t, t + 90))
    types = pairs.types_of(kind)
    left, right = (Relation(side, types) for side in lives)
    stepped = pairs.joined(pairs.join(kind, "ring_hash"), left, right, [60, 65, 630, 800])
    assert stepped.all_lives() == pairs.by_definition(kind, left.lives, right.lives)


def test_the_oldest_row_meets_those_that_come() -> None:
    """It is at the very tail of the ring, and alone in its chain."""
    types = pairs.types_of("integer")
    left, right = (
        Relation([((i, None, i), first + i, 1_000 + i) for i in range(2 * ring_sweep.FEW)], types) for first in (0, 100)
    )
    stepped = pairs.joined(pairs.join("integer", "ring_hash"), left, right, [90, 300])
    assert stepped.state.left.oldest == 0
    assert stepped.all_lives() == pairs.by_definition("integer", left.lives, right.lives)


def bursts(open_rows: bool) -> Relation:
    """A row a tick that lives for ten, with a burst of two hundred at once now and then."""
    lives: list[Life] = []
    for t in range(1_500):
        for _ in range(200 if t % 400 == 250 else 1):
            lives.append(((len(lives) % 7, f"text {len(lives)}", len(lives)), t, t + 10))
    opened = frozenset(range(len(lives)) if open_rows else ())
    return Relation(lives, pairs.types_of("integer"), opened)


@pytest.mark.parametrize("open_rows", [False, True])
def test_the_ring_wraps_around_and_its_memory_stays_that_of_the_rows_alive(open_rows: bool) -> None:
    relation = bursts(open_rows)
    other = Relation(relation.lives[::50], relation.types)
    stepped = Stepped(pairs.join("integer", "ring_hash")).feed((relation, other), range(5, 1_531, 5))
    assert stepped.all_lives() == pairs.by_definition("integer", relation.lives, other.lives)
    side = stepped.state.left
    assert side.alive == 0 and side.newest == len(relation.lives)
    assert side.capacity == 256 and len(side.head) == 512
    assert len(side.lifetimes.next_observer) <= 512 and len(side.lifetimes.observer) <= 512
    assert side.rows.used == 0 and len(side.rows.arena) < 20_000
    assert stepped.state.open_pairs.pairs.shape[1] <= 300
    assert stepped.open_ids.in_use == 0


def test_a_side_that_grows_keeps_who_waits_for_which_open_id() -> None:
    """Two rows of one open row id, as a union brings them, in a ring that is laid out anew twice."""
    side = RingSide.of([pa.int64()], keyed=False)
    given_ids = [i // 2 for i in range(300)]
    for first in range(0, 300, 30):
        count = len(given_ids[first : first + 30])
        side.reserve(count)
        rows = Arrivals(
            [pa.array(range(first, first + count))], np.arange(first, first + count).astype(np.uint64), [],
            ints([1] * count), ints([9] * count), ints(given_ids[first : first + 30]),
        )  # fmt: skip
        side.insert(rows)
    assert side.capacity == 512
    slots, te = side.lifetimes.closed(Ends.of(ints([0, 149, 7]), ints([3, 4, 5])))
    assert sorted(zip(slots.tolist(), te.tolist(), strict=True)) == [
        (0, 3),
        (1, 3),
        (14, 5),
        (15, 5),
        (298, 4),
        (299, 4),
    ]
    assert side.lifetimes.undetermined == 294
