"""A SUM of more than 38 digits is an error of the instant that has it, whoever computes it, and of no other one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.runtimes_under_test import RUNTIMES, Inputs, runs
from transom.core.errors import EvaluationError
from transom.core.time import to_datetime
from transom.cql.statements import parse_statements
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import difference

STREAMS = """
CREATE STREAM v (ts TIMESTAMP INVISIBLE, k INTEGER, x DECIMAL(38, 0), WATERMARK FOR ts AS ts);
CREATE STREAM w (ts TIMESTAMP INVISIBLE, k INTEGER, WATERMARK FOR ts AS ts);
"""
QUERIES = {
    "plain": "SELECT SUM(x) FROM v [RANGE 2 SECONDS];",
    "groups": "SELECT k, SUM(x) FROM v [RANGE 2 SECONDS] GROUP BY k;",
    "distinct": "SELECT SUM(DISTINCT x) FROM v [RANGE 2 SECONDS];",
    **{
        tactic: f"SET joinagg = '{tactic}'; SELECT SUM(v.x) FROM v [RANGE 2 SECONDS], w [RANGE 9 SECONDS] "
        "WHERE v.k = w.k;"
        for tactic in ("factorised", "tc", "ic", "pc")
    },
}
MOST = 10**38 - 1


# Over negative tuples an aggregate of a join is one of the joined rows.
TRIED = [
    (name, runtime) for name, runtime in runs("", {name: name for name in QUERIES}, by_day=3)
    if not (runtime.startswith("negative") and name in ("factorised", "tc", "ic"))
]  # fmt: skip


@pytest.mark.parametrize(("name", "runtime"), TRIED)
def test_only_a_snapshot_can_have_too_many_digits(name: str, runtime: str) -> None:
    catalogue = Catalogue()
    statement = parse_statements(STREAMS + QUERIES[name], catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    start = to_datetime(0)
    values = [(0, MOST), (2, MOST - 1), (4, -MOST), (4, 5), (6, MOST), (6, -1)]
    rows = [(start + timedelta(seconds=second), 1, value) for second, value in values]
    given: Inputs = {"v": [*rows], "w": [(start, 1)]}
    expected = evaluate(statement.query, catalogue, given)
    assert difference(expected, RUNTIMES[runtime](statement.query, catalogue, given)) is None
    given["v"].append((start + timedelta(seconds=7), 1, 2))
    with pytest.raises(EvaluationError):
        RUNTIMES[runtime](statement.query, catalogue, given)
