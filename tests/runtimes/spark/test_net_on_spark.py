"""Net changes on Spark: one batch reports of each key once, and reports the same when it is run again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.net_table import NetTable
from tests.runtimes.spark.test_files_exactly_once import Broken
from tests.runtimes.spark.test_sharing_on_spark import session_of
from transom.runtimes.spark.run import SparkRun
from transom.session import workspace_of

ALONE = "SELECT k, COUNT(*) AS n, SUM(x) AS total FROM a [ROWS 8] GROUP BY k"


def applied(batches: list[pa.Table], key: tuple[int, ...] | None) -> list[tuple[Any, ...]]:
    table = NetTable(key)
    for batch in batches:
        for rows in batch.combine_chunks().to_batches():
            table.apply(rows)
    return sorted(table.rows.elements())


def test_a_batch_that_is_run_again_tells_the_same(spark: SparkSession, tmp_path: Path) -> None:
    seen: dict[int, pa.Table] = {}
    again: dict[int, pa.Table] = {}

    def fails_at_two(table: pa.Table, batch: int) -> None:
        seen[batch] = table
        if batch == 2:
            raise Broken

    def notes(table: pa.Table, batch: int) -> None:
        again[batch] = table

    session = session_of(spark, batch_rows=5)
    run_options: dict[str, Any] = {"checkpoint": str(tmp_path / "kept"), "end": True, "emit": "net"}
    with pytest.raises(Broken):
        workspace_of(session).assemble(workspace_of(session).prepare(ALONE), on_batch=fails_at_two, **run_options).run()
    workspace_of(session).assemble(workspace_of(session).prepare(ALONE), on_batch=notes, **run_options).run()
    assert sorted(again[2].to_pylist(), key=str) == sorted(seen[2].to_pylist(), key=str) and len(seen[2])
    reported = seen | again
    expected = session_of(None).run(ALONE, emit="latest").to_pylist()
    assert applied([reported[number] for number in sorted(reported)], (0,)) == sorted(
        tuple(row.values()) for row in expected
    )
    assert sum(map(len, reported.values())) < len(session_of(None).run(ALONE)) // 2


@pytest.mark.nightly
def test_queries_on_one_join_have_net_changes_of_their_own(spark: SparkSession) -> None:
    """At the end of all input their windows are empty: all that was reported is reported to be gone."""
    session = session_of(spark, batch_rows=20)
    joined = "FROM a [RANGE 9 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k"
    run = workspace_of(session).assemble(
        workspace_of(session).prepare(
            f"SELECT a.k, a.x, b.x AS y {joined}; SELECT a.k, COUNT(*) AS n {joined} GROUP BY a.k"
        ),
        emit="net",
    )
    run.run()
    assert isinstance(run, SparkRun) and len(run.units) == 1
    pairs, counts = (query.table() for query in run.queries)
    assert [query.status().rows_out for query in run.queries] == [len(pairs), len(counts)]
    copies: Counter[tuple[Any, ...]] = Counter()
    for sign, *row in zip(*(column.to_pylist() for column in pairs.columns), strict=True):
        copies[tuple(row)] += 1 if sign == "+" else -1
    assert len(pairs) > 20 and not any(copies.values())
    changes = list(zip(*(column.to_pylist() for column in counts.columns), strict=True))
    assert len(changes) >= 6 and {key: sign for sign, key, _ in changes} == dict.fromkeys(range(3), "-")
