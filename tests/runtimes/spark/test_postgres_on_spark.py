"""A table of PostgreSQL that a query on Spark maintains: a batch that is run again is there once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.connectors.test_postgres_sink import TEXT, rows_in
from tests.postgres_server import Database
from transom.session import Session, workspace_of


@pytest.mark.nightly
def test_a_repeated_batch_changes_nothing(
    spark: SparkSession, postgres: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows_in(tmp_path)
    monkeypatch.setenv("PGURL", postgres.url)
    query = "SELECT v % 3 AS k, COUNT(*) AS n, SUM(v) AS total FROM s [ROWS 7] GROUP BY v % 3"
    for end in (False, True):
        session = Session(spark=spark, batch_rows=8)
        planned = workspace_of(session).prepare(TEXT.format(folder=tmp_path, emit="net", query=query))
        workspace_of(session).assemble(planned, checkpoint=str(tmp_path / "kept"), end=end).run()
        commits = tmp_path / "kept" / "o" / "spark" / "commits"
        done = sorted((file for file in commits.iterdir() if file.name.isdigit()), key=lambda file: int(file.name))
        assert len(done) > 1 and postgres.table("answers")
        if not end:
            os.unlink(done[-1])  # as if the driver had died before the batch was settled
            (commits / f".{done[-1].name}.crc").unlink(missing_ok=True)
    last = range(13, 20)
    groups = [[v for v in last if v % 3 == k] for k in range(3)]
    expected = [(k, len(group), str(sum(group))) for k, group in enumerate(groups)]
    assert sorted(postgres.table("answers")) == expected
    ((run, maintained),) = postgres.rows("SELECT run, maintained FROM transom_commits")
    assert run.endswith("/o") and maintained
