"""A session whose queries run on Spark has the same face, and gives the same answers."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from tests.profile import first_of
from transom import EvaluationError, OptionError, Progress, QueryError, Session, SourceError

NOON = datetime(2024, 5, 1, 12)
LONG = 300.0
"""Seconds that no test should ever wait; it is there so that a broken one ends."""

READINGS = [{"ts": NOON + timedelta(seconds=i), "k": "ab"[i % 2], "v": i} for i in range(6)]
FLOORS = [{"k": "a", "floor": 1}, {"k": "b", "floor": 2}]


def fill(session: Session) -> Session:
    session.stream("r", [*READINGS, {"ts": None, "k": "z", "v": 9}], time="ts")
    session.table("floors", FLOORS)
    return session


def test_what_a_session_says_is_the_same_on_both_runtimes(spark: SparkSession) -> None:
    text = """
        CREATE VIEW sums AS SELECT k, SUM(v) AS total FROM r [RANGE 3 SECONDS] GROUP BY k;
        SELECT floor, total FROM sums JOIN floors USING (k);
        EXPLAIN SELECT total FROM sums;
        ISTREAM(SELECT v FROM r WHERE v > 3)
    """
    here, there = (fill(session) for session in (Session(), Session(spark=spark)))
    ours, theirs = here.execute(text), there.execute(text)
    for result, on_spark in zip(ours, theirs, strict=True):
        assert result.text == on_spark.text and (result.table is None) == (on_spark.table is None)
        if result.table is not None:
            assert on_spark.to_pylist() == result.to_pylist()
    status, expected = theirs[1].status, ours[1].status
    assert status is not None and expected is not None and status.inputs == expected.inputs
    assert (status.finished, status.rows_out) == (True, expected.rows_out)
    # The row without a time was rejected by each of the two queries that read the stream.
    assert there.dead_letters.to_pylist() == here.dead_letters.to_pylist()
    count = "SELECT stream, COUNT(*) AS n FROM transom_dead_letters GROUP BY stream"
    assert there.run(count, emit="latest").to_pylist() == [{"stream": "r", "n": 2}]


@pytest.mark.nightly
@pytest.mark.parametrize("tasks", first_of(1, 2))
def test_the_latest_snapshot_of_an_ended_input_is_that_of_its_last_row(spark: SparkSession, tasks: int) -> None:
    given = [{"ts": f"2024-05-01 10:00:{i // 2:02}", "k": i % 3, "v": i} for i in range(60)]
    for text in (
        "SELECT v FROM r [RANGE 3 SECONDS]",
        "SELECT k, COUNT(*) AS n FROM r [RANGE 5 SECONDS] GROUP BY k",
        "SELECT n, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n FROM r [RANGE 4 SECONDS] GROUP BY k) AS c GROUP BY n",
    ):
        here, there = Session(batch_rows=7), Session(spark=spark, tasks=tasks, batch_rows=25)
        for session in (here, there):
            session.stream("r", given, time="ts")
        expected = here.run(text, emit="latest").to_pylist()
        assert expected and there.run(text, emit="latest").to_pylist() == expected, text


def test_a_query_is_one_of_spark_and_is_measured_there(spark: SparkSession) -> None:
    session = fill(Session(spark=spark, batch_rows=3))
    query = session.sql("SELECT k, COUNT(*) AS n FROM r [ROWS 2] GROUP BY k", emit="latest")
    assert query.to_pylist() == [{"k": "a", "n": 1}, {"k": "b", "n": 1}]
    frame = query.to_spark()
    assert frame.isStreaming and frame.columns == query.schema.names == ["k", "n"]
    reported = session.explain("SELECT k, MAX(v) AS m FROM r [ROWS 2] GROUP BY k", analyze=True)
    plan: Any = reported.plans[0]
    (aggregate,) = [operator for operator in plan["operators"] if operator["tactic"] == "sliding"]
    assert aggregate["measured"]["rows_in"] == 6 and aggregate["measured"]["state_bytes"] > 0


def test_links_that_lead_out_of_the_folder_to_stay_within_are_rejected(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "secret.csv").write_text("a\n42\n")
    (tmp_path / "home" / "a.csv").symlink_to(tmp_path / "secret.csv")
    session = Session(spark=spark, within=tmp_path / "home")
    session.execute(f"CREATE TABLE t (a INTEGER) WITH (connector = 'files', path = '{tmp_path}/home')")
    with pytest.raises(OptionError, match="leads outside of"):
        session.run("SELECT a FROM t", emit="latest")


def test_listeners_hear_of_every_batch(spark: SparkSession) -> None:
    heard: list[Progress] = []
    session = fill(Session(spark=spark, batch_rows=4))
    session.on_progress(heard.append)
    session.run("SELECT k, SUM(v) AS total FROM r GROUP BY k")
    assert [each.batch for each in heard] == list(range(len(heard))) and len(heard) >= 2
    assert sum(each.rows_in for each in heard) == 7
    last = heard[-1]
    assert last.seconds > 0 and heard[0].rows_per_second == pytest.approx(heard[0].rows_in / heard[0].seconds)
    assert {each.tactic for each in last.operators} >= {"running", "scan"}
    assert max(each.state_bytes for each in heard[0].operators) > 0
    (kept,) = [each.state_rows for each in last.operators if each.tactic == "running"]
    assert kept == 0, "no row ever leaves, so none is kept"


def test_spark_itself_counts_rows(spark: SparkSession) -> None:
    """Not the messages that they come in."""

    class Heard(StreamingQueryListener):
        rows = 0

        def onQueryStarted(self, event: QueryStartedEvent) -> None: ...

        def onQueryProgress(self, event: QueryProgressEvent) -> None:
            self.rows += event.progress.numInputRows

        def onQueryTerminated(self, event: QueryTerminatedEvent) -> None: ...

    heard = Heard()
    spark.streams.addListener(heard)
    try:
        session = Session(spark=spark, batch_rows=300)
        rows = [{"t": NOON + timedelta(seconds=i), "a": i} for i in range(900)]
        session.stream("s", rows, time="t")
        session.run("SELECT a FROM s [RANGE 1 SECOND] WHERE a > 5")
        end = time.monotonic() + 30
        while heard.rows != 900 and time.monotonic() < end:
            time.sleep(0.05)
        assert heard.rows == 900
    finally:
        spark.streams.removeListener(heard)


def endless() -> Iterator[dict[str, Any]]:
    for i in itertools.count():
        yield {"ts": NOON + timedelta(seconds=i), "a": i}


def test_a_query_in_the_background_is_asked_stopped_and_heard(spark: SparkSession) -> None:
    seen: list[pa.Table] = []
    session = Session(spark=spark, batch_rows=50)
    session.stream("s", endless(), time="ts")
    with session.start("ISTREAM(SELECT a FROM s WHERE a % 10 = 0)", on_rows=seen.append) as query:
        assert query.await_progress(NOON + timedelta(seconds=40), timeout=LONG)
    assert not query.is_active and query.exception() is None and not query.status.finished
    rows = [row["a"] for table in seen for row in table.to_pylist()]
    assert rows == list(range(0, 10 * len(rows), 10)) and len(rows) >= 5
    assert query.status.rows_out == len(rows), "it was stopped between two batches"
    assert [each.batch for each in query.recent_progress] == list(range(len(query.recent_progress)))
    assert sum(each.rows_in for each in query.recent_progress) == query.status.inputs[0].rows_in
    assert query.last_progress == query.recent_progress[-1] and query.last_progress.query == query.name == "query-1"
    assert "filter" in query.explain() and session.queries == []


@pytest.mark.nightly
def test_rows_that_come_later(spark: SparkSession) -> None:
    session = Session(spark=spark)
    session.execute("CREATE STREAM m (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory')")
    with session.start("ISTREAM(SELECT a FROM m)", follow=True) as query:
        for second in (0, 5):
            session.append("m", [{"ts": NOON + timedelta(seconds=second), "a": second}])
            assert query.await_progress(NOON + timedelta(seconds=second - 1), timeout=LONG)
    assert [row["a"] for row in query.result.to_pylist()] == [0]


@pytest.mark.nightly
def test_errors_are_ours_wherever_they_come_up(spark: SparkSession) -> None:
    session = fill(Session(spark=spark))
    with pytest.raises(EvaluationError, match="is no INTEGER") as failed:
        session.run("SELECT CAST(k AS INTEGER) AS n FROM r")
    assert failed.value.query == "SELECT CAST(k AS INTEGER) AS n FROM r"

    def broken(rows: pa.Table) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"), session.start("SELECT v FROM r", on_rows=broken) as query:
        query.await_termination(LONG)


def test_data_frames_are_streams_and_tables(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(
        [(NOON, "a", 1), (NOON + timedelta(seconds=1), "b", 2)], "ts timestamp, k string, v int"
    )
    frame.write.parquet(str(tmp_path / "rows"))
    session = Session(spark=spark)
    session.stream("growing", spark.readStream.schema(frame.schema).parquet(str(tmp_path / "rows")), time="ts")
    session.stream("still", frame, time="ts")
    session.table("floors", spark.createDataFrame([("a", 1), ("b", 2)], "k string, floor int"))
    expected = [{"at": NOON, "v": 1, "floor": 1}, {"at": NOON + timedelta(seconds=1), "v": 2, "floor": 2}]
    for name in ("growing", "still"):
        answer = session.run(f"ISTREAM(SELECT v, floor FROM {name} [NOW] JOIN floors USING (k))")
        assert answer.to_pylist() == expected, name
    with pytest.raises(SourceError, match="the rows of a table must all be there"):
        session.table("t", spark.readStream.schema(frame.schema).parquet(str(tmp_path / "rows")))
    with pytest.raises(QueryError, match="'growing' is declared already"):
        session.stream("growing", frame, time="ts")
    session.stream("odd", frame.withColumn("x", F.create_map(F.lit("a"), "v")), time="ts")
    with pytest.raises(QueryError, match="'x'"):
        session.run("SELECT x FROM odd [NOW]")
    with pytest.raises(SourceError, match="is a DataFrame of Spark") as rejected:
        Session().stream("s", frame, time="ts")
    assert "df.toArrow()" in str(rejected.value.remedy)


def test_what_a_session_lacks_can_be_asked_for(spark: SparkSession) -> None:
    assert list(Session(spark=spark).missing_settings) == [] == list(Session().missing_settings)
    lacking = spark.newSession()
    name = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
    lacking.conf.set(name, "false")
    assert [str(each).split('"')[1] for each in Session(spark=lacking).missing_settings] == [name]


def test_what_cannot_be_is_rejected(spark: SparkSession) -> None:
    from transom.program.clock import HeldClock

    with pytest.raises(OptionError, match="time cannot be held"):
        fill(Session(spark=spark)).start("SELECT v FROM r", clock=HeldClock())
    with pytest.raises(OptionError, match="has no use for spark"):
        Session(runtime="local", spark=spark)
    with pytest.raises(OptionError, match="runtime cannot be 'flink'"):
        Session(runtime="flink")  # type: ignore[arg-type]


def test_local_sessions_do_not_import_pyspark() -> None:
    code = "import sys, transom; transom.Session().run; assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.nightly
def test_a_function_gets_batches_with_their_numbers(spark: SparkSession) -> None:
    taken: list[tuple[int, list[int]]] = []
    with Session(spark=spark, batch_rows=2) as session:
        session.stream("s", [{"t": f"2024-05-01 00:00:0{i}", "a": i} for i in range(4)], time="t")
        query = session.start(
            "ISTREAM(SELECT a FROM s)", on_batch=lambda rows, number: taken.append((number, rows["a"].to_pylist()))
        )
        assert query.await_termination(timeout=120)
    assert [row for _, rows in taken for row in rows] == [0, 1, 2, 3]
    assert [number for number, _ in taken] == sorted({number for number, _ in taken})


def test_in_this_process_batches_have_no_numbers() -> None:
    session = Session()
    session.stream("s", [{"t": "2024-05-01", "a": 1}], time="t")
    with pytest.raises(OptionError, match="no numbers of their own"):
        session.start("SELECT a FROM s", on_batch=lambda rows, number: None)
