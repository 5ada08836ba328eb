"""Runs a program and sees to its end, and to that of all that it has started: `python -I guard.py PIPE PROGRAM ..`.

It stands between a benchmark and a contestant. When the benchmark closes its end of the pipe, or is killed, the program
is asked to end, and killed if it does not. Whatever it has left behind, a JVM or a worker in any group or session, has
become a child of this process (Linux gives orphans to the nearest subreaper) and ends then, too. It needs nothing
but Python, so that it costs nothing beside what is measured.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

TO_END: Final = 10.0
"""Seconds in which a program ends in good order, before it is killed."""

TO_FOLLOW: Final = 60.0
"""Seconds for what a program has started to end by itself, after it has ended by itself; 1 if it was ended."""

_SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER


def parents() -> dict[int, int]:
    """Of every process that runs or has not been waited for, by number, who its parent is."""
    parent_of = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdecimal():
            with suppress(OSError), open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                # Behind the name of the program, which may have spaces: state, parent, ..
                parent_of[int(name)] = int(file.read().rpartition(")")[2].split()[1])
    return parent_of


def descendants(process: int) -> set[int]:
    """All that a process has started, and what that has started, and so on."""
    parent_of = parents()
    below, new = set[int](), {process}
    while new:
        new = {child for child, parent in parent_of.items() if parent in new} - below
        below |= new
    return below


def main(arguments: Sequence[str]) -> int:
    pipe, *command = arguments
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    with subprocess.Popen(command) as program:
        ended = threading.Event()
        threading.Thread(target=_watch, args=(int(pipe), program, ended), daemon=True).start()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: _end(program, ended))
        status = program.wait()
    patience = time.monotonic() + TO_FOLLOW
    while left := descendants(os.getpid()):
        if ended.wait(0.02):
            patience = min(patience, time.monotonic() + 1.0)
        if time.monotonic() > patience:
            for process in left:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.02)
    return status if status >= 0 else 128 - status


def _watch(pipe: int, program: subprocess.Popen[bytes], ended: threading.Event) -> None:
    os.read(pipe, 1)
    _end(program, ended)


def _end(program: subprocess.Popen[bytes], ended: threading.Event) -> None:
    if not ended.is_set():
        ended.set()
        program.terminate()
        kill = threading.Timer(TO_END, program.kill)
        kill.daemon = True
        kill.start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
