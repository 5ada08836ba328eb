"""ISTREAM, DSTREAM and the changes of a relation whose rows all know their end when they come: nothing is counted.

Meaning: as `to_stream.py`, but for RSTREAM.
Emits: the same rows in the same order.
Keeps: the rows alive that will end, whole.
Needs: rows without open row ids.
Costs: values are compared only where rows begin at the instant at which others end, or several at one instant. Where
    none do, and rows come in the order of time, an ISTREAM gives the very columns that came.

>>> from transom.core.delta import no_open_ids
>>> from transom.state.open_ids import OpenIdPool
>>> rows = Delta(pa.record_batch({"a": [7, 7]}), np.array([1, 4]), np.array([4, 6]), no_open_ids(2), frontier=9)
>>> kernel = DirectStreamKernel("istream", pa.schema([("a", pa.int64())]))
>>> kernel.step(kernel.start(), (rows,), Step(0, 9, 0, OpenIdPool())).t.tolist()
[1]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.delta import Delta, Ends, Int64s, StreamDelta, no_int64s
from transom.core.schema import CHANGE_COLUMN
from transom.core.time import FOREVER
from transom.kernels.columns import alike, is_text, validity
from transom.kernels.jit import jit
from transom.kernels.kernel import Step
from transom.kernels.keys import encode_keys, normalised, order_words
from transom.kernels.lifetimes import LifetimeSet
from transom.kernels.row_store import RowStore
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

    def leave(self, ends: Ends, frontier: int, types: Sequence[pa.DataType]) -> tuple[list[pa.Array], Int64s]:
        """The rows that end before `frontier`, by these ends or by what they said when they came, and when they do."""
        slots, te = self.lifetimes.leave(ends, frontier)
        values = self.rows.gather(slots, types)
        self.rows.free(slots)
        self.slots.give_back(slots)
        return values, te

    def keep(self, rows: Delta, values: pa.RecordBatch, which: Int64s) -> None:
        """Some of the rows, with these values."""
        if not len(which):
            return
        slots = self.slots.take(len(which))
        self.rows.reserve(self.slots.high)
        self.rows.write(slots, values.columns if len(which) == len(rows) else _picked(values, which))
        self.lifetimes.add(slots, rows.te[which], rows.open_id[which])


@dataclass(frozen=True)
class DirectStreamKernel:
    change: str  # istream, dstream, changes
    schema: pa.Schema

    def start(self) -> AliveRows:
        return AliveRows(RowStore.of(self.schema.types))

    def next_timer(self, state: AliveRows) -> int:
        return state.lifetimes.next_timer

    def step(self, state: AliveRows, inputs: tuple[Delta], step: Step) -> StreamDelta:
        (rows,) = inputs
        values = rows.values
        if self._floating:  # as they are compared
            values = pa.RecordBatch.from_arrays(normalised(values.columns), schema=values.schema)
        slots, te = state.lifetimes.leave(Ends(), step.frontier)
        short = np.flatnonzero(rows.te < step.frontier)
        gone_at, came_at = np.concatenate([te, rows.te[short]]), rows.ta
        # Of what is not emitted only that is looked at which may cancel with what is.
        gone = np.arange(len(gone_at)) if self.change != "istream" else np.flatnonzero(_among(gone_at, came_at))
        came = None if self.change != "dstream" else np.flatnonzero(_among(came_at, gone_at))
        earlier = gone[: np.searchsorted(gone, len(te))]
        parts = [
            state.rows.gather(slots[earlier], self.schema.types) if len(earlier) else None,
            _picked(values, short[gone[len(earlier) :] - len(te)]) if len(earlier) < len(gone) else None,
            values.columns if came is None else _picked(values, came) if len(came) else None,
        ]
        state.rows.free(slots)
        state.slots.give_back(slots)
        state.keep(rows, values, np.flatnonzero((rows.te >= step.frontier) & (rows.te < FOREVER)))
        t = np.concatenate([gone_at[gone], came_at if came is None else came_at[came]])
        entered = np.arange(len(t)) >= len(gone)
        columns = _together([part for part in parts if part is not None], values)
        return self._emitted(columns, t, entered, step.frontier)

    def _emitted(self, columns: list[pa.Array], t: Int64s, entered: Mask, frontier: int) -> StreamDelta:
        order = in_order(t, entered, columns)
        if order is not None:
            if self.change != "changes":
                order = order[entered[order] == (self.change == "istream")]
            taken = pa.array(order)
            columns, t, entered = [column.take(taken) for column in columns], t[order], entered[order]
        out = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        if self.change == "changes":
            out = out.add_column(0, CHANGE_COLUMN, signs(entered))
        return StreamDelta(out, t, frontier)

    @cached_property
    def _floating(self) -> bool:
        return any(map(pa.types.is_floating, self.schema.types))


def _picked(values: pa.RecordBatch, rows: Int64s) -> list[pa.Array]:
    columns: list[pa.Array] = values.take(pa.array(rows)).columns
    return columns


def _together(parts: list[list[pa.Array]], values: pa.RecordBatch) -> list[pa.Array]:
    """The columns of the parts, one behind the other; of none, no rows of `values`."""
    if len(parts) < 2:
        return parts[0] if parts else values.slice(0, 0).columns
    return [pa.concat_arrays(column) for column in zip(*parts, strict=True)]


def _among(these: Int64s, those: Int64s) -> Mask:
    """Whether each of these instants is among those."""
    if not len(these) or not len(those):
        return np.zeros(len(these), dtype=np.bool_)
    if (these[1:] >= these[:-1]).all() and (those[1:] >= those[:-1]).all():
        found: Mask = among(alike(these), alike(those))
        return found
    return np.isin(these, those)


@jit
def among(these, those):  # type: ignore[no-untyped-def]
    """The same, if both are ascending."""
    found = np.zeros(len(these), dtype=np.bool_)
    at = 0
    for i in range(len(these)):
        while at < len(those) and those[at] < these[i]:
            at += 1
        found[i] = at < len(those) and those[at] == these[i]
    return found


def in_order(t: Int64s, entered: Mask, columns: list[pa.Array]) -> Int64s | None:
    """Which of the changes are emitted, by time; those of one instant by sign and value, without what cancels out.

    What left is given before what entered. None: all of them, as they are, no two at one instant.

    >>> in_order(np.array([5, 5, 3, 5]), np.array([False, False, True, True]), [pa.array([1, 2, 9, 1])]).tolist()
    [2, 1]
    """
    if (t[1:] > t[:-1]).all():
        return None
    order = np.argsort(t, kind="stable")
    at, sign = t[order], entered[order]
    compared = _compared(at, sign, order, columns)
    if not len(compared):
        return order
    among = order[compared]
    keys = encode_keys([column.take(pa.array(among)) for column in columns], len(among))
    by, kept = settle(t[among], entered[among], keys.data, keys.offsets)
    emitted = np.ones(len(t), dtype=np.bool_)
    order[compared] = among[by]
    emitted[compared] = kept
    return order[emitted]


def _compared(at: Int64s, sign: Mask, order: Int64s, columns: list[pa.Array]) -> Int64s:
    """The places of rows whose values matter: several that enter or leave at one instant, or such as may cancel out.

    Rows that begin as others end differ most often, and most often in a number: so that is looked at first.
    """
    same = at[1:] == at[:-1]
    if not same.any():
        return no_int64s()
    wanted = np.zeros(len(at), dtype=np.bool_)
    beside = same & (sign[1:] == sign[:-1])
    wanted[1:] |= beside
    wanted[:-1] |= beside
    first = np.flatnonzero(np.concatenate([[True], ~same]))
    left, came = pairs_of(first, sign)  # of one row that left and one that entered; of more, all are compared
    for column in sorted(columns, key=lambda column: is_text(column.type)):
        if not len(left):
            break
        if pa.types.is_decimal(column.type):
            continue
        known = pc.binary_length(column) if is_text(column.type) else column
        words, valid = order_words(known), validity(known)
        alike = words[order[left]] == words[order[came]]
        if valid is not None:
            one, other = valid[order[left]], valid[order[came]]
            alike = (one == other) & (alike | (one == 0))
        left, came = left[alike], came[alike]
    wanted[left] = True
    wanted[came] = True
    bounds = np.append(first, len(at))
    mixed = np.add.reduceat(sign, first, dtype=np.int64)
    size = np.diff(bounds)
    many = (size > 2) & (mixed > 0) & (mixed < size)
    if many.any():
        wanted |= np.repeat(many, size)
    return np.flatnonzero(wanted)


@jit
def pairs_of(first, sign):  # type: ignore[no-untyped-def]
    """The places of the two rows of each instant, given where it begins, that has one that left and one that came."""
    left = np.empty(len(first), dtype=np.int64)
    count = 0
    for i in range(len(first)):
        behind = first[i + 1] if i + 1 < len(first) else len(sign)
        if behind - first[i] == 2 and sign[first[i]] != sign[first[i] + 1]:
            left[count] = first[i]
            count += 1
    return left[:count].copy(), left[:count] + 1


@jit
def settle(t, sign, data, offsets):  # type: ignore[no-untyped-def]
    """An order in which the rows of an instant, what left and then what came, are each by value; and which are emitted.

    Of equal rows as many that came are not emitted as left. Row i has the bytes data[offsets[i]:offsets[i + 1]].
    """
    n = len(t)
    order = np.arange(n)
    spare = np.empty(n, dtype=np.int64)
    kept = np.ones(n, dtype=np.bool_)
    first = 0
    while first < n:
        middle = first
        while middle < n and t[middle] == t[first] and not sign[middle]:
            middle += 1
        behind = middle
        while behind < n and t[behind] == t[first]:
            behind += 1
        sort_part(order, spare, first, middle, data, offsets)
        sort_part(order, spare, middle, behind, data, offsets)
        i = first
        j = middle
        while i < middle and j < behind:
            found = compare(order[i], order[j], data, offsets)
            if found == 0:
                kept[i] = False
                kept[j] = False
            i += found <= 0
            j += found >= 0
        first = behind
    return order, kept


@jit
def sort_part(order, spare, first, behind, data, offsets):  # type: ignore[no-untyped-def]
    """Merges of ever longer runs; equal rows stay as they are."""
    size = 1
    while size < behind - first:
        for left in range(first, behind, 2 * size):
            middle = min(left + size, behind)
            right = min(left + 2 * size, behind)
            i = left
            j = middle
            for k in range(left, right):
                if j == right or (i < middle and compare(order[i], order[j], data, offsets) <= 0):
                    spare[k] = order[i]
                    i += 1
                else:
                    spare[k] = order[j]
                    j += 1
        order[first:behind] = spare[first:behind]
        size *= 2


@jit
def compare(a, b, data, offsets):  # type: ignore[no-untyped-def]
    """Negative, zero or positive as the bytes of row a come before, are or come after those of row b."""
    length = min(offsets[a + 1] - offsets[a], offsets[b + 1] - offsets[b])
    for i in range(length):
        x = data[offsets[a] + i]
        y = data[offsets[b] + i]
        if x != y:
            return -1 if x < y else 1
    return (offsets[a + 1] - offsets[a]) - (offsets[b + 1] - offsets[b])


def signs(entered: Mask) -> pa.Array:
    """
    >>> signs(np.array([True, False])).to_pylist()
    ['+', '-']
    """
    letters = np.where(entered, ord("+"), ord("-")).astype(np.uint8)
    offsets = np.arange(len(letters) + 1, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(letters), [None, pa.py_buffer(offsets), pa.py_buffer(letters)])
