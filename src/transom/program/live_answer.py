"""What people see of an answer while it comes: the newest rows, the relation as far as it is known, and lifetimes.

All of it is bounded, and made of what a tap has kept: rows that went by before are not known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from transom.connectors.row_text import value_text
from transom.connectors.tapped import AnswerTap, Newest
from transom.core.time import FOREVER

MOST_SHOWN: Final = 200
"""Rows, and bars."""

_MOST_COLUMNS: Final = 60
_MOST_LETTERS: Final = 200

Cells = tuple[str | None, ...]
Alive = tuple[Cells, int | None, int | None]
"""A row, from when, and until when."""


@dataclass(frozen=True)
class Bar:
    """A row that is alive from `begin` to `end`, in microseconds since 1970. `begin` None: before anybody looked; `end`
    None: not known yet. Of a row of a stream they are the same."""

    label: str
    begin: int | None
    end: int | None


@dataclass(frozen=True)
class LiveAnswer:
    """`rows` are the newest that were written, the last one first; `table` is the relation as it is now, None of a
    stream. `partial`: rows went by that are not known here, so that the table may lack some."""

    form: str
    columns: tuple[str, ...]
    rows: tuple[Cells, ...]
    table_columns: tuple[str, ...]
    table: tuple[Cells, ...] | None
    table_rows: int
    bars: tuple[Bar, ...]
    passed: int
    partial: bool
    by_tasks: bool


class LiveView:
    """Looks at a tap again and again; the answer is made anew where there is more.

    >>> from transom.connectors.connector import Opening
    >>> tap = AnswerTap()
    >>> tap.watch()
    >>> rows = pa.table({"change": ["+", "+", "-"], "at": pa.array([1, 2, 5], pa.timestamp("us")), "a": [7, 8, 7]})
    >>> tap.opened(Opening(rows.schema, form="changes"))
    >>> tap.write(rows.to_batches()[0])
    >>> LiveView(tap).look(0).table, LiveView(tap).look(0).bars
    ((('8',),), (Bar(label='7', begin=1, end=5), Bar(label='8', begin=2, end=None)))
    """

    def __init__(self, tap: AnswerTap) -> None:
        self._tap = tap
        self._version = -1
        self._last_made: LiveAnswer | None = None
        self._shown: dict[str, int] = {}
        """Rows of an answer that is shown whole, and since when they have been there."""
        self._gone: deque[Bar] = deque(maxlen=MOST_SHOWN)
        tap.watch()

    @property
    def version(self) -> int:
        return self._tap.version

    def look(self, now: int) -> LiveAnswer:
        """`now`: the clock in microseconds, by which an answer is seen to change that comes without times."""
        version = self._tap.version
        if self._last_made is None or version != self._version:
            self._version = version
            self._last_made = self._made(self._tap.newest(), now)
        return self._last_made

    def _made(self, newest: Newest, now: int) -> LiveAnswer:
        form = newest.opening.form or ""
        names = tuple(newest.opening.schema.names[:_MOST_COLUMNS])
        batches = _joined(newest.rows)
        if form == "stream":
            batches = [batch.slice(max(len(batch) - MOST_SHOWN, 0)) for batch in batches]
        rows = [row for batch in batches for row in cells(batch)]
        own = {"stream": 1, "changes": 2, "net": 1}.get(form, 0)
        columns = names[:-2] if form == "lifetimes" else names[own:]
        table: tuple[Cells, ...] | None = None
        count = 0
        bars: tuple[Bar, ...] = ()
        match form:
            case "latest":
                table, count = self._snapshot(newest)
                bars = self._since(table, now)
                rows = []
            case "changes":
                instants = _instants(batches, 1)
                lifetimes, alive = _folded(zip(rows, instants, strict=True))
                table, count, bars = tuple(alive[-MOST_SHOWN:]), len(alive), _labelled(lifetimes[-MOST_SHOWN:])
            case "net":
                alive = _by_key(rows, newest)
                table, count = tuple(alive[-MOST_SHOWN:]), len(alive)
            case "lifetimes":
                width = len(newest.opening.schema)
                spans = list(zip(_instants(batches, width - 2), _instants(batches, width - 1), strict=True))
                lifetimes = [(row[:-2], begin, _end(end)) for row, (begin, end) in zip(rows, spans, strict=True)]
                bars = _labelled(sorted(lifetimes, key=lambda lifetime: lifetime[1] or 0)[-MOST_SHOWN:])
            case "stream":
                marks = zip(rows, _instants(batches, 0), strict=True)
                bars = _labelled((row[1:], at, at) for row, at in marks)
        return LiveAnswer(
            form,
            names,
            tuple(reversed(rows[-MOST_SHOWN:])),
            columns,
            table,
            count,
            bars,
            newest.passed,
            newest.missed,
            newest.by_tasks,
        )

    def _snapshot(self, newest: Newest) -> tuple[tuple[Cells, ...], int]:
        if newest.snapshot is None:
            return (), 0
        shown = self._tap.view.snapshot(newest.snapshot)
        return tuple(cells(shown.slice(0, MOST_SHOWN))), len(shown)

    def _since(self, table: Sequence[Cells], now: int) -> tuple[Bar, ...]:
        """Since when a row has been seen, by the clock, of an answer without times."""
        there = {label(row) for row in table}
        for text in [text for text in self._shown if text not in there]:
            self._gone.append(Bar(text, self._shown.pop(text), now))
        for text in there:
            self._shown.setdefault(text, now)
        alive = [Bar(text, begin, None) for text, begin in self._shown.items()]
        return tuple(sorted([*self._gone, *alive], key=lambda bar: bar.begin or 0)[-MOST_SHOWN:])


def label(row: Cells) -> str:
    """A row as it stands beside its bar."""
    return ", ".join("NULL" if value is None else value for value in row)[:_MOST_LETTERS]


def _labelled(lifetimes: Iterable[Alive]) -> tuple[Bar, ...]:
    return tuple(Bar(label(row), begin, end) for row, begin, end in lifetimes)


def cells(batch: pa.RecordBatch) -> list[Cells]:
    """The rows as texts, which are cut where they are long."""
    columns = [
        [value if value is None or len(value) <= _MOST_LETTERS else value[:_MOST_LETTERS] + "…" for value in texts]
        for texts in (value_text(column).to_pylist() for column in batch.columns[:_MOST_COLUMNS])
    ]
    return list(zip(*columns, strict=True))


def _joined(rows: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The rows in one piece: small ones would take longer to be called for than to be read."""
    return pa.Table.from_batches(rows).combine_chunks().to_batches() if rows else []


def _instants(rows: Sequence[pa.RecordBatch], column: int) -> list[int | None]:
    return [
        value for batch in rows for value in batch.column(column).cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
    ]


def _end(instant: int | None) -> int | None:
    return None if instant is None or instant >= FOREVER - 1 else instant


def _folded(changes: Iterable[tuple[Cells, int | None]]) -> tuple[list[Alive], list[Cells]]:
    """Lifetimes of rows that come with + and go with -, by their begin; and the rows that are there."""
    open_: dict[Cells, deque[int | None]] = {}
    lifetimes: list[Alive] = []
    for row, at in changes:
        values = row[2:]
        if row[0] == "+":
            open_.setdefault(values, deque()).append(at)
        else:
            begins = open_.get(values)
            lifetimes.append((values, begins.popleft() if begins else None, at))
            if begins is not None and not begins:
                del open_[values]
    alive = [(values, begin, None) for values, begins in open_.items() for begin in begins]
    lifetimes += alive
    lifetimes.sort(key=lambda lifetime: (lifetime[1] if lifetime[1] is not None else lifetime[2]) or 0)
    return lifetimes, [values for values, _, _ in sorted(alive, key=lambda lifetime: lifetime[1] or 0)]


def _by_key(rows: Sequence[Cells], newest: Newest) -> list[Cells]:
    """The row that each key has, of net changes; of a bag the rows that are there."""
    key = newest.opening.key
    names = newest.opening.schema.names
    at = [names.index(name) for name in key] if key is not None else range(1, len(names))
    row_of: dict[Cells, Cells] = {}
    for row in rows:
        of = tuple(row[i] for i in at)
        row_of.pop(of, None)
        if row[0] == "+":
            row_of[of] = row[1:]
    return list(row_of.values())
