"""Folders of Parquet files that Spark lists and our tasks read: what is read is what Spark would have read."""

from __future__ import annotations

import os
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tests.run_on_spark import spark_query
from tests.runtimes.spark.test_frames import no_rows, planned
from transom.connectors.connector import OpenSink
from transom.connectors.memory import MemorySink
from transom.core.errors import SparkError, UnlikeSparkError
from transom.core.schema import Schema
from transom.runtimes.spark.parquet_frame import ParquetFrame, parquet_frame
from transom.runtimes.spark.types import declared_columns, schema_of
from transom.session import Session

OLD, NEW = datetime(1583, 2, 3, 4, 5, 6, 789), datetime(2024, 5, 1, 12)
TYPES = (
    "ts timestamp, n timestamp_ntz, b boolean, i8 byte, i16 short, i32 int, i64 bigint, f float, d double, t string, "
    "day date, dec decimal(9,2), wide decimal(30,4)"
)


def rows_of_all_types(zone: str | None) -> pa.Table:
    """With NULL, the least and the greatest."""
    return pa.table(
        {
            "ts": pa.array([NEW, OLD, NEW + timedelta(microseconds=1)], pa.timestamp("us", zone)),
            "n": pa.array([NEW, None, OLD], pa.timestamp("us")),
            "b": [True, None, False],
            "i8": pa.array([-128, None, 127], pa.int8()),
            "i16": pa.array([-(2**15), None, 2**15 - 1], pa.int16()),
            "i32": pa.array([-(2**31), None, 2**31 - 1], pa.int32()),
            "i64": pa.array([-(2**63), None, 2**63 - 1], pa.int64()),
            "f": pa.array([1.5, None, float("inf")], pa.float32()),
            "d": [0.1, None, -0.0],
            "t": ["", None, "ü\n\U0001f40d"],
            "day": pa.array([date(1583, 1, 1), None, date(2024, 2, 29)]),
            "dec": pa.array([Decimal("-9999999.99"), None, Decimal("0.01")], pa.decimal128(9, 2)),
            "wide": pa.array([Decimal("12345678901234567890.0001"), None, Decimal(0)], pa.decimal128(30, 4)),
        }
    )


def frame_of(spark: SparkSession, folder: Path, columns: str = TYPES, **options: Any) -> DataFrame:
    return spark.readStream.schema(columns).options(**options).parquet(str(folder))


def taken(frame: DataFrame) -> ParquetFrame | str:
    return parquet_frame(frame, Schema.of(*((field.name, field.type) for field in schema_of(frame))), "'s'")


def test_values_are_those_that_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    ways: dict[str, dict[str, Any]] = {
        "plain.parquet": {"use_dictionary": False},
        "int96 %20é.parquet": {"use_deprecated_int96_timestamps": True},
        "groups.pq": {"row_group_size": 1, "compression": "zstd"},
    }
    for (name, way), zone in zip(ways.items(), ("UTC", None, "Europe/Berlin"), strict=True):
        table = rows_of_all_types(zone)
        pq.write_table(
            table if name != "int96 %20é.parquet" else table.set_column(1, "n", table["ts"]), folder / name, **way
        )
    for name in ways:
        columns = TYPES if "int96" not in name else TYPES.replace("timestamp_ntz", "timestamp")
        frame = frame_of(spark, folder, columns)
        found = taken(frame)
        assert isinstance(found, ParquetFrame)
        declared = Schema.of(*((field.name, field.type) for field in schema_of(frame)))
        source = found.source(declared, "ts", range(len(declared)))
        (part,) = found.read(source, f"file:{folder / name}")
        read = spark.read.schema(columns).parquet(str(folder / name))
        by_spark = read.select(*[column for column in declared_columns(read, declared) if column is not None]).toArrow()
        assert not part.rejected and [field.type for field in part.rows.schema] == [c.type for c in declared]
        assert list(map(list, zip(*part.rows.to_pydict().values(), strict=True))) == list(
            map(list, zip(*(column.to_pylist() for column in by_spark.columns), strict=True))
        )


def test_what_a_row_is_rejected_for_is_shown_whole_though_only_its_time_is_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": pa.array([None, NEW], pa.timestamp("us")), "k": [1, 2]}), tmp_path / "1.parquet")
    found = ParquetFrame(str(tmp_path), {}, {"ts": T.TimestampNTZType(), "k": T.LongType()})
    source = found.source(Schema.of(("ts", pa.timestamp("us")), ("k", pa.int64())), "ts", {0})
    (part,) = found.read(source, f"file:{tmp_path}/1.parquet")
    assert part.rows.to_pylist() == [{"ts": NEW, "k": None}]
    assert [row.raw for row in part.rejected] == ['{"ts": null, "k": "1"}']


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"k": pa.array([1], pa.int32())}, "is int32"),
        ({"K": [1]}, "no column 'k'"),
        ({"k": [1], "K": [2]}, "their case"),
        ({"k": [{"k": 1}]}, "no column 'k'"),
        ({"k": pa.array(["1"]).dictionary_encode()}, "is dictionary"),
    ],
)
def test_a_file_that_spark_may_read_otherwise_is_left_to_it(tmp_path: Path, columns: dict[str, Any], why: str) -> None:
    pq.write_table(pa.table(columns), tmp_path / "1.parquet")
    reject(ParquetFrame(str(tmp_path), {}, {"k": T.LongType()}), "1.parquet", why)


def test_an_instant_that_is_asked_for_as_a_local_time_is_that_of_utc(spark: SparkSession, tmp_path: Path) -> None:
    given = pa.array([NEW, None, OLD], pa.timestamp("us", "Europe/Berlin"))
    pq.write_table(pa.table({"ts": given}), tmp_path / "1.parquet")
    declared, columns = Schema.of(("ts", pa.timestamp("us"))), "ts timestamp_ntz"
    found = ParquetFrame(str(tmp_path), {}, {"ts": T.TimestampNTZType()})
    rows = [
        row
        for part in found.read(found.source(declared, "ts", {0}), f"file:{tmp_path}/1.parquet")
        for row in part.rows.to_pylist()
    ]
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        by_spark = spark.read.schema(columns).parquet(str(tmp_path)).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone or "UTC")
    assert rows == [{"ts": row.ts} for row in by_spark if row.ts is not None] == [{"ts": NEW}, {"ts": OLD}]


def test_files_are_left_to_spark_for_what_is_about_them(tmp_path: Path) -> None:
    known = ParquetFrame(str(tmp_path), {}, {"ts": T.TimestampType()})
    of_old = pa.table({"ts": pa.array([NEW], pa.timestamp("us", "UTC"))})
    for number, about in enumerate(({"org.apache.spark.version": "2.4.8"}, {"org.apache.spark.legacyDateTime": ""})):
        pq.write_table(of_old.replace_schema_metadata(about), tmp_path / f"{number}.parquet")
        reject(known, f"{number}.parquet", "old calendar")
    (tmp_path / "k=1").mkdir()
    pq.write_table(of_old, tmp_path / "k=1" / "1.parquet")
    reject(known, "k=1/1.parquet", "the name of its folder")
    pq.write_table(pa.table({"ts": pa.array([NEW], pa.timestamp("ns"))}), tmp_path / "ns.parquet")
    reject(known, "ns.parquet", r"is timestamp\[ns\]")
    (tmp_path / "torn.parquet").write_bytes((tmp_path / "0.parquet").read_bytes()[:-9])
    reject(known, "torn.parquet", "Parquet")
    reject(known, "gone.parquet", "gone")


def reject(known: ParquetFrame, name: str, why: str) -> None:
    source = known.source(Schema.of(("ts", pa.timestamp("us"))), "ts", {0})
    with pytest.raises(UnlikeSparkError, match=why):
        list(known.read(source, f"file:{known.folder}/{name}"))


def test_only_folders_of_files_are_taken(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    pq.write_table(rows_of_all_types("UTC"), folder / "1.parquet")
    plain = frame_of(spark, folder, maxFilesPerTrigger=1, pathGlobFilter="*.parquet")
    for frame in (plain, plain.select("ts", "t"), plain.drop("t").select("b", "ts")):
        found = taken(frame)
        assert isinstance(found, ParquetFrame) and list(found.columns) == frame.columns
        assert found.options["maxfilespertrigger"] == "1"
    others = {
        "more than columns": (
            plain.where("b"),
            plain.selectExpr("ts", "i8 + 1 AS k"),
            plain.withWatermark("ts", "1 second"),
        ),
        "not Parquet": (spark.readStream.schema(TYPES).json(str(folder)),),
        "the option 'mergeschema'": (frame_of(spark, folder, mergeSchema=True),),
        "not a folder": (frame_of(spark, tmp_path / "*"),),
        "another type": (frame_of(spark, folder, "ts timestamp, t binary"),),
    }
    for why, frames in others.items():
        for frame in frames:
            assert why in str(taken(frame))
    with Session(spark=spark) as session:
        session.stream("s", plain.select("ts", "t"), time="ts")
        session.stream("other", plain.where("b").select("ts"), time="ts")
        lines = session.explain("SELECT t FROM s [NOW]; SELECT ts FROM other [NOW]").splitlines()
        assert [line for line in lines if " is read by " in line] == [
            "s is read by Transom, file by file as Spark lists them",
            "other is read by Spark: it is more than columns of files",
        ]
    (folder / "k=1").mkdir()
    assert "names of its folders" in str(taken(plain))
    assert isinstance(taken(frame_of(spark, folder, recursiveFileLookup=True)), ParquetFrame)
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        assert "ignoreCorruptFiles" in str(taken(frame_of(spark, folder, recursiveFileLookup=True)))
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")


@pytest.mark.nightly
def test_a_query_goes_on_though_another_reads_and_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    folder.mkdir()

    def add(number: int, rows: list[tuple[int, int]], narrow: bool = False, content: bytes | None = None) -> None:
        times = pa.array([NEW + timedelta(seconds=second) for second, _ in rows], pa.timestamp("us"))
        keys = pa.array([k for _, k in rows], pa.int32() if narrow else pa.int64())
        path = folder / f"{number}.parquet"
        pq.write_table(pa.table({"ts": times, "k": keys, "unread": ["u"] * len(rows)}), path)
        if content is not None:
            path.write_bytes(content)
        os.utime(path, (1_700_000_000 + number,) * 2)

    def run() -> list[tuple[int, int]]:
        frame = frame_of(spark, folder, "ts timestamp_ntz, k bigint, unread string", maxFilesPerTrigger=1)
        query = spark_query(
            planned(
                "CREATE STREAM s (ts TIMESTAMP, k BIGINT, WATERMARK FOR ts AS ts)", "ISTREAM(SELECT k FROM s [NOW])"
            ),
            spark,
            no_rows,
            OpenSink(lambda opening: MemorySink(opening.schema)),
            frames={"s": frame},
            ending="now",
            checkpoint=str(tmp_path / "checkpoint"),
        )
        query.run()
        lefts.append(query._inputs.left_to_spark)
        return [((row["at"] - NEW).seconds, row["k"]) for row in query.table().to_pylist()]

    lefts: list[bool] = []
    add(0, [(2, 1), (1, 2)])
    add(1, [(1, 3), (4, 4)])  # one is late by the batch before
    add(2, [], content=b"")  # in which Spark finds no rows, and no error
    assert run() == [(1, 2), (2, 1)]
    add(3, [(5, 5), (3, 6)])
    add(4, [(6, 2**31 - 1)], narrow=True)  # Spark can read it, we do not
    add(5, [(8, 7)])
    assert run() == [(4, 4), (5, 5), (6, 2**31 - 1)]
    add(6, [(9, 8)])
    assert run() == [(8, 7)]
    assert lefts == [False, True, False]
    add(7, [], content=b"torn")
    with pytest.raises(SparkError, match="Parquet"):  # in the words of Spark
        run()
