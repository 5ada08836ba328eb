"""Runs that are killed again and again, and what they read from and write to: one harness for every source and sink.

A run is let alone until an epoch more is in its checkpoint; then, at any moment, one of these is killed, in turn: the
run with all it has started; a worker of Spark, without which the run has to go on; whatever Spark has started, its JVM
too, and the run; a server, and the run before it is there again, or not at all. A run that is to go on is what the next
kill meets.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

import pyspark

from tests.cli.commands import command, environment, transom
from tests.runtimes.spark.processes import command as command_of
from tests.runtimes.spark.processes import descendants, kill, parent, wait_for_end, wait_until
from transom.program.checkpoint_folder import STATE
from transom.runtimes.spark.cache import cache_folder
from transom.runtimes.spark.class_archive import archive_options
from transom.runtimes.spark.java import find_java
from transom.runtimes.spark.jvm import SPARK

KILLS: Final = 20

DAEMON: Final = "-m transom.runtimes.spark.daemon"


class Server(Protocol):
    """It keeps what it has when it is killed, and is found where it was when it starts again."""

    def kill(self) -> None: ...

    def start(self) -> None: ...


def epochs(checkpoint: Path) -> object:
    """Another one after every epoch."""
    state = checkpoint / STATE
    if state.exists():
        found = state.stat()
        return found.st_ino, found.st_mtime_ns
    last = 0
    for query in os.listdir(checkpoint) if checkpoint.exists() else ():
        with suppress(FileNotFoundError, NotADirectoryError):
            commits = os.listdir(checkpoint / query / "spark" / "commits")
            last += max((int(name) + 1 for name in commits if name.isdigit()), default=0)
    return last


def run_through_kills(
    arguments: Sequence[str | Path],
    checkpoint: Path,
    runtime: str,
    servers: Sequence[Server] = (),
    work: Callable[[], None] = lambda: None,
    on: Sequence[str] = (),
    end: Sequence[str] = ("--end",),
) -> None:
    """`transom run` with these arguments, killed so often, and then to its end; `on` and `end` are how that is said.

    `work` is done again and again while a run is waited for.
    """
    seed = random.SystemRandom().randrange(10**9)
    print(f"seed {seed}")  # shown when the test fails
    chance = random.Random(seed)
    arguments = ("run", *arguments, "--runtime", runtime, "--checkpoint", checkpoint, "--every", "1")
    if runtime == "spark":
        archive_classes(checkpoint.parent)
    victims = ["run", *(["worker", "any"] if runtime == "spark" else []), *(["server"] if servers else [])]
    numbers = iter(range(KILLS))
    number = next(numbers, None)
    while number is not None:
        with _running((*arguments, *on), checkpoint.parent / f"errors{number}") as (run, started):
            goes_on = True
            while goes_on and number is not None:
                victim = victims[number % len(victims)]
                print(f"{number} {victim} {time.strftime('%X')}")
                _await_epoch(run, checkpoint, work)
                started |= descendants(run.pid)  # nobody knows whose they were when it is dead
                time.sleep(chance.uniform(0, 0.3))
                assert run.poll() is None, "it ended before it was killed"
                goes_on = _kill(victim, run, servers, chance)
                if goes_on:
                    _await_epoch(run, checkpoint, work)
                assert run.poll() != 0, "it came to its end before it was killed often enough"
                number = next(numbers, None)
    # Small batches are for the kills: what is left need not go through them.
    done = transom(*arguments, *(("--set", "batch_rows=5000") if runtime == "spark" else ()), *end)
    assert done.returncode == 0, done.stderr


def _kill(victim: str, run: subprocess.Popen[bytes], servers: Sequence[Server], chance: random.Random) -> bool:
    """Whether the run has to go on; else it is killed when this is over."""
    if victim == "worker":
        kill(chance.sample(workers_of(run.pid), 1))
        return True
    if victim == "any":
        kill(chance.sample(sorted(descendants(run.pid)), 1))
        time.sleep(chance.uniform(0, 1))
    elif victim == "server":
        server = chance.choice(servers)
        server.kill()
        time.sleep(chance.uniform(0, 0.5))
        goes_on = chance.random() < 0.5
        if not goes_on:
            kill([run.pid])
        server.start()
        return goes_on
    return False


def workers_of(run: int) -> list[int]:
    """The processes in which Spark runs tasks: children of their daemon, but for the one that forks what the driver has
    started as Python. Those plan sources, and a query ends with its own."""
    every = descendants(run)
    daemons = {pid for pid in every if DAEMON in command_of(pid) and DAEMON not in command_of(parent(pid) or 0)}
    forking = {parent(pid) for pid in every}
    return sorted(pid for pid in every if parent(pid) in daemons and pid not in forking)


def _await_epoch(run: subprocess.Popen[bytes], checkpoint: Path, work: Callable[[], None]) -> None:
    before = epochs(checkpoint)

    def another() -> bool:
        work()
        time.sleep(0.02)  # to look costs what the run could use
        return epochs(checkpoint) != before

    wait_until(another, lambda: run.poll() is None)


@contextmanager
def _running(arguments: Sequence[str | Path], errors: Path) -> Iterator[tuple[subprocess.Popen[bytes], set[int]]]:
    """It, and a set for the processes that it has started; in the end all are killed. Where something was wrong it is
    shown what the run and Spark said, and where every thread was."""
    folder = errors.parent
    with open(errors, "w") as said:
        shown = {**environment(), "PYTHONFAULTHANDLER": "1"}  # where it was, should it crash by itself
        call = command(*arguments)
        run = subprocess.Popen(call, cwd=folder, env=shown, stdout=subprocess.DEVNULL, stderr=said)
    started = set[int]()
    try:
        yield run, started
    except AssertionError:
        logs = [*cache_folder("logs").glob(f"spark-*-{run.pid}.log"), *folder.glob("hs_err*")]  # a JVM that crashed
        print(f"exit {run.poll()}: {errors.read_text()[-3000:]}")
        print(*(f"{log.name}: {log.read_text(errors='replace')[-12_000:]}" for log in logs), sep="\n")
        print(_threads([run.pid, *descendants(run.pid)], errors))
        raise
    finally:
        started |= descendants(run.pid)
        kill([run.pid])
        kill(started)
        run.wait()
        wait_for_end(started)


ARCHIVED: Final = """
CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'generator', rows = 10, rate = 1);
CREATE SINK o WITH (connector = 'files', path = 'archived.csv', emit = 'latest');
INSERT INTO o SELECT COUNT(*) AS n FROM s;
"""


def archive_classes(folder: Path) -> None:
    """Have the archive made that halves a start of Spark: runs that are killed never come to that."""
    program = folder / "archived.cql"
    program.write_text(ARCHIVED)

    def there() -> bool:
        options = archive_options(find_java(), SPARK / "jars", pyspark.__version__)
        return options[0].startswith("-XX:SharedArchiveFile")

    if not there():
        done = transom("run", program, "--runtime", "spark", "--end")
        assert done.returncode == 0, done.stderr
        with suppress(AssertionError):  # it is made when the machine has nothing else to do
            wait_until(there, patience=60)


def _threads(pids: Sequence[int], errors: Path) -> str:
    """Where the threads of these processes are; those of Python end by it, and write it where they write errors."""
    java = [pid for pid in pids if "java" in command_of(pid).partition(" ")[0]]
    shown = [subprocess.run(["jcmd", str(pid), "Thread.print"], capture_output=True, text=True).stdout for pid in java]
    said = len(errors.read_text())
    for pid in set(pids) - {*java}:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGABRT)  # which the handler of faults answers
    time.sleep(2)
    return "\n".join([*shown, errors.read_text()[said:]])


class Relay:
    """A port through which a server is reached that keeps all it has in memory: when it is killed connections break."""

    def __init__(self, port: int) -> None:
        self.behind, self.port = port, 0
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        call = [sys.executable, "-m", "tests.relay", str(self.port), str(self.behind)]
        self._process = subprocess.Popen(call, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def kill(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()
