"""What sources have read, kept beside the offsets that Spark logs: a file for each source, to which batches append.

A position names every file that was ever read, so that none is read twice, wherever a new one sorts and however old it
says it is. Spark writes an offset with every batch, so positions that are long are not in it: what a batch adds to one
is appended to a log of its source before the offset says so, and the offset has the length of the log that counts, and
a mark by which it is known. What is behind that was never logged by Spark, and is overwritten.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from transom.connectors.file_target import sync_folder
from transom.connectors.source import Position
from transom.core.errors import CheckpointError

IN_LOG: Final = "in_log"
"""Where a position says how much of the log belongs to it."""

LEAST: Final = 100
"""Tables of a position with fewer entries stay in it."""

Table = dict[str, Any]


@dataclass(frozen=True)
class _Logged:
    """The tables of a position that are in the first `size` bytes of the log."""

    size: int = 0
    mark: str = ""
    tables: dict[str, Table] = field(default_factory=dict)


class OffsetLog:
    """For the query whose checkpoint is in this folder; whoever plans its batches has one."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.join(folder, "read")
        self._known: dict[str, _Logged] = {}

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
        known = self._logged(name, before)
        tables = {key: after.get(key, {}) for key in sorted(known.tables.keys() | long)}
        lines = [line for key, table in tables.items() for line in _changes(key, known.tables.get(key, {}), table)]
        if lines:
            size, mark = self._append(name, known, lines)
            known = self._known[name] = _Logged(size, mark, {key: dict(table) for key, table in tables.items()})
        rest = {key: value for key, value in after.items() if key not in tables}
        return {**rest, IN_LOG: [known.size, known.mark]}

    # --- inside ------------------------------------------------------------------------------------------------------

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, quote(name, safe=""))

    def _logged(self, name: str, position: Position) -> _Logged:
        if IN_LOG not in position:
            return _Logged()
        size, mark = position[IN_LOG]
        known = self._known.get(name)
        if known is None or (known.size, known.mark) != (size, mark):
            known = self._known[name] = self._read(name, size, mark)
        return known

    def _read(self, name: str, size: int, mark: str) -> _Logged:
        tables: dict[str, Table] = {}
        found = ""
        try:
            with open(self._path(name), "rb") as file:
                data = file.read(size)
            for line in data.splitlines(keepends=True):
                found = _mark(found, line)
                key, item, *value = json.loads(line)
                table = tables.setdefault(key, {})
                if value:
                    table[item] = value[0]
                else:
                    table.pop(item, None)
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise self._damaged(name, str(error)) from None
        if len(data) != size or found != mark:
            raise self._damaged(name, "it is not the one that the offsets of Spark belong to")
        return _Logged(size, mark, tables)

    def _append(self, name: str, known: _Logged, lines: Iterable[list[Any]]) -> tuple[int, str]:
        written = [json.dumps(line).encode() + b"\n" for line in lines]
        path = self._path(name)
        try:
            if known.size == 0:
                os.makedirs(self._folder, exist_ok=True)
            with open(path, "r+b" if known.size else "wb") as file:
                file.truncate(known.size)
                file.seek(known.size)
                file.writelines(written)
                file.flush()
                os.fsync(file.fileno())
            if known.size == 0:
                sync_folder(self._folder)
        except OSError as error:
            raise self._damaged(name, str(error)) from None
        mark = known.mark
        for line in written:
            mark = _mark(mark, line)
        return known.size + sum(map(len, written)), mark

    def _damaged(self, name: str, why: str) -> CheckpointError:
        return CheckpointError(
            f"'{self._path(name)}' says what has been read of '{name}', and cannot be used: {why}",
            remedy="put the checkpoint back from one copy as a whole, or start with an empty folder",
        )


def _changes(key: str, old: Table, new: Table) -> list[list[Any]]:
    """Lines of the log that lead from one table to another.

    >>> _changes("files", {"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 4})
    [['files', 'b', 3], ['files', 'c', 4]]
    """
    changed: list[list[Any]] = [[key, item, value] for item, value in new.items() if old.get(item) != value]
    return changed + [[key, item] for item in sorted(old.keys() - new.keys())]


def _mark(before: str, line: bytes) -> str:
    return hashlib.blake2b(before.encode() + line, digest_size=16).hexdigest()
