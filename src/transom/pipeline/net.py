"""The net changes of an answer: what a batch has made of its table, emitted once, when the batch is over.

Rows that came and went within a batch are left out, and of equal rows only the difference in number counts. Where the
answer has a key (`answer_key.py`), + is the row that its key has now, in place of the one before if there was one, and
- is emitted only of a key that has no row any more: one change a key and batch.

Nothing is compared before the batch is over: a step only notes which rows have left of those that were alive before it,
and which have come and are alive after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Changelog, Delta, Int64s
from transom.core.schema import Schema
from transom.core.time import FOREVER
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Step
from transom.kernels.keys import normalised
from transom.kernels.operator import Key
from transom.kernels.to_stream.direct_stream import AliveRows, Mask, signs
from transom.pipeline.answer import held_output
from transom.pipeline.merge import entering, value_numbers
from transom.state.checks import need

MOST_NOTED: Final = 1 << 17
"""From so many noted rows on, what cancels out among them is forgotten before the batch is over."""


@dataclass
class NetState:
    """The rows that are to leave, and what was noted in the batch: nothing cancels out of the first `netted`."""

    alive: AliveRows
    noted: list[pa.RecordBatch] = field(default_factory=list)
    netted: int = 0

    def check(self) -> None:
        need(not self.noted and not self.netted)  # a batch is over when it is saved


@dataclass(frozen=True)
class NetEmit:
    schema: Schema
    key: Key | None

    def start(self) -> NetState:
        return NetState(AliveRows.of(self.schema.held().types))

    def next_timer(self, state: NetState) -> int:
        return state.alive.lifetimes.next_timer

    def write(self, state: NetState, rows: Delta | Changelog, step: Step) -> pa.RecordBatch:
        """Note the rows; what they come to is written by `flush`."""
        if isinstance(rows, Changelog):
            entered = np.arange(len(rows)) >= rows.departed
            emitted = [signs(entered), *as_compared(rows.values).columns]
            # Here a step has all that came and went within it.
            state.noted.append(netted(pa.RecordBatch.from_arrays(emitted, schema=self._out)))
        else:
            self._take(state, rows, step.frontier)
        if sum(map(len, state.noted)) > max(MOST_NOTED, 2 * state.netted):
            state.noted = [self._netted(state)]
            state.netted = len(state.noted[0])
        return self._nothing

    def _take(self, state: NetState, rows: Delta, frontier: int) -> None:
        left, te = state.alive.leave(rows.ends, frontier, self.schema.held().types)
        self._note(state, np.zeros(len(te), dtype=np.bool_), left)
        stays = (rows.te >= frontier) | (rows.open_id != NO_OPEN_ID)
        if not stays.all():
            which = np.flatnonzero(stays)
            values = rows.values.take(pa.array(which))
            rows = Delta(values, rows.ta[which], rows.te[which], rows.open_id[which], rows.frontier)
        rows = replace(rows, values=as_compared(rows.values))
        self._note(state, np.ones(len(rows), dtype=np.bool_), rows.values.columns)
        state.alive.keep(rows, rows.values.columns, np.flatnonzero((rows.te < FOREVER) | (rows.open_id != NO_OPEN_ID)))

    def _note(self, state: NetState, entered: Mask, columns: list[pa.Array]) -> None:
        if len(entered):
            state.noted.append(pa.RecordBatch.from_arrays([signs(entered), *columns], schema=self._out))

    def flush(self, state: NetState) -> pa.RecordBatch:
        """The batch is over: its net changes. As none depends on another, they are in no order."""
        if not state.noted:
            return self._nothing
        rows = self._netted(state)
        state.noted, state.netted = [], 0
        return rows if self.key is None else upserts(rows, self.key)

    def _netted(self, state: NetState) -> pa.RecordBatch:
        rows = pa.concat_batches(state.noted)
        return netted(rows) if self.key is None else netted_by_key(rows, self.key)

    @cached_property
    def _out(self) -> pa.Schema:
        return held_output("net", self.schema)

    @cached_property
    def _nothing(self) -> pa.RecordBatch:
        return empty_batch(self._out)


def as_compared(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Equal rows alike: 0.0 for -0.0, and one NaN."""
    if not any(map(pa.types.is_floating, rows.schema.types)):
        return rows
    return pa.RecordBatch.from_arrays(normalised(rows.columns), schema=rows.schema)


def cancelled(values: Int64s, entered: Mask) -> Mask:
    """Of equal rows as many that left as entered."""
    by = np.lexsort((entered, values))
    values, came_in = values[by], entered[by]
    first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    size = np.diff(np.append(first, len(values)))
    came = np.add.reduceat(came_in.astype(np.int64), first)
    left = size - came
    both = np.repeat(np.minimum(came, left), size)
    index = np.arange(len(values)) - np.repeat(first, size)  # in the group: those that left come first
    index -= np.where(came_in, np.repeat(left, size), 0)
    flags = np.empty(len(values), dtype=np.bool_)
    flags[by] = index < both
    return flags


def netted(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Of equal rows as many of those that left as of those that entered are not mentioned.

    >>> rows = pa.record_batch({"change": ["+", "-", "+", "-", "+"], "a": [1, 2, 2, 1, 1]})
    >>> netted(rows).to_pylist()
    [{'change': '+', 'a': 1}]
    """
    comes = entering(rows)
    if comes.all() or not comes.any():
        return rows
    values = value_numbers(rows.columns[1:], len(rows))
    gone = cancelled(values, comes)
    return rows.take(pa.array(np.flatnonzero(~gone))) if gone.any() else rows


def netted_by_key(rows: pa.RecordBatch, key: Key) -> pa.RecordBatch:
    """Of every key the row that left first and the one that entered last, unless they are equal.

    Changes of a key come in their order: one that begins with a departure had a row before. So whole rows are compared
    only where a key had one before and has one now.

    >>> rows = pa.record_batch({"change": [*"-+-++-"], "k": [1, 1, 1, 1, 2, 2], "a": [5, 6, 6, 5, 0, 0]})
    >>> netted_by_key(rows, (0,)).num_rows, netted_by_key(rows.slice(0, 3), (0,)).to_pylist()
    (0, [{'change': '-', 'k': 1, 'a': 5}])
    """
    comes = entering(rows)
    if comes.all() or not comes.any():
        return rows
    keys = _key_numbers(rows, key)
    indexes = np.arange(len(rows))
    first, last = np.empty((2, int(keys.max()) + 1), dtype=np.int64)
    first[keys[::-1]] = indexes[::-1]
    last[keys] = indexes
    had, has = ~comes[first], comes[last]
    both = np.flatnonzero(had & has)
    if len(both):
        pairs = rows.take(pa.array(np.concatenate([first[both], last[both]])))
        before, now = value_numbers(pairs.columns[1:], len(pairs)).reshape(2, -1)
        had[both], has[both] = (before != now,) * 2
    return rows.take(pa.array(np.concatenate([first[had], last[has]])))


def upserts(rows: pa.RecordBatch, key: Key) -> pa.RecordBatch:
    """The rows without what has left of keys for which something has entered.

    >>> upserts(pa.record_batch({"change": ["-", "-", "+"], "k": [1, 2, 2], "a": [5, 6, 7]}), (0,)).to_pylist()
    [{'change': '-', 'k': 1, 'a': 5}, {'change': '+', 'k': 2, 'a': 7}]
    """
    comes = entering(rows)
    if comes.all() or not comes.any():
        return rows
    keys = _key_numbers(rows, key)
    replaced = np.zeros(int(keys.max()) + 1, dtype=np.bool_)
    replaced[keys[comes]] = True
    return rows.take(pa.array(np.flatnonzero(comes | ~replaced[keys])))


def _key_numbers(rows: pa.RecordBatch, key: Key) -> Int64s:
    return value_numbers([rows.column(1 + at) for at in key], len(rows)) if key else np.zeros(len(rows), np.int64)
