"""Which rows count: late ones, rejected ones, and the lifetimes of changing tables."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from transom.core.schema import INTEGER, TIMESTAMP, VARCHAR, Schema
from transom.core.time import FOREVER
from transom.plan.catalogue import StreamDefinition, TableDefinition, TimeColumn
from transom.runtimes.reference.admission import AdmittedTable, TimeSettings, admit, admit_table

EPOCH = datetime(1970, 1, 1)
PLAIN = TimeSettings()


def at(micros: int | None) -> datetime | None:
    return None if micros is None else EPOCH + timedelta(microseconds=micros)


def stream(bound: int) -> StreamDefinition:
    return StreamDefinition("s", Schema.of(("a", VARCHAR), ("ts", TIMESTAMP)), TimeColumn("ts", bound))


def admitted(
    bound: int, *rows: tuple[str, int | None], clock: TimeSettings = PLAIN
) -> tuple[list[tuple[str, int]], int, int]:
    found = admit([(name, at(t)) for name, t in rows], stream(bound), clock)
    return [(row.values[0], row.t) for row in found.rows], found.late, found.rejected


def test_a_row_is_late_below_the_watermark_just_before_it() -> None:
    # Bound 2. After 10 the watermark is 8: 8 is in time, 7 is late. The late row moves nothing.
    assert admitted(2, ("a", 10), ("b", 8), ("c", 7), ("d", 9)) == ([("b", 8), ("d", 9), ("a", 10)], 1, 0)


def test_rows_of_one_instant_keep_their_arrival_order() -> None:
    assert admitted(5, ("b", 3), ("a", 3), ("c", 1), ("0", 3))[0] == [("c", 1), ("b", 3), ("a", 3), ("0", 3)]


def test_times_are_floored_to_the_tick_before_anything_else() -> None:
    # 12 and 19 are both 10 with a tick of 10, so the second is not late.
    assert admitted(0, ("a", 19), ("b", 12), ("c", -1), clock=TimeSettings(tick=10)) == ([("a", 10), ("b", 10)], 1, 0)


def test_null_and_forever_are_rejected_and_move_no_watermark() -> None:
    greatest = datetime.max
    found = admit([("a", None), ("b", greatest), ("c", at(1))], stream(0), TimeSettings())
    assert ([row.values[0] for row in found.rows], found.late, found.rejected) == (["c"], 0, 2)


def test_rows_before_a_set_origin_are_rejected_though_they_are_late_too() -> None:
    assert admitted(0, ("a", 10), ("b", 4), ("c", 7), clock=TimeSettings(origin=5)) == ([("a", 10)], 1, 1)


CHANGES = Schema.of(("ts", TIMESTAMP), ("sign", VARCHAR), ("a", INTEGER), ("b", INTEGER))


def _sorted(found: AdmittedTable) -> list[tuple[int, int, int | None]]:
    lives = [(life.values[2], life.ta, life.te) for life in found.lifetimes]
    return sorted(lives, key=lambda life: (life[0], life[1], life[2] or FOREVER))


def by_changes(*rows: tuple[int, str | None, Any, Any]) -> tuple[list[tuple[int, int, int | None]], int]:
    """(a, ta, te) and the number of rejected changes."""
    definition = TableDefinition("r", CHANGES, TimeColumn("ts", 0), change_column="sign")
    found = admit_table([(at(t), sign, a, b) for t, sign, a, b in rows], definition, TimeSettings())
    return _sorted(found), found.rejected


def test_a_row_lives_from_its_plus_to_its_minus() -> None:
    assert by_changes((1, "+", 7, 0), (2, "+", 8, 0), (5, "-", 7, 0)) == ([(7, 1, 5), (8, 2, None)], 0)


def test_a_minus_takes_one_of_two_equal_rows() -> None:
    assert by_changes((1, "+", 7, 0), (1, "+", 7, 0), (5, "-", 7, 0)) == ([(7, 1, 5), (7, 1, None)], 0)


def test_a_minus_without_its_row_is_rejected_and_so_is_an_unknown_sign() -> None:
    assert by_changes((1, "-", 7, 0), (2, "+", 7, 0), (3, "-", 7, 1), (4, "*", 7, 0), (5, None, 7, 0)) == (
        [(7, 2, None)],
        4,
    )


def test_changes_of_one_instant_apply_in_arrival_order() -> None:
    # '+' then '-' is a ghost; '-' then '+' has a '-' without its row.
    assert by_changes((1, "+", 7, 0), (1, "-", 7, 0), (2, "-", 8, 0), (2, "+", 8, 0)) == ([(8, 2, None)], 1)


def test_nulls_of_a_minus_match_nulls() -> None:
    assert by_changes((1, "+", 7, None), (3, "-", 7, None)) == ([(7, 1, 3)], 0)


def by_key(*rows: tuple[int, int | None, int]) -> tuple[list[tuple[int, int, int | None]], int, tuple[int, ...]]:
    """(value, ta, te), the number of rejected changes, and the instants that counted."""
    columns = Schema.of(("ts", TIMESTAMP), ("k", INTEGER), ("v", INTEGER))
    definition = TableDefinition("r", columns, TimeColumn("ts", 0), primary_key=("K",))
    found = admit_table([(at(t), k, v) for t, k, v in rows], definition, TimeSettings())
    return _sorted(found), found.rejected, found.instants


def test_an_upsert_replaces_the_row_of_its_key() -> None:
    assert by_key((1, 1, 10), (2, 2, 20), (4, 1, 11)) == ([(10, 1, 4), (11, 4, None), (20, 2, None)], 0, (1, 2, 4))


def test_the_last_upsert_of_an_instant_wins() -> None:
    assert by_key((1, 1, 10), (4, 1, 11), (4, 1, 12)) == ([(10, 1, 4), (12, 4, None)], 0, (1, 4, 4))


def test_a_null_key_is_rejected_and_begins_no_time() -> None:
    assert by_key((0, None, 10), (4, 1, 11)) == ([(11, 4, None)], 1, (4,))
