"""Relation to stream, on histories written by hand."""

from __future__ import annotations

import pytest

from transom.plan.algebra import Change
from transom.runtimes.reference.admission import TimedRow
from transom.runtimes.reference.history import RelationHistory
from transom.runtimes.reference.to_stream import slides_of, stream_of

# A bag that goes {1, 1} -> {1, 2} -> {2} -> {}.
HISTORY = RelationHistory.of([(0, [(1,), (1,)]), (4, [(1,), (2,)]), (6, [(2,)]), (9, [])])


def emitted(found: list[TimedRow]) -> list[tuple[int, int]]:
    return [(row.t, row.values[0]) for row in found]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Change.ISTREAM, [(0, 1), (0, 1), (4, 2)]),
        (Change.DSTREAM, [(4, 1), (6, 1), (9, 2)]),
        (Change.RSTREAM, [(0, 1), (0, 1), (4, 1), (4, 2), (6, 2)]),
    ],
)
def test_what_each_change_emits(change: Change, expected: list[tuple[int, int]]) -> None:
    assert emitted(stream_of(HISTORY, change)) == expected


def test_slides_speak_at_every_multiple_while_there_is_something_to_say() -> None:
    history = RelationHistory.of([(5, [(1,)]), (15, []), (25, [(2,)]), (35, [])])
    assert emitted(slides_of(history, [5], 35)) == [(5, 1), (10, 1), (25, 2), (30, 2)]


def test_slides_stop_at_the_last_instant_which_is_included() -> None:
    history = RelationHistory.of([(3, [(0,)]), (5, [(1,)]), (15, [(0,)])])
    assert emitted(slides_of(history, [5], 20)) == [(5, 1), (10, 1), (15, 0), (20, 0)]


def test_slides_of_two_lengths_speak_once_where_they_meet() -> None:
    history = RelationHistory.of([(0, [(1,)])])
    assert [t for t, _ in emitted(slides_of(history, [4, 6], 13))] == [0, 4, 6, 8, 12]


def test_slides_before_the_epoch() -> None:
    assert emitted(slides_of(RelationHistory.of([(-7, [(1,)])]), [5], 0)) == [(-5, 1), (0, 1)]
