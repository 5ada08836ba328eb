"""A source without rows: reading it starts the same processes as a source of a query does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import IntegerType, StructField, StructType


class Nothing(DataSource):
    @classmethod
    def name(cls) -> str:
        return "transom_nothing"

    def schema(self) -> StructType:
        return StructType([StructField("x", IntegerType())])

    def reader(self, schema: StructType) -> DataSourceReader:
        return NothingReader()


class NothingReader(DataSourceReader):
    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(0), InputPartition(1)]  # a worker for each of two cores, at least

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        return iter(())
