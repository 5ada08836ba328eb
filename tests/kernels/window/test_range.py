"""RANGE, NOW and UNBOUNDED: t + T, and forever beyond the time domain."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.stepping import ints
from tests.kernels.window.streams import CUTS, Stream, streams, window, without_ghosts
from transom.core.time import BEGINNING, FOREVER, UNBOUNDED
from transom.kernels.window.range import RangeWindow, end_after


@settings(max_examples=50)
@given(streams(), CUTS, st.sampled_from([1, 3, 10, UNBOUNDED]))
def test_a_row_lives_for_the_length_of_the_window(stream: Stream, frontier: set[int], length: int) -> None:
    expected = without_ghosts([(values, t, min(t + length, FOREVER)) for t, values in stream])
    stepped = window(RangeWindow(length), stream, frontier, restart=False)
    assert stepped.all_lives() == expected
    assert not stepped.open and not stepped.open_ids.in_use


@pytest.mark.parametrize("t", [BEGINNING, -1, 0, 1, FOREVER - 1])
@pytest.mark.parametrize("length", [1, FOREVER, FOREVER + 1, UNBOUNDED - 1, UNBOUNDED])
def test_no_sum_leaves_the_time_domain(t: int, length: int) -> None:
    assert end_after(ints([t]), length).tolist() == [min(t + length, FOREVER)]
