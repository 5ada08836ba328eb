"""What a process that resumes is told of queries that share a join on Spark; nothing runs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from pyspark.sql import SparkSession

from transom.connectors.connector import Opening, OpenSink, Sink, Source
from transom.cql.statements import parse_statements
from transom.pipeline.layout import Definition
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.planner.plan import plan
from transom.planner.sharing_shape import Sharable, sharable
from transom.program.planned import Planned
from transom.program.run import QuerySpec, RunOptions
from transom.program.status import InputStatus
from transom.runtimes.spark.group import SparkGroup
from transom.runtimes.spark.query_context import QueryContext
from transom.runtimes.spark.spark_consumer import SparkConsumer

DECLARATIONS = "".join(
    f"CREATE STREAM {name} (ts TIMESTAMP, k INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory');"
    for name in "ab"
)
JOIN = "SELECT a.k FROM a [RANGE {0} SECONDS], b [RANGE {0} SECONDS] WHERE a.k = b.k"


def consumer(name: str, seconds: int) -> SparkConsumer:
    catalogue = Catalogue(options={"batch_rows": 10})
    statement = parse_statements(DECLARATIONS + JOIN.format(seconds), catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    planned = Planned(statement, catalogue, plan(statement.query, catalogue))
    request = sharable(statement.query, catalogue)
    assert isinstance(request, Sharable)
    return SparkConsumer(QuerySpec(planned, name, "changes", OpenSink(nowhere)), request)


def nowhere(opening: Opening) -> Sink:
    raise AssertionError


def context(folder: Path) -> QueryContext:
    """Of a session that is asked for its settings and for nothing else."""

    def opened(definition: Definition) -> Source:
        raise AssertionError

    settings = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}
    spark = SimpleNamespace(conf=settings, sparkContext=SimpleNamespace(defaultParallelism=2))
    return QueryContext(cast(SparkSession, spark), opened, RunOptions("stopped"), checkpoint=str(folder), open=True)


def test_a_query_that_had_come_to_others_is_there_since_then(tmp_path: Path) -> None:
    first, later = consumer("first", 9), consumer("later", 3)
    later.key, later.begin, later.first = "later 0f", 1_714_564_808_000_000, 4
    later.before = {name: InputStatus(name, 9, 7, 1, 1, 0, None, False, {}) for name in "ab"}
    group = SparkGroup([first, later], context(tmp_path / "one"))
    saved = json.loads(json.dumps(group.saved()))
    again = {"later": consumer("later", 3), "first": consumer("first", 9)}
    resumed = SparkGroup.resumed(saved, again, context(tmp_path / "two"))
    assert resumed.consumers == [again["first"], again["later"]] and resumed.sides == group.sides
    assert resumed.saved() == saved
    assert again["later"].key == "later 0f" and again["later"].first == 4
    begins = [each.consumer.begin for each in resumed.consumers]
    assert begins == [None, later.begin] == [each.consumer.begin for each in group.consumers]
    assert resumed.layout.fingerprint == group.layout.fingerprint
