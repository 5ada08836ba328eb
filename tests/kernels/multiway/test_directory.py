"""One call over all inputs: where their arrays are is not saved, and found again when they are replaced."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.kernels.multiway import tuples
from tests.kernels.multiway.tuples import SHAPES, TYPES, K, Shape, T
from tests.kernels.stepping import Relation, Stepped
from transom.kernels.address import address_of
from transom.kernels.chain_table import ENTRIES, HEAD, MASK, OLDEST, START
from transom.kernels.multiway import mjoin
from transom.pipeline.registry import STATE_CLASSES
from transom.state import codec


def agrees(state: mjoin.MJoinState) -> bool:
    """Whether the directory says where things are."""
    tables = state.directory.tables.tolist()
    addresses = state.directory.addresses
    for i, own in enumerate(state.inputs):
        for table in own.tables:
            reported = tables.pop(0)
            if reported[HEAD] != address_of(table.head) or reported[ENTRIES] != address_of(table.entries):
                return False
            if (reported[MASK], reported[OLDEST]) != (own.mask, own.oldest) or addresses.masks[i] != own.mask:
                return False
            if any(reported[START] != address_of(key.start) for key in table.keys.columns):  # type: ignore[union-attr]
                return False
    return True


def by_key(count: int, first: int, key: int, te: int = 1000) -> Relation:
    """Rows that come one at each instant from `first` on."""
    rows: list[Any] = [((i, 0, f"t{i}", 0.0, i), first + i, te) for i in range(count)]
    return Relation(rows, TYPES) if key == K else Relation([((7, *row[0][1:]), *row[1:]) for row in rows], TYPES)


@pytest.mark.parametrize("rings", [False, True])
@pytest.mark.parametrize("key", [K, T])
def test_rows_one_by_one_while_arrays_grow_and_states_are_read_back(rings: bool, key: int) -> None:
    shape = Shape(3, (dict.fromkeys(range(3), key),))
    inputs = [by_key(70, first, key) for first in (0, 1, 2)]
    stepped = Stepped(tuples.kernel(shape, growing=(rings,) * 3))
    for frontier in range(1, 80):
        stepped.feed(inputs, [frontier])
        assert agrees(stepped.state)
        if frontier % 20 == 0:
            stepped.state = codec.decode(codec.encode(stepped.state), STATE_CLASSES)
            assert agrees(stepped.state)
    # Only rows of the same number have a key in common.
    same = zip(*(relation.lives for relation in inputs), strict=True)
    expected = [found for lives in same for found in tuples.by_definition(shape, [[life] for life in lives])]
    assert stepped.all_lives() == sorted(expected, key=repr) and len(expected) == 70
    assert min(own.capacity for own in stepped.state.inputs) >= 70


def test_what_ended_is_not_found_by_its_old_place() -> None:
    """A ring goes round: the places of rows that ended are used by others."""
    shape = SHAPES["one key"]
    lives = [((i % 3, 0, "", 0.0, i), i, i + 5) for i in range(400)]
    inputs = [Relation(lives, TYPES) for _ in range(3)]
    stepped = Stepped(tuples.kernel(shape, growing=(True,) * 3))
    for frontier in range(1, 410):
        stepped.feed(inputs, [frontier])
    assert agrees(stepped.state) and stepped.state.inputs[0].capacity == 64
    found = sorted((values[4], values[9], values[14], ta, te) for values, ta, te in stepped.all_lives())
    near = [-3, 0, 3]  # of the same key, and alive together
    tuples_of = [(a, a + b, a + c) for a in range(400) for b in near for c in near]
    whole = [m for m in tuples_of if min(m) >= 0 and max(m) < 400 and max(m) - min(m) < 5]
    assert found == sorted((*m, max(m), min(m) + 5) for m in whole)


def test_nothing_of_it_is_saved() -> None:
    state = tuples.kernel(SHAPES["one text"]).start()
    before = codec.encode(state)
    state.directory.tables[:] = 77
    assert codec.encode(state) == before


def test_a_join_gives_the_columns_that_are_picked() -> None:
    shape = SHAPES["one key"]
    inputs = [by_key(50, 0, K) for _ in range(3)]
    kernel = tuples.kernel(shape)
    picks = [6, 0, 2, 10, 0]
    schema = kernel.schema
    picked = kernel.picking(picks, _renamed(schema, picks))
    for cuts in ([5, 60], [60]):  # few at a time and many at once
        whole = Stepped(kernel).feed(inputs, cuts).all_lives()
        some = Stepped(picked).feed([by_key(50, 0, K) for _ in range(3)], cuts).all_lives()
        assert some == sorted([(tuple(values[at] for at in picks), ta, te) for values, ta, te in whole], key=repr)
        assert len(some) == 50
        inputs = [by_key(50, 0, K) for _ in range(3)]
    again = picked.picking([3, 1], _renamed(picked.schema, [3, 1]))
    assert again.picks == (10, 0)


def _renamed(schema: pa.Schema, picks: list[int]) -> pa.Schema:
    return pa.schema([(f"p{n}", schema.field(at).type) for n, at in enumerate(picks)])
