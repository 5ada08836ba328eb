"""Columns that no text declares are those of the files: once, and after a restart what they were."""

from __future__ import annotations

import re
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from transom import CheckpointError, LateRowError, QueryError, Session, SourceError, TransomError
from transom.connectors.file_columns import LOOKED_AT, columns_of_files
from transom.core.schema import sql_name

TRADES = "ts,symbol,price\n2024-05-01 10:00:00,A,10.5\n2024-05-01 10:00:05,B,11\n"


def types(path: Path, **properties: str) -> dict[str, str]:
    columns = columns_of_files("t", {"connector": "files", "path": str(path), **properties}, None)
    return {column.name: sql_name(column.type) for column in columns}


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (["true", "FALSE", ""], "BOOLEAN"),
        (["0", "-12", "+7"], "BIGINT"),
        (["9" * 18], "BIGINT"),
        (["9" * 19, "1"], "DECIMAL(38, 0)"),
        (["9" * 39], "DOUBLE"),
        (["007"], "VARCHAR"),
        (["1", "0"], "BIGINT"),
        (["1.5", "2", "-3e2", "nan"], "DOUBLE"),
        (["2024-05-01", ""], "DATE"),
        (["2024-05-01", "2024-05-01 10:00:00"], "TIMESTAMP"),
        (["2024-05-01T10:00:00.5Z"], "TIMESTAMP"),
        (["true", "1"], "VARCHAR"),
        (["12", "x"], "VARCHAR"),
        (["", ""], "VARCHAR"),
    ],
)
def test_a_column_of_csv_has_the_type_of_all_its_values(tmp_path: Path, values: list[str], type_: str) -> None:
    (tmp_path / "a.csv").write_text("v;w\n" + "".join(f"{value};x\n" for value in values))
    assert types(tmp_path / "a.csv", delimiter=";") == {"v": type_, "w": "VARCHAR"}


def test_json_says_what_its_values_are(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"a": 1, "b": true, "c": "7", "d": [1], "e": "2024-05-01", "f": null, "g": 1}\n'
        "no object\n"
        '{"A": 2, "b": null, "h": "2024-05-01 10:00:00", "g": 0.5, "i": 12345678901234567890, "j": true}\n'
        '{"j": 1}'
    )
    assert types(tmp_path) == {
        "a": "BIGINT", "b": "BOOLEAN", "c": "VARCHAR", "e": "DATE", "f": "VARCHAR", "g": "DOUBLE", "h": "TIMESTAMP",
        "i": "DECIMAL(38, 0)", "j": "VARCHAR",
    }  # fmt: skip


def test_parquet_has_its_types_and_what_no_type_holds_is_left_out(tmp_path: Path) -> None:
    rows = {
        "a": pa.array([1], pa.int32()),
        "b": pa.array([1], pa.uint64()),
        "c": pa.array([None], pa.decimal128(9, 2)),
        "d": pa.array([[1]], pa.list_(pa.int8())),
        "f": pa.array([b"1"], pa.binary()),
        "e": pa.array([0], pa.timestamp("ns")),
    }
    pyarrow.parquet.write_table(pa.table(rows), tmp_path / "a.parquet")
    expected = {"a": "INTEGER", "b": "DECIMAL(38, 0)", "c": "DECIMAL(9, 2)", "d": "TINYINT[]", "e": "TIMESTAMP"}
    assert types(tmp_path) == expected


def test_so_many_rows_of_the_first_file_that_has_any_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("v\n")
    (tmp_path / "b.csv").write_text("v\n" + "1\n" * LOOKED_AT + "x\n")
    (tmp_path / "c.csv").write_text("v,w\nx,y\n")
    assert types(tmp_path) == {"v": "BIGINT"}
    with Session() as session:
        session.execute(f"CREATE TABLE t WITH (connector = 'files', path = '{tmp_path}')")
        assert len(session.run("SELECT v FROM t")) == LOOKED_AT
        assert session.dead_letters["reason"].to_pylist() == ["column 'v' is BIGINT and cannot hold 'x'"] * 2


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "there is none yet"),
        ({"a.csv": "v\n"}, "have no rows yet"),
        ({"a.csv": "v,V\n1,2\n"}, "has column 'V' twice"),
        ({"a.txt": "v\n1\n"}, "nothing says how file 'a.txt' is written"),
    ],
)
def test_files_that_do_not_say_what_they_hold(tmp_path: Path, files: dict[str, str], said: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(SourceError, match=re.escape(said)):
        types(tmp_path)


@pytest.mark.parametrize(
    ("declared", "note"),
    [
        ("(WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (connector = 'files', path = '{0}')", "ts - 2 SECOND"),
        ("WITH (connector = 'files', path = '{0}', time = 'ts', bound = '2 seconds')", "ts - 2 SECOND"),
        ("WITH (connector = 'files', path = '{0}', time = 'TS')", "ts"),
        ("WITH (connector = 'files', path = '{0}', time = 'arrival')", None),
    ],
)
def test_a_stream_says_what_its_time_is(tmp_path: Path, declared: str, note: str | None) -> None:
    (tmp_path / "a.csv").write_text(TRADES)
    with Session() as session:
        described = session.execute(f"CREATE STREAM s {declared.format(tmp_path)}; DESCRIBE s")[1].to_pylist()
        assert [row["type"] for row in described[:3]] == ["TIMESTAMP", "VARCHAR", "DOUBLE"]
        assert described[0]["note"] == ("" if note is None else f"time, watermark {note}")
        assert session.run("SELECT symbol FROM s [RANGE UNBOUNDED]", emit="latest").to_pylist() == [
            {"symbol": "A"}, {"symbol": "B"}
        ]  # fmt: skip


def test_days_and_counts_can_be_the_time_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("day,n\n2024-05-01,86400\n")
    with Session() as session:
        for time, more in (("day", ""), ("n", ", time_unit = 's'")):
            session.execute(
                f"CREATE OR REPLACE STREAM s WITH (connector = 'files', path = '{tmp_path}', time = '{time}'{more})"
            )
            (row,) = session.run(f"ISTREAM(SELECT {time} FROM s)").to_pylist()
            assert row["at"] == row[time] == (datetime(2024, 5, 1) if time == "day" else datetime(1970, 1, 2))
        with pytest.raises(QueryError, match="the time column 'n' is a BIGINT"):
            session.execute(f"CREATE STREAM u WITH (connector = 'files', path = '{tmp_path}', time = 'n')")


def test_a_table_of_files_changes_by_its_key(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TRADES + "2024-05-01 10:00:06,A,12\n")
    with Session() as session:
        session.execute(
            f"CREATE TABLE t (PRIMARY KEY (symbol)) WITH (connector = 'files', path = '{tmp_path}', time = 'ts')"
        )
        latest = session.run("SELECT symbol, price FROM t", emit="latest").to_pylist()
        assert latest == [{"symbol": "A", "price": 12.0}, {"symbol": "B", "price": 11.0}]


def wrong(text: str, **options: Any) -> TransomError:
    with Session(**options) as session, pytest.raises(TransomError) as caught:
        session.execute(text)
    return caught.value


def test_what_has_no_files_has_no_columns(tmp_path: Path) -> None:
    for text in ("CREATE TABLE t", "CREATE TABLE t WITH (connector = 'memory')", "CREATE TABLE t (PRIMARY KEY (a))"):
        assert wrong(text).what == "'t' has no columns"
    (tmp_path / "a.csv").write_text(TRADES)
    files = f"connector = 'files', path = '{tmp_path}'"
    assert "has no WATERMARK" in wrong(f"CREATE STREAM s WITH ({files})").what
    assert "no column 'at'" in wrong(f"CREATE STREAM s WITH ({files}, time = 'at')").what
    assert "'bound' cannot be" in wrong(f"CREATE STREAM s WITH ({files}, time = 'ts', bound = 'long')").what
    assert "no property 'pth'" in wrong("CREATE TABLE s WITH (connector = 'files', pth = 'x')").what


def test_no_file_outside_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "secret.csv").write_text("a\n42\n")
    (tmp_path / "home" / "link.csv").symlink_to(tmp_path / "secret.csv")
    for path in (tmp_path / "secret.csv", tmp_path / "home" / "link.csv", tmp_path / "home"):
        for text in (f"CREATE TABLE t WITH (connector = 'files', path = '{path}')", f"SELECT * FROM '{path}'"):
            assert "leads outside of" in wrong(text, within=tmp_path / "home").what


# --- FROM 'file' -----------------------------------------------------------------------------------------------------


def test_a_file_in_from_is_a_table_and_with_a_window_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("Trades.csv").write_text(TRADES)
    Path("names.jsonl").write_text('{"symbol": "A", "since": "2024-01-01"}\n')
    with Session() as session:
        joined = "SELECT Trades.price, n.since FROM 'Trades.csv' JOIN 'names.jsonl' AS n USING (symbol)"
        assert session.run(joined, emit="latest").to_pylist() == [{"price": 10.5, "since": date(2024, 1, 1)}]
        session.execute("CREATE VIEW dear AS SELECT symbol FROM 'Trades.csv' WHERE price > 10.9")
        both = "SELECT t.symbol FROM 'Trades.csv' [ROWS 1] AS t JOIN dear USING (symbol)"
        assert [row["at"] for row in session.run(both).to_pylist()] == [datetime(2024, 5, 1, 10, 0, 5)]
        described = session.execute("DESCRIBE 'names.jsonl'; SHOW TABLES")
        assert described[0].to_pylist()[1] == {"column": "since", "type": "DATE", "note": ""}
        Path("names.jsonl").write_text('{"name": "A"}\n')  # another file: nothing of ours is bound to what it was
        assert session.run("SELECT name FROM 'names.jsonl'", emit="latest").to_pylist() == [{"name": "A"}]


def test_a_window_over_a_file_needs_one_time_and_rows_in_its_order(tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("a,b\n2024-05-01 10:00:00,2024-05-01 10:00:00\n")
    error = wrong(f"SELECT a FROM '{tmp_path}/two.csv' [ROWS 1]")
    assert "it has several TIMESTAMP columns: a, b" in error.what
    assert error.remedy is not None and f"path = '{tmp_path}/two.csv', time = 'a'" in error.remedy
    (tmp_path / "none.csv").write_text("a\n1\n")
    assert "it has no TIMESTAMP column" in wrong(f"SELECT a FROM '{tmp_path}/none.csv' [ROWS 1]").what
    (tmp_path / "late.csv").write_text("a\n2024-05-01 10:00:01\n2024-05-01 10:00:00\n")
    assert isinstance(wrong(f"SELECT a FROM '{tmp_path}/late.csv' [ROWS 1]"), LateRowError)
    assert "there is no file" in wrong("SELECT a FROM 'nowhere.csv'").what


# --- restarts --------------------------------------------------------------------------------------------------------

STANDING = """
    CREATE STREAM s WITH (connector = 'files', path = '{0}/in', time = 'ts');
    CREATE SINK out WITH (connector = 'files', path = '{0}/out', format = 'csv');
    INSERT INTO out ISTREAM(SELECT symbol, price FROM s JOIN '{0}/names.csv' AS n USING (symbol))
"""


def prepared(folder: Path) -> str:
    (folder / "in").mkdir()
    (folder / "in" / "b.csv").write_text(TRADES)
    (folder / "names.csv").write_text("symbol\nA\nB\n")
    return STANDING.format(folder)


def written(folder: Path) -> list[str]:
    files = sorted((folder / "out").glob("*.csv"))
    return [line for file in files for line in file.read_text().splitlines()[1:]]


def test_a_restart_has_the_columns_that_the_first_run_took(tmp_path: Path) -> None:
    text = prepared(tmp_path)
    with Session() as session:
        session.execute(text, checkpoint=str(tmp_path / "checkpoint"))
    # A file that is first by its name and would say that prices are whole; it has more columns than the first one had.
    (tmp_path / "in" / "a.csv").write_text("more,ts,symbol,price\n1,2024-05-01 10:00:09,A,7\n")
    (tmp_path / "in" / "c.csv").write_text("ts,symbol,price\n2024-05-01 10:00:20,A,\n")
    with Session() as session:
        session.execute(text, checkpoint=str(tmp_path / "checkpoint"), end=True)
    assert [line.split(",")[-1] for line in written(tmp_path)] == ["10.5", "11", "7", ""]


def test_columns_that_are_others_are_rejected_by_the_checkpoint(tmp_path: Path) -> None:
    text = prepared(tmp_path)
    with Session() as session:
        session.execute(text, checkpoint=str(tmp_path / "checkpoint"))
    declared = text.replace("STREAM s WITH", "STREAM s (ts TIMESTAMP, symbol VARCHAR, price {0}) WITH")
    with Session() as session:
        session.execute(declared.format("DOUBLE"), checkpoint=str(tmp_path / "checkpoint"))
    with (
        Session() as session,
        pytest.raises(CheckpointError, match="with columns ts TIMESTAMP, symbol VARCHAR, price D"),
    ):
        session.execute(declared.format("BIGINT"), checkpoint=str(tmp_path / "checkpoint"))


def test_a_file_that_lacks_a_column_ends_the_query(tmp_path: Path) -> None:
    text = prepared(tmp_path)
    (tmp_path / "in" / "c.csv").write_text("ts,symbol\n2024-05-01 10:00:09,A\n")
    assert "has no column 'price'" in wrong(text).what


@pytest.mark.nightly
def test_on_spark_columns_of_files_are_the_same(tmp_path: Path, spark: SparkSession) -> None:
    text = prepared(tmp_path)
    with Session(spark=spark) as session:
        session.execute(text, checkpoint=str(tmp_path / "checkpoint"))
        (tmp_path / "in" / "a.csv").write_text("more,ts,symbol,price\n1,2024-05-01 10:00:09,A,7\n")
    with Session(spark=spark) as session:
        session.execute(text, checkpoint=str(tmp_path / "checkpoint"), end=True)
    assert [line.split(",")[-1] for line in written(tmp_path)] == ["10.5", "11", "7"]
