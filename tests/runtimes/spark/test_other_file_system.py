"""A Spark whose paths begin in another file system than this machine's disk, as on YARN."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from transom import Session

MOUNTS = "fs.viewfs.mounttable.default"


@pytest.fixture
def elsewhere(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """What has no scheme goes to this folder while the test runs; Hadoop's own mount table leads there."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    settings = {"fs.defaultFS": "viewfs:///", f"{MOUNTS}.linkFallback": folder.as_uri()}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield folder
    for name in settings:
        spark.conf.unset(name)


def written(folder: Path) -> list[str]:
    return sorted(line for part in folder.glob("part-*.csv") for line in part.read_text().splitlines()[1:])


@pytest.mark.nightly
def test_a_query_goes_on_where_it_was(spark: SparkSession, tmp_path: Path, elsewhere: Path) -> None:
    """Its checkpoint is where we look for it, also in a folder whose name Hadoop might want to decode."""
    rows, out, kept = tmp_path / "rows", tmp_path / "out", tmp_path / "kept here%20"
    rows.mkdir()
    text = f"""
        SET batch_files = 1;
        CREATE STREAM s (ts TIMESTAMP, n INTEGER, WATERMARK FOR ts AS ts)
            WITH (connector = 'files', path = '{rows}/*.csv');
        CREATE SINK out WITH (connector = 'files', path = '{out}/', format = 'csv');
        INSERT INTO out ISTREAM(SELECT n FROM s)
    """
    for i in range(4):
        (rows / f"{i}.csv").write_text(
            f"ts,n\n2024-05-01 00:00:0{2 * i},{2 * i}\n2024-05-01 00:00:0{2 * i + 1},{2 * i + 1}\n"
        )
    with Session(spark=spark) as session:
        query = session.start(text, checkpoint=str(kept), follow=True)
        assert query.await_progress("2024-05-01 00:00:06", timeout=300)
        query.stop()
    before = written(out)
    assert len(before) >= 6 and os.listdir(elsewhere) == []
    (rows / "9.csv").write_text("ts,n\n2024-05-01 00:00:09,9\n")  # with it the others are final
    with Session(spark=spark) as session:
        session.start(text, checkpoint=str(kept)).await_termination(300)
    after = written(out)
    assert [row.split(",")[-1] for row in after][:8] == [str(n) for n in range(8)]
    assert len(after) <= 9
    assert os.listdir(elsewhere) == []
