from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

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
