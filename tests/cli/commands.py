"""Commands run in this process, which is quick, and in another one, as a user has it; and a small project to run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from transom.cli.main import main
from transom.program.first_run import NOTICE

SOURCES = Path(__file__).parents[2] / "src"


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCES), "PYTHONIOENCODING": "utf-8"}


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "transom.cli.main", *map(str, arguments)]


def without_notices(text: str) -> str:
    """Standard error without what is said of where it runs, and of what is compiled: nobody knows that beforehand."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(NOTICE))


def outcome(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """A command run in this process: exit code, standard output, standard error without its notices."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    captured = capsys.readouterr()
    return code, captured.out, without_notices(captured.err)


def transom(*arguments: str | Path, folder: Path | None = None, given: str = "") -> subprocess.CompletedProcess[str]:
    """A command run in another process; its standard error is without its notices."""
    ended = subprocess.run(
        command(*arguments),
        cwd=folder,
        env=environment(),
        input=given,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    for output in (ended.stdout, ended.stderr):
        assert "Traceback" not in output and "transom.core" not in output
    ended.stderr = without_notices(ended.stderr)
    return ended


QUERY_FILE = """
CREATE STREAM s (ts TIMESTAMP, k VARCHAR, a INTEGER, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
    WITH (connector = 'files', path = 'data/s.csv', late = 'dead_letter');
CREATE SINK out WITH (connector = 'files', path = 'answers/out.csv', emit = 'lifetimes');
INSERT INTO out SELECT k, SUM(a) AS total FROM s [RANGE 2 SECONDS] GROUP BY k;
"""

ROWS = """ts,k,a
2024-05-01 00:00:01,x,1
2024-05-01 00:00:02,y,2
2024-05-01 00:00:05,x,many
2024-05-01 00:00:03,x,3
2024-05-01 00:00:07,x,4
2024-05-01 00:00:02,x,5
"""

ANSWER = """k,total,ta,te
x,1,2024-05-01 00:00:01,2024-05-01 00:00:03
y,2,2024-05-01 00:00:02,2024-05-01 00:00:04
x,3,2024-05-01 00:00:03,2024-05-01 00:00:05
x,4,2024-05-01 00:00:07,2024-05-01 00:00:09
"""


def write_project(folder: Path, query: str = QUERY_FILE) -> Path:
    """A query file and its data beside it."""
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "s.csv").write_text(ROWS)
    path = folder / "query.cql"
    path.write_text(query)
    return path
