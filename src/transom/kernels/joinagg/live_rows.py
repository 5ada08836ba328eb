"""The windows of a join-aggregate: the rows alive of all inputs, narrow, in chains by key.

A row keeps what its matches need and nothing else: see rows.py, its end, and the columns that the residual reads.
`head[key * inputs + input]` starts the chain of the rows of an input with a key, youngest first; keys are numbers, so a
chain holds nothing but matches. Rows with a NULL in the key match nothing and are left out at the input gate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Delta, Ends, Int64s, no_int64s
from transom.kernels import scalar
from transom.kernels.chain import enter_chain, leave_chain
from transom.kernels.jit import jit
from transom.kernels.joinagg.rows import GroupedRows
from transom.kernels.joinagg.spec import JoinAggregateSpec
from transom.kernels.kernel import select_rows
from transom.kernels.key_index import KeyIndex
from transom.kernels.keys import encode_keys
from transom.kernels.lifetimes import LifetimeSet
from transom.kernels.row_store import RowStore
from transom.kernels.sound import numbered, owned
from transom.plan.expression import Expression, remap
from transom.state.checks import need, within
from transom.state.slots import grown

NEXT, BACK, CHAIN, TE, CREDIT = range(5)  # columns of `entries`: what a walk along a chain reads lies together


class LifetimeEvents(NamedTuple):
    """What begins and ends in a step, in time order; at one instant what ends comes first: lifetimes are half open."""

    t: Int64s
    slot: Int64s
    sign: Int64s  # 1 begins, -1 ends
    ended: Int64s  # the slots that end, to be released after the step


@dataclass
class LiveRows:
    """`entries[slot, CREDIT]` starts the list of a row's credits, where there are any (see credit_entries.py)."""

    rows: GroupedRows
    entries: Int64s
    read: list[RowStore]  # per input the columns that matches are looked at by
    keys: KeyIndex = field(default_factory=KeyIndex)
    key_rows: Int64s = field(default_factory=no_int64s)
    head: Int64s = field(default_factory=lambda: np.full(64, -1, dtype=np.int64))
    lifetimes: LifetimeSet = field(default_factory=LifetimeSet)

    def check_spec(self, spec: JoinAggregateSpec) -> None:
        """Every row alive is in the chain of its key and input."""
        self.rows.check_spec(spec)
        pool, inputs = self.rows.slots, len(self.read)
        slots = pool.used()
        need(pool.high <= len(self.entries))
        chain = self.entries[slots, CHAIN]
        within(chain, len(self.head))
        need(bool((chain % inputs == self.rows.input[slots]).all()))
        if any(spec.key_columns):
            numbered(chain // inputs, self.keys.slots)
            need(len(self.head) >= len(self.key_rows) * inputs)
            within(self.keys.slots.used(), len(self.key_rows))
            need(np.array_equal(np.bincount(chain // inputs, minlength=len(self.key_rows)), self.key_rows))
        else:
            within(chain, inputs)
        columns = [np.ascontiguousarray(self.entries[:, column]) for column in (NEXT, BACK, CHAIN)]
        owned(self.head, np.arange(len(self.head)), columns[0], columns[2], pool, columns[1])
        for i, store in enumerate(self.read):
            if store.columns:
                within(slots[self.rows.input[slots] == i], store.capacity)
        self.lifetimes.check_slots(pool.mask())

    @staticmethod
    def of(spec: JoinAggregateSpec, credited: bool = False) -> LiveRows:
        read = [RowStore.of([types[c] for c in columns_read(spec, i)]) for i, types in enumerate(spec.input_types)]
        return LiveRows(GroupedRows.of(spec), np.zeros((0, 5 if credited else 4), dtype=np.int64), read)

    def events(self, spec: JoinAggregateSpec, inputs: tuple[Delta, ...], frontier: int) -> LifetimeEvents:
        """Take in the rows of a step, and say what happens in it."""
        ends = Ends()
        for delta in inputs:
            ends += delta.ends
        slots, te = self.lifetimes.leave(ends, frontier)
        end_slots, end_times = [slots], [te]
        new_slots, new_times = [], []
        for i, given in enumerate(inputs):
            delta, slots = self._admit(spec, i, given)
            new_slots.append(slots)
            new_times.append(delta.ta)
            gone = (delta.te < frontier) & (delta.open_id == NO_OPEN_ID)
            end_slots.append(slots[gone])
            end_times.append(delta.te[gone])
            self.lifetimes.add(slots[~gone], delta.te[~gone], delta.open_id[~gone])
        ended = np.concatenate(end_slots)
        slot = np.concatenate([ended, *new_slots])
        t = np.concatenate([*end_times, *new_times])
        sign = np.where(np.arange(len(t)) < len(ended), -1, 1)
        order = np.argsort(t, kind="stable")
        return LifetimeEvents(t[order], slot[order], sign[order], ended)

    def release(self, spec: JoinAggregateSpec, ended: Int64s) -> None:
        """Forget rows, and the keys that they were the last of."""
        if not len(ended):
            return
        if any(spec.key_columns):
            self.keys.forget(leave_keys(self.entries[ended, CHAIN] // len(self.read), self.key_rows))
        for i, store in enumerate(self.read):
            if store.columns:
                store.free(ended[self.rows.input[ended] == i])
        self.rows.release(spec, ended)

    def columns(self, spec: JoinAggregateSpec, members: Int64s) -> pa.RecordBatch:
        """What tuples of rows, members[input, k], are looked at by."""
        arrays: list[pa.Array] = []
        for i, store in enumerate(self.read):
            types = [spec.input_types[i][c] for c in columns_read(spec, i)]
            arrays += store.gather(members[i], types)
        if not arrays:  # a constant
            arrays = [pa.nulls(members.shape[1])]
        return pa.RecordBatch.from_arrays(arrays, names=[str(k) for k in range(len(arrays))])

    def satisfying(self, spec: JoinAggregateSpec, members: Int64s) -> Int64s:
        """Which of the tuples of rows satisfy the residual."""
        assert spec.residual is not None
        kept = scalar.keep(over_read(spec, spec.residual), self.columns(spec, members))
        return np.arange(members.shape[1]) if kept is None else kept.to_numpy().astype(np.int64)

    def _admit(self, spec: JoinAggregateSpec, i: int, delta: Delta) -> tuple[Delta, Int64s]:
        """The rows of an input that can match something, and the slots they are in from now on."""
        key = np.zeros(len(delta), dtype=np.int64)
        if spec.key_columns[i]:
            keys = encode_keys([delta.values.column(c) for c in spec.key_columns[i]], len(delta))
            if keys.null.any():
                delta = select_rows(delta, ~keys.null)
                keys = encode_keys([delta.values.column(c) for c in spec.key_columns[i]], len(delta))
            key, _ = self.keys.number(keys)
            if self.keys.slots.high > len(self.key_rows):
                self.key_rows = grown(self.key_rows, self.keys.slots.high)
                self.head = grown(self.head, len(self.key_rows) * len(self.read), -1)
            join_keys(key, self.key_rows)
        slots = self.rows.admit(spec, i, delta.values)
        if len(self.rows.input) > len(self.entries):
            entries = np.full((len(self.rows.input), self.entries.shape[1]), -1, dtype=np.int64)
            entries[: len(self.entries)] = self.entries
            self.entries = entries
        self.entries[slots, CHAIN] = key * len(self.read) + i
        self.entries[slots, TE] = delta.te
        columns = columns_read(spec, i)
        if columns:
            self.read[i].reserve(len(self.entries))
            self.read[i].write(slots, [delta.values.column(c) for c in columns])
        return delta, slots


def columns_read(spec: JoinAggregateSpec, i: int) -> list[int]:
    """The columns of an input that matches are looked at by."""
    first = sum(map(len, spec.input_types[:i]))
    last = first + len(spec.input_types[i])
    return [column - first for column in spec.read if first <= column < last]


def over_read(spec: JoinAggregateSpec, expression: Expression) -> Expression:
    """Over those columns of all inputs alone."""
    return remap(expression, {column: k for k, column in enumerate(spec.read)})


@jit
def join_keys(numbers, counts):  # type: ignore[no-untyped-def]
    for number in numbers:
        counts[number] += 1


@jit
def leave_keys(numbers, counts):  # type: ignore[no-untyped-def]
    """Count down, and say which keys nobody has any more."""
    left = np.empty(len(numbers), dtype=np.int64)
    count = 0
    for number in numbers:
        counts[number] -= 1
        if counts[number] == 0:
            left[count] = number
            count += 1
    return left[:count].copy()


@jit
def link(slot, entries, head):  # type: ignore[no-untyped-def]
    """Put a row at the head of its chain."""
    enter_chain(slot, entries[slot, CHAIN], head, entries, NEXT, BACK)


@jit
def unlink(slot, entries, head):  # type: ignore[no-untyped-def]
    leave_chain(slot, entries[slot, CHAIN], head, entries, NEXT, BACK)


@jit
def first_tuple(slot, index, entries, head):  # type: ignore[no-untyped-def]
    """The first tuple of rows alive that a row is in, into place[input]; False where there is none."""
    inputs = len(index)
    chain = entries[slot, CHAIN]
    own_input = chain % inputs
    for i in range(inputs):
        index[i] = slot if i == own_input else head[chain - own_input + i]
        if index[i] < 0:
            return False
    return True


@jit
def next_tuple(slot, index, entries, head):  # type: ignore[no-untyped-def]
    """The tuple after that one: the product of the chains of the other inputs, the last of them fastest."""
    own_input = entries[slot, CHAIN] % len(index)
    fastest = len(index) - 1 if own_input < len(index) - 1 else len(index) - 2
    index[fastest] = entries[index[fastest], NEXT]
    return index[fastest] >= 0 or next_round(slot, fastest, index, entries, head)


@jit
def next_round(slot, i, index, entries, head):  # type: ignore[no-untyped-def]
    """The chain of input i is at its end: it begins again, with the next row of the input before it."""
    chain = entries[slot, CHAIN]
    own_input = chain % len(index)
    while True:
        index[i] = head[chain - own_input + i]
        i -= 2 if i - 1 == own_input else 1
        if i < 0:
            return False
        index[i] = entries[index[i], NEXT]
        if index[i] >= 0:
            return True


@jit
def candidates(at, going, index, events, ends_too, entries, head, limit):  # type: ignore[no-untyped-def]
    """Tuples of matching rows, up to `limit`, for the events from number `at` on; chains change as events pass.

    `going`: event `at` was begun before, and `index` is its next tuple. Gives, for each tuple, its event and its rows,
    where to go on, and whether in the middle of an event. Where rows only end, there are tuples if `ends_too`.
    """
    t, slot, sign, _ = events
    size = 1024
    tuple_event = np.empty(size, dtype=np.int64)
    tuples = np.empty((len(index), size), dtype=np.int64)
    count = 0
    while at < len(t):
        s = slot[at]
        if not going:
            if sign[at] < 0:
                unlink(s, entries, head)
            going = (sign[at] > 0 or ends_too) and first_tuple(s, index, entries, head)
        while going:
            if count == limit:
                return tuple_event[:count], tuples[:, :count], at, True
            if count == size:
                size *= 2
                more_event = np.empty(size, dtype=np.int64)
                more_event[:count] = tuple_event
                tuple_event = more_event
                more = np.empty((len(index), size), dtype=np.int64)
                more[:, :count] = tuples
                tuples = more
            tuple_event[count] = at
            tuples[:, count] = index
            count += 1
            going = next_tuple(s, index, entries, head)
        if sign[at] > 0:
            link(s, entries, head)
        at += 1
    return tuple_event[:count], tuples[:, :count], at, False
