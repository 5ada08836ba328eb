"""A selection is not done below what it would change: sessions that other rows prolong, numbers that others have."""

from __future__ import annotations

from transom.session import Session
from transom.testing import run_query

STREAM = "CREATE STREAM s (ts TIMESTAMP, k INTEGER, a VARCHAR, WATERMARK FOR ts AS ts) WITH (connector = 'memory');"


def test_a_row_that_is_not_selected_keeps_its_session_going() -> None:
    query = f"{STREAM} SELECT a FROM s [PARTITION BY k SESSION 2 SECONDS] WHERE a <> 'x';"
    run_query(query, {"s": "0 1 p \n 2 1 x \n 4 1 q"}).expect("""
        0 + p
        4 + q
        6 - p
        6 - q
    """)


def test_a_row_that_is_not_selected_has_its_number() -> None:
    numbered = "SELECT k, a, ROW_NUMBER() OVER (PARTITION BY k ORDER BY a) AS n FROM s [RANGE 10 SECONDS]"
    query = f"{STREAM} SELECT a, n FROM ({numbered}) WHERE a <> 'x';"
    run_query(query, {"s": "0 1 x \n 0 1 y"}).expect("""
        0 + y 2
        10 - y 2
    """)


def test_numbers_of_a_format_have_all_their_digits_where_others_follow() -> None:
    (row,) = Session().run("SELECT try_strptime('20241', '%Y%m%d') AS t").to_pylist()
    assert row["t"] is None
