"""Which rows of an input count, and when: what docs/semantics.md says under "Progress", row by row in source order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from transom.core.time import BEGINNING, FOREVER, floor_to_tick, from_datetime
from transom.plan.catalogue import StreamDefinition, TableDefinition
from transom.runtimes.reference.history import Row, grouped


@dataclass(frozen=True)
class TimedRow:
    """<v, t>; the values are those of the declared columns, as they were written."""

    values: Row
    t: int


@dataclass(frozen=True)
class Lifetime:
    """<v, ta, te>; an open end is None. Ghosts are never made."""

    values: Row
    ta: int
    te: int | None


@dataclass(frozen=True)
class AdmittedStream:
    rows: tuple[TimedRow, ...]
    late: int
    rejected: int


@dataclass(frozen=True)
class AdmittedTable:
    """`instants` are the times of the changes that counted; a static table has none and is alive from the origin."""

    lifetimes: tuple[Lifetime, ...]
    instants: tuple[int, ...]
    late: int = 0
    rejected: int = 0


@dataclass(frozen=True)
class TimeSettings:
    """The session's tick, and its origin where the user has set one."""

    tick: int = 1
    origin: int | None = None

    def instant(self, value: datetime | None) -> int | None:
        """The instant of a timestamp, floored to the tick; None when the row must be rejected."""
        if value is None:
            return None
        exact = from_datetime(value)
        floored = floor_to_tick(exact, self.tick)
        if exact >= FOREVER or floored < BEGINNING:
            return None
        if self.origin is not None and floored < floor_to_tick(self.origin, self.tick):
            return None
        return floored


def admit(rows: Sequence[Row], definition: StreamDefinition | TableDefinition, clock: TimeSettings) -> AdmittedStream:
    """The rows that are neither rejected nor late, in stream order: by time, those of one instant as they arrived."""
    assert definition.time is not None
    at = position(definition, definition.time.column)
    admitted: list[TimedRow] = []
    late = rejected = 0
    greatest: int | None = None
    for row in rows:
        t = clock.instant(row[at])
        if t is None or lacks(row, definition):
            rejected += 1
        elif greatest is not None and t < floor_to_tick(greatest - definition.time.bound, clock.tick):
            late += 1
        else:
            admitted.append(TimedRow(tuple(row), t))
            greatest = t if greatest is None else max(greatest, t)
    return AdmittedStream(tuple(sorted(admitted, key=lambda row: row.t)), late, rejected)


def admit_table(rows: Sequence[Row], definition: TableDefinition, clock: TimeSettings) -> AdmittedTable:
    """The lifetimes of a changing table's rows. A change without a meaning (a '-' without its row) is rejected."""
    changes = admit(rows, definition, clock)
    key = [position(definition, name) for name in definition.primary_key]
    sign = None if definition.change_column is None else position(definition, definition.change_column)
    # Without a primary key a row is known by all that it says of the world: not by when, not by the sign.
    hidden = {sign, position(definition, definition.time.column) if definition.time else None}
    identity = key or [i for i in range(len(definition.columns)) if i not in hidden]
    alive: dict[Row, list[TimedRow]] = {}
    ended: list[Lifetime] = []
    instants: list[int] = []
    rejected = changes.rejected
    for change in changes.rows:
        sort = "+" if sign is None else change.values[sign]
        who = grouped(change.values[i] for i in identity)
        present = alive.setdefault(who, [])
        nameless = bool(key) and None in who
        if nameless or sort not in ("+", "-") or (sort == "-" and not present):
            rejected += 1
            continue
        instants.append(change.t)
        if present and (sort == "-" or key):
            gone = present.pop()
            ended.append(Lifetime(gone.values, gone.t, change.t))
        if sort == "+":
            present.append(change)
    still = [Lifetime(row.values, row.t, None) for rows_ in alive.values() for row in rows_]
    lifetimes = tuple(life for life in ended + still if life.te is None or life.ta < life.te)
    return AdmittedTable(lifetimes, tuple(instants), changes.late, rejected)


def lacks(row: Row, definition: StreamDefinition | TableDefinition) -> bool:
    """Whether a row has no value where it must have one. A '-' says by its primary key alone what it takes away."""
    sign = definition.change_column if isinstance(definition, TableDefinition) and definition.primary_key else None
    if sign is not None and row[position(definition, sign)] == "-":
        return False
    return any(row[position(definition, name)] is None for name in definition.not_null)


def position(definition: StreamDefinition | TableDefinition, name: str) -> int:
    return [column.name.lower() for column in definition.columns].index(name.lower())
