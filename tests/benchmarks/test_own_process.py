"""Parts of benchmarks in processes of their own: they end with the benchmark, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import environment
from tests.runtimes.spark.processes import wait_for_end, wait_until

PART = """
import sys, time
from transom.state.scratch import Scratch
def main(arguments):
    held = Scratch("bench", arguments[0])
    open(arguments[0] + "/begun", "w").close()
    time.sleep(600)
"""

BENCHMARK = """
import sys
from transom.benchmarks.own_process import own_process
from transom.program.interrupt import listen
listen()
with own_process("part", sys.argv[1]) as process:
    print(process.pid, flush=True)
    process.communicate()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_benchmark_that_is_ended_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "part.py").write_text(PART)
    known = environment()
    known["PYTHONPATH"] += os.pathsep + str(tmp_path)
    command = [sys.executable, "-c", BENCHMARK, str(tmp_path)]
    with subprocess.Popen(
        command, env=known, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as benchmark:
        assert benchmark.stdout is not None
        part = int(benchmark.stdout.readline())
        wait_until((tmp_path / "begun").exists, lambda: benchmark.poll() is None)
        benchmark.send_signal(number)
    wait_for_end([part])
    assert [name for name in os.listdir(tmp_path) if name.startswith("transom-")] == []
