"""The plan of a query as DataFrames: frames from the sources, a stateful stage for every stage of the plan, rows of the
answer."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from transom.connectors.connector import TaskWriter
from transom.kernels.nested import shown_rows
from transom.pipeline.frames import OUT, unpack
from transom.runtimes.spark.dataframe_source import packed
from transom.runtimes.spark.host import Host
from transom.runtimes.spark.hosted import Hosted
from transom.runtimes.spark.message_rows import MESSAGE_FIELDS
from transom.runtimes.spark.message_source import message_source
from transom.runtimes.spark.parquet_frame import ParquetFrame
from transom.runtimes.spark.task_split import TaskReading
from transom.runtimes.spark.types import spark_schema


def from_sources(
    spark: SparkSession, reading: TaskReading, frames: Mapping[str, DataFrame], files: Mapping[str, ParquetFrame]
) -> DataFrame:
    """The frames of all inputs: those that we read ourselves, and DataFrames, some of which are `files` to be read."""
    called = f"transom_{uuid.uuid4().hex}"
    spark.dataSource.register(message_source(called, reading))
    messages = spark.readStream.format(called).load()
    if reading.in_host and not frames:
        messages = messages.coalesce(1)  # it is one row for the one stateful task, and need not be sorted out
    for name in reading.layout.sources:
        if name in frames:
            own = reading.layout, reading.local_shuffle, reading.wants_time, reading.checkpoint
            messages = messages.unionByName(packed(frames[name], name, *own, files.get(name)))
    return messages


def through_stages(
    messages: DataFrame, reading: TaskReading, writers: Mapping[str, TaskWriter], folder: str | None, begins: bool
) -> DataFrame:
    """What reaches the sink, packed; tasks write the rows of answers that have `writers` on the way.

    `folder` is that of the checkpoint, if it is ours, in which may be what partitions `begins` with.
    """
    run = uuid.uuid4().hex
    for stage_number in range(1, reading.layout.stage_count + 1):
        host = Host(Hosted(reading, stage_number, run, dict(writers), folder, begins))
        messages = messages.groupBy("label").transformWithStateInPandas(host, MESSAGE_FIELDS, "append", "none")
    return messages


def answer_rows(messages: DataFrame, schema: pa.Schema) -> DataFrame:
    """The rows of the answer as plain columns."""

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for blob in batch.column(0):
                for part in unpack(blob.as_buffer()):
                    assert part.rows is not None
                    yield pa.RecordBatch.from_arrays(shown_rows(part.rows, schema).columns, schema=schema)

    return messages.filter(F.col("kind") == OUT).select("blob").mapInArrow(rows, spark_schema(schema))
