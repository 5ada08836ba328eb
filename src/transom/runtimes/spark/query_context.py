"""Where a query runs on Spark, and how: the same for all queries of a run, and for all that resume from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from transom.connectors.connector import Source
from transom.pipeline.layout import Definition
from transom.program.run import RunOptions


@dataclass(frozen=True)
class QueryContext:
    """`frames` are the inputs that are DataFrames; `open_source` opens those whose rows are in this process.

    `checkpoint` is the folder of the query, in that of the run. Rows that this process hands over lie in the folder
    `rows`, if that is another one.
    """

    spark: SparkSession
    open_source: Callable[[Definition], Source]
    run_options: RunOptions = field(default_factory=RunOptions)
    frames: Mapping[str, DataFrame] = field(default_factory=dict)
    checkpoint: str | None = None
    rows: str | None = None
    open: bool = False
    """Whether queries may come and go. Rows of sides that anybody counts are counted whoever is there."""
