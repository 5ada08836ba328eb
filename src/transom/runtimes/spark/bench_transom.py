"""What the benchmark of the window join needs of PySpark to run Transom: its session, and files as a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from transom.runtimes.spark import launch


def session_with(settings: Mapping[str, str]) -> SparkSession:
    """The session that Transom starts for itself, with settings of its own for this run."""
    extra: dict[str, Any] = dict(settings)
    spark = SparkSession.getActiveSession() or launch.start(**extra)
    launch.warm(spark).join()
    return spark


def file_stream(spark: SparkSession, folder: str) -> DataFrame:
    """Spark's own file source, one file a batch."""
    reader = spark.readStream.schema("ts timestamp_ntz, k bigint, v bigint, s string")
    return reader.option("maxFilesPerTrigger", 1).parquet(folder)
