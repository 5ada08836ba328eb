"""Open row ids: an end is written once, and an open row id is used again only when the step that closed it is over."""

from __future__ import annotations

import pytest

from tests.kernels.stepping import ints
from transom.state.open_ids import OPEN, OpenIdPool


def test_an_end_is_written_once() -> None:
    pool = OpenIdPool()
    open_ids = pool.take(3)
    ends = pool.close(open_ids[:2], ints([7, 8]))
    assert [part.tolist() for part in ends.arrays()] == [[0, 1], [7, 8]]
    with pytest.raises(AssertionError, match="twice"):
        pool.close(open_ids[1:], ints([9, 9]))


def test_a_open_id_is_not_used_again_in_the_step_that_closes_it() -> None:
    pool = OpenIdPool()
    pool.close(pool.take(2), ints([1, 2]))
    assert pool.take(1).tolist() == [2] and pool.in_use == 3
    pool.finish_step()
    assert pool.in_use == 1
    again = pool.take(2)
    assert sorted(again.tolist()) == [0, 1] and (pool.end[again] == OPEN).all()
    pool.close(again, ints([5, 6]))


def test_the_array_is_as_long_as_the_most_that_were_open_at_once() -> None:
    pool = OpenIdPool()
    for step in range(500):
        pool.close(pool.take(10), ints(range(step, step + 10)))
        pool.finish_step()
    assert pool.in_use == 0 and pool.slots.high == 10 and len(pool.end) <= 64 and not pool.closed


def test_nothing_closed_is_nothing_reported() -> None:
    assert OpenIdPool().close(ints([]), ints([])).chunks == ()
