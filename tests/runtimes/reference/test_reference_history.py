"""Histories: equal answers compare equal, others are told apart at the first instant."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest

from transom.core.time import FOREVER
from transom.runtimes.reference.history import (
    RelationHistory,
    StreamHistory,
    canonical,
    difference,
    grouped,
    value_order,
)


def test_values_that_are_equal_in_sql_are_canonically_equal_but_for_the_sign_of_zero() -> None:
    assert canonical([float("nan"), Decimal("3.0")]) == canonical([float("nan"), 3])
    assert canonical([-0.0]) != canonical([0.0]) and canonical([-0.0]) == canonical([-0.0]) != canonical([None])
    assert grouped([float("nan"), -0.0, Decimal("3.0")]) == grouped([float("nan"), 0.0, 3])
    assert len({canonical([float("nan")]), canonical([float("nan")]), canonical([None])}) == 2
    assert canonical([Decimal("12345678901234567890123456789012345678")]) == (12345678901234567890123456789012345678,)


def test_the_order_of_values() -> None:
    rows = [canonical(row) for row in [("ä", 1.0), ("z", 1.0), (None, 0.0), ("Z", float("nan")), ("Z", 5.0)]]
    ordered = sorted(rows, key=value_order)
    assert [row[0] for row in ordered] == [None, "Z", "Z", "z", "ä"]
    assert ordered[1] == ("Z", 5.0)


def test_however_a_history_is_cut_it_is_the_same() -> None:
    one = RelationHistory.of_lifetimes([((1,), 0, 5), ((1,), 5, 9), ((2,), 3, None), ((3,), 4, 4)])
    other = RelationHistory.of_changes([(0, 1, (1,)), (3, 1, (2,)), (9, -1, (1,))])
    third = RelationHistory.of([(0, [(1,)]), (1, [(1,)]), (3, [(1,), (2,)]), (9, [(2,)])])
    assert one == other == third
    assert difference(one, other) is None
    assert one.instants == (0, 3, 9)


def test_snapshots_tell_the_zeros_apart_and_changes_do_not() -> None:
    minus = RelationHistory.of_lifetimes([((-0.0,), 0, 5)])
    plus = RelationHistory.of_lifetimes([((0.0,), 0, 5)])
    assert difference(minus, plus) is not None
    reported = RelationHistory.of_changes([(0, 1, (0.0,)), (5, -1, (0.0,))])
    assert difference(minus, reported) is None and difference(reported, plus) is None
    with pytest.raises(ValueError, match=r"a change of \(-0\.0\)"):
        RelationHistory.of_changes([(0, 1, (-0.0,))])


def test_open_and_forever_look_the_same() -> None:
    assert RelationHistory.of_lifetimes([((1,), 0, None)]) == RelationHistory.of_lifetimes([((1,), 0, FOREVER)])


def test_snapshots() -> None:
    history = RelationHistory.of_lifetimes([((1,), 2, 5), ((1,), 3, 5)])
    assert [history.snapshot(t) for t in (1, 2, 3, 4, 5)] == [
        Counter(),
        Counter({(1,): 1}),
        Counter({(1,): 2}),
        Counter({(1,): 2}),
        Counter(),
    ]


def test_taking_away_what_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"-1 copies of \(1\)"):
        RelationHistory.of_changes([(0, 1, (2,)), (1, -1, (1,))])


def test_a_difference_names_the_instant_and_the_rows() -> None:
    one = RelationHistory.of_lifetimes([(("a",), 0, 5), (("b",), 1, 5), (("b",), 1, 5)])
    other = RelationHistory.of_lifetimes([(("a",), 0, 5), (("c",), 1, 5)])
    reported = difference(one, other)
    assert reported is not None
    assert "1970-01-01 00:00:00.000001" in reported
    assert "only in the first: ('b') x 2" in reported
    assert "only in the second: ('c')" in reported
    assert difference(one, other, until=1) is None


def test_streams_differ_by_the_order_of_an_instant() -> None:
    one = StreamHistory.of([(1, (1,)), (1, (2,)), (3, (1,))])
    other = StreamHistory.of([(1, (2,)), (1, (1,)), (3, (1,))])
    assert difference(one, other) is not None
    assert difference(one, other, until=1) is None
    assert difference(one, StreamHistory.of([(1, (1,)), (1, (2,)), (3, (1,))])) is None
    assert one.rows(1) == ((1,), (2,))
    assert one.rows(2) == ()


def test_a_stream_is_no_relation() -> None:
    assert difference(StreamHistory(), RelationHistory()) is not None
