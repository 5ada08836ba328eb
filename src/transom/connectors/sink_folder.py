"""The folder that the parts of a sink are in: whose they are, and which of them may be removed, and when.

The folder bears a mark, a hidden file with the name of the run whose parts it has. Parts in a folder without a mark are
somebody else's, and it is rejected. What another run has left is removed when the first part of this one is about to be
shown: never before, and never by a run that shows nothing. A part that this run has shown is removed only if its log
was found, and does not count it.

A run that is to take over a folder is written down in the mark before its own log begins, so that it is known when it
comes back. While the other parts are removed the mark says that they are nobody's: whoever dies then, nobody goes on as
if they were all there, and rows of both runs are never shown together.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from transom.connectors.file_target import sync_folder
from transom.connectors.listing import show
from transom.core.errors import SinkError

MARK: Final = ".transom"
_FORMAT: Final = 1
_LONGEST: Final = 65_536

PART: Final = re.compile(r"part-(?P<number>\d{6,})(?:-(?P<bucket>\d{4,}))?\.[a-z]+")
"""The name of a part: the number of its commit or batch, and where several write at once, which of them wrote it."""

SNAPSHOT: Final = re.compile(r"latest\.[a-z]+")


@dataclass(frozen=True)
class Mark:
    """The parts in the folder are those of `run`, or nobody's; those of `next` are to take their place."""

    run: str | None
    next: str | None = None

    def text(self) -> str:
        entry = {"format": _FORMAT, "run": self.run} | ({} if self.next is None else {"next": self.next})
        return json.dumps(entry)

    @staticmethod
    def read(text: str | bytes, path: str) -> Mark:
        """The mark of the folder that is at a path."""
        try:
            entry = json.loads(text)
            names = entry["run"], entry.get("next")
            if entry["format"] == _FORMAT and all(name is None or isinstance(name, str) for name in names):
                return Mark(*names)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass
        raise SinkError(
            f"the mark '{MARK}' in the folder '{show(path)}' cannot be read, so nobody knows whose its files are",
            remedy="choose another folder, or empty this one",
        )

    def claimed(self, run: str, path: str, *, committed: bool) -> Mark:
        """The mark that a run leaves which has begun, or goes on behind what it has `committed`."""
        if run in (self.run, self.next):
            return self
        if committed:
            raise SinkError(
                f"the folder '{show(path)}' has the answer of another run by now, and this one cannot go on with it",
                remedy="put the folder back as it was, or start the query anew, with another folder",
            )
        return Mark(self.run, run)


class SinkFolder:
    """A folder as one run sees it. Parts below the number `committed` stay; None: no log was found that says so.

    A `run` of no name has nothing but the word of its caller: where that knows of parts they are its own. Whose a
    `private` folder is shows by its name.
    """

    def __init__(self, path: str, run: str | None, committed: int | None, *, private: bool = False) -> None:
        self.path = path
        self._committed = committed
        self._cleared = False
        mark = read_mark(path)
        parts = dict(_parts(path))
        if mark is None and not private:
            reject_unmarked(path)
        if run is None:
            marked = None if mark is None or committed is None else mark.next or mark.run
            run = marked or uuid.uuid4().hex
        self._run = run
        if mark is None:
            wanted = Mark(run) if committed is not None or not parts else Mark(None, run)
        else:
            wanted = mark.claimed(run, path, committed=bool(committed))
        if committed is None:
            reject_lost(path, run)
        os.makedirs(path, exist_ok=True)
        if wanted != mark:
            self._write(wanted)
        self._mark = wanted

    @property
    def ours(self) -> bool:
        """Whether the parts that are shown are those of this run."""
        return self._mark.run == self._run

    def shown(self) -> dict[str, tuple[int, int]]:
        """The parts of this run that are shown: number and partition of each."""
        return dict(_parts(self.path)) if self.ours else {}

    def prepared(self) -> dict[str, int]:
        """Parts that were put on disk and not shown yet, with their numbers."""
        numbers = {}
        for name in os.listdir(self.path):
            part = PART.fullmatch(name[1:].removesuffix(".new"))
            if part is not None and name.startswith(".") and name.endswith(".new"):
                numbers[name] = int(part["number"])
        return numbers

    def clear(self, kept: Collection[str] = ()) -> None:
        """Remove, before a part is shown, what is no part of this run, but for what is prepared under these names."""
        if self._cleared:
            return
        if not self.ours:
            others = [name for name in os.listdir(self.path) if PART.fullmatch(name) or SNAPSHOT.fullmatch(name)]
            self._write(Mark(None, self._run))
            self._remove(name for name in [*others, *self.prepared()] if name not in kept)
            self._write(Mark(self._run))
        elif self._committed is not None:
            numbers = {name: number for name, (number, _) in _parts(self.path)} | self.prepared()
            self._remove(name for name, n in numbers.items() if n >= self._committed and name not in kept)
        self._cleared = True

    def finish(self) -> None:
        """Remove at the end of a run, which may have shown nothing, what its log does not count."""
        if self.ours:
            self.clear()

    def _remove(self, names: Iterator[str]) -> None:
        for name in names:
            os.unlink(os.path.join(self.path, name))

    def _write(self, mark: Mark) -> None:
        fresh = os.path.join(self.path, f"{MARK}.new")
        with suppress(FileNotFoundError):
            os.unlink(fresh)  # of a run that was killed; or a link, which is not to be followed
        with open(fresh, "x", encoding="utf-8") as file:
            file.write(mark.text())
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, os.path.join(self.path, MARK))
        sync_folder(self.path)
        self._mark = mark


def read_mark(path: str) -> Mark | None:
    """The mark of a folder; None where there is none."""
    try:
        with open(os.path.join(path, MARK), encoding="utf-8") as file:
            text = file.read(_LONGEST)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError:
        text = ""
    return Mark.read(text, path)


def reject_unmarked(path: str) -> None:
    """A folder with parts that are not ours is left alone."""
    if read_mark(path) is None:
        reject_foreign(path, (name for name in _names(path) if PART.fullmatch(name) or SNAPSHOT.fullmatch(name)))


def reject_foreign(path: str, names: Iterable[str]) -> None:
    """Reject a folder without a mark if it has names that look like parts."""
    foreign = sorted(names)
    if foreign:
        raise SinkError(
            f"the folder '{show(path)}' has files that no query of ours has written, such as '{foreign[0]}'",
            remedy="choose another folder, or empty this one",
        )


def reject_lost(path: str, run: str | None) -> None:
    """The parts of a run that has no log: they were committed, and nobody can tell any more which of them."""
    mark = read_mark(path)
    if mark is not None and mark.run is not None and mark.run == run and dict(_parts(path)):
        raise SinkError(
            f"'{show(path)}' was written by the run that this checkpoint is of, and there is no log of it any more",
            remedy="put the checkpoint back as it was; or start anew: remove the checkpoint folder as a whole",
        )


def _parts(path: str) -> Iterator[tuple[str, tuple[int, int]]]:
    for name in _names(path):
        part = PART.fullmatch(name)
        if part is not None:
            yield name, (int(part["number"]), int(part["bucket"] or 0))


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except FileNotFoundError:
        return []
