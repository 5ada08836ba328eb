"""The rival of the window join: Spark's own stream-stream join on the same files, with the settings that serve it best.

Nothing of Transom takes part in it but the search for a Java.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from transom.core.errors import SparkError
from transom.runtimes.spark.java import find_java

SETTINGS: Final = {
    "spark.master": "local[*]",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "6g",  # all of the state lives on its heap; the stock 1 GB would not hold it
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",  # throughput counts here, not pauses
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # The stock one forks some forty processes a batch on a local disk: 0.9 s against 0.5 s for a small batch.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""What serves the rival best of what was tried."""

ROCKSDB: Final = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


@dataclass(frozen=True)
class BatchTime:
    """What Spark's progress reports of one micro-batch."""

    seconds: float
    rows: int


def stream_stream_join(
    spark: Any, source: Path, files: Sequence[str], window_ms: int, scratch: Path
) -> list[BatchTime]:
    """Runs the join to the end of the files, writes the answer to `scratch/out`, and gives its batches in order.

    `files` are names below the folders `a` and `b` of `source`, one of each for every micro-batch.
    """
    from pyspark.sql import functions as sql

    sides = {}
    for side in ("a", "b"):
        rows = (
            spark.readStream.schema("ts TIMESTAMP, k BIGINT, v BIGINT, s STRING")
            .option("maxFilesPerTrigger", 1)
            .option("pathGlobFilter", "{" + ",".join(files) + "}")
            .parquet(str(source / side))
        )
        named = [sql.col(name).alias(f"{side}_{name}") for name in ("ts", "k", "v", "s")]
        sides[side] = rows.select(*named).withWatermark(f"{side}_ts", "0 seconds")
    window = sql.lit(timedelta(milliseconds=window_ms))
    a_ts, b_ts = sql.col("a_ts"), sql.col("b_ts")
    same_key = sql.col("a_k") == sql.col("b_k")
    pairs = sides["a"].join(sides["b"], same_key & (b_ts > a_ts - window) & (b_ts < a_ts + window))
    answer = pairs.select("a_ts", "b_ts", sql.col("a_k").alias("k"), "a_v", "b_v", "a_s", "b_s")
    query = (
        answer.writeStream.format("parquet")
        .option("path", str(scratch / "out"))
        .option("checkpointLocation", str(scratch / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return batch_times(query.recentProgress)


def batch_times(progress: Sequence[Any]) -> list[BatchTime]:
    """Of the batches that had input."""
    return [
        BatchTime(
            batch["durationMs"]["triggerExecution"] / 1_000,
            batch["numInputRows"],
        )
        for batch in progress
        if batch["numInputRows"]
    ]


def open_session(settings: Mapping[str, str], name: str) -> Any:
    """A session with exactly these settings; there must not have been another in this process."""
    java = find_java()
    if java.home is not None:
        os.environ["JAVA_HOME"] = str(java.home)
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is not None:
        raise SparkError("the rival needs a process of its own: a Spark session is running in this one")
    builder = SparkSession.builder.appName(name)
    for setting, value in settings.items():
        builder = builder.config(setting, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
