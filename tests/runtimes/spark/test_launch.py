"""A session of our own: quiet from the first line to the last, closed to the network, with workers made ready."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from transom.core.errors import SparkError
from transom.runtimes.spark import jvm, launch
from transom.runtimes.spark.java import Java

PROGRAM = """
import sys
from transom.runtimes.spark import launch

spark = launch.start(2, lasting=False)
launch.warm(spark).join()
stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load()
query = (
    stream.mapInArrow(lambda batches: batches, stream.schema)
    .writeStream.foreachBatch(lambda rows, batch: rows.count())
    .option("checkpointLocation", sys.argv[1])
    .start()
)
while query.lastProgress is None:
    query.awaitTermination(0.1)
query.stop()
print(launch.log_file(spark))
spark.stop()
"""


def run_program(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | variables
    environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, str(folder / "checkpoint")],
        capture_output=True,
        text=True,
        env=environ,
        timeout=300,
        check=True,
    )


@pytest.mark.nightly
def test_nothing_is_said_and_the_log_is_found(tmp_path: Path) -> None:
    """On the Java from PyPI, which is the whole way of a user without Java."""
    path = tmp_path / "bin"
    path.mkdir()
    for name in ("sh", "chmod"):
        (path / name).symlink_to(f"/bin/{name}")
    done = run_program(tmp_path, PATH=str(path), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.stderr == ""
    (log,) = done.stdout.split()
    assert Path(log).is_relative_to(tmp_path / "cache" / "transom" / "logs")
    assert "NativeCodeLoader" in Path(log).read_text()  # Spark's usual first warning is in there, so others would be
    assert (tmp_path / "cache" / "transom" / "java").is_dir()


def in_a_worker(spark: SparkSession, expression: str) -> list[str]:
    """What a worker says of itself."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import gc
        import os
        import sys

        known = {
            "frozen": str(gc.get_freeze_count() > 10_000),
            "loaded": str({"pandas", "transom.pipeline.driver", "numba"} <= set(sys.modules)),
            "python": sys.executable,
            "cache": os.environ.get("NUMBA_CACHE_DIR", ""),
            "writes": str(not sys.dont_write_bytecode),
            "zips": str([path for path in sys.path if path.endswith("pyspark.zip")]),
        }
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"said": [known[expression]]})

    return [row.said for row in spark.range(2, numPartitions=1).mapInArrow(look, "said string").collect()]


@pytest.mark.parametrize(
    ("requested", "answer"),
    [("frozen", "True"), ("loaded", "True"), ("python", sys.executable), ("writes", "True"), ("zips", "[]")],
)
def test_workers_are_ready_before_they_are_needed(spark: SparkSession, requested: str, answer: str) -> None:
    assert in_a_worker(spark, requested) == [answer]


def test_workers_share_compiled_kernels(spark: SparkSession) -> None:
    (folder,) = in_a_worker(spark, "cache")
    assert Path(folder).is_absolute()


def test_the_process_is_left_as_it_was(spark: SparkSession) -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert "PYSPARK_GATEWAY_SECRET" not in os.environ and "PYSPARK_GATEWAY_PORT" not in os.environ


def test_the_session_listens_on_the_loopback_only(spark: SparkSession) -> None:
    assert spark.conf.get("spark.driver.host") == spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    folder = Path(spark.conf.get("spark.python.unix.domain.socket.dir") or "")
    assert folder.is_dir() and folder.stat().st_mode & 0o077 == 0


def test_there_is_one_session_only(spark: SparkSession) -> None:
    with pytest.raises(SparkError, match="running in this process already"):
        launch.start(1)
    assert SparkContext._active_spark_context is spark.sparkContext


def test_further_settings_win() -> None:
    chosen = launch._settings(3, None, {"spark.sql.shuffle.partitions": 7, "spark.ui.enabled": True})
    assert chosen["spark.master"] == "local[3,4]"
    assert chosen["spark.sql.shuffle.partitions"] == "7" and chosen["spark.ui.enabled"] == "true"


def test_a_java_that_fails_says_where_to_look(tmp_path: Path) -> None:
    executable = tmp_path / "java"
    executable.write_text("#!/bin/sh\necho 'no room for the heap' >&2\nexit 3\n")
    executable.chmod(0o755)
    with pytest.raises(SparkError, match=r"Java ended with status 3") as raised:
        jvm.start_jvm(Java(executable, 17), tmp_path / "log", "1g", (), ("Main",))
    assert raised.value.remedy is not None
    assert str(tmp_path / "log") in raised.value.remedy and "no room for the heap" in raised.value.remedy


def test_logs_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "cache_folder", lambda name: tmp_path)
    for second in range(12):
        (tmp_path / f"spark-20260101-0000{second:02}-1.log").touch()
    new = launch._new_log()
    kept = sorted(tmp_path.glob("*.log"))
    assert len(kept) == launch.LOGS_KEPT - 1 and kept[0].name == "spark-20260101-000003-1.log" and new not in kept
