"""All there is now, and time stays open: the next run goes on; and the end, after which nothing may come."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from transom import CheckpointError, OptionError, Session, SinkError
from transom.core.time import SECOND
from transom.program.clock import HeldClock
from transom.program.status import Status
from transom.session import workspace_of

STREAMS = """
CREATE STREAM a (ts TIMESTAMP, k INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
    WITH (connector = 'files', path = '{folder}/a', format = 'csv');
CREATE STREAM b (ts TIMESTAMP, k INTEGER, WATERMARK FOR ts AS ts)
    WITH (connector = 'files', path = '{folder}/b', format = 'csv', idle = '10 MINUTES');
"""
TEXT = (
    STREAMS + "CREATE SINK out WITH (connector = 'files', path = '{folder}/{out}', format = 'csv', emit = '{emit}');"
    "INSERT INTO out SELECT a.k, COUNT(*) AS n FROM a [RANGE 7 SECONDS], b [ROWS 3] WHERE a.k = b.k GROUP BY a.k;"
)


def write(folder: Path, number: int, names: str = "ab", end: str = "\n") -> None:
    """The files of a part: ten seconds of both streams."""
    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)
        seconds = [10 * number + i - (3 * (name == "a") if i % 4 == 3 else 0) for i in range(10)]
        lines = [f"2024-05-01 10:{s // 60:02}:{s % 60:02},{s % 3}" for s in seconds]
        (folder / name / f"{number:03}.csv").write_text("ts,k\n" + "\n".join(lines) + end)


def assemble(folder: Path, *, text: str = TEXT, out: str = "out", emit: str = "changes", **options: Any) -> Any:
    session = Session(batch_rows=4)
    planned = workspace_of(session).prepare(text.format(folder=folder, out=out, emit=emit))
    options.setdefault("checkpoint", str(folder / "kept"))
    return workspace_of(session).assemble(planned, **options)


def run(folder: Path, **options: Any) -> Status:
    started = assemble(folder, **options)
    started.run()
    (status,) = started.status()
    assert isinstance(status, Status)
    return status


def rows(path: Path) -> list[str]:
    files = sorted(path.glob("[!.]*")) if path.is_dir() else [path]
    return [line for file in files for line in file.read_text().splitlines()[1:]]


@pytest.mark.parametrize("emit", ["changes", "lifetimes", "latest"])
@pytest.mark.parametrize("out", ["out", "out.csv"])
def test_run_after_run_is_one_run(tmp_path: Path, out: str, emit: str) -> None:
    """Whatever is final is shown after each; the next one goes on."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for number in range(4):
        write(whole, number)
    unbroken = run(whole, out=out, emit=emit, checkpoint=None)
    assert unbroken.finished
    seen = 0
    for number in range(4):
        write(parts, number)
        status = run(parts, out=out, emit=emit, end=False if number % 2 else None)
        assert not status.finished and status.progress == 1714557600 * SECOND + (10 * number + 7) * SECOND
        if emit != "latest":
            assert len(rows(parts / out)) > seen
            seen = len(rows(parts / out))
    ended = run(parts, out=out, emit=emit, end=True)
    assert ended.finished and ended.inputs == unbroken.inputs
    assert sorted(rows(parts / out)) == sorted(rows(whole / out)), "in another order where steps are others"


def test_what_has_ended_takes_no_more_and_says_so(tmp_path: Path) -> None:
    write(tmp_path, 0)
    assert run(tmp_path, end=True).finished
    before = rows(tmp_path / "out")
    assert run(tmp_path).finished, "there is nothing new: it has ended"
    assert run(tmp_path, end=True).finished and run(tmp_path, follow=True).finished
    write(tmp_path, 1, "b")
    every: list[dict[str, Any]] = [{}, {"end": True}, {"end": False}, {"follow": True}]
    for options in every:
        with pytest.raises(CheckpointError, match="stream 'b' has ended, and there are rows of it now") as raised:
            assemble(tmp_path, **options)
        assert raised.value.remedy is not None and "--end" in raised.value.remedy
    assert rows(tmp_path / "out") == before


def test_a_table_that_never_changes_does_not_grow(tmp_path: Path) -> None:
    write(tmp_path, 0)
    (tmp_path / "names.csv").write_text("k\n1\n")
    text = STREAMS + (
        "CREATE TABLE names (k INTEGER) WITH (connector = 'files', path = '{folder}/names.csv');"
        "CREATE SINK out WITH (connector = 'files', path = '{folder}/{out}', format = 'csv', emit = '{emit}');"
        "INSERT INTO out SELECT a.k FROM a [RANGE 7 SECONDS], names WHERE a.k = names.k;"
    )
    run(tmp_path, text=text)
    (tmp_path / "names.csv").write_text("k\n1\n2\n")
    with pytest.raises(CheckpointError, match="table 'names' never changes, and there are rows of it"):
        assemble(tmp_path, text=text)


def test_the_rows_of_a_generator_have_an_end_of_their_own(tmp_path: Path) -> None:
    text = """CREATE STREAM a (ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'generator', rows = 9);
        CREATE SINK out WITH (connector = 'files', path = '{folder}/{out}', format = 'csv', emit = '{emit}');
        INSERT INTO out SELECT ts FROM a [RANGE 1 MINUTE]"""
    assert run(tmp_path, text=text).finished
    assert run(tmp_path, text=text).finished


def test_silence_lasts_from_one_run_to_the_next(tmp_path: Path) -> None:
    """Idle by the clock since the stream last spoke, whether anybody ran in between or not."""
    clock = HeldClock()
    write(tmp_path, 0)
    first = run(tmp_path, clock=clock)
    write(tmp_path, 1, "a")
    clock.sleep(9 * 60 * SECOND)
    held = run(tmp_path, clock=clock)
    assert held.progress == first.inputs[1].watermark and held.held_back_by == "b"
    clock.sleep(2 * 60 * SECOND)
    left_behind = run(tmp_path, clock=clock)
    assert held.progress < left_behind.progress == left_behind.inputs[0].watermark
    write(tmp_path, 2)
    spoke = run(tmp_path, clock=clock)
    assert spoke.inputs[1].rows_in == 20 and spoke.inputs[1].late == 0


def test_an_output_that_is_gone_is_missed(tmp_path: Path) -> None:
    for out in ("out", "out.csv"):
        folder = tmp_path / out / "x"
        write(folder, 0)
        run(folder, out=out)
        write(folder, 1)
        shutil.rmtree(folder / out) if (folder / out).is_dir() else (folder / out).unlink()
        with pytest.raises(SinkError, match="parts of it have been written before"):
            run(folder, out=out)


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        ({"end": False, "checkpoint": None}, "there is no checkpoint for it"),
        ({"end": True, "follow": True}, "a query that waits for more"),
        ({"end": False, "follow": True}, "a query that waits for more"),
    ],
)
def test_one_way_to_end_at_a_time(tmp_path: Path, options: dict[str, Any], reported: str) -> None:
    write(tmp_path, 0)
    with pytest.raises(OptionError, match=reported):
        assemble(tmp_path, **options)


def test_start_ends_as_it_is_reported(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept")
    rows = [{"ts": f"2024-05-01 10:00:0{i}", "k": i} for i in range(6)]
    query = "SELECT COUNT(*) AS n FROM s"

    def started(frontier: int, end: bool | None = None) -> tuple[bool, list[dict[str, Any]]]:
        session = Session()
        session.stream("s", rows[:frontier], time="ts")
        with session.start(query, emit="latest", checkpoint=kept, end=end) as running:
            assert running.await_termination(60)
        return running.status.finished, running.result.to_pylist()

    assert started(3) == (False, [{"n": 2}])
    assert started(5, end=False) == (False, [{"n": 4}])
    assert started(5, end=True) == (True, [{"n": 5}])
    with pytest.raises(CheckpointError, match="stream 's' has ended"):
        started(6)


def test_files_without_a_last_line_end_lose_no_row(tmp_path: Path) -> None:
    """What is there now is complete, so the watermark does not go on without the last line of a file."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for number in range(4):
        write(whole, number, end="")
    unbroken = run(whole, checkpoint=None)
    for number in range(0, 4, 2):
        write(parts, number, end="")
        write(parts, number + 1, end="")
        assert run(parts).inputs[0].rows_in == 10 * (number + 2)
    assert run(parts, end=True).inputs == unbroken.inputs
    assert sorted(rows(parts / "out")) == sorted(rows(whole / "out"))


SHARED = """
SET sharing = 'on';
CREATE STREAM a (ts TIMESTAMP, k INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
    WITH (connector = 'files', path = '{folder}/a', format = 'csv');
CREATE STREAM b (ts TIMESTAMP, k INTEGER, WATERMARK FOR ts AS ts)
    WITH (connector = 'files', path = '{folder}/b', format = 'csv');
"""


def shared(*names: str) -> str:
    query = (
        "CREATE SINK {0} WITH (connector = 'files', path = '{{folder}}/{0}', format = 'csv');"
        "INSERT INTO {0} SELECT a.k FROM a [RANGE {1} SECONDS], b [RANGE 3 SECONDS] WHERE a.k = b.k;"
    )
    return SHARED + "".join(query.format(name, 2 + len(name)) for name in names)


def test_a_query_that_left_and_comes_back_has_its_parts(tmp_path: Path) -> None:
    """It goes on behind them; another query under its name does not."""
    for number, names in enumerate([("x", "y", "zz"), ("x", "y")]):
        write(tmp_path, number)
        assemble(tmp_path, text=shared(*names)).run()
    written = rows(tmp_path / "zz")
    assert written
    write(tmp_path, 2)
    with pytest.raises(CheckpointError, match="by another query 'zz'"):
        assemble(tmp_path, text=shared("x", "y", "zz").replace("RANGE 4", "RANGE 5"))
    assert rows(tmp_path / "zz") == written
    assemble(tmp_path, text=shared("x", "y", "zz")).run()
    assert len(rows(tmp_path / "zz")) > len(written) and not set(written) - set(rows(tmp_path / "zz"))


def test_a_file_that_has_the_answer_of_another_run_is_not_gone_on_with(tmp_path: Path) -> None:
    write(tmp_path, 0)
    run(tmp_path, out="out.csv")
    run(tmp_path, out="out.csv", checkpoint=None)
    reported = rows(tmp_path / "out.csv")
    write(tmp_path, 1)
    with pytest.raises(SinkError, match="another run"):
        run(tmp_path, out="out.csv")
    assert rows(tmp_path / "out.csv") == reported
