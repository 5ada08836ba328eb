"""Parcels as rows of Spark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from transom.pipeline.cargo import Parcel
from transom.runtimes.spark.depot import Depot
from transom.runtimes.spark.labels import Labels

CARGO_FIELDS: Final = StructType(
    [
        StructField("label", IntegerType()),
        StructField("fragment", IntegerType()),
        StructField("bucket", IntegerType()),
        StructField("kind", IntegerType()),
        StructField("blob", BinaryType()),
    ]
)

CARGO_SCHEMA: Final = pa.schema(
    [
        ("label", pa.int32()),
        ("fragment", pa.int32()),
        ("bucket", pa.int32()),
        ("kind", pa.int32()),
        ("blob", pa.binary()),
    ]
)


def cargo_batch(parcels: Iterable[Parcel], labels: Labels, level: int, depot: Depot) -> pa.RecordBatch:
    """Parcels on their way into a level."""
    rows = [depot.lay_down(parcel) for parcel in parcels]
    columns = [
        pa.array([labels.label(level, row.fragment, row.bucket) for row in rows], pa.int32()),
        pa.array([row.fragment for row in rows], pa.int32()),
        pa.array([row.bucket for row in rows], pa.int32()),
        pa.array([row.kind for row in rows], pa.int32()),
        pa.array([row.packed() for row in rows], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CARGO_SCHEMA)
