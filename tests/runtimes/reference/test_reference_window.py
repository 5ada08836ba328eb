"""Windows, each against lifetimes worked out by hand from the table of the law."""

from __future__ import annotations

import pytest

from transom.core.time import FOREVER
from transom.plan.algebra import WindowSpec
from transom.runtimes.reference.admission import TimedRow
from transom.runtimes.reference.window import lifetimes

OPEN = None


def lives(
    spec: WindowSpec, *times: int, keys: tuple[object, ...] = (), tick: int = 1
) -> list[tuple[int, int, int | None]]:
    """(number of the row, ta, te) for rows at the given times; `keys` are their partition keys."""
    rows = [TimedRow((i, keys[i] if keys else None), t) for i, t in enumerate(times)]
    return [(life.values[0], life.ta, life.te) for life in lifetimes(rows, spec, tick)]


def test_range_lives_for_its_length() -> None:
    assert lives(WindowSpec(range=10), 0, 3, 3) == [(0, 0, 10), (1, 3, 13), (2, 3, 13)]


def test_range_beyond_the_time_domain_is_forever() -> None:
    assert lives(WindowSpec(range=10), FOREVER - 10, FOREVER - 11) == [
        (0, FOREVER - 10, FOREVER),
        (1, FOREVER - 11, FOREVER - 1),
    ]


def test_rows_ends_with_the_nth_next_row_and_is_open_before_that() -> None:
    assert lives(WindowSpec(rows=2), 1, 4, 6) == [(0, 1, 6), (1, 4, OPEN), (2, 6, OPEN)]


def test_three_rows_of_one_instant_in_rows_two_leave_a_ghost_out() -> None:
    assert lives(WindowSpec(rows=2), 5, 5, 5, 9) == [(1, 5, 9), (2, 5, OPEN), (3, 9, OPEN)]


def test_partitions_count_for_themselves_and_nulls_are_one_partition() -> None:
    keys = ("a", None, "a", None, "b")
    assert lives(WindowSpec(rows=1, partition=(1,)), 0, 1, 2, 3, 4, keys=keys) == [
        (0, 0, 2),
        (1, 1, 3),
        (2, 2, OPEN),
        (3, 3, OPEN),
        (4, 4, OPEN),
    ]


def test_nan_is_one_partition_and_so_are_both_zeros() -> None:
    keys = (float("nan"), 0.0, float("nan"), -0.0)
    assert lives(WindowSpec(rows=1, partition=(1,)), 0, 1, 2, 3, keys=keys) == [
        (0, 0, 2),
        (1, 1, 3),
        (2, 2, OPEN),
        (3, 3, OPEN),
    ]


def test_rows_and_range_end_with_whichever_is_first() -> None:
    # Row 0 is pushed out at 3 by row 1; row 1 has ended by time at 13 before row 2 comes; row 2 is not pushed any more.
    assert lives(WindowSpec(rows=1, range=10), 0, 3, 20) == [(0, 0, 3), (1, 3, 13), (2, 20, 30)]


def test_rows_are_counted_though_they_have_ended() -> None:
    # Row 1 ended at 12. Row 0 (also ended) and row 1 still count: row 2 is the second row after row 0.
    assert lives(WindowSpec(rows=2, range=10), 0, 2, 9) == [(0, 0, 9), (1, 2, 12), (2, 9, 19)]


def test_now_lives_for_one_tick() -> None:
    assert lives(WindowSpec(now=True), 5, tick=1) == [(0, 5, 6)]
    assert lives(WindowSpec(now=True), 5_000, tick=1_000) == [(0, 5_000, 6_000)]


def test_unbounded_is_forever() -> None:
    assert lives(WindowSpec(), 5, 7) == [(0, 5, FOREVER), (1, 7, FOREVER)]


@pytest.mark.parametrize(
    ("t", "ta", "te"),
    [(0, 0, 10), (1, 5, 15), (5, 5, 15), (6, 10, 20), (-1, 0, 10), (-5, -5, 5)],
)
def test_range_slide_is_sampled_at_multiples_since_the_epoch(t: int, ta: int, te: int) -> None:
    assert lives(WindowSpec(range=10, slide=5), t) == [(0, ta, te)]


def test_range_shorter_than_its_slide_shows_only_what_a_sample_meets() -> None:
    # The sample at 10 has the rows with 7 < t <= 10.
    assert lives(WindowSpec(range=3, slide=10), 6, 7, 8, 10) == [(2, 10, 20), (3, 10, 20)]


def test_rows_slide_is_sampled_after_every_mth_row() -> None:
    # N = 3, M = 2, rows at 10, 20, .., 60. Row 1 lives from row 2 to row ceil(4/2)2 = 4, row 2 from there to row 6.
    assert lives(WindowSpec(rows=3, slide=2), 10, 20, 30, 40, 50, 60) == [
        (0, 20, 40),
        (1, 20, 60),
        (2, 40, 60),
        (3, 40, OPEN),
        (4, 60, OPEN),
        (5, 60, OPEN),
    ]


def test_a_last_partial_step_never_shows() -> None:
    assert lives(WindowSpec(rows=2, slide=2), 1, 2, 3) == [(0, 2, OPEN), (1, 2, OPEN)]
