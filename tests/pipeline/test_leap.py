"""A row that leaps in time is named, with what it did; a gap is not."""

from __future__ import annotations

import pytest

from tests.pipeline.queries import Running
from tests.pipeline.spread_queries import Row, Spread, laid_out, rows
from transom.cli.summary import summary
from transom.core.time import UNITS
from transom.pipeline.leap import Leap
from transom.program.status import InputStatus, Status
from transom.runtimes.spark.statuses import Statuses

DAY = UNITS["day"] // 1_000_000
YEAR = 365 * DAY
SOME = [(10, 1), (YEAR, 2), (11, 3), (12, 4)]


def leap(query: Running) -> tuple[float, float, int] | None:
    found = query.pipeline.gates.leap("s")
    return None if found is None else (found.before / 1_000_000, found.to / 1_000_000, found.late)


@pytest.mark.parametrize("at_once", [1, 2, 4])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_row_that_leaps_is_named_once_others_are_late_after_it(at_once: int, restarted: bool) -> None:
    query = Running("SELECT k FROM s [NOW]")
    for start in range(0, len(SOME), at_once):
        assert start == 0 or leap(query) is None or start > 2
        query.push("s", *SOME[start : start + at_once])
        if restarted:
            query.restart()
    assert leap(query) == (10, YEAR, 2)


def test_what_was_late_before_a_leap_is_not_laid_to_it() -> None:
    query = Running("SELECT k FROM s [NOW]")
    query.push("s", (10, 1), (9, 2), (YEAR, 3))
    assert leap(query) is None
    query.push("s", (8, 1))
    assert leap(query) == (10, YEAR, 1)


def test_gaps_are_no_leaps() -> None:
    query = Running("SELECT k FROM s [NOW]")
    query.push("s", (10, 1), (3 * DAY, 2), (3 * DAY - 1, 3), (6 * DAY, 4), (6 * DAY - 5, 5))
    assert leap(query) is None, "the late rows are of the time after the gap"
    query.push("s", (6.5 * DAY, 6), (6 * DAY, 7))
    assert leap(query) is None, "less than a day"
    far = Running("SELECT k FROM u [NOW]", options="""
        CREATE STREAM u (ts TIMESTAMP INVISIBLE, k INTEGER, WATERMARK FOR ts AS ts - INTERVAL '1' DAY);
    """)  # fmt: skip
    far.push("u", (0, 1), (9 * DAY, 2), (1, 3))
    assert far.pipeline.gates.leap("u") is None, "not many times the bound"


def test_the_first_leap_that_did_harm_is_named() -> None:
    query = Running("SELECT k FROM s [NOW]")
    for t in (0, YEAR, 2 * YEAR, YEAR + 1, 4 * YEAR, 2 * YEAR + 1):
        query.push("s", (t, 1))
    assert leap(query) == (YEAR, 2 * YEAR, 1)


def _batches(at_once: int) -> list[list[Row]]:
    given: list[Row] = [(t, k, 0) for t, k in SOME]
    return [given[start : start + at_once] for start in range(0, len(given), at_once)]


@pytest.mark.parametrize("at_once", [1, 2, 4])
def test_partitions_name_it_as_well(at_once: int) -> None:
    layout = laid_out("SELECT k, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY k")
    spread = Spread(layout)
    for batch in _batches(at_once):
        spread.batch([rows(layout, "s", *batch)])
    assert spread.ledger("s") == (1, 2, 0)
    statuses = Statuses(layout, "query")
    statuses._partitions = spread.cluster.statuses
    (reported,) = statuses.status().inputs
    assert reported.leap == Leap(10_000_000, YEAR * 1_000_000, 2)


def test_the_summary_names_both_instants_and_the_remedy() -> None:
    one = InputStatus("s", 4, 2, 2, 0, 0, 0, True, {"late: came after the watermark": 2}, Leap(0, YEAR * 1_000_000, 2))
    reported = summary([Status("q", (one,), (), 0, None, 0, 0, True)])
    assert "a row took time from 1970-01-01 00:00:00 to 1971-01-01 00:00:00, and 2 rows after it were late" in reported
    assert "ahead = '1 DAY'" in reported
