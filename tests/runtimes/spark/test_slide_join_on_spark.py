"""A join reported slide by slide on Spark: spread by key, its budget divided, stopped between batches and gone on
with."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from transom import Session, UnsupportedError
from transom.planner import slide_join
from transom.program.run import Run
from transom.session import workspace_of

QUERY = """
CREATE STREAM a (ts TIMESTAMP, k INTEGER, x INTEGER, WATERMARK FOR ts AS ts)
    WITH (connector = 'files', path = '{folder}/a.csv');
CREATE STREAM b (ts TIMESTAMP, k INTEGER, x INTEGER, WATERMARK FOR ts AS ts)
    WITH (connector = 'files', path = '{folder}/b.csv');
CREATE SINK reported WITH (connector = 'files', path = '{folder}/told.csv');
SET memory = '12 KB'; SET slide_join = 'incremental';
INSERT INTO reported RSTREAM(SELECT a.k, a.x, b.x AS y FROM a [RANGE 12 SECONDS SLIDE 3 SECONDS],
    b [RANGE 8 SECONDS SLIDE 2 SECONDS] WHERE a.k = b.k);
"""


MORE = """
CREATE SINK groups WITH (connector = 'files', path = '{folder}/groups.csv');
INSERT INTO groups RSTREAM(SELECT a.k, COUNT(*) AS n, SUM(b.x) AS s, MIN(a.x) AS low
    FROM a [RANGE 8 SECONDS SLIDE 2 SECONDS], b [RANGE 8 SECONDS SLIDE 2 SECONDS] WHERE a.k = b.k GROUP BY a.k);
CREATE SINK together WITH (connector = 'files', path = '{folder}/together.csv');
INSERT INTO together RSTREAM(SELECT COUNT(*) AS n, MAX(CAST(b.x AS VARCHAR)) AS high
    FROM a [RANGE 8 SECONDS SLIDE 2 SECONDS], b [RANGE 8 SECONDS SLIDE 2 SECONDS] WHERE a.k = b.k);
CREATE SINK united WITH (connector = 'files', path = '{folder}/united.csv');
INSERT INTO united RSTREAM(
    SELECT a.k, b.x FROM a [RANGE 8 SECONDS SLIDE 2 SECONDS], b [RANGE 8 SECONDS SLIDE 2 SECONDS] WHERE a.k = b.k
    UNION ALL
    SELECT b.k, a.x FROM a [RANGE 3 SECONDS SLIDE 3 SECONDS], b [RANGE 3 SECONDS SLIDE 3 SECONDS] WHERE a.x = b.x);
"""


def write(folder: Path, rows: int) -> None:
    folder.mkdir(exist_ok=True)
    for name, keys in (("a", 3), ("b", 5)):
        lines = [f"2024-05-01 00:00:{i // 4:02},{i % keys},{i}" for i in range(rows)]
        (folder / f"{name}.csv").write_text("\n".join(["ts,k,x", *lines, ""]))


def start(spark: SparkSession | None, folder: Path, *, follow: bool = False) -> Run:
    session = Session(spark=spark, batch_rows=60)
    planned = workspace_of(session).prepare(QUERY.format(folder=folder))
    return workspace_of(session).assemble(
        planned, follow=follow, checkpoint=str(folder / "kept"), end=None if follow else True
    )


@pytest.mark.nightly
def test_spilling_slides_are_the_same_and_go_on_after_a_stop(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slide_join, "LEAST_MEMORY", 1)
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    write(broken, 60)
    run = start(spark, broken, follow=True)

    def stop_when_all_is_read(run: Run) -> None:
        if all(one.rows_in == 60 for status in run.status() for one in status.inputs):
            run.stop()

    run.run(stop_when_all_is_read)
    assert not run.finished
    for folder in (broken, whole):
        write(folder, 140)
    again = start(spark, broken)
    again.run()
    local = start(None, whole)
    local.run()
    (status,) = local.status()
    assert status.slides is not None and status.slides.report.bytes_written > 0
    (there,) = again.status()
    assert there.slides is not None and there.slides.report.bytes_written > 0
    reported, expected = ((folder / "told.csv").read_text().splitlines() for folder in (broken, whole))
    assert sorted(reported) == sorted(expected)
    complete = [line for line in reported if ",complete," in line]
    assert len(complete) == len(set(complete)) == status.slides.report.complete > 15


@pytest.mark.nightly
def test_queries_of_a_run_share_a_budget(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its part of it. One has groups, of which each is in one partition, one a row of all results, which is
    made in one, and one those of two joins."""
    monkeypatch.setattr(slide_join, "LEAST_MEMORY", 1)
    there, here = tmp_path / "there", tmp_path / "here"
    for folder, session in ((there, Session(spark=spark, batch_rows=30)), (here, Session())):
        write(folder, 100)
        planned = workspace_of(session).prepare((QUERY + MORE).format(folder=folder))
        run = workspace_of(session).assemble(planned, checkpoint=str(folder / "kept"), end=True)
        run.run()
        reports = [status.slides.report for status in run.status() if status.slides is not None]
        assert [report.sharing for report in reports] == [4] * 4
        assert any(report.bytes_written for report in reports)
        whole = 12 << 10
        assert all(report.budget <= (whole // 4 if folder is there else whole) for report in reports)
    for name in ("told.csv", "groups.csv", "together.csv", "united.csv"):
        reported, expected = ((folder / name).read_text().splitlines() for folder in (there, here))
        assert sorted(reported) == sorted(expected) and len(expected) > 20


def test_a_budget_too_small_for_all_partitions_is_rejected(spark: SparkSession) -> None:
    session = Session(spark=spark, memory="4 MB", tasks=2)
    for name in "ab":
        session.stream(name, [{"ts": "2024-05-01", "k": 1}], time="ts")
    window = "[RANGE 4 SECONDS SLIDE 2 SECONDS]"
    with pytest.raises(UnsupportedError, match="partitions"):
        session.run(f"RSTREAM(SELECT a.k FROM a {window}, b {window} WHERE a.k = b.k)")
