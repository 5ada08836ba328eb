"""Runs that are killed again and again, and what they read from and write to: one harness for every source and sink.

A run is let alone until an epoch more is in its checkpoint; then, at any moment, one of these is killed, in turn: the
run with all it has started; a worker of Spark, and the run once it has gone on without it; whatever Spark has started,
its JVM too, and the run; a server, and the run before it is there again, or once it has gone on with it.
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

from tests.cli.commands import command, environment, transom
from tests.runtimes.spark.processes import command as command_of
from tests.runtimes.spark.processes import descendants, kill, parent, wait_for_end, wait_until
from transom.program.checkpoint_folder import STATE

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
    commits = [[int(file.name) for file in query.glob("spark/commits/[0-9]*")] for query in checkpoint.glob("*")]
    return sum(max(of_query, default=-1) + 1 for of_query in commits)


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
    victims = ["run", *(["worker", "any"] if runtime == "spark" else []), *(["server"] if servers else [])]
    for number in range(KILLS):
        victim = victims[number % len(victims)]
        errors = checkpoint.parent / f"errors{number}"
        with _running((*arguments, *on), errors) as (run, started):
            _await_epoch(run, checkpoint, work)
            started |= descendants(run.pid)  # nobody knows whose they were when it is dead
            time.sleep(chance.uniform(0, 0.3))
            if victim == "worker":
                kill(chance.sample(workers_of(run.pid), 1))
                _await_epoch(run, checkpoint, work)
            elif victim == "any":
                kill(chance.sample(sorted(descendants(run.pid)), 1))
                time.sleep(chance.uniform(0, 1))
            elif victim == "server":
                server = chance.choice(servers)
                server.kill()
                time.sleep(chance.uniform(0, 0.5))
                with_run = chance.random() < 0.5
                if with_run:
                    kill([run.pid])
                server.start()
                if not with_run:  # which has waited for it
                    _await_epoch(run, checkpoint, work)
            assert victim in ("any", "server") or run.poll() is None, "it ended before it was killed"
            assert run.poll() != 0, "it came to its end before it was killed often enough"
    done = transom(*arguments, *end)
    assert done.returncode == 0, done.stderr


def workers_of(run: int) -> list[int]:
    """The processes in which Spark runs tasks: children of their daemon, but for the one that forks what the driver has
    started as Python. Those plan sources, and a query ends with its own."""
    every = descendants(run)
    daemons = {pid for pid in every if DAEMON in command_of(pid) and DAEMON not in command_of(parent(pid) or 0)}
    forking = {parent(pid) for pid in every}
    return sorted(pid for pid in every if parent(pid) in daemons and pid not in forking)


def _await_epoch(run: subprocess.Popen[bytes], checkpoint: Path, work: Callable[[], None]) -> None:
    known = epochs(checkpoint)

    def another() -> bool:
        work()
        return epochs(checkpoint) != known

    wait_until(another, lambda: run.poll() is None)


@contextmanager
def _running(arguments: Sequence[str | Path], errors: Path) -> Iterator[tuple[subprocess.Popen[bytes], set[int]]]:
    """It, and a set for the processes that it has started; in the end all are killed. Where something was wrong it is
    shown what the run said, and where every thread of it was."""
    with open(errors, "w") as said:
        shown = {**environment(), "PYTHONFAULTHANDLER": "1"}  # where it was, should it crash by itself
        run = subprocess.Popen(command(*arguments), env=shown, stdout=subprocess.DEVNULL, stderr=said)
    started = set[int]()
    try:
        yield run, started
    except AssertionError:
        print(f"exit {run.poll()}: {errors.read_text()[-3000:]}")
        print(_threads([run.pid, *descendants(run.pid)], errors))
        raise
    finally:
        started |= descendants(run.pid)
        kill([run.pid])
        kill(started)
        run.wait()
        wait_for_end(started)


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
