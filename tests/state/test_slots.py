"""Slots: no place is given to two at once, and places that were given back are given again before new ones."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transom.state.slots import SlotPool, grown


@settings(max_examples=50)
@given(st.integers(0, 10**9))
def test_a_place_belongs_to_one_at_a_time(seed: int) -> None:
    random = Random(seed)
    pool = SlotPool()
    taken: set[int] = set()
    most = 0
    for _ in range(40):
        fresh = pool.take(random.randrange(6)).tolist()
        assert not taken & set(fresh) and len(set(fresh)) == len(fresh)
        taken |= set(fresh)
        most = max(most, len(taken))
        back = random.sample(sorted(taken), random.randrange(len(taken) + 1))
        pool.give_back(np.array(back, dtype=np.int64))
        taken -= set(back)
        assert pool.in_use == len(taken) and pool.high == most


@pytest.mark.parametrize("shape", [(0,), (3,), (2, 0), (2, 5), (2, 3, 100)])
def test_an_array_grows_along_its_last_axis_and_keeps_what_it_has(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    bigger = grown(array, shape[-1] + 1, -1)
    assert bigger.shape[:-1] == shape[:-1] and bigger.shape[-1] >= max(64, 2 * shape[-1], shape[-1] + 1)
    assert (bigger[..., : shape[-1]] == array).all() and (bigger[..., shape[-1] :] == -1).all()
    assert bigger.dtype == array.dtype and not np.shares_memory(bigger, array)
