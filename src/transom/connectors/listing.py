"""Which files a path means, in the order of their names: one file, those of a folder, those that match a pattern."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Container
from dataclasses import dataclass

from transom.core.errors import SourceError
from transom.core.location import Within


@dataclass(frozen=True)
class Listed:
    """A file by the name it has in positions and messages, where it lies, and how many bytes it has now."""

    name: str
    path: str
    size: int


def list_files(
    path: str, *, may_be_empty: bool, settled: Container[str] = (), within: Within | None = None
) -> list[Listed]:
    """The files of a path, by name. Hidden ones (a leading dot or underscore) are somebody's unfinished business.

    A folder means the files in it, not those of folders below. Nothing but the pattern is expanded: no `~`, no `$X`.
    Files with `settled` names are left out, and not looked at. One that leads outside of `within` is refused.
    """
    if within is None:
        return _listed(path, may_be_empty, settled)
    within.check_pattern(path)
    listed = _listed(path, may_be_empty, settled)
    for file in listed:
        within.check(file.path)
    return listed


def _listed(path: str, may_be_empty: bool, settled: Container[str]) -> list[Listed]:
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return _matching(path, settled, may_be_empty=may_be_empty)
    except (OSError, ValueError) as error:
        raise cannot_read(path, error) from None
    if stat.S_ISREG(mode):
        return _present([(path, path)] if path not in settled else [])
    if not stat.S_ISDIR(mode):
        raise SourceError(f"'{show(path)}' is neither a file nor a folder", remedy="write the path of one")
    try:
        names = os.listdir(path)
    except OSError as error:
        raise cannot_read(path, error) from None
    wanted = sorted(name for name in names if name not in settled and not _hidden(name))
    return _present([(name, os.path.join(path, name)) for name in wanted])


def path_of(path: str, name: str) -> str:
    """Where the file lies that `list_files` gave this name."""
    return os.path.join(path, name) if os.path.isdir(path) else name


def _matching(path: str, settled: Container[str], *, may_be_empty: bool) -> list[Listed]:
    if not glob.has_magic(path):
        raise SourceError(f"there is no file or folder '{show(path)}'", remedy="correct the path of the source")
    names = sorted(name for name in glob.glob(path, recursive=True) if not _hidden(os.path.basename(name)))
    found = _present([(name, name) for name in names if name not in settled])
    if not found and not may_be_empty:
        raise SourceError(f"no file matches '{show(path)}'", remedy="correct the path of the source, or name a folder")
    return found


def _hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _present(candidates: list[tuple[str, str]]) -> list[Listed]:
    """The candidates that are files; one that has gone meanwhile is left out."""
    found = []
    for name, path in candidates:
        try:
            status = os.stat(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise cannot_read(path, error) from None
        if stat.S_ISREG(status.st_mode):
            found.append(Listed(name, path, status.st_size))
    return found


def show(name: str) -> str:
    """A file name as it can be printed, whatever bytes it is made of."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def cannot_read(path: str, error: Exception) -> SourceError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return SourceError(f"'{show(path)}' cannot be read: {why}", remedy="check that it is there and may be read")
