"""Lazily sorted hash: a side of a join whose rows end in any order.

Meaning: the rows alive of one input, found by the hash of their key.
Emits: nothing; the driver in `join.py` does.
Keeps: the rows alive, in slots that are reused; their ends in the lazily sorted set of paper 1.
Needs: nothing.
Costs: O(1) to insert and to unlink from a chain, which a row leaves when a later one comes upon it after its end;
    O(log n) moves of its end in the sorted set.

>>> side = LazySide.of([pa.int64()], keyed=False)
>>> side.reserve(3); side.mask
-1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Ends, Int64s, no_int64s
from transom.kernels.jit import jit
from transom.kernels.join.lazy_sweep import TAKEN_OUT, take_out
from transom.kernels.join.side import CHAIN, HASH, TE, Arrivals, JoinSide, key_store
from transom.kernels.row_store import RowStore, TextColumn
from transom.kernels.sound import belong, listed_in_use
from transom.state.checks import need
from transom.state.slots import SlotPool, grown


@dataclass
class LazySide(JoinSide):
    """`before` leads back along the chains, so that any row can be unlinked; -1 at the head of a chain."""

    rows: RowStore
    pool: SlotPool = field(default_factory=SlotPool)
    before: Int64s = field(default_factory=no_int64s)
    ended: list[Int64s] = field(default_factory=list)

    @staticmethod
    def of(types: Sequence[pa.DataType], keyed: bool) -> LazySide:
        return LazySide(RowStore.of(types), key_store(keyed))

    def check(self) -> None:
        super().check()
        need(self.mask == -1 and self.oldest == 0 and self.pool.high <= self.capacity == len(self.before))
        need(not self.ended and len(self.head) > 0)
        listed_in_use(self.head, self.entries[:, CHAIN], self.pool, self.before)
        buckets = (self.entries[:, HASH].view(np.uint64) & np.uint64(len(self.head) - 1)).astype(np.int64)
        need(bool(belong(self.head, np.arange(len(self.head)), np.ascontiguousarray(self.entries[:, CHAIN]), buckets)))
        self.lifetimes.check_slots(self.pool.mask())

    def used(self) -> Int64s:
        """The slots of the rows that are there."""
        return self.pool.used()

    @property
    def alive(self) -> int:
        return self.pool.in_use

    def reserve(self, count: int) -> None:
        """Make room for `count` more rows."""
        needed = self.pool.in_use + count
        if needed <= self.capacity:
            return
        self.before = grown(self.before, needed, -1)
        self.capacity = len(self.before)
        self.first_pair = grown(self.first_pair, self.capacity)
        entries = np.zeros((self.capacity, 4), dtype=np.int64)
        entries[: len(self.entries)] = self.entries
        self.entries = entries
        self.rows.reserve(self.capacity)
        self.keys.reserve(self.capacity)
        if self.capacity > len(self.head):
            size = 1 << self.capacity.bit_length()
            self.head = spread_chains(self.head, self.entries, self.before, size)

    def arrays(self) -> tuple[Any, ...]:
        """What the sweep reads and links."""
        keyed = bool(self.keys.columns)
        key = self.keys.columns[0] if keyed else TextColumn()
        assert isinstance(key, TextColumn)
        return (self.head, self.entries, self.before, keyed, key.start, key.length, key.arena)

    def lay(self, slots: Int64s, rows: Arrivals) -> None:
        self.rows.write(slots, rows.columns)
        self.keys.write(slots, rows.key)

    def gather_among_nulls(
        self, positions: Int64s, types: Sequence[pa.DataType], before: int, behind: int
    ) -> list[pa.Array]:
        columns = self.rows.gather(positions, types)
        if not before and not behind:
            return columns
        return [
            pa.concat_arrays([pa.nulls(before, type_), column, pa.nulls(behind, type_)])
            for column, type_ in zip(columns, types, strict=True)
        ]

    def insert(self, rows: Arrivals) -> Int64s:
        """Positions of the rows in the order of time; nobody finds them before they are linked."""
        slots = self.pool.take(len(rows))
        self.write(slots, rows)
        determined = rows.open_id == NO_OPEN_ID
        self.lifetimes.add(slots[determined], rows.te[determined], rows.open_id[determined])
        if (rows.ta[1:] >= rows.ta[:-1]).all():
            return slots
        return slots[np.argsort(rows.ta, kind="stable")]

    def link(self, positions: Int64s) -> None:
        """Rows that look for nobody themselves are found from now on."""
        link(positions, self.entries, self.head, self.before)

    def end(self, slots: Int64s, te: Int64s) -> None:
        """Ends that became known: these rows leave in this step."""
        self.entries[slots, TE] = te
        self.ended.append(slots)

    @property
    def next_timer(self) -> int:
        """When the next row ends."""
        return self.lifetimes.next_timer

    def expire(self, frontier: int) -> Int64s:
        """Positions of the rows that ended before `frontier`, to be given to `free`."""
        if not self.ended and self.lifetimes.next_timer >= frontier:
            return no_int64s()
        slots, _ = self.lifetimes.leave(Ends(), frontier)
        gone = np.concatenate([*self.ended, slots])
        self.ended = []
        return gone

    def free(self, positions: Int64s) -> None:
        if len(positions):
            unlink(positions, self.entries, self.head, self.before)
            self.rows.free(positions)
            self.keys.free(positions)
            self.pool.give_back(positions)


@jit
def link(slots, entries, head, before):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(head) - 1)
    for slot in slots:
        bucket = np.uint64(entries[slot, HASH]) & mask
        following = head[bucket]
        entries[slot, CHAIN] = following
        before[slot] = -1
        if following >= 0:
            before[following] = slot
        head[bucket] = slot


@jit
def unlink(slots, entries, head, before):  # type: ignore[no-untyped-def]
    for slot in slots:
        if before[slot] != TAKEN_OUT:
            take_out(slot, entries, head, before)


@jit
def spread_chains(head, entries, before, size):  # type: ignore[no-untyped-def]
    fresh = np.full(size, -1, dtype=np.int64)
    mask = np.uint64(size - 1)
    for bucket in range(len(head)):
        slot = head[bucket]
        while slot >= 0:
            following = entries[slot, CHAIN]
            to = np.uint64(entries[slot, HASH]) & mask
            entries[slot, CHAIN] = fresh[to]
            before[slot] = -1
            if fresh[to] >= 0:
                before[fresh[to]] = slot
            fresh[to] = slot
            slot = following
    return fresh
