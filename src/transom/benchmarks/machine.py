"""The machine that a benchmark ran on: its kind, not its name."""

from __future__ import annotations

import os
import platform
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

_PACKAGES: Final = ("numpy", "numba", "pyarrow", "sqlglot")
"""Those that the figures of benchmarks depend on."""


def machine() -> dict[str, Any]:
    """Cores that this process may use, the kind of processor, memory, and versions."""
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
