"""Which files of a folder are committed, by a log in the folder: the one that Spark's own file sink keeps, so that
`spark.read` sees what is committed and nothing else.

`_spark_metadata/N` has a line for every file of the Nth commit. Every tenth is called `N.compact`, and has those of all
commits so far. Whoever reads the log begins with the last of these. A number that is not there was never written: one
put of one file is a commit.

In an entry of ours there is more than Spark looks for: which run wrote the file, and in which epoch.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from transom.connectors.storage import Entry, Storage

FOLDER: Final = "_spark_metadata"

_INTERVAL: Final = 10
_VERSION: Final = "v1"
_BATCH: Final = re.compile(r"(\d{1,18})(\.compact)?")
_BLOCK: Final = 64 * 1024 * 1024


@dataclass(frozen=True)
class CommittedFile:
    """A file by its name below the folder, which run committed it and in which epoch; Spark's own say neither."""

    name: str
    size: int
    modified: int
    """When, in milliseconds."""
    run: str | None = None
    epoch: int = -1


@dataclass(frozen=True)
class CommitLog:
    """What a log says: the number of its last commit, -1 before the first, and the files that count."""

    number: int = -1
    files: tuple[CommittedFile, ...] = ()

    @property
    def run(self) -> str | None:
        """Who wrote the last of them."""
        return self.files[-1].run if self.files else None

    @property
    def epoch(self) -> int:
        """The epoch of the last commit."""
        return self.files[-1].epoch if self.files else -1

    def after(self, files: tuple[CommittedFile, ...], *, instead: bool) -> CommitLog:
        """The log with one more commit; `instead` of all files that count so far."""
        if not instead:
            return CommitLog(self.number + 1, self.files + files)
        # Only where all files are listed anew do others cease to count.
        return CommitLog(self.number + _INTERVAL - (self.number + 1) % _INTERVAL, files)

    @property
    def compact(self) -> bool:
        return (self.number + 1) % _INTERVAL == 0


def read_log(storage: Storage, folder: str) -> CommitLog | None:
    """The log of a folder; None where there is none. Raises ValueError for one that cannot be read."""
    where = f"{folder.rstrip('/')}/{FOLDER}"
    commits = {}
    for entry in storage.entries(where):
        name = _BATCH.fullmatch(entry.name)
        if name is not None and not entry.folder:
            commits[int(name[1])] = (entry, name[2] is not None)
    if not commits:
        return None
    last = max(commits)
    compact = [number for number, (_, whole) in commits.items() if whole]
    files: dict[str, CommittedFile] = {}
    for number in range(max(compact, default=0), last + 1):
        if number not in commits:
            raise ValueError(f"commit {number} is missing in '{where}'")
        for action, file in _read(storage, where, commits[number][0]):
            if action == "delete":
                files.pop(file.name, None)
            else:
                files[file.name] = file
    return CommitLog(last, tuple(files.values()))


def write_log(storage: Storage, folder: str, log: CommitLog, added: int) -> None:
    """Makes the last commit of a log, of so many files, what everybody sees."""
    where = f"{folder.rstrip('/')}/{FOLDER}"
    files = log.files if log.compact else log.files[len(log.files) - added :]
    lines = [_VERSION, *(_line(folder, file) for file in files)]
    storage.put(f"{where}/{log.number}{'.compact' * log.compact}", "\n".join(lines).encode())
    if log.compact:
        # By two of them Spark knows how far they are apart, and who is reading by the last one is not disturbed.
        for entry in storage.entries(where):
            name = _BATCH.fullmatch(entry.name)
            if name is not None and int(name[1]) < log.number - _INTERVAL:
                storage.delete(f"{where}/{entry.name}")


def delete_log(storage: Storage, folder: str) -> None:
    """Delete a log from its end on: until it is gone, what is left is a log."""
    where = f"{folder.rstrip('/')}/{FOLDER}"
    names = [entry.name for entry in storage.entries(where) if _BATCH.fullmatch(entry.name)]
    for name in sorted(names, key=lambda name: -int(name.partition(".")[0])):
        storage.delete(f"{where}/{name}")


def _line(folder: str, file: CommittedFile) -> str:
    about: dict[str, Any] = {
        "path": quote(f"{folder.rstrip('/')}/{file.name}", safe="/:@"),
        "size": file.size,
        "isDir": False,
        "modificationTime": file.modified,
        "blockReplication": 1,
        "blockSize": _BLOCK,
        "action": "add",
        "run": file.run,
        "epoch": file.epoch,
    }
    return json.dumps(about)


def _read(storage: Storage, where: str, entry: Entry) -> tuple[tuple[str, CommittedFile], ...]:
    return _parsed(storage, f"{where}/{entry.name}", entry.state)


@lru_cache(maxsize=256)
def _parsed(storage: Storage, path: str, state: tuple[int, ...]) -> tuple[tuple[str, CommittedFile], ...]:
    """A file of the log is never changed."""
    text = (storage.read(path) or b"").decode()
    version, *lines = text.split("\n")
    if version != _VERSION:
        raise ValueError(f"'{path}' is not of version {_VERSION}")
    folder = unquote(urlsplit(path).path).rpartition(f"/{FOLDER}/")[0]
    actions = []
    for line in filter(None, lines):
        try:
            about = json.loads(line)
            below = unquote(urlsplit(about["path"]).path)
            file = CommittedFile(
                below.removeprefix(f"{folder}/"),
                int(about["size"]),
                int(about["modificationTime"]),
                about.get("run"),
                int(about.get("epoch", -1)),
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"'{path}' has a line that cannot be read: {error}") from None
        if file.name == below:
            raise ValueError(f"'{path}' names a file that is not in its folder: {about['path']}")
        actions.append((str(about.get("action", "add")), file))
    return tuple(actions)
