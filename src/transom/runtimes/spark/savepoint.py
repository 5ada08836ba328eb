"""Savepoints: the state of queries on one join, migrated to a streaming query with other consumers.

Spark fixes the stages and the state of a streaming query by its checkpoint. So when queries come or go the streaming
query is stopped between two batches, and another one begins, with a checkpoint of its own: its source begins where the
first one has read to, and its partitions begin with memories that are read out of the state of the first one, by tasks,
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
from transom.core.location import is_remote
from transom.pipeline import state_backend
from transom.pipeline.fragment_partition import FragmentPartition
from transom.pipeline.layout import Layout
from transom.pipeline.migration import PartitionId, begun_partitions, migrated_partition
from transom.pipeline.partition_state import PartitionState
from transom.program.checkpoint_folder import names_in, put, read
from transom.runtimes.spark.checkpoint import QueryCheckpoint
from transom.runtimes.spark.log_names import HEADER, LOG, files_of, header_of
from transom.runtimes.spark.state_files import StateFiles
from transom.runtimes.spark.worker_errors import reported_to_driver
from transom.state import codec

_MEMORIES: Final = "memories"


@dataclass(frozen=True)
class Stop:
    """Where a streaming query was stopped between two batches; `batches` are those of the whole run until then.

    `folder` is that of its checkpoint, and of the memories that it began with, if there were any. Whoever only resumes,
    and migrates nothing, needs no `layout`.
    """

    layout: Layout | None
    partitions: int
    folder: str
    frontier: int | None
    offset: dict[str, Any]
    batches: int


def memory_at(folder: str | None, fragment: int, partition: int) -> bytes | None:
    """What a partition begins with; None without a folder: then it knows nothing yet."""
    if folder is None:
        return None
    memory = read(_path(folder, (fragment, partition)))
    if memory is None:
        raise SparkError(
            f"what the query had in mind is not in '{folder}'",
            remedy="see that all machines have the same folder for temporary files (TMPDIR), and that nobody clears it",
        )
    return memory


def migrate_state(spark: SparkSession, stop: Stop, layout: Layout, folder: str) -> None:
    """Write what the partitions of this layout begin with, where `memory_at` finds it in the folder."""
    if not is_remote(folder):
        os.makedirs(os.path.join(folder, _MEMORIES), exist_ok=True)

    def carry(log: pa.Table) -> pa.Table:
        with reported_to_driver():
            _migrate(stop, layout, TableLog(log, stop), folder)
        return pa.table({"done": pa.array([True])})

    assert stop.layout is not None
    entries = [_entries(spark, QueryCheckpoint(stop.folder).uri, stage) for stage in range(stop.layout.stage_count)]
    whole = entries[0]
    for each in entries[1:]:
        whole = whole.unionAll(each)
    done = whole.groupBy("stage", "label").applyInArrow(carry, "done boolean").count()
    assert done == sum(stop.layout.partitions_of(fragment.number) for fragment in stop.layout.fragments)


def _entries(spark: SparkSession, checkpoint: str, stage: int) -> DataFrame:
    """The logs of all partitions of a stage, as of the last batch that is done."""
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
    assert stop.layout is not None
    header = state_backend.Header.of(log.header())
    partition = FragmentPartition(stop.layout, header.fragment, header.partition)
    first = stop.folder if names_in(os.path.join(stop.folder, _MEMORIES)) else None
    partition.state = state_backend.recovered(
        partition, log, lambda: memory_at(first, header.fragment, header.partition)
    )
    migrated = migrated_partition(partition, layout)
    if migrated is not None:
        _write(folder, *migrated)
    if (header.fragment, header.partition) == (stop.layout.accountant, 0):
        for partition_id, state in begun_partitions(stop.layout, layout, partition).items():
            _write(folder, partition_id, state)


def _write(folder: str, partition_id: PartitionId, state: PartitionState) -> None:
    """Whole, or not at all: a task may be run twice."""
    path = _path(folder, partition_id)
    if is_remote(path):
        put(path, codec.encode(state))
        return
    with open(f"{path}.{os.getpid()}", "wb") as file:
        file.write(codec.encode(state))
    os.replace(file.name, path)


def _path(folder: str, partition_id: PartitionId) -> str:
    return os.path.join(folder, _MEMORIES, f"{partition_id[0]}-{partition_id[1]}")


class TableLog:
    """The log of one partition, as it was read out of Spark's state: it is only read."""

    def __init__(self, entries: pa.Table, stop: Stop) -> None:
        keys = zip(entries.column("entry").to_pylist(), entries.column("part").to_pylist(), strict=True)
        self._blobs = dict(zip(keys, entries.column("blob"), strict=True))
        assert stop.layout is not None
        # Spark counts stages from the last one.
        stage_number = stop.layout.stage_number[state_backend.Header.of(self.header()).fragment]
        self._files = StateFiles(files_of(stop.folder, stage_number, entries.column("label")[0].as_py()))

    def header(self) -> str:
        return header_of(bytes(self._blobs[HEADER].as_buffer()))[0]

    def read(self, entry: int, part: int) -> bytes:
        return self._files.value(bytes(self._blobs[entry, part].as_buffer()))
