"""Aggregates keep the rows that can leave, and no others."""

from __future__ import annotations

import pytest

from transom.plan.catalogue import Catalogue
from transom.program.planned import read_program

INPUTS = """
CREATE STREAM s (ts TIMESTAMP, k INTEGER, g VARCHAR, WATERMARK FOR ts AS ts) WITH (connector = 'memory');
CREATE TABLE t (k INTEGER, name VARCHAR) WITH (connector = 'memory');
CREATE TABLE c (ts TIMESTAMP, k INTEGER PRIMARY KEY, WATERMARK FOR ts AS ts) WITH (connector = 'memory');
"""


@pytest.mark.parametrize(
    ("source", "tactic"),
    [
        ("s", "running"),
        ("s [RANGE UNBOUNDED]", "running"),
        ("t", "running"),
        ("(SELECT k FROM s WHERE k > 1 UNION ALL SELECT k FROM t) AS u", "running"),
        ("s [ROWS 3]", "sliding"),
        ("s [PARTITION BY k ROWS 1]", "sliding"),
        ("s [NOW]", "sliding"),
        ("s [RANGE 1 HOUR SLIDE 1 HOUR]", "sliding"),
        ("c", "sliding"),
        ("(SELECT DISTINCT k FROM s) AS u", "sliding"),
        ("(SELECT k, COUNT(*) AS n FROM s GROUP BY k) AS u", "sliding"),
        ("(SELECT k FROM s UNION ALL SELECT k FROM s [NOW]) AS u", "sliding"),
    ],
)
def test_rows_are_kept_where_they_can_leave(source: str, tactic: str) -> None:
    *_, planned = read_program(f"{INPUTS} SELECT MAX(k) AS k FROM {source};", Catalogue())
    assert planned.root is not None
    assert [operator.tactic.name for operator in planned.root.walk() if operator.kind == "Aggregate"][-1] == tactic


@pytest.mark.parametrize(
    ("call", "tactic"),
    [("MIN(g)", "running"), ("MAX(DISTINCT g)", "running"), ("STRING_AGG(g, ',' ORDER BY g)", "sliding")],
)
def test_of_texts_that_are_compared_no_row_is_kept(call: str, tactic: str) -> None:
    *_, planned = read_program(f"{INPUTS} SELECT {call} AS g FROM s;", Catalogue())
    assert planned.root is not None
    assert [operator.tactic.name for operator in planned.root.walk() if operator.kind == "Aggregate"] == [tactic]
