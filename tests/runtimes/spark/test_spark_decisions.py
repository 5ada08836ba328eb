"""On Spark, too, a query that resumes from a checkpoint is planned as it was."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from transom.core.errors import CheckpointError
from transom.planner.multiway_choice import MultiwayDecision
from transom.runtimes.spark.query import SparkQuery
from transom.runtimes.spark.run import SparkRun
from transom.session import Session, workspace_of

QUERY = (
    "SELECT a.n, b.n AS bn, c.n AS cn FROM a [9 SECONDS], b [9 SECONDS], c [9 SECONDS] WHERE a.k = b.k AND b.k = c.k"
)
TREE = "SET multiway = 'tree';"


def write(folder: Path, part: int) -> None:
    for i, name in enumerate("abc"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        seconds = range(20 * part, 20 * part + 20)
        lines = [f"{(datetime(2024, 5, 1) + timedelta(seconds=s)).isoformat()},{(s + i) % 4},{s}" for s in seconds]
        (folder / name / f"{part}.csv").write_text("\n".join(["ts,k,n", *lines]) + "\n")


def assembled(
    spark: SparkSession, folder: Path, rates: tuple[int, int, int], more: str = "", follow: bool = False
) -> SparkRun:
    session = Session(spark=spark)
    for name, rate in zip("abc", rates, strict=True):
        session.execute(f"""
            CREATE STREAM {name} (ts TIMESTAMP, k INTEGER, n INTEGER, WATERMARK FOR ts AS ts)
            WITH (connector = 'files', path = '{folder}/{name}', rate = {rate})
        """)
    session.execute(f"CREATE SINK out WITH (connector = 'files', path = '{folder}/out', format = 'csv')")
    planned = workspace_of(session).prepare(f"{more} INSERT INTO out {QUERY}")
    run = workspace_of(session).assemble(
        planned, checkpoint=str(folder / "checkpoint"), follow=follow, end=None if follow else True
    )
    assert isinstance(run, SparkRun)
    return run


def decisions(run: SparkRun) -> tuple[MultiwayDecision, ...]:
    (query,) = run.queries
    assert isinstance(query, SparkQuery)
    return query._planned.decisions


def answer(folder: Path) -> list[str]:
    return sorted(line for file in (folder / "out").glob("*.csv") for line in file.read_text().splitlines()[1:])


@pytest.mark.nightly
def test_other_statistics_go_on_with_the_plan_that_was(spark: SparkSession, tmp_path: Path) -> None:
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    write(broken, 0)
    first = assembled(spark, broken, (1, 9000, 1), TREE, follow=True)

    def stop_when_all_is_read(run: SparkRun) -> None:
        if all(one.rows_in == 20 for status in run.status() for one in status.inputs):
            run.stop()

    first.run(stop_when_all_is_read)
    for folder, part in ((broken, 1), (whole, 0), (whole, 1)):
        write(folder, part)
    unbroken = assembled(spark, whole, (9000, 1, 1), TREE)
    assert decisions(unbroken) != decisions(first)
    unbroken.run()
    with pytest.raises(CheckpointError, match="with SET multiway tree for query 'out', and it is parallel_mjoin now"):
        assembled(spark, broken, (9000, 1, 1), "SET multiway = 'parallel_mjoin';")
    second = assembled(spark, broken, (9000, 1, 1), TREE)
    assert decisions(second) == decisions(first)
    second.run()
    assert answer(broken) == answer(whole) and len(answer(whole)) > 40
