"""DEDUPLICATE passes the first row of a key, and the next that comes T after it; what it keeps does not grow."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.stepping import Stepped, stream_deltas
from tests.kernels.window.streams import CUTS, TYPES, Stream, cuts, long_stream, streams
from transom.core.time import FOREVER
from transom.kernels.deduplicate.deduplicate import DeduplicateKernel
from transom.runtimes.reference.admission import TimedRow
from transom.runtimes.reference.window import without_repeats


@settings(max_examples=60)
@given(
    streams(), CUTS, st.sampled_from([(0,), (1,), (0, 1)]), st.sampled_from([1, 2, 3, 8, FOREVER]), st.booleans(),
)  # fmt: skip
def test_a_row_passes_if_none_of_its_key_passed_shortly_before(
    stream: Stream, frontier: set[int], partition: tuple[int, ...], length: int, restart: bool
) -> None:
    stepped = Stepped(DeduplicateKernel(partition, length), origin=stream[0][0] if stream else 0, restart=restart)
    passed: list[tuple[int, object]] = []
    for delta in stream_deltas(stream, TYPES, cuts(stream, frontier)):
        out = stepped.step((delta,), delta.frontier)
        passed += zip(out.t.tolist(), out.values.column(2).to_pylist(), strict=True)
    rows = [TimedRow(values, t) for t, values in stream]
    assert passed == [(row.t, row.values[2]) for row in without_repeats(rows, partition, length)]


@pytest.mark.parametrize("keys", [2, 2_000])
def test_keys_are_forgotten_when_nothing_can_repeat_them(keys: int) -> None:
    stepped = Stepped(DeduplicateKernel((2,), 6))
    stream = [(t, (text, number, t % keys)) for t, (text, number, _) in long_stream(2_000)]
    for delta in stream_deltas(stream, TYPES, range(10, 2_001, 10)):
        stepped.step((delta,), delta.frontier)
    state = stepped.state
    assert len(state.due) == state.keys.slots.in_use == min(keys, 5)
    assert state.due.data.shape[1] <= 64 and len(state.until) <= 64
