"""What sources have read, kept beside the offsets of Spark: a folder for each source, to which batches add files.

A position names every file that was ever read, so that none is read twice, wherever a new one sorts and however old it
says it is. Spark writes an offset with every batch, so positions that are long are not in it: what a batch adds to one
is written to a file, whole, as any storage can, before the offset says so. The offset has the number of that file and
its mark, which is a digest of what is in it and part of its name; and the file names the one before it, until one has
the whole position. A file that no offset leads to was never logged by Spark, and is in nobody's way.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from transom.connectors.source import Position
from transom.core.errors import CheckpointError
from transom.core.location import is_remote
from transom.program.checkpoint_folder import names_in, put, read, remove

IN_LOG: Final = "in_log"
"""Where a position says which file of the log leads to it."""

LEAST: Final = 100
"""Tables of a position with fewer entries stay in it."""

LONGEST: Final = 100
"""So many files one after the other at most are to be read; the next one has the whole position."""

KEPT: Final = 2 * LONGEST
"""So many files stay: Spark keeps the offsets of a hundred batches, and the first of them needs as many again."""

_NAME: Final = re.compile(r"([0-9]{1,18})-([0-9a-f]{32})")

Table = dict[str, Any]


@dataclass(frozen=True)
class _Logged:
    """The tables of a position that the file of this number and mark leads to, as the last of `chain` files.

    In these are so many `lines`.
    """

    number: int = -1
    mark: str = ""
    tables: dict[str, Table] = field(default_factory=dict)
    chain: int = 0
    lines: int = 0

    @property
    def file_id(self) -> list[Any]:
        return [self.number, self.mark]


class OffsetLog:
    """Files with long offsets, for the query whose checkpoint is in this folder; whoever plans its batches has one."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.join(folder, "read")
        self._last: dict[str, _Logged] = {}

    def whole(self, name: str, position: Position) -> Position:
        """A position of a source as the source knows it."""
        if IN_LOG not in position:
            return position
        tables = self._logged(name, position).tables
        return {key: value for key, value in position.items() if key != IN_LOG} | {
            key: dict(table) for key, table in tables.items()
        }

    def brief(self, name: str, before: Position, after: Position) -> Position:
        """A position of a source as it is to be logged behind that `before` it, which was."""
        long = {key for key, table in after.items() if isinstance(table, dict) and len(table) >= LEAST}
        if IN_LOG not in before and not long:
            return after
        logged = self._logged(name, before)
        tables = {key: dict(after.get(key, {})) for key in sorted(logged.tables.keys() | long)}
        if tables != logged.tables:
            logged = self._last[name] = self._add(name, logged, tables)
        rest = {key: value for key, value in after.items() if key not in tables}
        return {**rest, IN_LOG: logged.file_id}

    # --- inside ------------------------------------------------------------------------------------------------------

    def _of(self, name: str) -> str:
        return os.path.join(self._folder, quote(name, safe=""))

    def _logged(self, name: str, position: Position) -> _Logged:
        if IN_LOG not in position:
            return _Logged()
        logged = self._last.get(name)
        if logged is None or logged.file_id != position[IN_LOG]:
            logged = self._last[name] = self._read(name, position[IN_LOG])
        return logged

    def _read(self, name: str, last: Any) -> _Logged:
        """The tables of a position: back to a file that has them whole, and on from there."""
        files: list[list[Any]] = []
        step = last
        while step is not None:
            files.append(self._lines(name, step))
            step = files[-1][0]["before"]
        tables: dict[str, Table] = {}
        for head, *changes in reversed(files):
            tables |= {key: {} for key in head["tables"] if key not in tables}
            for key, item, *value in changes:
                if value:
                    tables[key][item] = value[0]
                else:
                    tables[key].pop(item, None)
        number, mark = last
        return _Logged(number, mark, tables, len(files), sum(len(lines) - 1 for lines in files))

    def _lines(self, name: str, named: Any) -> list[Any]:
        file = "-".join(map(str, named)) if isinstance(named, list) else str(named)
        if _NAME.fullmatch(file) is None:
            raise self._damaged(name, "it is not the one that the offsets of Spark belong to")
        data = read(os.path.join(self._of(name), file))
        if data is None or _mark(data) != named[1]:
            what = "is not there" if data is None else "is not what was written"
            raise self._damaged(name, f"the file '{file}' {what}")
        return [json.loads(line) for line in data.splitlines()]

    def _add(self, name: str, logged: _Logged, tables: dict[str, Table]) -> _Logged:
        """A file for what became of the tables: the changes, or the whole where there is much to read by now."""
        begins = logged.chain in (0, LONGEST) or logged.lines >= 2 * sum(map(len, logged.tables.values()))
        old = {} if begins else logged.tables
        changes = [line for key, table in tables.items() for line in _changes(key, old.get(key, {}), table)]
        head = {"before": None if begins else logged.file_id, "tables": list(tables)}
        data = b"".join(json.dumps(line).encode() + b"\n" for line in (head, *changes))
        number, mark, folder = logged.number + 1, _mark(data), self._of(name)
        if not is_remote(folder):
            os.makedirs(folder, exist_ok=True)
        put(os.path.join(folder, f"{number}-{mark}"), data)
        if begins:
            self._tidy(folder, number)
        chain, lines = (0, 0) if begins else (logged.chain, logged.lines)
        return _Logged(number, mark, tables, chain + 1, lines + len(changes))

    def _tidy(self, folder: str, number: int) -> None:
        for file in names_in(folder) if number >= KEPT else ():
            match = _NAME.fullmatch(file)
            if match is not None and int(match[1]) < number - KEPT:
                remove(os.path.join(folder, file))

    def _damaged(self, name: str, why: str) -> CheckpointError:
        return CheckpointError(
            f"'{self._of(name)}' says what has been read of '{name}', and cannot be used: {why}",
            remedy="put the checkpoint back from one copy as a whole, or start with an empty folder",
        )


def _changes(key: str, old: Table, new: Table) -> list[list[Any]]:
    """Lines of the log that lead from one table to another.

    >>> _changes("files", {"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 4})
    [['files', 'b', 3], ['files', 'c', 4]]
    """
    changed: list[list[Any]] = [[key, item, value] for item, value in new.items() if old.get(item) != value]
    return changed + [[key, item] for item in sorted(old.keys() - new.keys())]


def _mark(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
