"""The net changes of an answer: what a batch has made of its table, told once, when the batch is over.

Rows that came and went within a batch are not told, and of equal rows only how many more or fewer there are. Where the
answer has a key (`answer_key.py`), + is the row that its key has now, in place of the one before if there was one, and
- is told only of a key that has no row any more: one change a key and batch.

Nothing is compared before the batch is over: a step only notes which rows have left of those that were alive before it,
and which have come and are alive after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_HOLDER, Delta, Int64s, SignedDelta
from transom.core.schema import Schema
from transom.core.time import FOREVER
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Step
from transom.kernels.row_store import RowStore
from transom.pipeline.answer import output_schema
from transom.pipeline.direct_changes import AliveRows, Mask, as_compared, cancelled, signs
from transom.pipeline.merge import entering, value_numbers, value_ranks
from transom.planner.answer_key import Key
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
        return NetState(AliveRows(RowStore.of(self.schema.types)))

    def due(self, state: NetState) -> int:
        return state.alive.lifetimes.due

    def write(self, state: NetState, rows: Delta | SignedDelta, step: Step) -> pa.RecordBatch:
        """Nothing yet: see `flush`."""
        if isinstance(rows, SignedDelta):
            entered = np.arange(len(rows)) >= rows.departed
            self._note(state, entered, as_compared(rows.values).columns)
        else:
            self._take(state, rows, step.upto)
        if sum(map(len, state.noted)) > max(MOST_NOTED, 2 * state.netted):
            state.noted = [netted(pa.concat_batches(state.noted))]
            state.netted = len(state.noted[0])
        return self._nothing

    def _take(self, state: NetState, rows: Delta, upto: int) -> None:
        left, te = state.alive.leave(rows.ends, upto, self.schema.types)
        self._note(state, np.zeros(len(te), dtype=np.bool_), left)
        stays = (rows.te >= upto) | (rows.holder != NO_HOLDER)
        if not stays.all():
            which = np.flatnonzero(stays)
            values = rows.values.take(pa.array(which))
            rows = Delta(values, rows.ta[which], rows.te[which], rows.holder[which], rows.upto)
        rows = replace(rows, values=as_compared(rows.values))
        self._note(state, np.ones(len(rows), dtype=np.bool_), rows.values.columns)
        state.alive.keep(rows, np.flatnonzero((rows.te < FOREVER) | (rows.holder != NO_HOLDER)))

    def _note(self, state: NetState, entered: Mask, columns: list[pa.Array]) -> None:
        if len(entered):
            state.noted.append(pa.RecordBatch.from_arrays([signs(entered), *columns], schema=self._out))

    def flush(self, state: NetState) -> pa.RecordBatch:
        """The batch is over: its net changes, those that leave first, each in the order of values."""
        if not state.noted:
            return self._nothing
        rows = netted(pa.concat_batches(state.noted))
        state.noted, state.netted = [], 0
        if self.key is not None:
            rows = _by_key(rows, self.key)
        ranks = value_ranks(rows.columns[1:], len(rows))
        return rows.take(pa.array(np.lexsort((ranks, entering(rows)))))

    @cached_property
    def _out(self) -> pa.Schema:
        return output_schema("net", self.schema)

    @cached_property
    def _nothing(self) -> pa.RecordBatch:
        return empty_batch(self._out)


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
    gone = cancelled(np.zeros(len(rows), dtype=np.int64), values, comes)
    return rows.take(pa.array(np.flatnonzero(~gone))) if gone.any() else rows


def _by_key(rows: pa.RecordBatch, key: Key) -> pa.RecordBatch:
    """Without what has left of keys for which something has entered."""
    comes = entering(rows)
    if comes.all() or not comes.any():
        return rows
    keys: Int64s = (
        value_numbers([rows.column(1 + at) for at in key], len(rows)) if key else np.zeros(len(rows), np.int64)
    )
    replaced = np.zeros(int(keys.max()) + 1, dtype=np.bool_)
    replaced[keys[comes]] = True
    return rows.take(pa.array(np.flatnonzero(comes | ~replaced[keys])))
