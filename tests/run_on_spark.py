"""The Spark runtime as a test drives it: a real streaming query over rows that lie in a spool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any
from zlib import crc32

from pyspark.sql import SparkSession

from tests.run_locally import Answer, Rows, batch_of
from transom.connectors.connector import OpenSink, Source
from transom.connectors.memory import MemorySink, MemorySource
from transom.core.time import FOREVER
from transom.pipeline.layout import Definition
from transom.plan.algebra import Node, Stream
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition, TableDefinition
from transom.planner.plan import plan
from transom.program.planned import Planned
from transom.program.run import QuerySpec, RunOptions
from transom.runtimes.reference.history import History
from transom.runtimes.spark.query import SparkQuery
from transom.runtimes.spark.query_context import QueryContext


def spark_query(
    planned: Planned,
    spark: SparkSession,
    open_source: Callable[[Definition], Source],
    open_sink: OpenSink,
    class_: type[SparkQuery] = SparkQuery,
    **options: Any,
) -> Any:
    """A query alone; the options are those of its spec, of its run, of where it runs, and of the class."""

    def given(of: type) -> dict[str, Any]:
        return {each.name: options.pop(each.name) for each in fields(of) if each.name in options}

    spec = QuerySpec(planned, open_sink=open_sink, **{"name": "query", "emit": "changes", **given(QuerySpec)})
    folder = options.pop("checkpoint", None)
    run_options = RunOptions(**given(RunOptions))
    return class_(
        spec, QueryContext(spark, open_source, run_options, checkpoint=folder, **given(QueryContext)), **options
    )


def run_on_spark(
    spark: SparkSession,
    query: Node,
    catalogue: Catalogue,
    inputs: dict[str, Rows],
    *,
    emit: str = "changes",
    batch_rows: int = 1 << 20,
    statement: Any = None,
) -> History:
    # Some plans in one task, and some cut into stages: which, is the same in every run.
    tasks = 1 + crc32(repr(query).encode()) % 2
    options = {"tasks": tasks, **catalogue.options, "batch_rows": batch_rows}
    with_options = Catalogue(catalogue.relations, catalogue.sinks, options)

    def open_source(definition: StreamDefinition | TableDefinition) -> MemorySource:
        time_column = None if definition.time is None else definition.time.column
        source = MemorySource(definition.columns, time_column=time_column)
        rows = inputs.get(definition.name.lower(), [])
        if rows:
            source.append(batch_of(definition.columns, rows))
        return source

    planned = Planned(statement or QueryStatement("", None, query), with_options, plan(query, with_options))  # type: ignore[arg-type]
    running = spark_query(planned, spark, open_source, OpenSink(lambda opening: MemorySink(opening.schema)), emit=emit)
    running.run()
    answer = Answer(isinstance(query, Stream), emit)
    for batch in running.table().to_batches():
        answer.add(batch)
    status = running.status()
    assert status.progress == FOREVER
    timed = {each.name.lower(): each for each in status.inputs if each.watermark is not None}
    for name, each in timed.items():
        assert each.waiting == 0 and each.rows_in == len(inputs.get(name, [])), each
    return answer.history(
        late={name: each.late for name, each in timed.items()},
        rejected={name: each.rejected for name, each in timed.items()},
    )
