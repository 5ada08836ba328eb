"""What this process holds of the machine, and what others take of it, as Linux tells it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from transom.core.errors import SourceError

_STATUS: Final = Path("/proc/self/status")
_FILES: Final = Path("/proc/self/fd")
_PROCESSES: Final = Path("/proc")


def anonymous_bytes() -> int:
    """Memory of its own, without mapped files and libraries."""
    return _status()["RssAnon"] * 1024


def resident_bytes() -> int:
    return _status()["VmRSS"] * 1024


def threads() -> int:
    return _status()["Threads"]


def open_files() -> int:
    """Without the one that looking takes."""
    return len(os.listdir(_FILES)) - 1


def session_cpu_seconds(session: int) -> float:
    """CPU time of all processes of a session so far: a process that was started as one, and all that it has started."""
    ticks = 0
    for entry in _PROCESSES.iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            # Behind the name of the program, which may have spaces: state, parent, group, session, ..
            fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile, and its time is that of who waited for it
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))  # in the program and in the system, of itself and of ended children
    return ticks / os.sysconf("SC_CLK_TCK")


def _status() -> dict[str, int]:
    try:
        lines = _STATUS.read_text(encoding="ascii").splitlines()
    except OSError as error:
        raise SourceError(f"memory is measured on Linux alone: {error}", remedy="run it there") from error
    words = [line.split() for line in lines]
    return {word[0].rstrip(":"): int(word[1]) for word in words if len(word) > 1 and word[1].isdecimal()}
