"""Changes of an answer whose rows all tell their end when they come: nothing has to be counted.

A row is `+` when it begins and `-` when it ends. Only rows of one instant are compared by value: of equal ones as many
as enter and leave at once are not mentioned. What is kept are the rows alive, whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transom.core.delta import Delta, Ends, Int64s
from transom.core.schema import TIMESTAMP, Schema
from transom.core.time import FOREVER
from transom.kernels.columns import fixed_array
from transom.kernels.kernel import Step
from transom.kernels.keys import normalised
from transom.kernels.lifetimes import LifetimeSet
from transom.kernels.row_store import RowStore
from transom.pipeline.answer import output_schema
from transom.pipeline.merge import value_ranks
from transom.state.checks import need
from transom.state.slots import SlotPool

Mask = npt.NDArray[np.bool_]


@dataclass
class AliveRows:
    """The rows that are to leave, by slot."""

    rows: RowStore
    slots: SlotPool = field(default_factory=SlotPool)
    lifetimes: LifetimeSet = field(default_factory=LifetimeSet)

    def check(self) -> None:
        need(self.rows.capacity >= self.slots.high)
        self.lifetimes.check_slots(self.slots.mask())

    def leave(self, ends: Ends, upto: int, types: Sequence[pa.DataType]) -> tuple[list[pa.Array], Int64s]:
        """The rows that end before `upto`, by these ends or by what they said when they came, and when they do."""
        slots, te = self.lifetimes.leave(ends, upto)
        values = self.rows.gather(slots, types)
        self.rows.free(slots)
        self.slots.give_back(slots)
        return values, te

    def keep(self, rows: Delta, which: Int64s) -> None:
        if not len(which):
            return
        slots = self.slots.take(len(which))
        self.rows.reserve(self.slots.high)
        values = rows.values if len(which) == len(rows) else rows.values.take(pa.array(which))
        self.rows.write(slots, values.columns)
        self.lifetimes.add(slots, rows.te[which], rows.holder[which])


@dataclass(frozen=True)
class DirectChangesEmit:
    """For rows without holders."""

    schema: Schema

    def start(self) -> AliveRows:
        return AliveRows(RowStore.of(self.schema.types))

    def due(self, state: AliveRows) -> int:
        return state.lifetimes.due

    def write(self, state: AliveRows, rows: Delta, step: Step) -> pa.RecordBatch:
        rows = replace(rows, values=as_compared(rows.values))
        left, te = state.leave(Ends(), step.upto, self.schema.types)
        short = np.flatnonzero(rows.te < step.upto)
        state.keep(rows, np.flatnonzero((rows.te >= step.upto) & (rows.te < FOREVER)))
        parts = [left, rows.values.take(pa.array(short)).columns, rows.values.columns]
        columns = [pa.concat_arrays([part[i] for part in parts]) for i in range(len(self.schema))]
        t = np.concatenate([te, rows.te[short], rows.ta])
        entered = np.zeros(len(t), dtype=np.bool_)
        entered[len(te) + len(short) :] = True
        order = _in_order(t, entered, columns)
        taken = pa.array(order)
        arrays = [
            signs(entered[order]),
            fixed_array(TIMESTAMP, t[order], None),
            *(each.take(taken) for each in columns),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._out)

    @cached_property
    def _out(self) -> pa.Schema:
        return output_schema("changes", self.schema)


def as_compared(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Equal rows alike: 0.0 for -0.0, and one NaN."""
    if not any(map(pa.types.is_floating, rows.schema.types)):
        return rows
    return pa.RecordBatch.from_arrays(normalised(rows.columns), schema=rows.schema)


def _in_order(t: Int64s, entered: Mask, columns: list[pa.Array]) -> Int64s:
    """Which of the changes are told, by time; those of one instant by sign and value, without what cancels out.

    >>> _in_order(np.array([5, 5, 3, 5]), np.array([False, False, True, True]), [pa.array([1, 2, 9, 1])]).tolist()
    [2, 1]
    """
    order = np.argsort(t, kind="stable")
    sorted_t = t[order]
    same = sorted_t[1:] == sorted_t[:-1]
    if not same.any():
        return order
    tied = np.zeros(len(t), dtype=np.bool_)
    tied[1:] |= same
    tied[:-1] |= same
    places = np.flatnonzero(tied)
    among = order[places]
    rank = _ranks([column.take(pa.array(among)) for column in columns])
    at, sign = t[among], entered[among]
    kept = ~cancelled(at, rank, sign)
    by = np.lexsort((rank, sign, at))
    told = np.ones(len(t), dtype=np.bool_)
    order[places] = among[by]
    told[places] = kept[by]
    return order[told]


def _ranks(columns: list[pa.Array]) -> Int64s:
    """The place of every row in the order of values; equal rows, equal places."""
    if any(not pa.types.is_integer(column.type) or column.null_count for column in columns):
        return value_ranks(columns, len(columns[0]))
    numbers = [column.to_numpy() for column in columns]
    by = np.lexsort(numbers[::-1])
    differs = np.zeros(len(by), dtype=np.bool_)
    for each in numbers:
        differs[1:] |= each[by[1:]] != each[by[:-1]]
    rank = np.empty(len(by), dtype=np.int64)
    rank[by] = np.cumsum(differs)
    return rank


def cancelled(t: Int64s, rank: Int64s, entered: Mask) -> Mask:
    """Of equal rows of an instant as many that left as entered."""
    by = np.lexsort((entered, rank, t))
    t, rank, signs = t[by], rank[by], entered[by]
    first = np.flatnonzero(np.concatenate([[True], (t[1:] != t[:-1]) | (rank[1:] != rank[:-1])]))
    size = np.diff(np.append(first, len(t)))
    came = np.add.reduceat(signs.astype(np.int64), first)
    left = size - came
    both = np.repeat(np.minimum(came, left), size)
    place = np.arange(len(t)) - np.repeat(first, size)  # in the group: those that left come first
    place -= np.where(signs, np.repeat(left, size), 0)
    found = np.empty(len(t), dtype=np.bool_)
    found[by] = place < both
    return found


def signs(entered: Mask) -> pa.Array:
    """
    >>> signs(np.array([True, False])).to_pylist()
    ['+', '-']
    """
    letters = np.where(entered, ord("+"), ord("-")).astype(np.uint8)
    offsets = np.arange(len(letters) + 1, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(letters), [None, pa.py_buffer(offsets), pa.py_buffer(letters)])
