"""A run that spills and is killed with `kill -9` goes on with what its checkpoint refers to, and leaves no file."""

from __future__ import annotations

import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.commands import command, environment, transom

ROWS = 60_000


def query_file(folder: Path) -> Path:
    """A join whose windows are three times its budget."""
    streams = "".join(
        f"""CREATE STREAM {name} (ts TIMESTAMP, k INTEGER, g VARCHAR, WATERMARK FOR ts AS ts)
            WITH (connector = 'generator', rows = {ROWS}, rate = 10000, seed = {seed},
                  column.k = 'uniform 0 30000', column.g = 'text 120');"""
        for seed, name in enumerate("ab", 1)
    )
    folder.mkdir()
    (folder / "join.cql").write_text(f"""{streams}
        CREATE SINK reported WITH (connector = 'files', path = 'told.csv', format = 'csv');
        SET memory = '4 MB'; SET batch_rows = 4096;
        INSERT INTO reported RSTREAM(SELECT a.k, a.g FROM a [RANGE 4 SECONDS SLIDE 1 SECOND],
            b [RANGE 4 SECONDS SLIDE 1 SECOND] WHERE a.k = b.k);""")
    return folder / "join.cql"


@pytest.mark.nightly
def test_a_run_that_is_killed_while_it_spills_ends_as_an_unbroken_one(tmp_path: Path) -> None:
    whole = query_file(tmp_path / "whole")
    assert transom("run", whole, "--set", f"spill={tmp_path / 'disk'}").returncode == 0
    assert not list((tmp_path / "disk").iterdir())
    broken = query_file(tmp_path / "broken")
    kept = broken.parent / "kept"
    arguments = ("run", broken, "--checkpoint", kept, "--every", "3")
    for kill in range(2):
        seen: set[str] = set()
        running = subprocess.Popen(
            command(*arguments), env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while running.poll() is None and len(seen) < 12 + 6 * kill:  # so many files were written
            seen.update(path.name for path in kept.glob("spill-*/*.arrow"))
            time.sleep(0.001)
        running.send_signal(signal.SIGKILL)
        assert running.wait() == -signal.SIGKILL, "it ended before it was killed"
        assert list(kept.glob("spill-*/*.arrow"))
    finished = transom(*arguments)
    assert finished.returncode == 0, finished.stderr
    assert not list(kept.glob("spill-*")), "a file is left"
    expected, lines = (Counter((path.parent / "told.csv").read_text().splitlines()) for path in (whole, broken))
    assert expected == lines and sum(",complete," in row for row in lines) >= 9
