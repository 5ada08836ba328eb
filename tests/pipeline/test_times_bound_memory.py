"""What is remembered of unbounded streams whose times are bound to each other does not grow with the rows read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.run_locally import Answer, Push, Rows, run_locally
from transom.cql.statements import parse_statements
from transom.pipeline.driver import Pipeline
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.state.codec import saved_bytes

DECLARED = """
CREATE STREAM s (ts TIMESTAMP, k INTEGER, a VARCHAR, WATERMARK FOR ts AS ts);
CREATE STREAM r (ts TIMESTAMP, k INTEGER, a VARCHAR, WATERMARK FOR ts AS ts);
"""
ON = "s.k = r.k AND r.ts BETWEEN s.ts AND s.ts + INTERVAL '5' SECOND"
BEGIN = datetime(2024, 5, 1, tzinfo=UTC)
LENGTH, BATCH = 1_000, 50


def rows(every: int) -> Rows:
    """A row a second; of this stream every so many have a key that the other one has too."""
    return [(BEGIN + timedelta(seconds=i), i % 7 if i % every == 0 else -i, f"row {i}") for i in range(LENGTH)]


@pytest.mark.parametrize("emit", ["changes", "lifetimes", "net"])
@pytest.mark.parametrize(
    "query",
    [
        f"SELECT s.a, r.a FROM s LEFT JOIN r ON {ON}",
        f"SELECT s.a, r.a FROM s FULL JOIN r ON {ON} WHERE s.k < 5 OR r.k < 5",
        f"SELECT a FROM s WHERE NOT EXISTS (SELECT * FROM r WHERE {ON})",
        f"SELECT a FROM s WHERE EXISTS (SELECT * FROM r WHERE {ON})",
    ],
)
def test_rows_are_forgotten_when_nothing_can_match_them(query: str, emit: str) -> None:
    catalogue = Catalogue()
    statement = parse_statements(DECLARED + query, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    given = {"s": rows(every=2), "r": rows(every=3)}
    pushes = [Push(name, given[name][i : i + BATCH]) for i in range(0, LENGTH, BATCH) for name in given]
    kept: list[int] = []

    def remember(pipeline: Pipeline, _: Answer) -> None:
        kept.append(saved_bytes(pipeline.state, whole=True))

    run_locally(statement.query, catalogue, given, pushes, emit=emit, watch=remember)
    early, late = max(kept[8:16]), max(kept[-12:])
    assert late <= 1.2 * early, (early, late)
