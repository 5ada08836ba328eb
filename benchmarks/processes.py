"""Contestants in processes of their own, which never outlive the benchmark (see `guard.py`).

A process answers jobs, lines of JSON, one after the other, so that all contestants are timed from outside and alike:
`python -m benchmarks.processes MODULE:FUNCTION ARGUMENTS` calls the function, which gets a session ready and gives
another one that does the jobs. A program that has nothing of Transom, such as Flink's, may speak the same protocol.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final

from benchmarks.meters import tree_cpu_seconds
from transom.core.errors import SourceError, TransomError
from transom.program.interrupt import listen

ANSWER: Final = "benchmark-answer "
"""Begins a line of the protocol: whatever else a contestant prints is no answer."""

_HERE: Final = Path(__file__).parent
_LOG_LINES: Final = 15

Work = Callable[..., Any]


@dataclass(frozen=True)
class Answer:
    """What a job came to, or why it failed; the time on the wall, and that of the process and all that it started."""

    result: Any
    failure: str
    wall_s: float
    cpu_s: float


class Contestant:
    """A process that waits for jobs."""

    def __init__(self, name: str, process: subprocess.Popen[str], log: IO[bytes]) -> None:
        self._name, self._process, self._log = name, process, log
        self._receive()

    def call(self, *arguments: Any) -> Answer:
        assert self._process.stdin is not None
        cpu, began = tree_cpu_seconds(self._process.pid), time.perf_counter()
        self._process.stdin.write(json.dumps(arguments, default=str) + "\n")
        self._process.stdin.flush()
        message = self._receive()
        wall_s = time.perf_counter() - began
        cpu_s = tree_cpu_seconds(self._process.pid) - cpu
        return Answer(message.get("result"), message.get("failure", ""), wall_s, cpu_s)

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(ANSWER):
                message: dict[str, Any] = json.loads(line.removeprefix(ANSWER))
                return message
        status = self._process.wait()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").splitlines()[-_LOG_LINES:]
        raise SourceError(f"{self._name} ended with status {status}", remedy="it said:\n  " + "\n  ".join(lines))


@contextmanager
def guarded(command: Sequence[str], name: str) -> Iterator[Contestant]:
    """A program that speaks the protocol. At the end of the block it has ended, and all that it has started."""
    theirs, ours = os.pipe()
    guard = [sys.executable, "-I", "-S", str(_HERE / "guard.py"), str(theirs)]
    path = os.pathsep.join([str(_HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            [*guard, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            pass_fds=[theirs],
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C is for the benchmark, which then ends this one
        ) as process,
    ):
        os.close(theirs)
        try:
            yield Contestant(name, process, log)
            assert process.stdin is not None
            process.stdin.close()  # there are no more jobs
            process.wait()
        finally:
            os.close(ours)


@contextmanager
def serving(function: str, *arguments: Any) -> Iterator[Contestant]:
    """A process that called `MODULE:FUNCTION` and does the jobs that come."""
    command = [sys.executable, "-m", "benchmarks.processes", function, json.dumps(arguments, default=str)]
    with guarded(command, function) as contestant:
        yield contestant


def call_apart(function: str, *arguments: Any) -> Any:
    """What `MODULE:FUNCTION` gives in a new process."""
    with serving("benchmarks.processes:imported", function) as contestant:
        answer = contestant.call(*arguments)
    if answer.failure:
        raise SourceError(f"{function}: {answer.failure}")
    return answer.result


# --- in the process --------------------------------------------------------------------------------------------------


def imported(function: str) -> Work:
    module, _, name = function.partition(":")
    work: Work = getattr(import_module(module), name)
    return work


def serve(work: Work, jobs: Iterator[str]) -> None:
    _reply({})
    for line in jobs:
        try:
            _reply({"result": work(*json.loads(line))})
        except TransomError as error:
            _reply({"failure": str(error)})


def _reply(answer: dict[str, Any]) -> None:
    print(ANSWER + json.dumps(answer), flush=True)


def main(arguments: Sequence[str]) -> int:
    listen()
    function, given = arguments
    serve(imported(function)(*json.loads(given)), iter(sys.stdin))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
