"""Messages as rows of Spark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

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
    columns = message_columns(messages, labels, stage_number, local_shuffle)
    return pa.RecordBatch.from_pydict(columns, schema=MESSAGE_SCHEMA)


def message_columns(
    messages: Iterable[Message], labels: Labels, stage_number: int, local_shuffle: LocalShuffle
) -> dict[str, list[Any]]:
    """The same as lists: a blob may be large, and is not copied once more."""
    rows = [local_shuffle.lay_down(message) for message in messages]
    return {
        "label": [labels.label(stage_number, row.fragment, row.partition) for row in rows],
        "fragment": [row.fragment for row in rows],
        "partition": [row.partition for row in rows],
        "kind": [row.kind for row in rows],
        "blob": [row.packed() for row in rows],
    }
