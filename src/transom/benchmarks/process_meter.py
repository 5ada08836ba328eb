"""What this process holds of the machine, as Linux tells it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from transom.core.errors import SourceError

_STATUS: Final = Path("/proc/self/status")
_FILES: Final = Path("/proc/self/fd")


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


def _status() -> dict[str, int]:
    try:
        lines = _STATUS.read_text(encoding="ascii").splitlines()
    except OSError as error:
        raise SourceError(f"memory is measured on Linux alone: {error}", remedy="run it there") from error
    words = [line.split() for line in lines]
    return {word[0].rstrip(":"): int(word[1]) for word in words if len(word) > 1 and word[1].isdecimal()}
