"""Sources and sinks on a storage, on Spark; and Spark's own reader of what is written there."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.object_store import ENVIRONMENT
from tests.runtimes.local.test_remote_checkpoint import NOON, committed, text_of, write_inputs
from tests.runtimes.spark.on_standalone import OnStandalone, Step
from tests.runtimes.spark.processes import PATIENCE
from tests.runtimes.spark.standalone import hdfs_alone, s3a
from tests.runtimes.spark.test_coming_and_going import QUERIES, Trial
from transom import Session
from transom.connectors.storage import storage_of
from transom.runtimes.spark import query, temporary, workers
from transom.session import workspace_of


def run_in_two(spark: SparkSession | None, uri: str, checkpoint: str) -> None:
    """To the end of the input, and on with a file that came later; on Spark or in this process."""
    storage = storage_of(uri)
    write_inputs(storage, f"{uri}/in")
    text = "SET batch_files = 1;" + text_of(f"{uri}/in", f"{uri}/out").replace("SET batch_rows = 11;", "")
    with Session(spark=spark) as session:
        session.start(text, checkpoint=checkpoint).await_termination(300)
    storage.put(f"{uri}/in/9.csv", f"ts,k\n{NOON + timedelta(hours=1)},5\n".encode())
    with Session(spark=spark) as session:
        session.start(text, checkpoint=checkpoint, end=True).await_termination(300)


def hand_over(spark: SparkSession | None, uri: str) -> None:
    """Rows and a table of the program, in two runs: the second one has more rows."""
    for count in (20, 50):
        rows = [{"ts": NOON + timedelta(seconds=i), "k": i % 4} for i in range(count)]
        with Session(spark=spark) as session:
            session.stream("s", rows, time="ts")
            session.table("names", [{"k": k, "name": f"n{k}"} for k in range(4)])
            text = f"""
                CREATE SINK o WITH (connector = 'files', path = '{uri}/handed/out/', format = 'jsonl');
                INSERT INTO o ISTREAM(SELECT s.ts AS at, names.name FROM s [NOW], names WHERE s.k = names.k)
            """
            session.start(text, checkpoint=f"{uri}/kept", end=count == 50).await_termination(300)


def counted(uri: str) -> Counter[str]:
    return Counter(map(repr, committed(storage_of(uri), f"{uri}/out")))


@pytest.mark.nightly
def test_a_bucket_on_spark_is_as_in_one_process(
    spark: SparkSession, bucket: str, object_storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": object_storage}.items():
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    run_in_two(spark, f"{bucket}/spark", str(tmp_path / "spark"))
    run_in_two(None, f"{bucket}/local", str(tmp_path / "local"))
    assert counted(f"{bucket}/spark") == counted(f"{bucket}/local")
    assert counted(f"{bucket}/local").total() > 100


@pytest.mark.nightly
def test_spark_reads_what_is_committed_on_hdfs(spark: SparkSession, tmp_path: Path) -> None:
    with hdfs_alone(tmp_path) as hdfs:
        storage = storage_of(hdfs)
        run_in_two(spark, f"{hdfs}/spark", f"{hdfs}/kept/spark")
        run_in_two(None, f"{hdfs}/local", f"{hdfs}/kept/local")
        assert counted(f"{hdfs}/spark") == counted(f"{hdfs}/local")
        for place, session_of in (("spark", spark), ("local", None)):
            hand_over(session_of, f"{hdfs}/{place}")
        assert counted(f"{hdfs}/spark/handed") == counted(f"{hdfs}/local/handed")
        assert counted(f"{hdfs}/spark/handed").total() == 50
        assert len(storage.entries(f"{hdfs}/spark/kept/o/rows/s")) > 1, "rows of the program are in the checkpoint"
        write_inputs(storage, f"{hdfs}/in")
        for _ in range(2):  # the second one takes the place of the first
            text = text_of(f"{hdfs}/in", f"{hdfs}/a folder").replace("jsonl", "parquet")
            with Session() as session:
                workspace_of(session).assemble(workspace_of(session).prepare(text), every=1).run()
            storage.put(f"{hdfs}/a folder/part-{'0' * 32}.parquet", b"which nobody has committed")
            read = spark.read.parquet(f"{hdfs}/a folder")
            rows = [row.asDict() for row in read.select("k", "n").collect()]
            assert Counter((row["k"], row["n"]) for row in rows) == Counter(
                (row["k"], row["n"]) for row in committed(storage, f"{hdfs}/local/out")[: len(rows)]
            )
            assert len(storage.entries(f"{hdfs}/a folder/_spark_metadata")) > 10


@pytest.mark.nightly
def test_a_query_without_a_checkpoint_is_where_paths_of_spark_begin(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a cluster, whose machines share nothing else; also when queries come to others, and leave them."""
    for module in (query, temporary, workers):
        monkeypatch.setattr(module, "on_one_machine", lambda spark: False)
    with hdfs_alone(tmp_path) as hdfs:
        storage = storage_of(hdfs)
        spark.conf.set("fs.defaultFS", hdfs)
        try:
            trial = Trial(spark, QUERIES)
            trial.come("pairs")
            trial.grow(8)
            (user,) = storage.entries(f"{hdfs}/user")
            home = f"{hdfs}/user/{user.name}"
            (folder,) = storage.entries(home)
            assert {"spark", "rows"} <= {entry.name for entry in storage.entries(f"{home}/{folder.name}")}
            trial.come("counts")
            trial.grow(9)
            trial.go("pairs")
            trial.grow(4)
            trial.finish()
            assert storage.entries(home) == [], "nothing is left"
        finally:
            spark.conf.unset("fs.defaultFS")


@pytest.mark.nightly
def test_a_checkpoint_in_a_bucket(bucket: str, object_storage: str, tmp_path: Path) -> None:
    """Stopped on its way, and resumed by another driver."""
    storage = storage_of(bucket)
    write_inputs(storage, f"{bucket}/in")
    settings = {
        "spark.jars": ",".join(s3a()),
        "spark.hadoop.fs.s3a.endpoint": object_storage,
        "spark.hadoop.fs.s3a.endpoint.region": ENVIRONMENT["AWS_REGION"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.connection.expect.continue": "false",  # moto's server has no answer to that
    }
    text = "SET batch_files = 1;" + text_of(f"{bucket}/in", f"{bucket}/out").replace("SET batch_rows = 11;", "")
    local = text_of(f"{bucket}/in", f"{bucket}/local/out")
    shown = []
    for step in (Step("stopped", text, f"{bucket}/check", batches=2), Step("resumed", text, f"{bucket}/check")):
        order = OnStandalone("local[2]", "file:///", (str(tmp_path),), (step,), settings=settings)
        assert order.run(3 * PATIENCE)[step.name] == ""
        shown.append(committed(storage, f"{bucket}/out"))
    with Session() as session:
        session.start(local, checkpoint=f"{bucket}/local/check").await_termination(300)
    assert 0 < len(shown[0]) < len(shown[1]) and shown[1][: len(shown[0])] == shown[0]
    assert Counter(map(repr, shown[1])) == counted(f"{bucket}/local")
