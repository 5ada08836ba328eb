"""Which files a path means, in the order of their names: one file, those of a folder, those that match a pattern.

A file that has several names by links among them is listed once. `**` does not go through links to folders. Of a folder
on a storage that has a log of what is committed, the files are those of the log, in its order (see commit_log).
"""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cache

from transom.connectors.commit_log import FOLDER, read_log
from transom.connectors.storage import Entry, Storage, storage_of
from transom.core.errors import SourceError
from transom.core.location import Within, is_remote


@dataclass(frozen=True)
class Listed:
    """A file by the name it has in positions and messages, where it lies, and how many bytes it has now.

    `state` changes whenever the file does.
    """

    name: str
    path: str
    size: int
    state: tuple[int, ...] = ()

    def now(self) -> tuple[int, ...]:
        """The size and the time that it has at this moment; on a storage those of the listing, which is as young."""
        if is_remote(self.path):
            return self.state
        status = os.stat(self.path)
        return status.st_size, status.st_mtime_ns


def list_files(
    path: str,
    *,
    may_be_empty: bool,
    done: Container[str] = (),
    taken: Container[str] = (),
    within: Within | None = None,
) -> list[Listed]:
    """The files of a path, by name. Hidden ones (a leading dot or underscore) are somebody's unfinished business.

    A folder means the files in it, not those of folders below. Nothing but the pattern is expanded: no `~`, no `$X`.
    Files whose names are in `done` are left out, and not looked at. Of several names of one file one that is `taken`
    counts. One that leads outside of `within` is rejected.
    """
    if within is None:
        return _listed(path, may_be_empty, done, taken)
    within.check_pattern(path)
    listed = _listed(path, may_be_empty, done, taken)
    for file in listed:
        within.check(file.path)
    return listed


def _listed(path: str, may_be_empty: bool, done: Container[str], taken: Container[str]) -> list[Listed]:
    if is_remote(path):
        try:
            listed = _listed_remotely(storage_of(path), path, may_be_empty)
        except (OSError, ValueError) as error:
            raise cannot_read(path, error) from None
        return [file for file in listed if file.name not in done]
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return _matching(path, done, taken, may_be_empty=may_be_empty)
    except (OSError, ValueError) as error:
        raise cannot_read(path, error) from None
    if stat.S_ISREG(mode):
        return _present([(path, path)] if path not in done else [])
    if not stat.S_ISDIR(mode):
        raise SourceError(f"'{show(path)}' is neither a file nor a folder", remedy="write the path of one")
    try:
        with os.scandir(path) as folder:
            entries = [(entry.name, entry.path, entry.is_symlink()) for entry in folder if not _hidden(entry.name)]
    except OSError as error:
        raise cannot_read(path, error) from None
    if any(linked for _, _, linked in entries):
        entries = _once(entries, taken)
    return _present(sorted((name, index) for name, index, _ in entries if name not in done))


def path_of(path: str, name: str) -> str:
    """Where the file lies that `list_files` gave this name."""
    if is_remote(path):
        return name if is_remote(name) else os.path.join(path, name)
    return os.path.join(path, name) if os.path.isdir(path) else name


def _listed_remotely(storage: Storage, path: str, may_be_empty: bool) -> list[Listed]:
    """Where there are no files there is no folder on most storages: one that is to be filled is empty."""
    entry = storage.entry(path)
    if entry is None and glob.has_magic(path):
        at = path.index("/", path.index("://") + 3)
        matching = [_remote(each, name, name) for name, each in _matching_remotely(storage, path[:at], path[at + 1 :])]
        if not matching and not may_be_empty:
            raise _no_match(path)
        return sorted(matching, key=lambda file: file.name)
    if entry is None:
        if may_be_empty:
            return []
        raise _nothing(path)
    if not entry.folder:
        return [_remote(entry, path, path)]
    entries = storage.entries(path)
    log = read_log(storage, path) if any(each.folder and each.name == FOLDER for each in entries) else None
    if log is not None:
        states = [(file, (file.size, file.modified)) for file in log.files]
        return [Listed(file.name, os.path.join(path, file.name), file.size, state) for file, state in states]
    seen = (each for each in entries if not each.folder and not _hidden(each.name))
    files = (_remote(each, each.name, os.path.join(path, each.name)) for each in seen)
    return sorted(files, key=lambda file: file.name)


def _matching_remotely(storage: Storage, folder: str, pattern: str) -> Iterator[tuple[str, Entry]]:
    """The files below a folder that match; a wildcard stands for no slash, and for no hidden name."""
    first, _, rest = pattern.partition("/")
    if first == "**":
        yield from _matching_remotely(storage, folder, rest or "*")
        for entry in storage.entries(folder):
            if entry.folder and not _hidden(entry.name):
                yield from _matching_remotely(storage, f"{folder}/{entry.name}", pattern)
    elif glob.has_magic(first):
        for entry in storage.entries(folder):
            if not _hidden(entry.name) and fnmatch.fnmatchcase(entry.name, first) and entry.folder == bool(rest):
                path = f"{folder}/{entry.name}"
                if rest:
                    yield from _matching_remotely(storage, path, rest)
                else:
                    yield path, entry
    elif rest:
        yield from _matching_remotely(storage, f"{folder}/{first}", rest)
    else:
        file = storage.entry(f"{folder}/{first}")
        if file is not None and not file.folder:
            yield f"{folder}/{first}", file


def _remote(entry: Entry, name: str, path: str) -> Listed:
    return Listed(name, path, entry.size, entry.state)


def _matching(path: str, done: Container[str], taken: Container[str], *, may_be_empty: bool) -> list[Listed]:
    if not glob.has_magic(path):
        raise _nothing(path)
    matching = {name for name in _expanded(path) if not _hidden(os.path.basename(name))}
    names = [name for name, _, _ in _once([(name, name, os.path.islink(name)) for name in matching], taken)]
    files = _present(sorted((name, name) for name in names if name not in done))
    if not files and not may_be_empty:
        raise _no_match(path)
    return files


def _nothing(path: str) -> SourceError:
    return SourceError(f"there is no file or folder '{show(path)}'", remedy="correct the path of the source")


def _no_match(path: str) -> SourceError:
    return SourceError(f"no file matches '{show(path)}'", remedy="correct the path of the source, or name a folder")


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


def _once(entries: list[_Entry], taken: Container[str]) -> list[_Entry]:
    """Each file by one of its names: one that is taken already, else one that is no link, else the first."""
    folder = cache(os.path.realpath)
    chosen: dict[str, _Entry] = {}
    for entry in sorted(entries, key=lambda entry: (entry[0] not in taken, entry[2], entry[0])):
        _, path, linked = entry
        inside, name = os.path.split(path)
        chosen.setdefault(os.path.realpath(path) if linked else os.path.join(folder(inside), name), entry)
    return list(chosen.values())


def _hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _present(candidates: list[tuple[str, str]]) -> list[Listed]:
    """The candidates that are files; one that has gone meanwhile is left out."""
    files = []
    for name, path in candidates:
        try:
            status = os.stat(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise cannot_read(path, error) from None
        if stat.S_ISREG(status.st_mode):
            state = (status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino)
            files.append(Listed(name, path, status.st_size, state))
    return files


def show(name: str) -> str:
    """A file name as it can be printed, whatever bytes it is made of."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def cannot_read(path: str, error: Exception) -> SourceError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    remedy = "check that it is there and may be read"
    if is_remote(path):
        remedy += ", and that the environment has what the storage asks for: address, region, credentials"
    return SourceError(f"'{show(path)}' cannot be read: {why}", remedy=remedy)
