"""`transom run` that is told to end by a signal: as after Ctrl-C, everything done is saved and reported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import ANSWER, ROWS, command, environment, transom, without_notices, write_project


@pytest.fixture
def temporary() -> Iterator[str]:
    """A folder for temporary files with a name so short that sockets can lie in it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield folder


NOTHING_IGNORED = "signal.signal(signal.SIGHUP, signal.SIG_DFL)"
"""The tests themselves may run under nohup."""


def running(temporary: str, *arguments: str | Path, before: str = NOTHING_IGNORED) -> subprocess.Popen[str]:
    """A run with temporary files of its own; `before` is done in its process first."""
    begin = f"import os, signal, sys; {before}; os.execv(sys.argv[1], sys.argv[1:])"
    return subprocess.Popen(
        [sys.executable, "-c", begin, *command(*arguments)],
        env={**environment(), "TMPDIR": temporary},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_a_batch(folder: Path, run: subprocess.Popen[str]) -> None:
    """The row that cannot be read is there when the first batch is done."""
    while not list(folder.glob("side/out/part-*")) and run.poll() is None:
        time.sleep(0.02)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("runtime", "number"),
    [("local", signal.SIGTERM), ("local", signal.SIGHUP), ("spark", signal.SIGTERM)],
)
def test_a_signal_ends_a_run_as_ctrl_c_does(
    tmp_path: Path, temporary: str, runtime: str, number: signal.Signals
) -> None:
    path = write_project(tmp_path)
    (tmp_path / "data" / "s.csv").write_text("".join(ROWS.splitlines(keepends=True)[:6]))
    arguments = (
        "run",
        path,
        "--runtime",
        runtime,
        "--checkpoint",
        tmp_path / "kept",
        "--dead-letters",
        tmp_path / "side",
    )
    run = running(temporary, *arguments, "--follow")
    wait_for_a_batch(tmp_path, run)
    run.send_signal(number)
    out, err = run.communicate()
    assert (run.returncode, out) == (128 + number, ""), err
    lines = without_notices(err).splitlines()
    assert lines[:2] == [
        "out: 3 rows out, up to 2024-05-01 00:00:06",
        "  s  5 rows in = 3 used + 0 late + 1 rejected + 1 waiting",
    ]
    assert lines[-2].startswith("to resume from here: transom run ") and lines[-1] == f"ended by {number.name}"
    assert [name for name in os.listdir(temporary) if name.startswith("transom-")] == []
    (tmp_path / "data" / "s.csv").write_text(ROWS)
    assert transom(*arguments, "--end").returncode == 0
    assert sorted((tmp_path / "answers" / "out.csv").read_text().splitlines()) == sorted(ANSWER.splitlines())


@pytest.mark.nightly
def test_a_run_under_nohup_goes_on(tmp_path: Path, temporary: str) -> None:
    path = write_project(tmp_path)
    arguments = ("run", path, "--runtime", "local", "--dead-letters", tmp_path / "side", "--follow")
    run = running(temporary, *arguments, before="signal.signal(signal.SIGHUP, signal.SIG_IGN)")
    wait_for_a_batch(tmp_path, run)
    run.send_signal(signal.SIGHUP)
    run.send_signal(signal.SIGTERM)
    _, err = run.communicate()
    assert run.returncode == 128 + signal.SIGTERM, err
