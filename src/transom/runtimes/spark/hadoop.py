"""Whether Spark, which writes its own part of a checkpoint by Hadoop, finds the storage that Transom writes to."""

from __future__ import annotations

import os
from typing import Any, Final

from pyspark.sql import SparkSession

from transom.core.errors import SparkError
from transom.core.location import hadoop_uri, is_remote
from transom.program.checkpoint_folder import RUN
from transom.runtimes.spark.worker_errors import cause

_JARS: Final = {"s3": "hadoop-aws", "s3a": "hadoop-aws", "abfs": "hadoop-azure", "abfss": "hadoop-azure"}


def check_reached(spark: SparkSession, folder: str) -> None:
    """Rejects a checkpoint on a storage that is not the same to Spark: it has to find our file there."""
    if not is_remote(folder):
        return
    jvm: Any = spark.sparkContext._jvm
    configuration: Any = spark._jsparkSession.sessionState().newHadoopConf()
    try:
        path = jvm.org.apache.hadoop.fs.Path(hadoop_uri(os.path.join(folder, RUN)))
        is_seen = path.getFileSystem(configuration).exists(path)
    except Exception as error:  # of the JVM
        raise SparkError(
            f"Spark cannot have a checkpoint at '{folder}': {cause(str(error))}", remedy=_remedy(jvm, folder)
        ) from None
    if not is_seen:
        raise SparkError(
            f"Spark does not find in '{folder}' what Transom has written there",
            remedy="give both the same storage: AWS_ENDPOINT_URL and spark.hadoop.fs.s3a.endpoint, for example",
        )


def _remedy(jvm: Any, folder: str) -> str:
    scheme = folder.partition(":")[0]
    version = jvm.org.apache.hadoop.util.VersionInfo.getVersion()
    jar = _JARS.get(scheme)
    if jar is not None:
        jars = f"spark.jars.packages = org.apache.hadoop:{jar}:{version}, or the same jars in spark.jars"
        given = "give Spark the address and the credentials as well (spark.hadoop.fs.s3a.endpoint, ..)"
        return f"start the session with {jars}, and {given}"
    return f"start the session with what Hadoop needs for {scheme}://, and see that it answers"
