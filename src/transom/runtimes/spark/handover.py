"""What queries on one join remember, handed over to a streaming query in which others are there.

Spark fixes the stages and the state of a streaming query by its checkpoint. So when queries come or go the streaming
query is stopped between two batches, and another one begins, with a checkpoint of its own: its source begins where the
first one has read to, and its buckets begin with memories that are read out of the state of the first one, by tasks,
and migrated to the new layout (`pipeline/migration.py`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from transom.core.errors import SparkError
from transom.pipeline import keeper
from transom.pipeline.bucket import Bucket
from transom.pipeline.bucket_state import BucketState
from transom.pipeline.layout import Layout
from transom.pipeline.migration import Place, begun_buckets, migrated_bucket
from transom.runtimes.spark.checkpoint import QueryCheckpoint
from transom.runtimes.spark.log_names import HEADER, LOG, files_of, header_of
from transom.runtimes.spark.state_files import StateFiles
from transom.runtimes.spark.worker_errors import told_to_the_driver
from transom.state import codec

_MEMORIES: Final = "memories"


@dataclass(frozen=True)
class Stop:
    """Where a streaming query was stopped between two batches; `batches` are those of the whole run until then.

    `folder` is that of its checkpoint, and of the memories that it began with, if there were any.
    """

    layout: Layout
    folder: str
    upto: int | None
    offset: dict[str, Any]
    batches: int


def memory_at(folder: str | None, fragment: int, bucket: int) -> bytes | None:
    """What a bucket begins with; None without a folder: then it knows nothing yet."""
    if folder is None:
        return None
    try:
        with open(_path(folder, (fragment, bucket)), "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise SparkError(
            f"what the query had in mind is not in '{folder}'",
            remedy="see that all machines have the same folder for temporary files (TMPDIR), and that nobody clears it",
        ) from None


def hand_over(spark: SparkSession, stop: Stop, layout: Layout, folder: str) -> None:
    """Write what the buckets of this layout begin with, where `memory_at` finds it in the folder."""
    os.makedirs(os.path.join(folder, _MEMORIES), exist_ok=True)

    def carry(log: pa.Table) -> pa.Table:
        with told_to_the_driver():
            _migrate(stop, layout, TableLog(log, stop), folder)
        return pa.table({"done": pa.array([True])})

    entries = [_entries(spark, QueryCheckpoint(stop.folder).uri, stage) for stage in range(stop.layout.levels)]
    whole = entries[0]
    for each in entries[1:]:
        whole = whole.unionAll(each)
    done = whole.groupBy("stage", "label").applyInArrow(carry, "done boolean").count()
    assert done == sum(stop.layout.buckets_of(fragment.number) for fragment in stop.layout.fragments)


def _entries(spark: SparkSession, checkpoint: str, stage: int) -> DataFrame:
    """The logs of all buckets of a stage, as of the last batch that is done."""
    reader = spark.read.format("statestore").option("path", checkpoint).option("operatorId", stage)
    state = reader.option("stateVarName", LOG).load()
    return state.select(
        F.lit(stage).alias("stage"),
        F.col("key.label").alias("label"),
        F.col("user_map_key.entry").alias("entry"),
        F.col("user_map_key.part").alias("part"),
        F.col("user_map_value.blob").alias("blob"),
    )


def _migrate(stop: Stop, layout: Layout, log: TableLog, folder: str) -> None:
    header = keeper.Header.of(log.header())
    bucket = Bucket(stop.layout, header.fragment, header.bucket)
    first = stop.folder if os.path.isdir(os.path.join(stop.folder, _MEMORIES)) else None
    bucket.state = keeper.recalled(bucket, log, lambda: memory_at(first, header.fragment, header.bucket))
    migrated = migrated_bucket(bucket, layout)
    if migrated is not None:
        _write(folder, *migrated)
    if (header.fragment, header.bucket) == (stop.layout.accountant, 0):
        for place, state in begun_buckets(stop.layout, layout, bucket).items():
            _write(folder, place, state)


def _write(folder: str, place: Place, state: BucketState) -> None:
    """Whole, or not at all: a task may be run twice."""
    path = _path(folder, place)
    with open(f"{path}.{os.getpid()}", "wb") as file:
        file.write(codec.encode(state))
    os.replace(file.name, path)


def _path(folder: str, place: Place) -> str:
    return os.path.join(folder, _MEMORIES, f"{place[0]}-{place[1]}")


class TableLog:
    """The log of one bucket, as it was read out of Spark's state: it is only read."""

    def __init__(self, entries: pa.Table, stop: Stop) -> None:
        places = zip(entries.column("entry").to_pylist(), entries.column("part").to_pylist(), strict=True)
        self._blobs = dict(zip(places, entries.column("blob"), strict=True))
        # Spark counts stages from the last one.
        level = stop.layout.level[keeper.Header.of(self.header()).fragment]
        self._files = StateFiles(files_of(stop.folder, level, entries.column("label")[0].as_py()))

    def header(self) -> str:
        return header_of(bytes(self._blobs[HEADER].as_buffer()))[0]

    def read(self, entry: int, part: int) -> bytes:
        return self._files.value(bytes(self._blobs[entry, part].as_buffer()))
