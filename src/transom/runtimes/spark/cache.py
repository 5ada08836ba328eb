"""Where things that may be made again are kept between runs: the Java shim, class archives, compiled kernels, logs.

What is kept here is executed later, so the folder belongs to the user alone; one that others can write to is not used.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from transom.state.scratch import Scratch


def cache_folder(*parts: str, environ: Mapping[str, str] = os.environ) -> Path:
    """A folder of the user's cache, made with mode 0700 where it is missing."""
    root = Path(environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or Path.home()) / ".cache") / "transom"
    if not _private(root):
        root = _for_this_process()
    folder = root.joinpath(*parts)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def kernels_folder() -> Path:
    """Where the workers of a Spark that Transom starts keep what they have compiled."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    return Path(named) if named else cache_folder("kernels")


def anything_compiled() -> bool:
    return next(kernels_folder().rglob("*.nbi"), None) is not None


def write_atomically(path: Path, text: str, mode: int = 0o600) -> None:
    """The file is there with the whole text or as it was before, also while others read it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _private(root: Path) -> bool:
    """Whether the folder is there, or can be made, and nobody else may write to it."""
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = root.stat()
    except OSError:
        return False
    return (
        status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and os.access(root, os.W_OK)
    )


@cache
def _for_this_process() -> Path:
    """A folder that goes with the process: without a cache everything is made anew each time."""
    return Path(Scratch("cache").path)
