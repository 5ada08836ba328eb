"""ROWS N SLIDE M: sampled after every M-th row and held; a last partial step never shows."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.stepping import Life, Stepped, stream_deltas
from tests.kernels.window.streams import CUTS, TYPES, Stream, long_stream, streams, window, without_ghosts
from transom.kernels.window.slide_rows import SlideRowsWindow

COUNTS = st.sampled_from([1, 2, 3, 4, 7, 2**62, 2**63 - 1])


def by_definition(stream: Stream, rows: int, slide: int) -> list[Life]:
    """After row n (n a multiple of M) the last N rows are there, until the next sample."""
    lives: list[Life] = []
    samples = range(slide, len(stream) + 1, slide)
    for i, (_, values) in enumerate(stream, start=1):
        inside = [n for n in samples if n - rows < i <= n]
        if inside:
            after = inside[-1] + slide
            lives.append((values, stream[inside[0] - 1][0], stream[after - 1][0] if after <= len(stream) else None))
    return without_ghosts(lives)


@settings(max_examples=100)
@given(streams(), CUTS, COUNTS, COUNTS, st.booleans())
def test_the_samples_hold_the_last_rows(
    stream: Stream, frontier: set[int], rows: int, slide: int, restart: bool
) -> None:
    stepped = window(SlideRowsWindow(rows, slide), stream, frontier, restart)
    assert stepped.all_lives() == by_definition(stream, rows, slide)
    assert stepped.open_ids.in_use == len(stepped.open) == len(stepped.state.open)
    assert sum(len(part) for part in stepped.state.waiting) == len(stream) % slide


def test_memory_stays_small_however_long_the_stream_is() -> None:
    stepped = Stepped(SlideRowsWindow(10, 4))
    for delta in stream_deltas(long_stream(2_000), TYPES, range(10, 2_001, 10)):
        stepped.step((delta,), delta.frontier)
    assert len(stepped.state.open) < 14 and stepped.state.open.data.shape[1] <= 64
    assert stepped.open_ids.slots.high <= 24
