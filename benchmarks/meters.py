"""What a process holds of the machine and takes of it, as Linux reports it; and which machine it is."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from benchmarks.guard import descendants
from transom.core.errors import SourceError

_FILES: Final = Path("/proc/self/fd")
_PROCESSES: Final = Path("/proc")
_PACKAGES: Final = ("numpy", "numba", "pyarrow", "sqlglot")
"""Those that the figures of benchmarks depend on."""


def anonymous_bytes() -> int:
    """Memory of its own, without mapped files and libraries."""
    return _status()["RssAnon"] * 1024


def anonymous_bytes_of_pythons() -> dict[int, int]:
    """The same, by process, of those in Python that this one has started, and that those have started."""
    bytes_of = {}
    for process in descendants(os.getpid()):
        with suppress(OSError, SourceError, KeyError):  # it has ended meanwhile
            if "python" in (_PROCESSES / str(process) / "comm").read_text(encoding="utf-8", errors="replace"):
                bytes_of[process] = _status(str(process))["RssAnon"] * 1024
    return bytes_of


def resident_bytes() -> int:
    return _status()["VmRSS"] * 1024


def threads() -> int:
    return _status()["Threads"]


def open_files() -> int:
    """Without the one that looking takes."""
    return len(os.listdir(_FILES)) - 1


def tree_cpu_seconds(process: int) -> float:
    """CPU time so far of a process and all that it has started and that runs, and of what they have waited for."""
    ticks = 0
    for each in {process} | descendants(process):
        with suppress(OSError):  # it has ended meanwhile, and its time is that of who waited for it
            stat = (_PROCESSES / str(each) / "stat").read_text(encoding="utf-8", errors="replace")
            # In the program and in the system, of itself and of ended children.
            ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _status(process: str = "self") -> dict[str, int]:
    try:
        lines = (_PROCESSES / process / "status").read_text(encoding="ascii").splitlines()
    except OSError as error:
        raise SourceError(f"memory is measured on Linux alone: {error}", remedy="run it there") from error
    words = [line.split() for line in lines]
    return {word[0].rstrip(":"): int(word[1]) for word in words if len(word) > 1 and word[1].isdecimal()}


# --- the machine -----------------------------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """Its kind, not its name: cores that this process may use, the kind of processor, memory, and versions."""
    versions = {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}}
    return {
        "cores": usable_cores(),
        "processor": _line("/proc/cpuinfo", "model name") or platform.machine(),
        "memory_gib": round(int((_line("/proc/meminfo", "MemTotal") or "0 kB").split()[0]) / 2**20),
        "system": platform.system(),
        "versions": versions,
    }


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # it is imported from a folder
        return str(getattr(import_module(package), "__version__", "unknown"))


def _line(file: str, name: str) -> str | None:
    """What a file of the system says of something."""
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)
