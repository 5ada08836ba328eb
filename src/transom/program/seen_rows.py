"""Which of the rows that a tap has kept are to be seen, and when each of them was there; worked out by columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.connectors.row_text import value_text
from transom.core.delta import Int64s, no_int64s
from transom.core.time import FOREVER
from transom.kernels.columns import text_parts
from transom.kernels.seen_changes import lifetimes_of_changes

UNKNOWN: Final = int(np.iinfo(np.int64).min)
"""An instant that is not known."""

_MOST_CODES: Final = 1 << 62


@dataclass(frozen=True)
class Seen:
    """Rows by their places. `newest` are the last ones; `alive` is the relation as it is now, of which there are
    `count` rows; `lived` are rows that were there from `begin` to `end`."""

    newest: Int64s
    alive: Int64s
    count: int
    lived: Int64s
    begin: Int64s
    end: Int64s


def seen_rows(form: str, kept: pa.RecordBatch, key: Sequence[str] | None, most: int, most_alive: int) -> Seen:
    """At most so many of each, but of those that are alive.

    >>> at = pa.array([1, 2, 5], pa.timestamp("us"))
    >>> seen = seen_rows("changes", pa.record_batch({"change": ["+", "+", "-"], "at": at, "a": [7, 8, 7]}), None, 2, 3)
    >>> seen.alive.tolist(), seen.lived.tolist(), seen.begin.tolist(), seen.end.tolist() == [5, UNKNOWN]
    ([1], [2, 1], [1, 2], True)
    """
    newest = np.arange(max(len(kept) - most, 0), len(kept))
    nothing = no_int64s()
    match form:
        case "changes":
            return _of_changes(kept, newest, most, most_alive)
        case "net":
            at = range(1, kept.num_columns) if key is None else [kept.schema.names.index(name) for name in key]
            alive = _last_of_each(kept, numbered([kept.column(i) for i in at]))
            return Seen(newest, alive[-most_alive:], len(alive), nothing, nothing, nothing)
        case "lifetimes":
            begin, end = (_instants(kept.column(kept.num_columns - i)) for i in (2, 1))
            lived = np.argsort(begin, kind="stable")[-most:]
            end = np.where(end >= FOREVER - 1, UNKNOWN, end)
            return Seen(newest, nothing, 0, lived, begin[lived], end[lived])
        case "stream":
            instants = _instants(kept.column(0))[newest]
            return Seen(newest, nothing, 0, newest, instants, instants)
    return Seen(newest, nothing, 0, nothing, nothing, nothing)


def _of_changes(kept: pa.RecordBatch, newest: Int64s, most: int, most_alive: int) -> Seen:
    """Lifetimes of rows that come with + and go with -, by their begin; and the rows that are there."""
    begins, instants = _begins(kept), _instants(kept.column(1))
    began, there = lifetimes_of_changes(numbered(kept.columns[2:]), begins)
    ended = np.flatnonzero(~begins)
    alive = np.flatnonzero(there)
    alive = alive[np.argsort(instants[alive], kind="stable")]
    begin = np.append(instants, UNKNOWN)[np.concatenate([began[ended], alive])]
    end = np.append(instants[ended], np.full(len(alive), UNKNOWN))
    last = np.argsort(np.where(begin == UNKNOWN, end, begin), kind="stable")[-most:]
    return Seen(newest, alive[-most_alive:], len(alive), np.append(ended, alive)[last], begin[last], end[last])


def _last_of_each(kept: pa.RecordBatch, numbers: Int64s) -> Int64s:
    """The row that each key has: the last one, if it came."""
    last = len(kept) - 1 - np.unique(numbers[::-1], return_index=True)[1]
    last.sort()
    return last[_begins(kept)[last]]


def numbered(columns: Sequence[pa.Array]) -> Int64s:
    """The same number for equal rows.

    >>> numbered([pa.array([5, None, 5, None]), pa.array([[1], [], [1], [2]])]).tolist()
    [0, 4, 0, 5]
    """
    numbers, size = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        values = value_text(column) if pa.types.is_nested(column.type) else column
        codes = pc.dictionary_encode(values, null_encoding="encode")
        more = len(codes.dictionary)
        if size * more > _MOST_CODES:
            numbers, size = np.unique(numbers, return_inverse=True)[1], len(numbers)
        numbers, size = numbers * more + codes.indices.to_numpy(), size * more
    return numbers


def _begins(kept: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """Of changes, which of them say that a row comes."""
    column = kept.column(0)
    offsets, letters = text_parts(column if pa.types.is_string(column.type) else column.cast(pa.string()))
    begins: npt.NDArray[np.bool_] = letters[offsets[:-1]] == ord("+")
    return begins


def _instants(column: pa.Array) -> Int64s:
    micros = column.cast(pa.timestamp("us")).cast(pa.int64())
    instants: Int64s = (micros.fill_null(UNKNOWN) if micros.null_count else micros).to_numpy()
    return instants
