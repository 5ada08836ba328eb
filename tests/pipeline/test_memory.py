"""How much a query remembers, as people are notified of it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from transom import Session
from transom.session import workspace_of

NOON = datetime(2024, 5, 1, 12)
THREE = (
    "SELECT x.a FROM s [RANGE 3 SECONDS] AS x, t [RANGE 2 SECONDS] AS y, s [RANGE 1 SECOND] AS z"
    " WHERE x.k = y.k AND y.k = z.k"
)


@pytest.mark.parametrize(
    ("query", "tactic", "kept"),
    [
        ("SELECT SUM(a) AS a FROM s [RANGE 3 SECONDS]", "sliding", 3),
        ("SELECT a FROM s [ROWS 4]", "rows", 4),
        ("SELECT a FROM s [PARTITION BY k ROWS 2]", "partition_rows", 4),
        ("SELECT DISTINCT k FROM s [RANGE 3 SECONDS]", "counting", 3),
        ("SELECT x.a FROM s [RANGE 3 SECONDS] AS x JOIN t [RANGE 2 SECONDS] AS y USING (k)", "ring_hash", 5),
        (f"SET multiway = 'mjoin'; {THREE}", "mjoin", 6),
        (f"SET multiway = 'parallel_mjoin'; {THREE}", "parallel_mjoin", 6),
        ("SELECT a FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE]", "slide_range", 8),
        ("SELECT a FROM s [RANGE 3 SECONDS]", "range", 0),
    ],
)
def test_rows_that_an_operator_keeps(query: str, tactic: str, kept: int) -> None:
    """Ten rows, a second apart, of which the last is not yet known to be over."""
    session = Session()
    rows = [{"ts": NOON + timedelta(seconds=i), "k": i % 2, "a": i} for i in range(10)]
    for name in ("s", "t"):
        session.stream(name, [*rows], time="ts")
    run = workspace_of(session).assemble(workspace_of(session).prepare(query), follow=True)

    def stop_when_all_is_read(run: object) -> None:
        if all(one.rows_in == 10 for one in running.status()[0].inputs):
            running.stop()

    running = run
    running.run(stop_when_all_is_read)
    (found,) = {one.state_rows for one in running.status()[0].operators if one.tactic == tactic}
    assert found == kept
