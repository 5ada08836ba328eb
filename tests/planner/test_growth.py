"""State that grows for as long as input comes is named, and nothing else is."""

from __future__ import annotations

import pytest

from transom.plan.catalogue import Catalogue
from transom.program.planned import read_program

INPUTS = """
CREATE STREAM s (ts TIMESTAMP, k INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory');
CREATE STREAM r (ts TIMESTAMP, k INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory');
CREATE TABLE t (k INTEGER, name VARCHAR) WITH (connector = 'memory');
CREATE TABLE c (ts TIMESTAMP, k INTEGER PRIMARY KEY, WATERMARK FOR ts AS ts) WITH (connector = 'memory');
CREATE SINK out WITH (connector = 'memory', emit = 'lifetimes');
CREATE SINK latest WITH (connector = 'memory', emit = 'latest');
"""


def growing(query: str) -> list[tuple[str, tuple[str, ...]]]:
    *_, planned = read_program(INPUTS + query, Catalogue())
    return [(growth.what, growth.streams) for growth in planned.growing]


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("ISTREAM(SELECT s.k FROM s JOIN r ON s.k = r.k)", ["join ring_hash s r"]),
        (
            "ISTREAM(SELECT s.k FROM s JOIN r ON s.k = r.k AND r.ts >= s.ts AND r.ts <= s.ts + INTERVAL '1' HOUR)",
            [],
        ),
        ("ISTREAM(SELECT s.k FROM s JOIN r ON s.k = r.k AND r.ts >= s.ts)", ["join ring_hash s"]),
        ("SELECT s.k FROM s LEFT JOIN r ON s.k = r.k AND r.ts >= s.ts", ["outer join ring_hash s"]),
        (
            "SELECT COUNT(*) FROM s LEFT JOIN r ON s.k = r.k AND r.ts BETWEEN s.ts AND s.ts + INTERVAL '1' HOUR",
            ["outer join ring_hash s r", "aggregate sliding s r"],
        ),
        ("SELECT s.k FROM s JOIN r [RANGE 1 MINUTE] ON s.k = r.k", ["join ring_hash s"]),
        ("ISTREAM(SELECT name FROM s [RANGE UNBOUNDED] JOIN t USING (k))", ["join ring_hash s"]),
        ("SELECT k, COUNT(*) FROM s GROUP BY k", ["aggregate running s", "the answer s"]),
        ("SELECT COUNT(*), MIN(k) FROM s", []),
        ("ISTREAM(SELECT k, SUM(k) OVER (ORDER BY ts) FROM s)", []),
        (
            "ISTREAM(SELECT k, SUM(k) OVER (PARTITION BY k ORDER BY ts) FROM s)",
            ["aggregate running s", "join lazy_hash s"],
        ),
        ("ISTREAM(SELECT k, SUM(k) OVER (ORDER BY ts RANGE INTERVAL '1' HOUR PRECEDING) FROM s WHERE k > 1)", []),
        ("ISTREAM(SELECT k, SUM(k) OVER (PARTITION BY k ORDER BY ts RANGE INTERVAL '1' HOUR PRECEDING) FROM s)", []),
        ("SELECT COUNT(DISTINCT k) FROM s", ["aggregate running s"]),
        ("RSTREAM(SELECT DISTINCT k FROM s)", ["distinct counting s", "rstream s"]),
        ("INSERT INTO out SELECT k FROM r EXCEPT SELECT k FROM s [NOW]", ["counting r"]),
        ("INSERT INTO out SELECT k FROM r [NOW] INTERSECT SELECT k FROM s", ["counting s"]),
        ("INSERT INTO latest SELECT k FROM s WHERE k > 1", ["the answer s"]),
        ("SELECT s.k FROM s JOIN c USING (k)", ["join lazy_hash s", "the answer s"]),
        ("SELECT COUNT(*) FROM ISTREAM(SELECT k FROM s [ROWS 3])", []),
        ("SELECT SUM(s.k) FROM s JOIN r ON s.k = r.k", ["join-aggregate adaptive s r"]),
    ],
)
def test_what_keeps_rows_that_never_end_grows(query: str, what: list[str]) -> None:
    assert [" ".join([name, *streams]) for name, streams in growing(query)] == what


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, COUNT(*) FROM s [RANGE 1 HOUR] GROUP BY k",
        "SELECT s.k FROM s [ROWS 10] JOIN r [NOW] ON s.k = r.k",
        "SELECT k, COUNT(*) FROM s [PARTITION BY k ROWS 5] GROUP BY k",
        "ISTREAM(SELECT DISTINCT k FROM s [RANGE 1 HOUR SLIDE 1 MINUTE])",
        "SELECT COUNT(*) FROM t JOIN c USING (k)",
        "ISTREAM(SELECT name FROM s [NOW] JOIN t USING (k))",
        "INSERT INTO out SELECT k FROM s WHERE k > 1 UNION ALL SELECT k FROM r",
        "SELECT k FROM s WHERE k > 1",
        "SELECT k, SUM(k) OVER (PARTITION BY window_end) FROM TUMBLE(s, ts, INTERVAL '1' HOUR)",
        "SELECT s.k FROM s LEFT JOIN r ON s.k = r.k AND r.ts BETWEEN s.ts AND s.ts + INTERVAL '1' HOUR",
        "SELECT s.k FROM s FULL JOIN r ON s.k = r.k AND r.ts BETWEEN s.ts AND s.ts + INTERVAL '1' HOUR WHERE r.k > 1",
        "SELECT k FROM s WHERE NOT EXISTS (SELECT * FROM r WHERE r.ts BETWEEN s.ts AND s.ts + INTERVAL '1' HOUR)",
        "SELECT COUNT(*) FROM s SEMI JOIN r ON s.k = r.k AND r.ts BETWEEN s.ts AND s.ts + INTERVAL '1' HOUR",
    ],
)
def test_what_forgets_or_keeps_nothing_does_not(query: str) -> None:
    assert growing(query) == []


def test_the_note_says_what_to_write() -> None:
    *_, planned = read_program(INPUTS + "SELECT s.k FROM s JOIN r ON s.k = r.k", Catalogue())
    assert str(planned.growing[0]) == (
        "state grows while input comes: join ring_hash keeps the rows of s and r, which never end; "
        "write s [RANGE 1 HOUR] and r [RANGE 1 HOUR]"
    )
