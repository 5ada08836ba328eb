"""A join whose sides grow step by step says what it says when everything comes at once."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from tests.run_locally import Push, Rows, run_locally
from transom.core.time import to_datetime
from transom.cql.statements import parse_statements
from transom.kernels.join import join
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.runtimes.reference.history import difference

COLUMNS = "(ts TIMESTAMP INVISIBLE, k INTEGER, WATERMARK FOR ts AS ts)"
CASES = {
    "ring_hash": "SELECT s.k FROM s [ROWS 200], t [ROWS 150] WHERE s.k = t.k",
    "lazy_hash": "SELECT s.k FROM s [PARTITION BY k ROWS 9], t [PARTITION BY k ROWS 7] WHERE s.k = t.k",
    "nested_loop": "SELECT s.k FROM s [ROWS 20], t [RANGE 20 SECONDS] WHERE s.k < t.k",
}


@pytest.mark.parametrize("tactic", CASES)
def test_growing_changes_nothing(tactic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(tactic)
    rows: dict[str, Rows] = {
        name: [(to_datetime(0) + timedelta(seconds=i), random.randint(0, 25)) for i in range(300)] for name in "st"
    }
    catalogue = Catalogue()
    script = f"CREATE STREAM s {COLUMNS}; CREATE STREAM t {COLUMNS}; SET join = '{tactic}'; {CASES[tactic]}"
    statement = parse_statements(script, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    at_once = run_locally(statement.query, catalogue, rows)
    pushes = [Push(name, rows[name][i : i + 20]) for i in range(0, 300, 20) for name in "st"]
    monkeypatch.setattr(join, "BLOCK", 7)  # candidate pairs are looked at in many blocks
    assert difference(at_once, run_locally(statement.query, catalogue, rows, pushes)) is None
