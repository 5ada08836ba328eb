"""RANGE T SLIDE S: sampled at the multiples of S and held; what no sample sees is never there."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.stepping import Life, Stepped, ints, stream_deltas
from tests.kernels.window.streams import CUTS, TYPES, Stream, cuts, long_stream, streams, window, without_ghosts
from transom.core.time import BEGINNING, FOREVER, UNBOUNDED
from transom.kernels.window.slide_range import SlideRangeWindow, ceil_to


def samples_that_see(t: int, length: int, slide: int) -> list[int]:
    """The multiples kS with kS - T < t <= kS: the law, by trying."""
    candidates = range((t - 2 * slide) // slide * slide, t + length + 2 * slide, slide)
    return [sample for sample in candidates if sample - length < t <= sample]


def by_definition(stream: Stream, length: int, slide: int) -> list[Life]:
    lives: list[Life] = []
    for t, values in stream:
        seen = samples_that_see(t, length, slide)
        if seen:
            lives.append((values, seen[0], seen[-1] + slide))
    return without_ghosts(lives)


@settings(max_examples=100)
@given(streams(), CUTS, st.integers(1, 12), st.integers(1, 7), st.booleans())
def test_the_samples_see_what_the_law_says(
    stream: Stream, frontier: set[int], length: int, slide: int, restart: bool
) -> None:
    stepped = window(SlideRangeWindow(length, slide), stream, frontier, restart)
    assert stepped.all_lives() == by_definition(stream, length, slide)
    assert not stepped.open and not stepped.state.waiting
    expected = [te for _, _, te in by_definition(stream, length, slide) if te is not None]
    assert stepped.state.last == max(expected, default=BEGINNING)


def test_a_row_comes_out_when_progress_is_past_its_sample_and_not_before() -> None:
    stepped = Stepped(SlideRangeWindow(10, 10))
    stream: Stream = [(3, ("a", None, 0))]
    for frontier, seen in ((4, 0), (10, 0), (11, 1)):
        (delta,) = stream_deltas([row for row in stream if stepped.before <= row[0] < frontier], TYPES, [frontier])
        stepped.step((delta,), frontier)
        assert len(stepped.lives) == seen


@pytest.mark.parametrize("slide", [1, 7, 3_600_000_000, UNBOUNDED])
@pytest.mark.parametrize("t", [BEGINNING, -1, 0, FOREVER - 3_600_000_000, FOREVER - 2, FOREVER - 1, FOREVER])
def test_multiples_at_the_ends_of_time(t: int, slide: int) -> None:
    assert ceil_to(ints([t]), slide).tolist() == [FOREVER if t == FOREVER else min(-(-t // slide) * slide, FOREVER)]


def test_only_the_rows_of_one_slide_wait() -> None:
    stepped = Stepped(SlideRangeWindow(100, 20))
    ends = cuts([], set(range(10, 2_001, 10)))[:-1]
    for delta in stream_deltas(long_stream(2_000), TYPES, ends):
        stepped.step((delta,), delta.frontier)
        assert sum(len(part.ta) for part in stepped.state.waiting) <= 20
