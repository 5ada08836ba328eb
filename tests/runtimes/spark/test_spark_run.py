"""Queries that run together on Spark: stopped between batches, gone on with, and kept apart from other runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from queue import Queue

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from tests.runtimes.spark.processes import PATIENCE
from transom import CheckpointError, Session
from transom.connectors.callback import CallbackSink
from transom.program.planned import Planned
from transom.program.run import Run
from transom.session import workspace_of

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
    planned = workspace_of(session).prepare(text.format(folder=folder))
    return workspace_of(session).assemble(
        planned, follow=follow, checkpoint=str(folder / "kept"), end=None if follow else True
    )


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


@pytest.mark.nightly
def test_the_batch_under_way_is_finished_and_no_other_begun(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, 20)
    session = Session(spark=spark, batch_rows=5)
    planned = workspace_of(session).prepare(
        QUERIES.format(folder=tmp_path).partition("CREATE SINK")[0] + "ISTREAM(SELECT a FROM s)"
    )
    seen: list[pa.Table] = []

    def take(rows: pa.Table) -> None:
        seen.append(rows)
        run.stop()

    def answer(one: Planned, name: str, schema: pa.Schema) -> CallbackSink:
        return CallbackSink(take)

    run = workspace_of(session).assemble(planned, answer=answer)
    run.run()
    (status,) = run.status()
    assert len(seen) == 1 and status.rows_out == seen[0].num_rows < 20
    assert not status.finished


class Ends(StreamingQueryListener):
    """Names of the queries that began, and of those that ended what went wrong."""

    def __init__(self) -> None:
        self.names: list[str | None] = []
        self.ended: Queue[str | None] = Queue()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        self.names.append(event.name)

    def onQueryProgress(self, event: QueryProgressEvent) -> None: ...

    def onQueryIdle(self, event: QueryIdleEvent) -> None: ...

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self.ended.put(event.exception)


@pytest.mark.nightly
@pytest.mark.parametrize("follow", [True, False])
def test_a_stop_is_no_failure_to_listeners_and_names_stay(spark: SparkSession, tmp_path: Path, follow: bool) -> None:
    """Those that follow are stopped between two batches, the others before the next one."""
    write(tmp_path, 20)
    listener = Ends()
    spark.streams.addListener(listener)
    try:
        for _ in range(2):
            run = start(spark, tmp_path, follow=follow)
            run.run(lambda run: run.stop())
            assert [listener.ended.get(timeout=PATIENCE) for _ in run.queries] == [None, None]
    finally:
        spark.streams.removeListener(listener)
    assert sorted(map(str, listener.names)) == ["many", "many", "sums", "sums"]


@pytest.mark.nightly
def test_rows_that_pause_have_not_ended_and_a_stop_waits_for_none(spark: SparkSession) -> None:
    read, stopped, in_vain = threading.Event(), threading.Event(), threading.Event()

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"ts": [datetime(2024, 5, 1)]})
        read.wait(PATIENCE)
        time.sleep(1.0)  # by then Spark has requested more
        yield pa.record_batch({"ts": [datetime(2024, 5, 2)]})
        if not stopped.wait(PATIENCE):
            in_vain.set()

    def watch(run: Run) -> None:
        read.set()
        if run.status()[0].inputs[0].rows_in == 2:
            run.stop()

    session = Session(spark=spark)
    session.stream("s", rows(), time="ts")
    run = workspace_of(session).assemble(workspace_of(session).prepare("SELECT ts FROM s"), end=True)
    try:
        run.run(watch)
        assert run.status()[0].inputs[0].rows_in == 2
        assert not run.finished and not in_vain.is_set(), "it was stopped before the rows had ended"
    finally:
        stopped.set()


@pytest.mark.nightly
def test_of_two_that_run_at_once_one_has_a_number(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, 3)
    queries = QUERIES.format(folder=tmp_path).partition("CREATE SINK")[0] + "ISTREAM(SELECT a FROM s)"
    with Session(spark=spark) as session, Session(spark=spark) as other:
        for host, text in ((session, queries), (session, "ISTREAM(SELECT a FROM s)"), (other, queries)):
            host.start(text, follow=True).await_progress("2024-05-01 00:00:01", timeout=PATIENCE)
        assert sorted(str(query.name) for query in spark.streams.active) == ["query-1", "query-1 2", "query-2"]


@pytest.mark.nightly
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
