"""Hadoop's settings without where each of them came from.

Spark sends Hadoop's settings, over a thousand, to the tasks of every stateful stage in every batch, and each goes with
the name of the file that it came from, zipped on its own: five of seven milliseconds. Nobody asks for it there. So in
a JVM of our own the settings forget it; they stay what they are.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import SparkSession

ORIGINS: Final = "updatingResource"
"""What Hadoop calls the table."""


def forget(spark: SparkSession) -> None:
    """Forget the origins; what reads its settings anew, because a further file of them is found, knows them again."""
    settings: Any = spark.sparkContext._jsc.hadoopConfiguration()
    settings.get("")  # they are read when somebody first asks
    field = settings.getClass().getDeclaredField(ORIGINS)
    field.setAccessible(True)
    field.get(settings).clear()
