"""The session in which benchmarks run Transom on Spark, and files as a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from transom.runtimes.spark import launch
from transom.runtimes.spark.jvm import SHORT
from transom.runtimes.spark.settings import LOCAL, NEEDED, WANTED


def session_with(settings: Mapping[str, str]) -> tuple[SparkSession, dict[str, str]]:
    """The session that Transom starts for itself, and what is to be said of its settings.

    Transom reads the files, those of a DataFrame of Parquet files, too: Java has little to do, and its quick compiler
    serves best.
    """
    extra: dict[str, Any] = dict(settings)
    spark = SparkSession.getActiveSession() or launch.start(lasting=False, **extra)
    launch.warm(spark).join()
    used = {each.name: each.value for each in (*NEEDED, *WANTED)} | LOCAL
    used["spark.master"] = spark.conf.get("spark.master") or ""
    return spark, used | {"java": " ".join(SHORT)} | dict(settings)


def file_stream(spark: SparkSession, folder: str) -> DataFrame:
    """Spark's own file source, one file a batch."""
    reader = spark.readStream.schema("ts timestamp_ntz, k bigint, v bigint, s string")
    return reader.option("maxFilesPerTrigger", 1).parquet(folder)
