"""Queries that run together on Spark: stopped between batches, gone on with, and kept apart from other runs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from transom import CheckpointError, Session
from transom.connectors.callback import CallbackSink
from transom.program.planned import Planned
from transom.program.run import Run

QUERIES = """
CREATE STREAM s (ts TIMESTAMP, k VARCHAR, a INTEGER, WATERMARK FOR ts AS ts)
    WITH (connector = 'files', path = '{folder}/s.csv');
CREATE SINK sums WITH (connector = 'files', path = '{folder}/sums.csv', emit = 'lifetimes');
CREATE SINK many WITH (connector = 'files', path = '{folder}/many.csv', emit = 'lifetimes');
INSERT INTO sums SELECT k, SUM(a) AS total FROM s [RANGE 2 SECONDS] GROUP BY k;
INSERT INTO many SELECT COUNT(*) AS n FROM s [ROWS 3];
"""


def write(folder: Path, rows: int) -> None:
    lines = [f"2024-05-01 00:00:{i:02},{'xy'[i % 2]},{i}" for i in range(rows)]
    (folder / "s.csv").write_text("\n".join(["ts,k,a", *lines, ""]))


def start(spark: SparkSession | None, folder: Path, *, follow: bool = False, text: str = QUERIES) -> Run:
    session = Session(spark=spark, batch_rows=5)
    planned = session.prepare(text.format(folder=folder))
    return session.assemble(planned, follow=follow, checkpoint=str(folder / "kept"), end=None if follow else True)


def answers(folder: Path) -> list[list[str]]:
    return [sorted((folder / name).read_text().splitlines()) for name in ("sums.csv", "many.csv")]


def test_a_run_that_was_stopped_goes_on_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    for folder in (broken, whole):
        folder.mkdir()
    write(broken, 7)
    run = start(spark, broken, follow=True)

    def stop_when_all_is_read(run: Run) -> None:
        if all(one.rows_in == 7 for status in run.status() for one in status.inputs):
            run.stop()

    run.run(stop_when_all_is_read)
    assert not run.finished and [status.name for status in run.status()] == ["sums", "many"]
    for folder in (broken, whole):
        write(folder, 20)
    again = start(spark, broken)
    again.run()
    assert again.finished
    assert [status.inputs[0].used for status in again.status()] == [20, 20], "the ledger goes on as well"
    start(None, whole).run()
    assert answers(broken) == answers(whole)


def test_the_batch_under_way_is_finished_and_no_other_begun(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, 20)
    session = Session(spark=spark, batch_rows=5)
    planned = session.prepare(QUERIES.format(folder=tmp_path).partition("CREATE SINK")[0] + "ISTREAM(SELECT a FROM s)")
    seen: list[pa.Table] = []

    def take(rows: pa.Table) -> None:
        seen.append(rows)
        run.stop()

    def answer(one: Planned, name: str, schema: pa.Schema) -> CallbackSink:
        return CallbackSink(take)

    run = session.assemble(planned, answer=answer)
    run.run()
    (status,) = run.status()
    assert len(seen) == 1 and status.rows_out == seen[0].num_rows < 20
    assert not status.finished


def test_a_checkpoint_is_for_one_run_of_one_kind_at_a_time(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, 3)
    run = start(spark, tmp_path)
    with pytest.raises(CheckpointError, match="is in use by another run"):
        start(spark, tmp_path)
    run.run()
    with pytest.raises(CheckpointError, match="was written by the spark runtime, and this is the local one"):
        start(None, tmp_path)
    others = QUERIES.partition("INSERT INTO many")[0]
    with pytest.raises(CheckpointError, match="was written by other queries"):
        start(spark, tmp_path, text=others)
    with pytest.raises(CheckpointError, match="was written by another query 'sums'"):
        start(spark, tmp_path, text=QUERIES.replace("RANGE 2", "RANGE 4"))
    start(spark, tmp_path).run()
