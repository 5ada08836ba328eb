"""A tactic that changes on Spark: after a crash it changes where it did, and the answer is that of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.runtimes.spark.test_files_exactly_once import Broken
from tests.runtimes.spark.test_sharing_on_spark import in_order, session_of
from transom.runtimes.spark.run import SparkRun
from transom.session import workspace_of

QUERIES = (
    "SELECT a.k, COUNT(*) AS n, SUM(b.x) AS total FROM a [ROWS 8], b [RANGE 9 SECONDS] WHERE a.k = b.k GROUP BY a.k",
    "SELECT SUM(a.x) AS total, MAX(b.x) AS most FROM a [RANGE 9 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k",
    "SELECT a.x, b.x AS y, c.x AS z FROM a [PARTITION BY k ROWS 2] AS a, b [RANGE 9 SECONDS] AS b, "
    "a [RANGE 5 SECONDS] AS c WHERE a.k = b.k AND b.k = c.k",
)


@pytest.mark.nightly
@pytest.mark.parametrize("tasks", [1, 2])
@pytest.mark.parametrize("query", QUERIES)
def test_it_changes_again_where_it_did(spark: SparkSession, tmp_path: Path, query: str, tasks: int) -> None:
    seen: dict[int, pa.Table] = {}
    again: dict[int, pa.Table] = {}

    def fails_at_two(table: pa.Table, batch: int) -> None:
        seen[batch] = table
        if batch == 2:
            raise Broken

    def notes(table: pa.Table, batch: int) -> None:
        again[batch] = table

    options: dict[str, Any] = {"joinagg": "adaptive", "multiway": "adaptive", "adapt": "shuffle"}
    session = session_of(spark, batch_rows=6, tasks=tasks, **options)
    run_options: dict[str, Any] = {"checkpoint": str(tmp_path / "kept"), "end": True}
    with pytest.raises(Broken):
        workspace_of(session).assemble(workspace_of(session).prepare(query), on_batch=fails_at_two, **run_options).run()
    run = workspace_of(session).assemble(workspace_of(session).prepare(query), on_batch=notes, **run_options)
    assert isinstance(run, SparkRun)
    run.run()
    assert in_order(again[2].to_pylist()) == in_order(seen[2].to_pylist())
    reported = [row for number in sorted(seen | again) for row in (seen | again)[number].to_pylist()]
    assert in_order(reported) == in_order(session_of(None, adapt="off").run(query).to_pylist())
    (query_status,) = (each.status() for each in run.queries)
    changes = [line for one in query_status.operators for line in one.changes]
    assert sum(" at random" in line for line in changes) >= 2, changes
