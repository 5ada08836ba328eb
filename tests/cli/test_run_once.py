"""`transom run --once` time and again over folders that grow, killed in between, and then the end: one run over all."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import environment, outcome, transom, write_project
from tests.runtimes.spark.processes import descendants, kill, wait_for_end, wait_until

ROOT = Path(__file__).parents[2]
MOMENTS = ("written", "known", "gathered")

QUERIES = """
CREATE STREAM bids (ts TIMESTAMP, item INTEGER, price INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
    WITH (connector = 'files', path = 'bids', late = 'dead_letter');
CREATE STREAM asks (ts TIMESTAMP, item INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
    WITH (connector = 'files', path = 'asks', late = 'dead_letter');
CREATE SINK pairs WITH (connector = 'files', path = 'pairs', format = 'csv');
CREATE SINK counts WITH (connector = 'files', path = 'counts.csv', emit = 'lifetimes');
INSERT INTO pairs SELECT b.item, b.price FROM bids [RANGE 6 SECONDS] AS b, asks [ROWS 5] AS a WHERE a.item = b.item;
INSERT INTO counts SELECT item, COUNT(*) AS n FROM bids [RANGE 5 SECONDS] GROUP BY item;
"""


def write(folder: Path, part: int) -> None:
    """Fifteen seconds of both streams; every sixth row is four seconds old, which is too late."""
    for name, behind in (("bids", ",7"), ("asks", "")):
        (folder / name).mkdir(parents=True, exist_ok=True)
        seconds = [15 * part + i - (4 if i % 6 == 5 else 0) for i in range(15)]
        lines = [f"2024-05-01 10:{s // 60:02}:{s % 60:02},{s % 4}{behind}" for s in seconds]
        heading = "ts,item,price" if behind else "ts,item"
        (folder / name / f"part-{part:03}.csv").write_text("\n".join([heading, *lines, ""]))


def shown(folder: Path) -> dict[str, list[str]]:
    """The rows that a reader finds, by sink, and those that were rejected."""
    rows_of: dict[str, list[str]] = {}
    for name in ("pairs", "counts.csv", "side/pairs", "side/counts"):
        path = folder / name
        files = [path] if path.is_file() else [each for each in path.iterdir() if not each.name.startswith(".")]
        lines = (file.read_text().splitlines()[0 if "side" in name else 1 :] for file in files)
        rows_of[name] = sorted(itertools.chain.from_iterable(lines))
    return rows_of


def killed(moment: str, marker: Path, *arguments: str | Path) -> None:
    command = [sys.executable, "-m", "tests.cli.pausing_run", moment, str(marker), *map(str, arguments)]
    variables = {**environment(), "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    running = subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    every = {running.pid}
    try:
        wait_until(marker.exists, lambda: running.poll() is None)
        every |= descendants(running.pid)
    finally:
        kill(every)
        running.wait()
        wait_for_end(every)


@pytest.mark.nightly
@pytest.mark.parametrize(("runtime", "parts"), [("local", 5), ("spark", 5)])
def test_run_after_run_with_a_kill_in_each_is_one_run(tmp_path: Path, runtime: str, parts: int) -> None:
    whole, grown = tmp_path / "whole", tmp_path / "grown"
    for folder in (whole, grown):
        folder.mkdir()
        (folder / "query.cql").write_text(QUERIES)
    for part in range(parts):
        write(whole, part)
    done = transom("run", whole / "query.cql", "--runtime", "local", "--dead-letters", whole / "side")
    assert done.returncode == 0, done.stderr
    size = ("--set", "batch_rows=6", "--every", "1") if runtime == "local" else ("--cores", "2")
    kept = ("--checkpoint", grown / "kept", "--dead-letters", grown / "side")
    arguments = ("run", grown / "query.cql", "--runtime", runtime, *size, *kept)
    for part in range(parts):
        write(grown, part)
        killed(MOMENTS[part % len(MOMENTS)], tmp_path / f"paused-{part}", *arguments, "--once")
        done = transom(*arguments, "--once")
        assert done.returncode == 0, done.stderr
        assert "up to 2024-05-01" in done.stderr and "to the end of its input" not in done.stderr
    done = transom(*arguments, "--end")
    assert done.returncode == 0 and "to the end of its input" in done.stderr, done.stderr
    expected = shown(whole)
    assert all(expected.values())
    assert shown(grown) == expected


def test_the_end_is_reported_and_what_follows_it_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_project(tmp_path)
    arguments = ("run", path, "--runtime", "local", "--checkpoint", tmp_path / "kept")
    assert outcome(capsys, *arguments, "--end")[0] == 0
    code, _, reported = outcome(capsys, *arguments)
    assert code == 0 and reported.splitlines()[-1] == "nothing was left to do: the input ended in an earlier run"
    with open(tmp_path / "data" / "s.csv", "a") as file:
        file.write("2024-05-01 00:00:09,x,9\n")
    for how in ("--once", "--end", "--follow"):
        code, _, reported = outcome(capsys, *arguments, how)
        assert code == 1 and "stream 's' has ended, and there are rows of it now that were not read" in reported


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (("--once",), "--once leaves time open for the next run, and there is no checkpoint"),
        (("--once", "--end"), "not allowed with argument"),
        (("--once", "--follow"), "not allowed with argument"),
        (("--end", "--follow"), "not allowed with argument"),
    ],
)
def test_ways_to_end_that_make_no_sense_are_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], reported: str
) -> None:
    code, _, said = outcome(capsys, "run", write_project(tmp_path), "--runtime", "local", *options)
    assert code == 2 and reported in said
