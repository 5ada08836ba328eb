"""Which files a path means, in the order of their names: one file, those of a folder, those that match a pattern.

A file that has several names by links among them is listed once. `**` does not go through links to folders.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cache

from transom.core.errors import SourceError
from transom.core.location import Within


@dataclass(frozen=True)
class Listed:
    """A file by the name it has in positions and messages, where it lies, and how many bytes it has now.

    `state` changes whenever the file does.
    """

    name: str
    path: str
    size: int
    state: tuple[int, ...] = ()


def list_files(
    path: str,
    *,
    may_be_empty: bool,
    settled: Container[str] = (),
    known: Container[str] = (),
    within: Within | None = None,
) -> list[Listed]:
    """The files of a path, by name. Hidden ones (a leading dot or underscore) are somebody's unfinished business.

    A folder means the files in it, not those of folders below. Nothing but the pattern is expanded: no `~`, no `$X`.
    Files with `settled` names are left out, and not looked at. Of several names of one file a `known` one is taken. One
    that leads outside of `within` is rejected.
    """
    if within is None:
        return _listed(path, may_be_empty, settled, known)
    within.check_pattern(path)
    listed = _listed(path, may_be_empty, settled, known)
    for file in listed:
        within.check(file.path)
    return listed


def _listed(path: str, may_be_empty: bool, settled: Container[str], known: Container[str]) -> list[Listed]:
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return _matching(path, settled, known, may_be_empty=may_be_empty)
    except (OSError, ValueError) as error:
        raise cannot_read(path, error) from None
    if stat.S_ISREG(mode):
        return _present([(path, path)] if path not in settled else [])
    if not stat.S_ISDIR(mode):
        raise SourceError(f"'{show(path)}' is neither a file nor a folder", remedy="write the path of one")
    try:
        with os.scandir(path) as found:
            entries = [(entry.name, entry.path, entry.is_symlink()) for entry in found if not _hidden(entry.name)]
    except OSError as error:
        raise cannot_read(path, error) from None
    if any(linked for _, _, linked in entries):
        entries = _once(entries, known)
    return _present(sorted((name, index) for name, index, _ in entries if name not in settled))


def path_of(path: str, name: str) -> str:
    """Where the file lies that `list_files` gave this name."""
    return os.path.join(path, name) if os.path.isdir(path) else name


def _matching(path: str, settled: Container[str], known: Container[str], *, may_be_empty: bool) -> list[Listed]:
    if not glob.has_magic(path):
        raise SourceError(f"there is no file or folder '{show(path)}'", remedy="correct the path of the source")
    matching = {name for name in _expanded(path) if not _hidden(os.path.basename(name))}
    names = [name for name, _, _ in _once([(name, name, os.path.islink(name)) for name in matching], known)]
    found = _present(sorted((name, name) for name in names if name not in settled))
    if not found and not may_be_empty:
        raise SourceError(f"no file matches '{show(path)}'", remedy="correct the path of the source, or name a folder")
    return found


def _expanded(pattern: str) -> Iterator[str]:
    """The names that match. Python's own `**` goes through links to folders, round and round where they form a ring."""
    parts = pattern.split(os.sep)
    if "**" not in parts:
        yield from glob.iglob(pattern)
        return
    at = parts.index("**")
    rest = os.sep.join(parts[at + 1 :]) or "*"
    for base in glob.iglob(os.sep.join([*parts[:at], ""])) if at else [""]:
        for folder, below, _ in os.walk(base or os.curdir):
            below[:] = [name for name in below if not name.startswith(".")]
            inside = folder if base else os.path.relpath(folder, os.curdir)
            yield from _expanded(rest if inside == os.curdir else os.path.join(glob.escape(inside), rest))


_Entry = tuple[str, str, bool]
"""A file by its name, where it lies, and whether that is a link."""


def _once(entries: list[_Entry], known: Container[str]) -> list[_Entry]:
    """Each file by one of its names: one that is known, else one that is no link, else the first."""
    folder = cache(os.path.realpath)
    chosen: dict[str, _Entry] = {}
    for entry in sorted(entries, key=lambda entry: (entry[0] not in known, entry[2], entry[0])):
        _, path, linked = entry
        inside, name = os.path.split(path)
        chosen.setdefault(os.path.realpath(path) if linked else os.path.join(folder(inside), name), entry)
    return list(chosen.values())


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
            state = (status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino)
            found.append(Listed(name, path, status.st_size, state))
    return found


def show(name: str) -> str:
    """A file name as it can be printed, whatever bytes it is made of."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def cannot_read(path: str, error: Exception) -> SourceError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return SourceError(f"'{show(path)}' cannot be read: {why}", remedy="check that it is there and may be read")
