"""Processes as the kernel shows them: who started whom, what they run, and the killing of them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

PATIENCE = 300.0
"""Seconds that a test waits for what must come; on a busy machine everything takes its time."""


def parent(pid: int) -> int | None:
    """None: there is no such process, or it has ended and nobody has looked yet."""
    try:
        behind_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if behind_name[0] == "Z" else int(behind_name[1])


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def descendants(pid: int) -> set[int]:
    parents = {int(name): parent(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    below, new = set[int](), {pid}
    while new:
        new = {child for child, of in parents.items() if of in new} - below
        below |= new
    return below


def kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_until(
    there: Callable[[], bool], goes_on: Callable[[], bool] = lambda: True, patience: float = PATIENCE
) -> None:
    """Until it is there; an error when it takes too long, or when what should bring it has ended."""
    end = time.monotonic() + patience
    while not there():
        assert time.monotonic() < end, "it took too long"
        assert goes_on() or there(), "it ended before its time"
        time.sleep(0.01)


def wait_for_end(pids: Iterable[int]) -> None:
    left = set(pids)
    wait_until(lambda: all(parent(pid) is None for pid in left))
