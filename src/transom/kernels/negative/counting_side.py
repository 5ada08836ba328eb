"""Counted rows: a side of a join under negative tuples whose rows depart in any order.

Meaning: the rows there are of one input, found by the hash of their key; one that departs is found by its value.
Emits: nothing; the driver in `join.py` does.
Keeps: each distinct row once with its count, in a number that is free again when the last of it has departed.
Needs: nothing.
Costs: a look-up of the whole row whenever it arrives and departs; O(1) to enter and to leave a chain.

>>> side = CountedRows.of([pa.int64()], keyed=False)
>>> rows = Changelog(pa.record_batch({"k": [1, 2, 1]}), np.array([7, 3, 4]), 1, 9)
>>> changes = side.take(rows, [rows.values.column(0)])
>>> changes.departed.tolist(), changes.arrived.tolist()
([0], [1, 0])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.core.delta import Changelog, Int64s
from transom.kernels.chain import enter_chain
from transom.kernels.jit import jit
from transom.kernels.key_index import KeyIndex
from transom.kernels.keys import encode_keys
from transom.kernels.negative.events import Changes, time_order
from transom.kernels.negative.join_keys import chains, key_hashes, key_nulls
from transom.kernels.negative.pair_match import BEFORE, CHAIN, COUNT, HASH, Chains
from transom.kernels.row_store import RowStore, TextColumn
from transom.kernels.sound import belong, listed
from transom.state.checks import need, within

LEAST = 64


@dataclass
class CountedRows:
    """The number of a row is its position. The last column of `rows` holds the key's bytes if `keyed`."""

    rows: RowStore
    keyed: bool
    values: KeyIndex = field(default_factory=KeyIndex)
    head: Int64s = field(default_factory=lambda: np.full(2 * LEAST, -1, dtype=np.int64))
    entries: Int64s = field(default_factory=lambda: np.zeros((LEAST, 4), dtype=np.int64))

    def check(self) -> None:
        high = self.values.slots.high
        need(
            high <= len(self.entries) <= self.rows.capacity
            and len(self.head) & (len(self.head) - 1) == 0 < len(self.head)
        )
        need(not self.keyed or isinstance(self.rows.columns[-1], TextColumn))
        within(self.entries[:, COUNT], 1 << 40)
        linked = listed(self.head, self.entries[:, CHAIN], len(self.entries), self.entries[:, BEFORE])
        used = np.zeros(len(self.entries), dtype=np.bool_)
        used[self.values.slots.used()] = True
        need(bool((linked == used).all() and ((self.entries[:, COUNT] > 0) == used).all()))
        buckets = self.entries[:, HASH] & (len(self.head) - 1)
        need(bool(belong(self.head, np.arange(len(self.head)), np.ascontiguousarray(self.entries[:, CHAIN]), buckets)))

    @staticmethod
    def of(types: Sequence[pa.DataType], keyed: bool) -> CountedRows:
        side = CountedRows(RowStore.of([*types, pa.binary()] if keyed else types), keyed)
        side.rows.reserve(LEAST)
        return side

    @property
    def alive(self) -> int:
        """How many rows there are, equal ones counted."""
        return int(self.entries[:, COUNT].sum())

    @property
    def oldest(self) -> int:
        """No position is below it: a chain ends where it says so."""
        return 0

    def take(self, delta: Changelog, keys: Sequence[pa.Array]) -> Changes:
        """Number the rows that depart or arrive, and keep those never seen; the counts are changed later."""
        columns, t, departed = delta.values.columns, delta.t, delta.departed
        null = key_nulls(keys)
        if null is not None:
            rows = np.flatnonzero(~null)
            columns, keys = ([array.take(pa.array(rows)) for array in part] for part in (columns, keys))
            t, departed = t[rows], int(np.searchsorted(rows, departed))
        numbers, brought = self.values.number(encode_keys(columns, len(t), signed_zeros=True))
        if len(brought):
            self._reserve(self.values.slots.high)
            slots = numbers[brought]
            hashes, key = key_hashes(picked(keys, brought), len(brought))
            new = picked(columns, brought)
            self.rows.write(slots, new if key is None else [*new, key])
            self.entries[slots, HASH] = hashes.view(np.int64)
            self.entries[slots, COUNT] = 0
        parts: list[Int64s] = []
        for part in (slice(0, departed), slice(departed, len(t))):
            order = time_order(t[part])
            parts += [t[part], numbers[part]] if order is None else [t[part][order], numbers[part][order]]
        return Changes(*parts)

    def settle(self, changes: Changes) -> None:
        """The step is over: forget the rows of which none is left."""
        if len(changes.departed):
            gone = rows_gone(changes.departed, self.entries)
            self.values.forget(gone)
            self.rows.free(gone)

    def chains(self) -> Chains:
        return chains(self.rows, self.keyed, self.head, self.entries, -1, counting=True)

    def gather(self, positions: Int64s, columns: Sequence[int], types: Sequence[pa.DataType]) -> list[pa.Array]:
        """Some columns of the rows at these positions."""
        return self.rows.gather(positions, [types[i] for i in columns], columns)

    def compacted(self) -> CountedRows:
        """A copy without the room for more, its rows numbered anew."""
        used = self.values.slots.used()
        capacity = max(LEAST, len(used))
        entries = np.zeros((capacity, 4), dtype=np.int64)
        entries[: len(used)] = self.entries[used]
        head = chained(entries, room_for(capacity))
        return CountedRows(self.rows.picked(used, capacity), self.keyed, self.values.picked(used), head, entries)

    def compacted_bytes(self) -> int:
        used = max(LEAST, self.values.slots.in_use)
        return 80 * used + self.rows.bytes_of(used) + self.values.keys.bytes_of(used)

    def _reserve(self, rows: int) -> None:
        if rows <= len(self.entries):
            return
        entries = np.zeros((max(rows, 2 * len(self.entries)), 4), dtype=np.int64)
        entries[: len(self.entries)] = self.entries
        self.entries = entries
        self.rows.reserve(len(entries))
        if len(entries) > len(self.head):
            self.head = chained(entries, room_for(len(entries)))


def picked(arrays: Sequence[pa.Array], rows: Int64s) -> list[pa.Array]:
    """Some rows, ascending; nothing is copied where they stand side by side, as new ones mostly do.

    >>> picked([pa.array("abcd")], np.array([1, 2]))[0].to_pylist()
    ['b', 'c']
    """
    if rows[-1] - rows[0] == len(rows) - 1:
        return [array.slice(rows[0], len(rows)) for array in arrays]
    return [array.take(pa.array(rows)) for array in arrays]


def room_for(rows: int) -> int:
    return 1 << rows.bit_length()


@jit
def chained(entries, size):  # type: ignore[no-untyped-def]
    """Heads of that many chains, with every row that is there in its chain."""
    head = np.full(size, -1, dtype=np.int64)
    for slot in range(len(entries)):
        if entries[slot, COUNT] > 0:
            enter_chain(slot, entries[slot, HASH] & (size - 1), head, entries, CHAIN, BEFORE)
    return head


@jit
def rows_gone(departed, entries):  # type: ignore[no-untyped-def]
    """The rows of which none is left, each once: while a row is listed its count says -1."""
    gone = np.empty(len(departed), dtype=np.int64)
    count = 0
    for slot in departed:
        if entries[slot, COUNT] == 0:
            entries[slot, COUNT] = -1
            gone[count] = slot
            count += 1
    for slot in gone[:count]:
        entries[slot, COUNT] = 0
    return gone[:count]
