from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from tests.kernels.scalar_expressions import TYPES
from transom.core.errors import SourceError
from transom.core.schema import (
    BIGINT,
    DOUBLE,
    DURATION,
    INTEGER,
    SMALLINT,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Schema,
    arrow_type,
)
from transom.runtimes.spark.types import declared_columns, readable, schema_of, to_spark
from transom.session import Session

INSTANTS = [
    datetime(1, 1, 1),
    datetime(1883, 11, 18, 12, 3, 57),  # where New York's clocks were set to a zone
    datetime(1969, 12, 31, 23, 59, 59, 999_999),
    datetime(2021, 3, 14, 7, 30),  # an hour that is not on the clock in New York
    datetime(2021, 11, 7, 5, 30),  # an hour that is on it twice
    datetime(2021, 11, 7, 6, 30),
    datetime(9999, 12, 31, 23, 59, 59, 999_999),
]


@pytest.fixture(params=["UTC", "America/New_York", "+14:00"])
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", str(before))


def test_types_go_there_and_back(spark: SparkSession) -> None:
    types = [*TYPES, DURATION]
    fields = [T.StructField(f"c{i}", to_spark(type_)) for i, type_ in enumerate(types)]
    assert schema_of(spark.createDataFrame([], T.StructType(fields))).types == list(map(arrow_type, types))


def test_other_types_that_one_of_ours_holds(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], "a timestamp, b binary, c void, d string collate UTF8_LCASE")
    assert schema_of(frame) == pa.schema([("a", TIMESTAMPTZ), ("b", VARCHAR), ("c", VARCHAR), ("d", VARCHAR)])


def test_texts_of_a_declared_length(spark: SparkSession) -> None:
    """Spark reports of them only where it is asked to; their padding is not ours, so no expression reads them there."""
    setting = "spark.sql.preserveCharVarcharTypeInfo"
    spark.conf.set(setting, "true")
    try:
        frame = spark.createDataFrame([], "a char(3), b varchar(3)")
        assert [type(field.dataType) for field in frame.schema.fields] == [T.CharType, T.VarcharType]
        assert schema_of(frame) == pa.schema([("a", VARCHAR), ("b", VARCHAR)])
        assert declared_columns(frame, Schema.of(("a", VARCHAR), ("b", VARCHAR))) == [None, None]
    finally:
        spark.conf.unset(setting)


@pytest.mark.parametrize(
    ("type_", "remedy"),
    [
        ("array<map<string, int>>", "to_json"),
        ("map<string, int>", "to_json"),
        ("struct<x: int, y: variant>", 'df.select\\("\\*", "odd\\.\\*"\\)'),
        ("interval year to month", "drop"),
        ("array<interval day to second>", "to_json"),
        ("struct<x: int, y: interval day to second>", 'df.select\\("\\*", "odd\\.\\*"\\)'),
        ("variant", "drop"),
    ],
)
def test_types_that_none_of_ours_holds(spark: SparkSession, type_: str, remedy: str) -> None:
    frame = spark.createDataFrame([], f"ok int, odd {type_}")
    with pytest.raises(SourceError, match=f"column 'odd' of stream 'A' is (?s:.*){remedy}"):
        schema_of(frame, "stream 'A'")
    assert readable(frame).columns == ["ok"] and readable(frame.drop("ok")).columns == ["odd"]


def test_names_that_are_there_twice(spark: SparkSession) -> None:
    with pytest.raises(SourceError, match="more than one column 'A'"):
        schema_of(spark.createDataFrame([], "a int, A int"))


def test_instants_are_the_same_in_every_zone(spark: SparkSession, zone: str) -> None:
    """A `timestamp` is an instant, a `timestamp_ntz` is read as UTC; neither goes by the session's clock."""
    local = spark.createDataFrame([(t,) for t in INSTANTS], T.StructType([T.StructField("t", T.TimestampNTZType())]))
    (same,) = declared_columns(local, Schema.of(("t", TIMESTAMP)))
    assert same is not None
    assert local.select(same.alias("t")).toArrow().column("t").to_pylist() == INSTANTS
    arrow = pa.table({"t": pa.array([t.replace(tzinfo=UTC) for t in INSTANTS], pa.timestamp("us", "UTC"))})
    absolute = spark.createDataFrame(arrow)
    assert absolute.schema["t"].dataType == T.TimestampType()
    (instants,) = declared_columns(absolute, Schema.of(("t", TIMESTAMP)))
    assert instants is not None
    made = absolute.select(instants.alias("t"))
    assert made.schema["t"].dataType == to_spark(TIMESTAMP)
    assert made.toArrow().column("t").to_pylist() == INSTANTS


def test_columns_are_found_by_name_and_widened_without_loss(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 2.5, "x")], "`a.``b` smallint, F float, s string")
    declared = Schema.of(("F", DOUBLE), ("a.`b", BIGINT), ("S", VARCHAR))
    columns = declared_columns(frame, declared)
    result = frame.select(*(column for column in columns if column is not None))
    assert [field.dataType for field in result.schema.fields] == [T.DoubleType(), T.LongType(), T.StringType()]
    assert [tuple(row) for row in result.collect()] == [(2.5, 1, "x")]


def test_columns_that_may_not_fit_are_left_to_the_fragment(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], "a bigint, b string, c string collate UTF8_LCASE, d binary, e bigint")
    declared = Schema.of(("a", SMALLINT), ("b", INTEGER), ("c", VARCHAR), ("d", VARCHAR), ("e", DOUBLE))
    assert declared_columns(frame, declared) == [None] * 5


def test_a_column_that_is_not_there(spark: SparkSession) -> None:
    with pytest.raises(SourceError, match="has no column 'b'"):
        declared_columns(spark.createDataFrame([], "a int"), Schema.of(("b", INTEGER)))


@pytest.mark.nightly
def test_intervals_of_spark_come_in_and_go_out(spark: SparkSession) -> None:
    session = Session(runtime="spark", spark=spark)
    wait = "INTERVAL '1 02:03:04.5' DAY TO SECOND"
    session.stream("s", spark.sql(f"SELECT timestamp_ntz'2024-05-01 10:00:00' AS ts, {wait} AS d"), time="ts")
    table = session.run("SELECT d * 2 AS d, ts + d AS until FROM s", emit="latest").to_arrow()
    assert table.schema.field("d").type == DURATION
    assert table.to_pylist() == [
        {"d": timedelta(days=2, hours=4, minutes=6, seconds=9), "until": datetime(2024, 5, 2, 12, 3, 4, 500_000)}
    ]
