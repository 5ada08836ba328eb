"""The queue: what went in comes out in order, and its array follows the rows inside, not those that passed through."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.stepping import ints
from transom.state.fifo import Fifo


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), max_size=30))
def test_it_is_a_queue(moves: list[tuple[int, int]]) -> None:
    queue = Fifo.of(2)
    inside: list[int] = []
    fresh = 0
    for added, dropped in moves:
        new = list(range(fresh, fresh + added))
        fresh += added
        queue.append(ints(new), ints(-value for value in new))
        inside += new
        gone = min(dropped, len(inside))
        queue.drop(gone)
        inside = inside[gone:]
        assert len(queue) == len(inside)
        assert queue.column(0).tolist() == inside and queue.column(1).tolist() == [-value for value in inside]


def test_its_array_stays_small() -> None:
    queue = Fifo.of(1)
    for step in range(1_000):
        queue.append(ints(range(step, step + 7)))
        queue.drop(max(len(queue) - 10, 0))
    assert len(queue) == 10 and queue.data.shape[1] <= 64
