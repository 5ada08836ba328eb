"""Messages as rows of Spark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from transom.pipeline.frames import Message
from transom.runtimes.spark.labels import Labels
from transom.runtimes.spark.local_shuffle import LocalShuffle

MESSAGE_FIELDS: Final = StructType(
    [
        StructField("label", IntegerType()),
        StructField("fragment", IntegerType()),
        StructField("partition", IntegerType()),
        StructField("kind", IntegerType()),
        StructField("blob", BinaryType()),
    ]
)

MESSAGE_SCHEMA: Final = pa.schema(
    [
        ("label", pa.int32()),
        ("fragment", pa.int32()),
        ("partition", pa.int32()),
        ("kind", pa.int32()),
        ("blob", pa.binary()),
    ]
)


def message_batch(
    messages: Iterable[Message], labels: Labels, stage_number: int, local_shuffle: LocalShuffle
) -> pa.RecordBatch:
    """Messages on their way into a stage."""
    rows = [local_shuffle.lay_down(message) for message in messages]
    columns = [
        pa.array([labels.label(stage_number, row.fragment, row.partition) for row in rows], pa.int32()),
        pa.array([row.fragment for row in rows], pa.int32()),
        pa.array([row.partition for row in rows], pa.int32()),
        pa.array([row.kind for row in rows], pa.int32()),
        pa.array([row.packed() for row in rows], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=MESSAGE_SCHEMA)
