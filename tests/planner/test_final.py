"""Which aggregates need not show what does not last until the end of a step."""

from __future__ import annotations

import pytest

from transom.plan.catalogue import Catalogue
from transom.planner.final import seen_at_the_end
from transom.program.planned import read_program

STREAM = "CREATE STREAM s (ts TIMESTAMP, k INTEGER, x INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory');"
GROUPS = "SELECT k, COUNT(*) AS n FROM s [RANGE 1 HOUR] GROUP BY k"


def tactics(query: str, emit: str) -> list[str]:
    (planned,) = [each for each in read_program(STREAM + query, Catalogue()) if each.standing]
    assert planned.root is not None
    at_the_end = seen_at_the_end(planned.root, emit)
    return [operator.tactic.name for operator in planned.root.walk() if id(operator) in at_the_end]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (GROUPS, ["sliding"]),
        (f"{GROUPS} HAVING COUNT(*) > 2", ["sliding"]),
        (f"SELECT n + 1 AS m FROM ({GROUPS}) AS g UNION ALL SELECT COUNT(*) FROM s", ["sliding", "running"]),
        (f"SELECT k FROM ({GROUPS}) AS g UNION SELECT k FROM s", []),
        (f"SELECT MAX(n) AS n FROM ({GROUPS}) AS g", ["sliding"]),  # the one above, and not the one below it
        (f"SELECT g.k FROM ({GROUPS}) AS g JOIN s [NOW] AS t ON g.k = t.k", []),
        (f"ISTREAM({GROUPS})", []),
        (
            f"{GROUPS} UNION ALL SELECT k, n FROM ISTREAM({GROUPS})",
            [],
        ),  # one aggregate, which is reported in full to ISTREAM
    ],
)
def test_what_only_the_answer_reads_is_looked_at_once_a_step(query: str, found: list[str]) -> None:
    assert tactics(query, "net") == tactics(query, "latest") == found
    assert tactics(query, "changes") == tactics(query, "lifetimes") == []


JOINED = "SELECT a.k, b.x FROM s [RANGE 1 HOUR] AS a LEFT JOIN s [RANGE 1 HOUR] AS b ON a.k = b.k"


@pytest.mark.parametrize(
    ("query", "lifetimes", "changes"),
    [
        (JOINED, ["ring_hash"], ["ring_hash"]),
        (f"SELECT k + 1 AS m FROM ({JOINED}) AS j WHERE x IS NULL", ["ring_hash"], ["ring_hash"]),
        (f"{JOINED} UNION ALL SELECT k, x FROM s [NOW]", ["ring_hash"], []),  # values are counted, not rows
        (f"SELECT k, COUNT(*) AS n FROM ({JOINED}) AS j GROUP BY k", [], []),
        ("SELECT k FROM s [RANGE 1 HOUR] WHERE k NOT IN (SELECT x FROM s [NOW])", ["nested_loop"], ["nested_loop"]),
    ],
)
def test_only_the_answer_sees_when_a_row_has_no_partner(query: str, lifetimes: list[str], changes: list[str]) -> None:
    assert tactics(query, "lifetimes") == lifetimes and tactics(query, "changes") == changes
    assert tactics(f"SET lifetimes = 'negative'; {query}", "changes") == []
