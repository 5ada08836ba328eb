"""ROWS over a whole stream, alone and with RANGE: closed by the N-th next row or by time, each open row id once."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.stepping import Life, Stepped, stream_deltas
from tests.kernels.window.streams import CUTS, TYPES, Stream, long_stream, streams, window, without_ghosts
from transom.core.time import FOREVER, UNBOUNDED
from transom.kernels.window.rows import RowsWindow


def by_definition(stream: Stream, rows: int, length: int) -> list[Life]:
    lives: list[Life] = []
    for i, (t, values) in enumerate(stream):
        ends = [stream[i + rows][0]] if i + rows < len(stream) else []
        if t + length < FOREVER:
            ends.append(t + length)
        lives.append((values, t, min(ends, default=None)))
    return without_ghosts(lives)


@settings(max_examples=100)
@given(
    streams(), CUTS, st.sampled_from([1, 2, 3, 7, 2**63 - 1]), st.sampled_from([UNBOUNDED, 1, 3, 8, FOREVER]),
    st.booleans(),
)  # fmt: skip
def test_a_row_lives_until_the_nth_next_or_its_time(
    stream: Stream, frontier: set[int], rows: int, length: int, restart: bool
) -> None:
    stepped = window(RowsWindow(rows, length), stream, frontier, restart)
    assert stepped.all_lives() == by_definition(stream, rows, length)
    assert stepped.open_ids.in_use == len(stepped.open) <= rows
    assert len(stepped.state.open) == len(stepped.open)


def test_rows_of_one_instant_push_each_other_out_without_a_trace() -> None:
    stream: Stream = [(5, ("a", None, i)) for i in range(4)]
    stepped = window(RowsWindow(1), stream, set(), restart=False)
    assert stepped.all_lives() == [(("a", None, 3), 5, None)]


def test_memory_stays_small_however_long_the_stream_is() -> None:
    for length in (UNBOUNDED, 4):
        stepped = Stepped(RowsWindow(10, length))
        for delta in stream_deltas(long_stream(2_000), TYPES, range(10, 2_001, 10)):
            stepped.step((delta,), delta.frontier)
        assert len(stepped.state.open) == min(10, length)
        assert stepped.state.times.data.shape[1] <= 64
        assert len(stepped.open_ids.end) <= 64 and stepped.open_ids.slots.high <= 64
