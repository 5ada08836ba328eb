"""Folders for what is needed only while a process lives: `transom-<kind>-<number>`, among the temporary files.

One is removed when its work is done, at the latest at the end of the process. A process that is killed leaves it
behind; whoever makes the next one beside it removes it then. Whether its owner lives is shown by a lock
on the folder, which the kernel takes back with the process: numbers of processes mean nothing to another container
that has the same folder. The lock also tells `systemd-tmpfiles` that the folder is in use, however old it is.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
from contextlib import suppress
from types import TracebackType
from typing import Final

_NAME: Final = re.compile(r"transom-[a-z]+-[0-9a-f]{12}")

_MEMORY: Final = "/dev/shm"

_held: set[Scratch] = set()


class Scratch:
    """A folder of its own for this process, which nobody else can look into.

    >>> with Scratch("example") as scratch:
    ...     os.path.isdir(scratch.path)
    True
    >>> os.path.isdir(scratch.path)
    False
    """

    def __init__(self, kind: str, where: str | None = None) -> None:
        parent = where or tempfile.gettempdir()
        sweep(parent)
        self.path, self._lock = _made(parent, kind)
        _held.add(self)

    def remove(self) -> None:
        """At once; nothing happens the second time."""
        if self in _held:
            _held.remove(self)
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


def in_memory() -> str | None:
    """Where files are in memory alone, if there is such a place and much room in it; None: among the temporary files.

    For what need not outlive the machine, and is written again and again.
    """
    sweep(_MEMORY)
    try:
        room = os.statvfs(_MEMORY)
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None
    free = room.f_bavail * room.f_frsize
    return _MEMORY if os.access(_MEMORY, os.W_OK | os.X_OK) and free > memory // 4 else None


def sweep(parent: str) -> None:
    """Remove the folders of this user whose processes are gone."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name):
                with suppress(OSError):  # it goes at this moment, or belongs to somebody else
                    _sweep_one(entry.path)


def _sweep_one(path: str) -> None:
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(lock).st_uid == os.getuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)


def _made(parent: str, kind: str) -> tuple[str, int]:
    while True:
        path = os.path.join(parent, f"transom-{kind}-{secrets.token_hex(6)}")
        os.mkdir(path, stat.S_IRWXU)
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue  # it was swept before it was locked
        with suppress(OSError):  # a file system without such locks: then nobody sweeps there either
            fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(path):
            return path, lock
        os.close(lock)


@atexit.register
def _remove_all() -> None:
    while _held:
        next(iter(_held)).remove()


def _leave_to_parent() -> None:
    """In a process that was forked off: the folders are not its own, and its copies of the locks would outlive them."""
    while _held:
        os.close(_held.pop()._lock)


os.register_at_fork(after_in_child=_leave_to_parent)
