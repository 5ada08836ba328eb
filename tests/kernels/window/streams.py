"""Random streams and cuts into steps for the windows, and the lifetimes that a window kernel gives them."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.kernels.stepping import Life, Stepped, Values, stream_deltas
from transom.core.time import FOREVER
from transom.runtimes.reference.history import canonical

TYPES = (pa.string(), pa.float64(), pa.int64())
"""Two columns to partition by, NULL and NaN among their values, and the number of the row."""

Stream = list[tuple[int, Values]]

TEXTS = st.sampled_from(["a", "b", None])
FLOATS = st.sampled_from([0.0, -0.0, float("nan"), None])
GAPS = st.sampled_from([0, 0, 1, 1, 2, 5])


@st.composite
def streams(draw: Any) -> Stream:
    """Rows in time order, many of them of one instant, some before the epoch."""
    drawn = draw(st.lists(st.tuples(GAPS, TEXTS, FLOATS), max_size=25))
    times = accumulate((gap for gap, _, _ in drawn), initial=draw(st.sampled_from([0, -17, 1_000])))
    next(times)
    return [(t, (text, number, i)) for i, (t, (_, text, number)) in enumerate(zip(times, drawn, strict=True))]


def cuts(stream: Stream, frontier: set[int]) -> list[int]:
    """Ends of steps, counted from the first row; the last one is forever."""
    first = stream[0][0] if stream else 0
    return [*sorted(first + cut for cut in frontier), FOREVER]


CUTS = st.sets(st.integers(1, 40), max_size=12)


def window(kernel: Any, stream: Stream, frontier: set[int], restart: bool) -> Stepped:
    """The kernel after the whole stream."""
    stepped = Stepped(kernel, origin=stream[0][0] if stream else 0, restart=restart)
    ends = cuts(stream, frontier)
    for delta in stream_deltas(stream, TYPES, ends):
        stepped.step((delta,), delta.frontier)
    return stepped


def without_ghosts(lives: list[Life]) -> list[Life]:
    """As `Stepped.all_lives` has them."""
    real = [(canonical(values), ta, te) for values, ta, te in lives if te is None or ta < te]
    return sorted(real, key=repr)


def long_stream(rows: int) -> Stream:
    """A row a tick, of two partitions in turn."""
    return [(t, ("ab"[t % 2], None, t)) for t in range(rows)]
