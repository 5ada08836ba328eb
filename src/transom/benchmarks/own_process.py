"""A part of a benchmark in a process of its own, which never outlives the benchmark.

It holds one end of a pipe and ends in good order when the other one is closed, whatever closes it:
`python -m transom.benchmarks.own_process PIPE MODULE ..` runs `main` of a module.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import IO, Final

from transom.program.interrupt import listen

_SECONDS_TO_END: Final = 20.0


@contextmanager
def own_process(
    module: str,
    *arguments: str,
    stdin: int = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.PIPE,
    stderr: int | IO[bytes] = subprocess.PIPE,
) -> Iterator[subprocess.Popen[str]]:
    """`main` of a module with these arguments. At the end of the block the process has ended."""
    theirs, ours = os.pipe()
    try:
        command = [sys.executable, "-m", "transom.benchmarks.own_process", str(theirs), module, *arguments]
        with own_program(command, stdin, stdout, stderr, kept=[theirs]) as process:
            yield process
    finally:
        os.close(theirs)
        os.close(ours)


@contextmanager
def own_program(
    command: Sequence[str],
    stdin: int = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.PIPE,
    stderr: int | IO[bytes] = subprocess.PIPE,
    kept: Sequence[int] = (),
) -> Iterator[subprocess.Popen[str]]:
    """Any other program, which sees the end of the benchmark only if it reads its input."""
    with subprocess.Popen(
        command,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        text=True,
        pass_fds=kept,
        start_new_session=True,  # Ctrl-C is for the benchmark, which then ends this one
    ) as process:
        try:
            yield process
        finally:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    try:
        if process.poll() is None:
            process.terminate()
            process.wait(_SECONDS_TO_END)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        if not isinstance(error, subprocess.TimeoutExpired):
            raise


def _end_with(pipe: int) -> None:
    os.read(pipe, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def main(arguments: Sequence[str]) -> int:
    listen()
    pipe, module, *rest = arguments
    threading.Thread(target=_end_with, args=(int(pipe),), name="end with the benchmark", daemon=True).start()
    code: int = import_module(module).main(rest)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
