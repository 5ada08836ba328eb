"""TUMBLE, HOP, SESSION and DEDUPLICATE: what is accepted in which spelling, and what errors say."""

from __future__ import annotations

import pytest

from transom.core.errors import QueryError
from transom.cql.statements import parse_statements
from transom.plan.algebra import Node
from transom.plan.catalogue import Catalogue, QueryStatement

STREAM = """CREATE STREAM s (ts TIMESTAMP, k INTEGER, a INTEGER, WATERMARK FOR ts AS ts);
CREATE VIEW v AS SELECT k, ts AS at, a FROM s WHERE a > 0;
CREATE VIEW sums AS SELECT SUM(a) AS n, ts AS at FROM s GROUP BY ts;
"""


def bound(query: str) -> Node:
    statement = parse_statements(f"{STREAM} {query};", Catalogue())[-1]
    assert isinstance(statement, QueryStatement)
    return statement.query


@pytest.mark.parametrize(
    "spellings",
    [
        (
            "TUMBLE(s, ts, INTERVAL '10' SECOND)",
            "TUMBLE(TABLE s, s.ts, 10 SECONDS)",
            "TABLE(TUMBLE(TABLE s, DESCRIPTOR(`ts`), INTERVAL '10' SECONDS))",
            "TABLE(TUMBLE(DATA => TABLE s, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '10' SECOND))",
            "TUMBLE(s, ts, INTERVAL '10 seconds', INTERVAL '20' SECOND)",
            "HOP(s, ts, 10 SECONDS, 10 SECONDS)",
        ),
        (
            "HOP(s, ts, 5 SECONDS, 10 SECONDS, 2 SECONDS)",
            "TABLE(HOP(TABLE s, DESCRIPTOR(ts), SIZE => 10 SECONDS, SLIDE => 5 SECONDS, OFFSET => 7 SECONDS))",
        ),
        (
            "SESSION(s PARTITION BY k, a, ts, 5 SECONDS)",
            "SESSION(s PARTITION BY (k, a), ts, 5 SECONDS)",
            "TABLE(SESSION(TABLE s PARTITION BY (k, a), DESCRIPTOR(ts), GAP => INTERVAL '5' SECOND))",
        ),
    ],
)
def test_one_window_is_written_in_many_ways(spellings: tuple[str, ...]) -> None:
    assert len({bound(f"SELECT a, window_end FROM {spelling}") for spelling in spellings}) == 1


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("RSTREAM(SELECT a FROM TUMBLE(s, ts, 9 SECONDS))", "write ISTREAM"),
        ("SELECT a FROM TUMBLE(s, a, 9 SECONDS)", "write ts"),
        ("SELECT a FROM TUMBLE(v, a, 9 SECONDS)", "write ts"),
        ("SELECT a FROM TUMBLE(s [ROWS 3], ts, 9 SECONDS)", "the time column is missing"),
        ("SELECT n FROM TUMBLE(sums, at, 9 SECONDS)", "takes the rows of one stream"),
        ("SELECT a FROM TUMBLE(ISTREAM(SELECT * FROM s), ts, 9 SECONDS)", "not the time column of a stream"),
        ("SELECT a FROM TUMBLE('a.csv', ts, 9 SECONDS)", "CREATE STREAM s WITH (connector = 'files', path = 'a.csv'"),
        ("SELECT a FROM TUMBLE(s, ts)", "TUMBLE has no length"),
        ("SELECT a FROM TUMBLE(s, ts, 0 SECONDS)", "windows without a length"),
        ("SELECT a FROM TUMBLE(s, ts, 1 SECOND, 1 SECOND, 1 SECOND)", "too many durations"),
        ("SELECT a FROM TUMBLE(s PARTITION BY k, ts, 9 SECONDS)", "the same windows for all keys"),
        ("SELECT a FROM HOP(s, ts, 9 SECONDS)", "a slide and a size"),
        ("SELECT a FROM HOP(s, ts, 1 MICROSECOND, 9 SECONDS)", "9,000,000 windows"),
        ("SELECT a FROM TABLE(CUMULATE(TABLE s, DESCRIPTOR(ts), 1 SECOND, 9 SECONDS))", "CUMULATE is not supported"),
        ("SELECT a FROM DEDUPLICATE(s, 5 SECONDS)", "write DEDUPLICATE(s PARTITION BY k"),
        ("SELECT a FROM DEDUPLICATE(s PARTITION BY k)", "DEDUPLICATE has no length"),
        ("SELECT a FROM DEDUPLICATE(s PARTITION BY k, 0 SECONDS)", "DEDUPLICATE has no length"),
        ("SELECT a FROM DEDUPLICATE(s PARTITION BY b, 5 SECONDS)", "no column 'b'"),
        ("SELECT n FROM DEDUPLICATE(sums PARTITION BY n, 5 SECONDS)", "takes the rows of one stream"),
        ("SELECT a FROM TUMBLE(TUMBLE(s, ts, 9 SECONDS), ts, 9 SECONDS)", "takes the rows of one stream"),
        ("SELECT a FROM s [PARTITION BY k SESSION 0 SECONDS]", "SESSION 0"),
        ("SELECT a FROM s [SESSION 3 SECONDS ROWS 3]", "SESSION stands alone"),
        ("SELECT COUNT(*) FROM s [ROWS 3] GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)", "write FROM TUMBLE(s, ts"),
        ("SELECT HOP_START(ts, INTERVAL '1' SECOND, INTERVAL '9' SECOND) FROM s", "window_start and window_end of HOP"),
        ("SELECT COUNT(*) FROM s GROUP BY window(ts, '10 minutes')", "write FROM TUMBLE(s, ts"),
        ("SELECT COUNT(*) FROM s GROUP BY k, session_window(ts, '10 minutes')", "write FROM SESSION(s PARTITION BY k"),
    ],
)
def test_errors_say_what_to_write(query: str, words: str) -> None:
    with pytest.raises(QueryError) as raised:
        bound(query)
    assert words in str(raised.value)


def test_repeats_are_left_out_in_many_ways() -> None:
    """Over a view as over its stream, with a window and without, by one key and several."""
    short = bound("SELECT d.a FROM DEDUPLICATE(s PARTITION BY k, a, 5 SECONDS) [ROWS 3] AS d")
    standard = bound("SELECT a FROM TABLE(DEDUPLICATE(TABLE s PARTITION BY (k, s.a), INTERVAL '5' SECOND)) [ROWS 3]")
    assert short == standard
    assert bound("SELECT a FROM DEDUPLICATE(v PARTITION BY at, 5 SECONDS)").schema.names == ["a"]
