"""Streaming DataFrames of the user's own as inputs, and the answer as one."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.run_on_spark import spark_query
from transom.connectors.connector import Opening, OpenSink
from transom.connectors.memory import MemorySink, MemorySource
from transom.core.errors import EvaluationError, SourceError
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition
from transom.program.planned import Planned, read_program
from transom.runtimes.spark.query import SparkQuery

NOON = datetime(2024, 5, 1, 12)
S = "CREATE STREAM s (ts TIMESTAMP, k INTEGER, a VARCHAR, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)"
COLUMNS = "ts timestamp_ntz, k int, a string, unread string"

Row = tuple[int | None, int | None, str | None]


def at(second: int | None) -> datetime | None:
    return None if second is None else NOON + timedelta(seconds=second)


def frame(spark: SparkSession, folder: Path, batches: list[list[Row]], kind: str = "timestamp_ntz") -> DataFrame:
    """A stream that brings one list a batch."""
    folder.mkdir()
    for number, rows in enumerate(batches):
        table = pa.table(
            {
                "ts": pa.array([at(second) for second, _, _ in rows], pa.timestamp("us")),
                "k": pa.array([k for _, k, _ in rows], pa.int32()),
                "a": pa.array([a for _, _, a in rows], pa.string()),
                "unread": pa.array(["u"] * len(rows), pa.string()),
            }
        )
        pq.write_table(table, folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (1_700_000_000 + number,) * 2)  # Spark takes the oldest file first
    reader = spark.readStream.schema(COLUMNS.replace("timestamp_ntz", kind)).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def planned(declaration: str, query: str) -> Planned:
    return read_program(f"{declaration} WITH (connector = 'memory'); {query}", Catalogue())[-1]


def no_rows(definition: StreamDefinition | TableDefinition) -> MemorySource:
    return MemorySource(definition.columns, time_column=None if definition.time is None else definition.time.column)


def run(spark: SparkSession, one: Planned, **frames: DataFrame) -> tuple[list[dict[str, Any]], SparkQuery, MemorySink]:
    dead_letters: list[MemorySink] = []

    def open_dead_letters(opening: Opening) -> MemorySink:
        dead_letters.append(MemorySink(opening.schema))
        return dead_letters[-1]

    query = spark_query(
        one,
        spark,
        no_rows,
        OpenSink(lambda opening: MemorySink(opening.schema)),
        frames=frames,
        open_dead_letters=OpenSink(open_dead_letters),
        emit="changes",
    )
    query.run()
    return query.table().to_pylist(), query, dead_letters[-1]


def test_a_frame_is_a_stream_and_its_rows_are_late_by_the_batches_before(spark: SparkSession, tmp_path: Path) -> None:
    batches: list[list[Row]] = [
        [(9, 1, "x"), (3, 1, "y"), (10, 2, "x")],  # 3 is not late: nothing came before this batch
        [(7, 1, "late"), (8, 1, "just in time"), (12, None, "x"), (None, 1, "no time")],
    ]
    one = planned(S, "ISTREAM(SELECT k, a FROM s [NOW])")
    rows, query, dead_letters = run(spark, one, s=frame(spark, tmp_path / "s", batches))
    assert [(row["at"], row["k"], row["a"]) for row in rows] == [
        (at(3), 1, "y"),
        (at(8), 1, "just in time"),
        (at(9), 1, "x"),
        (at(10), 2, "x"),
        (at(12), None, "x"),
    ]
    (status,) = query.status().inputs
    assert (status.rows_in, status.used, status.late, status.rejected, status.waiting) == (7, 5, 1, 1, 0)
    assert [row["row"] for row in dead_letters.table().to_pylist()] == ['{"ts": null, "k": "1", "a": "no time"}']


def test_what_a_filter_drops_in_spark_still_moves_time_and_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    batches: list[list[Row]] = [[(1, 1, "a"), (20, 7, "unwanted")], [(5, 7, "late and unwanted"), (4, 1, "late")]]
    one = planned(S, "ISTREAM(SELECT a FROM s [RANGE 5 SECONDS] WHERE k = 1)")
    rows, query, _ = run(spark, one, s=frame(spark, tmp_path / "s", batches))
    assert [row["a"] for row in rows] == ["a"]
    (status,) = query.status().inputs
    assert (status.rows_in, status.used, status.late) == (4, 2, 2)


@pytest.mark.nightly
def test_arrays_and_structs_come_and_go(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rows = {"ts": [at(1), at(2)], "a": [[3, None], [1]], "b": [{"p": [[2]]}, None]}
    types = [pa.timestamp("us"), pa.list_(pa.int32()), pa.struct([("p", pa.list_(pa.list_(pa.int64())))])]
    arrays = [pa.array(values, type_) for values, type_ in zip(rows.values(), types, strict=True)]
    pq.write_table(pa.table(arrays, names=list(rows)), tmp_path / "in" / "0.parquet")
    given = spark.readStream.schema("ts timestamp_ntz, a array<int>, b struct<p: array<array<bigint>>>")
    frame = given.parquet(str(tmp_path / "in"))
    declaration = "CREATE STREAM s (ts TIMESTAMP, a INTEGER[], b STRUCT(p BIGINT[][]), WATERMARK FOR ts AS ts)"
    query = "ISTREAM(SELECT e, b, ARRAY_AGG(a) AS all FROM s [RANGE 5 SECONDS], UNNEST(a) AS u(e) WHERE a > [0]"
    one = planned(declaration, f"{query} GROUP BY e, b)")
    found, _, _ = run(spark, one, s=frame)
    assert [(row["e"], row["b"], row["all"]) for row in found] == [
        (None, {"p": [[2]]}, [[3, None]]),
        (3, {"p": [[2]]}, [[3, None]]),
        (1, None, [[1]]),
    ]
    sink = OpenSink(lambda opening: MemorySink(opening.schema))
    answer = spark_query(one, spark, no_rows, sink, frames={"s": frame}).dataframe()
    assert answer.schema["all"].dataType.simpleString() == "array<array<int>>"


@pytest.mark.nightly
def test_instants_and_json_come_and_go(spark: SparkSession, tmp_path: Path) -> None:
    """By the count of microseconds, in a session whose clocks show something else."""
    table = pa.table(
        {
            "ts": pa.array([NOON + timedelta(seconds=second) for second in (0, 1, 2)], pa.timestamp("us", "UTC")),
            "j": pa.array(['{"a": [1, 2.50]}', "[", '{"a": null}'], pa.string()),
        }
    )
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "0.parquet")
    brought = spark.readStream.schema("ts timestamp, j string").parquet(str(tmp_path / "in"))
    declaration = "CREATE STREAM s (ts TIMESTAMPTZ, j JSON, WATERMARK FOR ts AS ts)"
    query = (
        "SELECT ts, hour(ts AT TIME ZONE 'Asia/Tokyo') AS h, j -> '$.a' AS a, j FROM s [NOW] WHERE ts > '2024-01-01'"
    )
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        rows, _, rejected = run(spark, planned(declaration, query), s=brought)
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
    found = [tuple(row[name] for name in ("ts", "h", "a", "j")) for row in rows if row["change"] == "+"]
    assert found == [
        (NOON.replace(tzinfo=UTC), 21, "[1,2.5]", '{"a": [1, 2.50]}'),
        (NOON.replace(tzinfo=UTC) + timedelta(seconds=2), 21, "null", '{"a": null}'),
    ]
    assert [row["reason"] for row in rejected.table().to_pylist()] == ["column 'j' is JSON and cannot hold '['"]


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["timestamp_ntz", "timestamp"])
def test_rows_of_one_instant_count_in_the_order_of_their_values(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    batches: list[list[Row]] = [[(1, 3, "c"), (1, 1, "b"), (1, 2, "a")], [(4, 9, "z")]]
    one = planned(S, "SELECT k FROM s [ROWS 2]")
    rows, _, _ = run(spark, one, s=frame(spark, tmp_path / "s", batches, kind))
    assert [(row["change"], row["k"]) for row in rows] == [("+", 2), ("+", 3), ("-", 2), ("+", 9)]


@pytest.mark.nightly
def test_a_frame_beside_rows_of_our_own(spark: SparkSession, tmp_path: Path) -> None:
    batches: list[list[Row]] = [[(1, 1, "a"), (2, 2, "b")], [(3, 1, "c")]]
    text = f"""{S} WITH (connector = 'memory'); CREATE TABLE names (k BIGINT, name VARCHAR) WITH (connector = 'memory');
        ISTREAM(SELECT a, name FROM s [RANGE 5 SECONDS], names WHERE s.k = names.k)"""
    one = read_program(text, Catalogue())[-1]

    def names(definition: StreamDefinition | TableDefinition) -> MemorySource:
        source = MemorySource(definition.columns, time_column=None)
        source.append(pa.record_batch({"k": pa.array([1], pa.int64()), "name": ["one"]}))
        return source

    frames = {"s": frame(spark, tmp_path / "s", batches)}
    query = spark_query(one, spark, names, OpenSink(lambda opening: MemorySink(opening.schema)), frames=frames)
    query.run()
    assert [(row["a"], row["name"]) for row in query.table().to_pylist()] == [("a", "one"), ("c", "one")]


def test_the_answer_is_a_streaming_frame_to_go_on_with(spark: SparkSession, tmp_path: Path) -> None:
    batches: list[list[Row]] = [[(1, 1, "a"), (2, 2, "b")], [(9, 1, "c")], [(30, 5, "d")]]
    one = planned(S, "ISTREAM(SELECT k, a FROM s [RANGE 5 SECONDS] WHERE k < 5)")
    query = spark_query(
        one,
        spark,
        no_rows,
        OpenSink(lambda opening: MemorySink(opening.schema)),
        frames={"s": frame(spark, tmp_path / "s", batches)},
    )
    answer = query.dataframe()
    assert answer.isStreaming and answer.columns == ["at", "k", "a"]
    writer = answer.where("k = 1").writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "cp"))
    writer.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    found = pq.read_table(tmp_path / "out").to_pylist()
    assert sorted((row["k"], row["a"]) for row in found) == [(1, "a"), (1, "c")]


def test_an_error_of_a_worker_is_ours_with_the_operator_and_the_query(spark: SparkSession, tmp_path: Path) -> None:
    batches: list[list[Row]] = [[(1, 1, "7")], [(9, 1, "seven")]]
    one = planned(S, "SELECT SUM(CAST(a AS INTEGER)) AS total FROM s [RANGE 5 SECONDS]")
    with pytest.raises(EvaluationError, match="seven") as caught:
        run(spark, one, s=frame(spark, tmp_path / "s", batches))
    assert caught.value.query is not None and "SUM(CAST(a AS INTEGER))" in caught.value.query


@pytest.mark.nightly
def test_an_error_within_a_query_of_the_users_own_is_reported_in_words(spark: SparkSession, tmp_path: Path) -> None:
    one = planned(S, "ISTREAM(SELECT CAST(a AS INTEGER) AS n FROM s)")
    frames = {"s": frame(spark, tmp_path / "s", [[(1, 1, "seven")]])}
    answer = spark_query(
        one, spark, no_rows, OpenSink(lambda opening: MemorySink(opening.schema)), frames=frames
    ).dataframe()
    writer = answer.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "cp"))
    with pytest.raises(StreamingQueryException) as caught:
        writer.trigger(availableNow=True).start().awaitTermination()
    reported = str(caught.value)
    assert "'seven'" in reported and reported.index("'seven'") < reported.index("<<transom ")


def test_a_frame_that_does_not_stream_is_rejected(spark: SparkSession) -> None:
    still = spark.createDataFrame([(NOON, 1, "a")], "ts timestamp_ntz, k int, a string")
    with pytest.raises(SourceError, match="not a streaming DataFrame"):
        run(spark, planned(S, "SELECT k FROM s"), s=still)
