"""`transom run` and `transom demo` on Spark, as a user has them: what is seen is what is seen of the local runtime."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import (
    ANSWER,
    QUERY_FILE,
    ROWS,
    command,
    environment,
    outcome,
    transom,
    without_notices,
    write_project,
)

AND_BARE = "SELECT k, COUNT(*) AS n FROM s [RANGE 2 SECONDS] GROUP BY k;"
pytestmark = pytest.mark.spark
TOOLS = ("sh", "bash", "chmod", "readlink", "ls", "id", "uname", "env")


def test_run_prints_and_writes_what_the_local_runtime_does(tmp_path: Path) -> None:
    seen = []
    for runtime in ("local", "spark"):
        write_project(tmp_path / runtime, QUERY_FILE + AND_BARE)
        arguments = ("run", f"{runtime}/query.cql", "--runtime", runtime, "--dead-letters", f"{runtime}-side")
        ended = transom(*arguments, "--cores", "2", folder=tmp_path)
        parts = (tmp_path / f"{runtime}-side").rglob("*.jsonl")
        sides = sorted(line for part in parts for line in part.read_text().splitlines())
        # A run that takes longer than a minute, on a machine that has much to do, says every minute how far it is.
        said = [line for line in ended.stderr.splitlines() if " INFO " not in line]
        seen.append((ended.returncode, ended.stdout, said, len(sides), set(sides)))
        assert (tmp_path / runtime / "answers" / "out.csv").read_text() == ANSWER
    assert seen[1] == seen[0]


@pytest.mark.nightly
def test_ctrl_c_ends_after_the_batch_and_the_command_goes_on(tmp_path: Path) -> None:
    path = write_project(tmp_path)
    (tmp_path / "data" / "s.csv").write_text("".join(ROWS.splitlines(keepends=True)[:6]))
    arguments = (
        "run",
        path,
        "--runtime",
        "spark",
        "--checkpoint",
        tmp_path / "kept",
        "--dead-letters",
        tmp_path / "side",
    )
    running = subprocess.Popen(
        command(*arguments, "--follow"), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    # The row that cannot be read is there when the first batch is done.
    while not list(tmp_path.glob("side/out/part-*")) and running.poll() is None:
        signal.sigtimedwait((), 0.05)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate()
    assert (running.returncode, out) == (130, ""), err
    lines = without_notices(err).splitlines()
    assert lines[:2] == [
        "out: 3 rows out, up to 2024-05-01 00:00:06",
        "  s  5 rows in = 3 used + 0 late + 1 rejected + 1 waiting",
    ]
    assert lines[-2].startswith("to resume from here: transom run ") and lines[-1] == "interrupted"
    assert len(lines) == 5, err
    (tmp_path / "data" / "s.csv").write_text(ROWS)
    finished = transom(*arguments, "--end")
    assert finished.returncode == 0
    assert "  s  6 rows in = 4 used + 1 late + 1 rejected + 0 waiting\n" in finished.stderr
    assert sorted((tmp_path / "answers" / "out.csv").read_text().splitlines()) == sorted(ANSWER.splitlines())


@pytest.mark.nightly
def test_the_demo_runs_where_there_is_no_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in TOOLS:
        tool = shutil.which(name)
        if tool is not None:
            (tools / name).symlink_to(tool)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert shutil.which("java") is None and os.environ["PATH"] == str(tools)
    on_spark = transom("demo", "--runtime", "spark", "--cores", "2")
    assert (on_spark.returncode, on_spark.stderr) == (0, "")
    _, local, _ = outcome(capsys, "demo", "--runtime", "local")
    # All but the time that it took.
    assert on_spark.stdout.splitlines()[:-1] == local.splitlines()[:-1]
