from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from transom import Session


def test_a_row_that_is_rejected_behind_the_source_is_shown_whole_whatever_the_query_reads(tmp_path: Path) -> None:
    """Columns that a query does not read are not fetched from Parquet, unless somebody may see them."""
    times = [datetime(2020, 1, 1), datetime(2024, 1, 1), datetime(2900, 1, 1)]
    table = pa.table({"ts": pa.array(times, pa.timestamp("us")), "a": pa.array([1, 2, 3]), "b": ["x", "y", "z"]})
    pq.write_table(table, tmp_path / "s.parquet")
    for sets, ahead, text in (("SET origin = '2023-01-01';", "", "x"), ("", ", ahead = '1 DAY'", "z")):
        session = Session()
        session.execute(
            f"""{sets} CREATE STREAM s (ts TIMESTAMP, a BIGINT, b VARCHAR, WATERMARK FOR ts AS ts - INTERVAL '0' SECOND)
            WITH (connector = 'files', path = '{tmp_path / "s.parquet"}' {ahead});
            SELECT SUM(a) AS n FROM s"""
        )
        (row,) = session.run("SELECT row FROM transom_dead_letters", emit="latest").to_arrow().to_pylist()
        assert f'"b": "{text}"' in row["row"]


@pytest.mark.parametrize("on_spark", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_value_that_must_be_there_is_missed_though_no_query_reads_it(
    request: pytest.FixtureRequest, tmp_path: Path, on_spark: bool
) -> None:
    times = [datetime(2024, 1, 1, second=second) for second in range(1, 5)]
    columns = {"ts": pa.array(times, pa.timestamp("us")), "k": [1, 2, 3, 4], "w": ["x", "x", None, "y"]}
    pq.write_table(pa.table(columns), tmp_path / "s.parquet")
    pq.write_table(
        pa.table({"k": [1, 4, 3], "name": ["one", "four", "three"], "note": ["p", None, "q"]}), tmp_path / "n.parquet"
    )
    session = Session(spark=request.getfixturevalue("spark") if on_spark else None)
    *_, result = session.execute(
        f"""CREATE STREAM s (ts TIMESTAMP, k BIGINT NOT NULL, w VARCHAR NOT NULL, WATERMARK FOR ts AS ts)
        WITH (connector = 'files', path = '{tmp_path / "s.parquet"}');
        CREATE TABLE n (k BIGINT, name VARCHAR, note VARCHAR NOT NULL)
        WITH (connector = 'files', path = '{tmp_path / "n.parquet"}');
        SELECT s.k, n.name FROM s LEFT JOIN n ON s.k = n.k"""
    )
    assert sorted((row["k"], row["name"]) for row in result.to_pylist()) == [(1, "one"), (2, None), (4, None)]
    assert result.status is not None
    counted = {each.name: (each.rows_in, each.used, each.rejected) for each in result.status.inputs}
    assert counted == {"s": (4, 3, 1), "n": (3, 2, 1)}
