"""PARTITION BY .. ROWS, alone and with RANGE: counted among the rows of a key; NULL and NaN are keys like others."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.stepping import Life, Stepped, stream_deltas
from tests.kernels.window.streams import CUTS, TYPES, Stream, long_stream, streams, window, without_ghosts
from transom.core.time import FOREVER, UNBOUNDED
from transom.kernels.window.partition_rows import PartitionRowsWindow
from transom.runtimes.reference.history import grouped


def by_definition(stream: Stream, partition: tuple[int, ...], rows: int, length: int) -> list[Life]:
    lives: list[Life] = []
    for i, (t, values) in enumerate(stream):
        key = grouped(values[k] for k in partition)
        later = [t for t, other in stream[i + 1 :] if grouped(other[k] for k in partition) == key]
        ends = [later[rows - 1]] if rows <= len(later) else []
        if t + length < FOREVER:
            ends.append(t + length)
        lives.append((values, t, min(ends, default=None)))
    return without_ghosts(lives)


@settings(max_examples=100)
@given(
    streams(), CUTS, st.sampled_from([(0,), (1,), (0, 1)]), st.sampled_from([1, 2, 3, 2**63 - 1]),
    st.sampled_from([UNBOUNDED, 1, 3, 8, FOREVER]), st.booleans(),
)  # fmt: skip
def test_rows_are_counted_within_their_partition(
    stream: Stream, frontier: set[int], partition: tuple[int, ...], rows: int, length: int, restart: bool
) -> None:
    stepped = window(PartitionRowsWindow(partition, rows, length), stream, frontier, restart)
    assert stepped.all_lives() == by_definition(stream, partition, rows, length)
    assert stepped.open_ids.in_use == len(stepped.open)


@pytest.mark.parametrize("length", [UNBOUNDED, 4])
def test_memory_stays_small_however_long_the_stream_is(length: int) -> None:
    stepped = Stepped(PartitionRowsWindow((0,), 5, length))
    for delta in stream_deltas(long_stream(2_000), TYPES, range(10, 2_001, 10)):
        stepped.step((delta,), delta.frontier)
    state = stepped.state
    assert len(stepped.open) == (10 if length == UNBOUNDED else 4)
    assert state.node_slots.in_use == (10 if length == UNBOUNDED else 4) and state.nodes.shape[1] <= 64
    assert state.timers.data.shape[1] <= 64 and state.lists.shape[1] <= 64
    assert stepped.open_ids.slots.high <= 20


@pytest.mark.parametrize("rows", [1, 3])
def test_a_partition_whose_rows_have_all_ended_is_forgotten(rows: int) -> None:
    stream: Stream = [(t, (f"key {t}", None, t)) for t in range(4_000)]
    stepped = Stepped(PartitionRowsWindow((0,), rows, 20))
    for delta in stream_deltas(stream, TYPES, range(10, 4_001, 10)):
        stepped.step((delta,), delta.frontier)
    state = stepped.state
    assert state.keys.slots.in_use == state.node_slots.in_use == 20
    assert state.lists.shape[1] <= 64 and state.nodes.shape[1] <= 64 and len(state.keys.head) <= 64


def test_a_key_that_comes_again_is_counted_anew() -> None:
    """Its first partition was forgotten; where its number is given to another key nobody takes one for the other."""
    again: list[int] = [0, 1, 2, 12, 13, 30, 31, 33, 34, 60]
    stream: Stream = [(t, ("ab"[n % 2], None, n)) for n, t in enumerate(again)]
    for frontier in ({11}, {25}, {11, 25, 33, 50}, set(range(1, 61))):
        stepped = window(PartitionRowsWindow((0,), 2, 5), stream, frontier, True)
        assert stepped.all_lives() == by_definition(stream, (0,), 2, 5)
