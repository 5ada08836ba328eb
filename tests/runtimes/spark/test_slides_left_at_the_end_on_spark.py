"""Slides that are left for later when a run on Spark stops, or its input ends: each is completed exactly once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from transom import Session
from transom.planner import slide_join
from transom.program.run import Run
from transom.session import workspace_of

QUERY = """
CREATE STREAM a (ts TIMESTAMP, k INTEGER, x INTEGER, WATERMARK FOR ts AS ts)
    WITH (connector = 'files', path = '{folder}/a.csv');
CREATE STREAM b (ts TIMESTAMP, k INTEGER, x INTEGER, WATERMARK FOR ts AS ts)
    WITH (connector = 'files', path = '{folder}/b.csv');
CREATE SINK reported WITH (connector = 'files', path = '{folder}/reported.csv');
SET memory = '12 KB'; SET put_off = '1 MILLISECOND';
CREATE VIEW slides AS RSTREAM(SELECT a.x, b.x AS y FROM a [RANGE 4 SECONDS SLIDE 1 SECOND],
    b [RANGE 4 SECONDS SLIDE 1 SECOND] WHERE a.k = b.k);
INSERT INTO reported ISTREAM(SELECT x + 1 AS z, y FROM slides [NOW] WHERE y % 8 <> 0);
"""
"""A slide has more results than a step may emit, so that a batch makes one."""

SECONDS = 40


def write(folder: Path, seconds: int) -> None:
    folder.mkdir(exist_ok=True)
    for name in "ab":
        rows = [f"2024-05-01 00:00:{i // 8:02},{i % 2},{i}" for i in range(8 * seconds)]
        (folder / f"{name}.csv").write_text("\n".join(["ts,k,x", *rows, ""]))


def start(spark: SparkSession | None, folder: Path, *, follow: bool = False, end: bool | None = None) -> Run:
    session = Session(spark=spark)
    planned = workspace_of(session).prepare(QUERY.format(folder=folder))
    return workspace_of(session).assemble(planned, follow=follow, checkpoint=str(folder / "kept"), end=end)


def made(run: Run) -> int:
    """Of how many slides the run says that they are complete."""
    (status,) = run.status()
    return 0 if status.slides is None else status.slides.report.complete


def reported(folder: Path) -> list[str]:
    return (folder / "reported.csv").read_text().splitlines()[1:]


def complete(lines: list[str]) -> Counter[str]:
    """How often each slide was said to be complete."""
    return Counter(line.split(",")[0] for line in lines if ",complete," in line)


def results(lines: list[str]) -> list[tuple[str, ...]]:
    """The rows of attempts that are not void."""
    void = {tuple(line.split(",")[:2]) for line in lines if ",incomplete," in line}
    split = [line.split(",") for line in lines]
    return sorted((each[0], *each[3:]) for each in split if not each[2] and tuple(each[:2]) not in void)


@pytest.mark.nightly
@pytest.mark.parametrize("rest", [None, True], ids=["all there is now", "the end"])
def test_what_a_stopped_run_has_left_is_completed_by_the_next(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rest: bool | None
) -> None:
    monkeypatch.setattr(slide_join, "LEAST_MEMORY", 1)
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    write(broken, SECONDS)
    write(whole, SECONDS)
    run = start(spark, broken, follow=True)

    def stop_when_all_is_read(run: Run) -> None:
        read = [one.rows_in for status in run.status() for one in status.inputs]
        if set(read) == {8 * SECONDS} or made(run) > SECONDS // 2:
            run.stop()

    run.run(stop_when_all_is_read)
    assert 0 < sum(complete(reported(broken)).values()) < SECONDS - 2
    again = start(spark, broken, end=rest)
    again.run()
    local = start(None, whole, end=rest)
    local.run()
    assert complete(reported(broken)) == complete(reported(whole))
    assert set(complete(reported(broken)).values()) == {1}
    assert results(reported(broken)) == results(reported(whole))
