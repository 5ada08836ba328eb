"""Queries that come and go, in processes that kill themselves anywhere: no row is lost, and none is there twice."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.session.queries_together import AT_FIRST, QUERIES, rows
from transom import Session

pytestmark = pytest.mark.nightly
LAST = rows("a")[-1]["ts"]


def answer(text: str, **options: object) -> list[str]:
    """Of the query alone, as the lines of its sink."""
    session = Session(sharing="off", **options)  # type: ignore[arg-type]
    for name in "ab":
        session.stream(name, rows(name), time="ts")
    table = session.run(text).to_arrow()
    return sorted(
        ",".join("" if value is None else str(value) for value in row.values())
        for row in table.to_pylist()
        if row["at"] < LAST
    )


def shown(path: Path) -> list[str]:
    with path.open() as file:
        return sorted(",".join(row) for row in list(csv.reader(file))[1:])


def run(folder: Path, runtime: str, event: int) -> bool:
    """Whether it came to its end."""
    command = [sys.executable, "-m", "tests.session.queries_together", str(folder), runtime, str(event)]
    done = subprocess.run(command, capture_output=True, timeout=900)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode == 0


@pytest.mark.parametrize(("runtime", "kills", "most"), [("local", 12, 60), ("spark", 5, 150)])
def test_whatever_is_killed_goes_on(tmp_path: Path, runtime: str, kills: int, most: int) -> None:
    random = Random(f"together {runtime}")
    killed = sum(not run(tmp_path, runtime, random.randrange(2, most)) for _ in range(kills))
    assert run(tmp_path, runtime, -1) and killed >= kills // 2
    for name in (*AT_FIRST, "alone"):
        assert shown(tmp_path / f"{name}.csv") == answer(QUERIES[name]), name
    instants = sorted({row["ts"] for row in rows("a")})
    came = shown(tmp_path / "comes.csv")
    assert any(came == answer(QUERIES["comes"], origin=str(instant)) for instant in instants) and came
