"""Checkpoints of Spark on a disk and on a storage: for one query, for one run, and empty where nothing was planned."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.connectors.memory_storage import memory_storage
from tests.runtimes.spark.checkpoint_place import place
from transom.connectors.spool import Spool
from transom.core.errors import CheckpointError, SparkError
from transom.core.location import is_remote
from transom.core.schema import Column, Schema
from transom.program.checkpoint_folder import CheckpointFolder, put
from transom.runtimes.spark.checkpoint import QueryCheckpoint, begun
from transom.runtimes.spark.guard import Guard
from transom.runtimes.spark.hadoop import check_reached
from transom.runtimes.spark.query import SparkQuery
from transom.runtimes.spark.run import SparkRun

__all__ = ["place"]

CONF = '{"conf": {"spark.sql.shuffle.partitions": "3"}}'


def test_a_checkpoint_is_for_one_query(place: str) -> None:
    checkpoint = QueryCheckpoint(f"{place}/q")
    checkpoint.claim("one", "[1]", 4)
    assert checkpoint.threads() is None and checkpoint.decisions() == "", "nothing has been planned"
    checkpoint.claim("another", "[2]", 3)
    if not is_remote(place):
        Path(place, "q", "spark", "offsets").mkdir(parents=True)
    put(f"{place}/q/spark/offsets/0", f"v1\n{CONF}\n{{}}".encode())
    assert checkpoint.threads() == 3 and checkpoint.decisions() == "[2]" and begun(place)
    checkpoint.claim("another")
    with pytest.raises(CheckpointError):
        checkpoint.claim("one")


def test_rows_for_a_query_that_has_not_begun_are_removed(place: str) -> None:
    columns = Schema((Column("a", pa.int64()),))
    spool = Spool(f"{place}/q/rows/s", columns)
    spool.append(pa.record_batch({"a": [1, 2]}))
    spool.close()
    assert not begun(place)
    assert Spool(f"{place}/q/rows/s", columns).rows == 0


def test_of_two_runs_on_a_storage_the_first_one_writes_no_more_batches() -> None:
    with memory_storage() as (uri, _):
        layout = SimpleNamespace(check_budget=lambda sharing: False)
        unit = SimpleNamespace(guard=Guard(), layout=layout)
        SparkRun([cast(SparkQuery, unit)], CheckpointFolder(f"{uri}/check"))
        unit.guard.after = lambda number, seconds: None
        written: list[int] = []

        def batch(frame: Any, number: int) -> None:
            written.append(number)

        unit.guard.around(batch)(None, 0)
        CheckpointFolder(f"{uri}/check")
        with pytest.raises(CheckpointError, match="in use by another run"):
            unit.guard.around(batch)(None, 1)
        assert written == [0]


def test_a_storage_that_hadoop_does_not_know_is_rejected_with_the_jars_to_add(spark: SparkSession) -> None:
    with pytest.raises(SparkError, match=r"cannot have a checkpoint at 's3://shop/check'.*S3AFileSystem") as raised:
        check_reached(spark, "s3://shop/check")
    assert "spark.jars.packages = org.apache.hadoop:hadoop-aws:3" in str(raised.value)
    check_reached(spark, "/not/there/yet")
