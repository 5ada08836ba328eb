"""ORDER BY of a whole query: snapshots are shown in that order, and elsewhere a note says that it changes nothing."""

from __future__ import annotations

import pytest

from transom import Session
from transom.core.errors import QueryError
from transom.plan.catalogue import Catalogue
from transom.program.growth_notes import growth_notes
from transom.program.planned import read_program

NAN = float("nan")
DECLARED = """CREATE STREAM s (ts TIMESTAMP, a INTEGER, k INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory');
CREATE SINK out WITH (connector = 'memory');
"""


@pytest.fixture
def session() -> Session:
    session = Session(tick="1 second")
    rows = [(3, 1.5), (1, NAN), (2, None), (1, 0.5)]
    given = [{"at": f"2024-05-01 10:00:0{i}", "a": a, "b": b} for i, (a, b) in enumerate(rows)]
    session.stream("t", given, time="at")
    return session


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("SELECT a, b FROM t ORDER BY b DESC", "[1, 3, 1, 2]"),
        ("SELECT a, b FROM t ORDER BY a, b DESC", "[1, 1, 2, 3]"),
        ("SELECT a FROM t ORDER BY a DESC LIMIT 2", "[3, 2]"),
        ("WITH x AS (SELECT a, b FROM t) SELECT * FROM x ORDER BY 2 NULLS FIRST", "[2, 1, 3, 1]"),
        ("SELECT a FROM t UNION ALL SELECT a + 10 FROM t ORDER BY 1 DESC LIMIT 3", "[13, 12, 11]"),
    ],
)
def test_a_snapshot_is_shown_in_the_order_of_the_query(session: Session, query: str, shown: str) -> None:
    assert str(session.run(query, emit="latest").to_arrow()["a"].to_pylist()) == shown


@pytest.mark.parametrize(
    ("statement", "noted"),
    [
        ("SELECT a FROM s [NOW] ORDER BY a", False),
        ("INSERT INTO out SELECT a FROM s [NOW] ORDER BY a", True),
        ("CREATE VIEW v AS SELECT a FROM s [NOW] ORDER BY a", True),
        ("SELECT a FROM (SELECT a FROM s [NOW] ORDER BY a) WHERE a > 3", True),
        ("INSERT INTO out SELECT a FROM s [NOW] ORDER BY a LIMIT 3", False),
        ("INSERT INTO out SELECT DISTINCT ON (k) a FROM s [NOW] ORDER BY a", False),
    ],
)
def test_elsewhere_a_note_says_that_order_by_changes_nothing(statement: str, noted: bool) -> None:
    notes = growth_notes(read_program(DECLARED + statement, Catalogue()))
    assert notes == ["note: line 3: ORDER BY without LIMIT is passed over: a relation has no order"] * noted


def test_limit_alone_ends_the_run_of_whoever_waits(session: Session) -> None:
    made = "connector = 'generator', rows = 1000000000, rate = 10"
    session.execute(f"CREATE STREAM g (ts TIMESTAMP, n BIGINT, WATERMARK FOR ts AS ts) WITH ({made})")
    assert len(session.run("ISTREAM(SELECT n FROM g [NOW]) LIMIT 7")) == 7
    assert session.run("SELECT ISTREAM a FROM t [NOW] LIMIT 2").to_arrow()["a"].to_pylist() == [3, 1]
    assert len(session.run("SELECT a FROM t LIMIT 3", emit="latest")) == 3
    with pytest.raises(QueryError, match="goes on"):
        session.start("SELECT a FROM t LIMIT 3")
    with pytest.raises(QueryError, match="LIMIT without ORDER BY"):
        session.run("SELECT a FROM (SELECT a FROM t LIMIT 3)")


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("SELECT a FROM s ORDER BY a LIMIT 3", []),
        ("SELECT a FROM s QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY a) = 1", ["partitions"]),
        ("SELECT a FROM s QUALIFY RANK() OVER (ORDER BY a) <= 3", ["ties"]),
        ("SELECT a, RANK() OVER (ORDER BY a) AS n FROM s", ["rows"]),
    ],
)
def test_check_says_which_ranks_grow(query: str, kept: list[str]) -> None:
    (planned,) = (each for each in read_program(DECLARED + query, Catalogue()) if each.standing)
    assert [growth.kept for growth in planned.growing if growth.what != "the answer"] == kept
