"""How many tasks share a plan on one machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from transom import Session
from transom.runtimes.spark import query_inputs, sizing
from transom.runtimes.spark.run import SparkRun
from transom.session import workspace_of

COUNT = "SELECT k, COUNT(*) AS n FROM s GROUP BY k"
JOIN = "SELECT a.k FROM s [NOW] AS a JOIN s [RANGE 5 SECONDS] AS b ON a.k = b.k"


@pytest.mark.parametrize(
    ("text", "rows", "follow", "tasks", "many"),
    [
        (COUNT, 100, False, 2, 2),
        (COUNT, 100, False, 2, 3),
        (JOIN, 100, False, 2, 2),
        (JOIN, 100, False, 1, 3),
        (COUNT, 99, False, 1, 2),
        (COUNT, 100, True, 1, 2),
        (f"SET latency = '1 second'; {COUNT}", 100, False, 1, 2),
        (f"SET batch_rows = 99; {COUNT}", 100, False, 1, 2),
        (f"SET batch_rows = 100; {COUNT}", 100, False, 2, 2),
        (f"SET batch_files = 1; {COUNT}", 100, False, 1, 2),
        (f"SET batch_files = 2; {COUNT}", 100, False, 2, 2),
        (f"SET tasks = 1; {COUNT}", 100, False, 1, 2),
        (f"SET partitions = 2; {COUNT}", 100, False, 1, 2),
        (f"SET tasks = 3; {COUNT}", 10, True, 3, 2),
        ("ISTREAM(SELECT k FROM s [NOW])", 100, False, 1, 2),
        ("SELECT COUNT(*) AS n FROM s", 100, False, 1, 2),
        (f"SELECT MAX(n) AS most FROM ({COUNT}) AS c", 100, False, 1, 2),
    ],
)
def test_a_plan_is_shared_where_it_is_worth_it(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    rows: int,
    follow: bool,
    tasks: int,
    many: int,
) -> None:
    monkeypatch.setattr(sizing, "MUCH", 100)
    monkeypatch.setattr(sizing, "MANY_TASKS", many)  # the session has two cores
    lines = [f"2024-01-01 00:{i // 60:02}:{i % 60:02},{i % 7}" for i in range(rows)]
    (tmp_path / "s").mkdir()
    for part in range(2):
        (tmp_path / "s" / f"{part}.csv").write_text("\n".join(["ts,k", *lines[part::2]]) + "\n")
    declared = (
        f"CREATE STREAM s (ts TIMESTAMP, k INTEGER, WATERMARK FOR ts AS ts - INTERVAL 1 HOUR)"
        f" WITH (connector = 'files', path = '{tmp_path}/s', format = 'csv');"
    )
    monkeypatch.setattr(query_inputs, "partitions", lambda spark: "200")  # as Spark has it, whatever the machine
    with Session(spark=spark) as session:
        run = workspace_of(session).assemble(workspace_of(session).prepare(declared + text), follow=follow)
        assert isinstance(run, SparkRun)
        (unit,) = run.units
        assert unit.layout.partitions == tasks
        unit.dataframe()
        by_itself = "SET tasks" not in text
        assert unit.layout.partitions == (1 if by_itself else tasks), (
            "what lies there now does not decide over a checkpoint"
        )
