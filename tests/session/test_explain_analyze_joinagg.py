"""EXPLAIN ANALYZE proves which tactic of an aggregate over a join ran, and that the join was not made."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from transom.session import Session

NOON = datetime(2024, 5, 1, 12)


def measured(tactic: str) -> dict[str, dict[str, Any]]:
    """What the operators did, by their kind; 100 rows of either stream, all with one key."""
    session = Session()
    for name in ("a", "b"):
        session.stream(name, [{"ts": NOON + timedelta(seconds=i), "k": 1} for i in range(100)], time="ts")
    *_, result = session.execute(f"""
        SET joinagg = '{tactic}';
        EXPLAIN ANALYZE JSON SELECT COUNT(*) AS n FROM a [1 HOUR], b [1 HOUR] WHERE a.k = b.k
    """)
    assert result.text is not None
    return {operator["operator"]: operator for operator in json.loads(result.text)["operators"]}


@pytest.mark.parametrize("tactic", ["factorised", "tc", "ic", "adaptive"])
def test_the_rows_of_the_join_do_not_occur(tactic: str) -> None:
    operators = measured(tactic)
    assert operators["JoinAggregate"]["tactic"] == tactic and "Join" not in operators
    work = operators["JoinAggregate"]["measured"]
    assert work["rows_in"] == 200 and 100 <= work["rows_out"] <= 200
    assert operators["MergeAggregate"]["measured"]["rows_in"] == work["rows_out"]


def test_the_pipeline_makes_the_join() -> None:
    operators = measured("pc")
    assert operators["Join"]["measured"]["rows_out"] == 10_000 and operators["Aggregate"]["tactic"] == "sliding"


def test_it_tells_when_the_tactic_changed_and_why() -> None:
    """With one match a row the pipeline is better, with a hundred it is not."""
    session = Session()
    rows = 40_000
    for name in ("a", "b"):
        keys = [i if i < rows // 2 else i % 10 for i in range(rows)]
        times = [NOON + timedelta(milliseconds=10 * i) for i in range(rows)]
        session.stream(name, pa.table({"ts": pa.array(times, pa.timestamp("us")), "k": keys}), time="ts")
    *_, result = session.execute("""
        SET batch_rows = 1000;
        EXPLAIN ANALYZE SELECT COUNT(*) AS n FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS] WHERE a.k = b.k
    """)
    assert result.text is not None
    lines = [line.lstrip("├└─ │") for line in result.text.splitlines()]
    (at,) = [i for i, line in enumerate(lines) if line == "factorised now, changed 2 times"]
    first, second = lines[at + 1 : at + 3]
    assert first.startswith("from factorised to pc at 2024-05-01 12:00:") and " pairs a row, " in first
    assert second.startswith("from pc to factorised at 2024-05-01 12:03:") and second.endswith(" ms lost")
