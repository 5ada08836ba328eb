"""The budget of a join reported slide by slide is a contract: the memory of the process is measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import environment

BUDGET = 5
SLACK = 32  # for rows on their way in and out, and for what the interpreter does meanwhile

MEASURED = """
import sys, threading, time
from transom import Session

def anonymous():
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Anonymous:"))

def run(rows, spill):
    session = Session()
    streams = "".join(f'''
        CREATE STREAM {name} (ts TIMESTAMP, k INTEGER, x BIGINT, g VARCHAR, WATERMARK FOR ts AS ts)
        WITH (connector = 'generator', rows = {rows}, rate = 25000, seed = {seed}, column.k = 'uniform 0 200000',
              column.x = 'sequence', column.g = 'text 40');''' for seed, name in enumerate("ab", 1))
    *_, result = session.execute(f'''{streams}
        SET slide_join = '{sys.argv[1]}'; SET memory = '{sys.argv[3]}'; SET batch_rows = 8192; SET spill = '{spill}';
        EXPLAIN ANALYZE RSTREAM(SELECT a.k, a.g, b.x FROM a [RANGE 8 SECONDS SLIDE 2 SECONDS],
            b [RANGE 8 SECONDS SLIDE 2 SECONDS] WHERE a.k = b.k)''')
    return result.text

run(20_000, sys.argv[2])  # whatever is loaded and compiled once is there
idle = peak = anonymous()
over = threading.Event()

def watch():
    global peak
    while not over.wait(0.002):
        peak = max(peak, anonymous())

watcher = threading.Thread(target=watch)
watcher.start()
text = run(500_000, sys.argv[2])
over.set()
watcher.join()
print((peak - idle) // 1024)
print(text)
"""


@pytest.mark.nightly
def test_a_process_keeps_to_its_budget(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", MEASURED, "hybrid", str(tmp_path), f"{BUDGET} MB"],
        env=environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    peak, _, text = found.stdout.partition("\n")
    bytes_in = 2 * 500_000 * (8 + 4 + 8 + 40)
    assert bytes_in > 10 * (BUDGET << 20)
    assert "two-pass" in text, text
    assert int(peak) <= (BUDGET + SLACK) * 1024, f"{int(peak) / 1024:.1f} MB above idle\n{text}"
    assert not list(tmp_path.iterdir()), "a spill file is left"
