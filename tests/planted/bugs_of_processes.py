"""Bugs of what a process leaves behind."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

PROCESSES: Final = (
    Bug(
        "folder_in_use_is_swept",
        "state/scratch.py",
        "fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "pass",
        "a run removes the temporary files of another one that still goes on",
    ),
)
