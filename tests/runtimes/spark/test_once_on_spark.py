"""All there is now on Spark, run after run; and the end, after which nothing may come."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.session.test_once import TEXT, rows, write
from transom import CheckpointError, Session, SinkError
from transom.program.status import Status
from transom.session import workspace_of


def run(spark: SparkSession | None, folder: Path, text: str = TEXT, **options: Any) -> Status:
    """Two queries of the streams: one to a folder, and one to a file."""
    session = Session(spark=spark, batch_rows=100)
    text = text.format(folder=folder, out="out", emit="changes")
    text += f"CREATE SINK sums WITH (connector = 'files', path = '{folder}/sums.csv', emit = 'lifetimes');"
    text += "INSERT INTO sums SELECT k, COUNT(*) AS n FROM a [RANGE 7 SECONDS] GROUP BY k"
    options.setdefault("checkpoint", str(folder / "kept"))
    run = workspace_of(session).assemble(workspace_of(session).prepare(text), **options)
    run.run()
    first, *_ = run.status()
    return first


def answers(folder: Path) -> list[list[str]]:
    return [sorted(rows(folder / name)) for name in ("out", "sums.csv")]


@pytest.mark.nightly
def test_run_after_run_is_one_run(spark: SparkSession, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for number in range(3):
        write(whole, number)
    unbroken = run(None, whole, checkpoint=None)
    seen = [0, 0]
    for number in range(3):
        write(parts, number)
        status = run(spark, parts, end=False if number else None)
        assert not status.finished
        now = [len(each) for each in answers(parts)]
        assert now[0] > seen[0] and now[1] > seen[1], "what is final is shown"
        seen = now
    shutil.copytree(parts, tmp_path / "copy")
    ended = run(spark, parts, end=True)
    assert ended.finished and {one.name: one.used for one in ended.inputs} == {"a": 30, "b": 30}
    assert answers(parts) == answers(whole) and ended.rows_out == unbroken.rows_out
    assert run(spark, parts).finished, "there is nothing new: it has ended"
    write(parts, 3, "b")
    with pytest.raises(CheckpointError, match="stream 'b' has ended, and there are rows of it now"):
        run(spark, parts)
    for old, new, reported in (
        ("'2' SECOND", "'5' SECOND", "with WATERMARK bound 2 SECOND for stream 'a', and it is 5 SECOND now"),
        ("/{out}'", "/elsewhere'", "for sink 'out', and it is"),
        ("idle = '10 MINUTES'", "late = 'fail'", "with late 'drop' for stream 'b', and it is 'fail' now"),
    ):
        with pytest.raises(CheckpointError, match=reported):
            run(spark, parts, TEXT.replace(old, new))
    assert not (parts / "elsewhere").exists()


@pytest.mark.nightly
@pytest.mark.parametrize("gone", ["out", "sums.csv"])
def test_an_output_that_is_gone_is_missed(spark: SparkSession, tmp_path: Path, gone: str) -> None:
    write(tmp_path, 0)
    run(spark, tmp_path)
    shutil.move(tmp_path / gone, tmp_path / "moved")
    with pytest.raises(SinkError, match="have been written before"):
        run(spark, tmp_path)
    shutil.move(tmp_path / "moved", tmp_path / gone)
    run(spark, tmp_path)


@pytest.mark.nightly
def test_silence_lasts_from_one_run_to_the_next(spark: SparkSession, tmp_path: Path) -> None:
    """What a stream says is heard in one batch with what the others say; from then on it is silent."""
    text = TEXT.replace("10 MINUTES", "1 MICROSECOND")
    write(tmp_path, 0)
    write(tmp_path, 1, "a")
    held = run(spark, tmp_path, text)
    left_behind = run(spark, tmp_path, text)
    a, _ = left_behind.inputs
    assert held.progress < left_behind.progress == a.watermark, "though nothing came"
    write(tmp_path, 2)
    assert [one.late for one in run(spark, tmp_path, text).inputs] == [0, 0]


@pytest.mark.nightly
def test_a_dataframe_is_left_open_too(spark: SparkSession, tmp_path: Path) -> None:
    whole: list[str] = []

    def started(*, end: bool | None = None) -> Status:
        session = Session(spark=spark)
        frame = spark.readStream.schema("ts timestamp_ntz, k int").option("header", True).csv(f"{tmp_path}/a")
        session.stream("s", frame, time="ts", bound="3 seconds")
        session.execute(f"CREATE SINK out WITH (connector = 'files', path = '{tmp_path}/out.csv', emit = 'lifetimes')")
        text = "INSERT INTO out SELECT k, COUNT(*) AS n FROM s [RANGE 4 SECONDS] GROUP BY k"
        with session.start(text, checkpoint=str(tmp_path / "kept"), end=end) as running:
            assert running.await_termination(120)
        whole[:] = sorted(rows(tmp_path / "out.csv"))
        return running.status

    for number in range(2):
        write(tmp_path, number, "a")
        assert not started().finished
    ended = started(end=True)
    assert ended.finished and ended.inputs[0].used == 20 and ended.inputs[0].late == 0
    session = Session()
    files = sorted((tmp_path / "a").iterdir())
    given = [line.split(",") for file in files for line in file.read_text().splitlines()[1:]]
    session.stream("s", [{"ts": ts, "k": int(k)} for ts, k in given], time="ts", bound="3 seconds")
    alone = session.run("SELECT k, COUNT(*) AS n FROM s [RANGE 4 SECONDS] GROUP BY k", emit="lifetimes").to_pylist()
    assert whole == sorted(f"{row['k']},{row['n']},{row['ta']},{row['te']}" for row in alone)
    write(tmp_path, 2, "a")
    with pytest.raises(CheckpointError, match="stream 's' has ended, and there are rows of it now"):
        started()
