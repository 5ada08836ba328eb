"""Contestants in processes of their own: they answer, they end with the benchmark, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.guard import descendants
from benchmarks.meters import tree_cpu_seconds
from benchmarks.processes import call_apart, guarded, serving
from tests.cli.commands import environment
from tests.profile import NIGHTLY, first_of
from tests.runtimes.spark.processes import command, wait_for_end, wait_until
from transom.core.errors import SourceError

ROOT = Path(__file__).parents[2]

STUBBORN = """
import os, signal, subprocess, sys, time
from transom.state.scratch import Scratch
def opened(folder):
    held = Scratch("bench", folder)
    # As a JVM that does not look at its pipe, in a session of its own.
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    return lambda: (open(folder + "/begun", "w").close(), time.sleep(600))
"""

BENCHMARK = """
import sys
from benchmarks.processes import serving
from transom.program.interrupt import listen
listen()
with serving("stubborn:opened", sys.argv[1]) as contestant:
    contestant.call()
"""


@pytest.mark.parametrize("number", first_of(signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
def test_a_benchmark_that_is_ended_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    variables = environment()
    variables["PYTHONPATH"] += os.pathsep + os.pathsep.join([str(ROOT), str(tmp_path)])
    program = [sys.executable, "-c", BENCHMARK, str(tmp_path)]
    with subprocess.Popen(program, env=variables, stderr=subprocess.DEVNULL) as benchmark:
        wait_until((tmp_path / "begun").exists, lambda: benchmark.poll() is None)
        started = descendants(benchmark.pid)
        assert len(started) == 3, "the guard, the contestant, and what that has started"
        benchmark.send_signal(number)
    wait_for_end(started)
    assert [name for name in os.listdir(tmp_path) if name.startswith("transom-")] == []


@pytest.mark.skipif(not NIGHTLY, reason="a real Spark; at night")
@pytest.mark.parametrize(
    ("contestant", "last"), [("transom_spark", "pyspark.daemon"), ("spark_own", "java")], ids=lambda given: str(given)
)
def test_a_benchmark_that_is_killed_leaves_no_spark(tmp_path: Path, contestant: str, last: str) -> None:
    """`last` is what is started last, when a query runs."""
    options = ["--quick", "--query", "q5", "--contestant", contestant]
    program = [sys.executable, "-m", "transom.cli.main", "bench", "nexmark", *options]
    with subprocess.Popen(program, env=environment(), stderr=subprocess.DEVNULL, cwd=tmp_path) as benchmark:
        wait_until(lambda: any(last in command(each) for each in descendants(benchmark.pid)))
        started = descendants(benchmark.pid)
        benchmark.kill()
    wait_for_end(started)


def test_a_job_that_fails_is_answered_and_the_next_one_runs() -> None:
    with serving("benchmarks.processes:imported", "transom.plan.options:read_option") as contestant:
        failed = contestant.call("speed", "1")
        assert "speed" in failed.failure and failed.result is None
        right = contestant.call("batch_rows", "17")
    assert (right.result, right.failure) == (17, "") and right.wall_s > 0 and right.cpu_s >= 0
    with pytest.raises(SourceError, match="speed"):
        call_apart("transom.plan.options:read_option", "speed", "1")


def test_a_process_that_ends_says_why() -> None:
    with pytest.raises(SourceError, match="nobody:here ended with status 1") as failure, serving("nobody:here"):
        pass
    assert "No module named 'nobody'" in str(failure.value)
    with (
        pytest.raises(SourceError, match="a program ended with status 143"),
        guarded(["sh", "-c", "kill $$"], "a program"),
    ):
        pass


def test_cpu_time_is_that_of_all_that_a_process_has_started() -> None:
    work = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(i * i for i in range(3_000_000))'])"
    with subprocess.Popen(
        [sys.executable, "-c", f"input(); {work}; print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        before = tree_cpu_seconds(process.pid)
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"\n"
        assert tree_cpu_seconds(process.pid) > before + 0.05
        process.stdin.write(b"\n")
