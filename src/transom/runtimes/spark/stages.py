"""The plan of a query as DataFrames: cargo from the sources, a stateful stage for every level, rows of the answer."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from transom.connectors.connector import TaskWriter
from transom.pipeline.cargo import OUT, unpack
from transom.runtimes.spark.cargo_rows import CARGO_FIELDS
from transom.runtimes.spark.cargo_source import cargo_source
from transom.runtimes.spark.frame_source import packed
from transom.runtimes.spark.host import Host
from transom.runtimes.spark.hosted import Hosted
from transom.runtimes.spark.stretch import Reading
from transom.runtimes.spark.types import spark_schema


def from_sources(spark: SparkSession, reading: Reading, frames: Mapping[str, DataFrame]) -> DataFrame:
    """The cargo of all inputs: those that we read ourselves, and DataFrames."""
    called = f"transom_{uuid.uuid4().hex}"
    spark.dataSource.register(cargo_source(called, reading))
    cargo = spark.readStream.format(called).load()
    if reading.in_host and not frames:
        cargo = cargo.coalesce(1)  # it is one row for the one stateful task, and need not be sorted out
    for name in reading.layout.sources:
        if name in frames:
            feedback = None if reading.feedback is None else os.path.abspath(reading.feedback)
            own = reading.layout, reading.depot, reading.wants_time, feedback
            cargo = cargo.unionByName(packed(frames[name], name, *own))
    return cargo


def through_levels(
    cargo: DataFrame, reading: Reading, writers: Mapping[str, TaskWriter], folder: str | None, begins: bool
) -> DataFrame:
    """What reaches the sink, packed; tasks write the rows of answers that have `writers` on the way.

    `folder` is that of the checkpoint, if it is ours, in which may be what buckets `begins` with.
    """
    run = uuid.uuid4().hex
    for level in range(1, reading.layout.levels + 1):
        host = Host(Hosted(reading, level, run, dict(writers), folder, begins))
        cargo = cargo.groupBy("label").transformWithStateInPandas(host, CARGO_FIELDS, "append", "none")
    return cargo


def answer_rows(cargo: DataFrame, schema: pa.Schema) -> DataFrame:
    """The rows of the answer as plain columns."""

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for blob in batch.column(0):
                for part in unpack(blob.as_buffer()):
                    assert part.rows is not None
                    yield pa.RecordBatch.from_arrays(part.rows.columns, schema=schema)

    return cargo.filter(F.col("kind") == OUT).select("blob").mapInArrow(rows, spark_schema(schema))
