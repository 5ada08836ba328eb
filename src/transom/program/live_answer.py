"""What people see of an answer while it comes: the newest rows, the relation as far as it is known, and lifetimes.

All of it is bounded, and made of what a tap has kept: rows that went by before are not known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from operator import add
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from transom.connectors.row_text import value_text
from transom.connectors.tapped import AnswerTap, Newest
from transom.core.delta import Int64s
from transom.program.seen_rows import UNKNOWN, seen_rows

MOST_SHOWN: Final = 200
"""Rows of a relation."""

MOST_NEW: Final = 100
"""Rows that were written last, and bars: they change again and again."""

_MOST_COLUMNS: Final = 60
_MOST_LETTERS: Final = 200

_TIMES: Final = {"stream": (1, 0), "changes": (2, 0), "net": (1, 0), "lifetimes": (0, 2)}
"""How many columns before the values of a row, and behind them, say when it is there; of other forms none do."""

_RELATIONS: Final = ("latest", "changes", "net")
"""Forms of which it is known what the relation is now."""

Cells = tuple[str | None, ...]


class Bar(NamedTuple):
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
        self._gone: deque[Bar] = deque(maxlen=MOST_NEW)
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
        form, names = newest.opening.form or "", newest.opening.schema.names
        before, behind = _TIMES.get(form, (0, 0))
        width = min(len(names) - behind, _MOST_COLUMNS - behind)
        columns = (*names[:width], *names[len(names) - behind :])
        table: tuple[Cells, ...] | None = () if form in _RELATIONS else None
        count = 0
        rows: list[Cells] = []
        bars: tuple[Bar, ...] = ()
        if form == "latest":
            table, count = self._snapshot(newest)
            bars = self._since(table, now)
        elif newest.rows:
            kept = pa.concat_batches(newest.rows)
            seen = seen_rows(form, kept, newest.opening.key, MOST_NEW, MOST_SHOWN)
            values = kept.select([*range(before, width)])
            rows, alive, lived = _cells_of(values, seen.newest, seen.alive, seen.lived)
            if before or behind:
                times = [*range(before), *range(len(names) - behind, len(names))]
                when = cells(kept.select(times).take(pa.array(seen.newest)))
                rows = list(map(add, when, rows) if before else map(add, rows, when))
            if table is not None:
                table, count = tuple(alive), seen.count
            bars = tuple(map(Bar, map(label, lived), _known(seen.begin), _known(seen.end)))
        return LiveAnswer(
            form,
            columns,
            tuple(reversed(rows)),
            columns[before : len(columns) - behind],
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
        return tuple(sorted([*self._gone, *alive], key=lambda bar: bar.begin or 0)[-MOST_NEW:])


def label(row: Cells) -> str:
    """A row as it stands beside its bar."""
    texts = ["NULL" if value is None else value for value in row] if None in row else row
    return ", ".join(texts)[:_MOST_LETTERS]  # type: ignore[arg-type]


def cells(batch: pa.RecordBatch) -> list[Cells]:
    """The rows as texts, which are cut where they are long."""
    return list(zip(*map(_texts, batch.columns[:_MOST_COLUMNS]), strict=True))


def _texts(column: pa.Array) -> list[str | None]:
    texts: list[str | None] = value_text(column).to_pylist()
    if pa.types.is_primitive(column.type):
        return texts
    return [text if text is None or len(text) <= _MOST_LETTERS else text[:_MOST_LETTERS] + "…" for text in texts]


def _cells_of(values: pa.RecordBatch, *wanted: Int64s) -> list[list[Cells]]:
    """The rows at these places as texts, which are made once of each."""
    some = np.zeros(len(values), np.bool_)
    for places in wanted:
        some[places] = True
    shown = cells(values.take(pa.array(np.flatnonzero(some))))
    number = np.cumsum(some) - 1
    return [[shown[i] for i in number[places].tolist()] for places in wanted]


def _known(instants: Int64s) -> list[int | None]:
    return [None if at == UNKNOWN else at for at in instants.tolist()]
