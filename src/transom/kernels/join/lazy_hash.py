"""Lazily sorted hash: a side of a join whose rows end in any order.

Meaning: the rows alive of one input, found by the hash of their key.
Emits: nothing; the driver in `join.py` does.
Keeps: the rows alive, in slots that are reused; their ends in the lazily sorted set of paper 1.
Needs: nothing.
Costs: O(1) to insert and to unlink from a chain; O(log n) moves of its end in the sorted set.

>>> side = LazySide.of([pa.int64()], keyed=False)
>>> side.reserve(3); side.mask
-1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_HOLDER, Ends, Int64s, no_int64s
from transom.kernels.jit import jit
from transom.kernels.join.side import Arrivals, Side
from transom.kernels.row_store import RowStore
from transom.state.slots import SlotPool, grown


@dataclass
class LazySide(Side):
    """`before` leads back along the chains, so that any row can be unlinked; -1 at the head of a chain."""

    pool: SlotPool = field(default_factory=SlotPool)
    before: Int64s = field(default_factory=no_int64s)
    ended: list[Int64s] = field(default_factory=list)

    @staticmethod
    def of(types: Sequence[pa.DataType], keyed: bool) -> LazySide:
        return LazySide(RowStore.of([*types, pa.binary()] if keyed else types), keyed)

    @property
    def alive(self) -> int:
        return self.pool.in_use

    def reserve(self, count: int) -> None:
        """Make room for `count` more rows."""
        needed = self.pool.in_use + count
        if needed <= self.capacity:
            return
        self.chain = grown(self.chain, needed, -1)
        self.capacity = len(self.chain)
        for name in ("hashes", "ta", "te", "first_pair", "before"):
            setattr(self, name, grown(getattr(self, name), self.capacity))
        self.rows.reserve(self.capacity)
        if self.capacity > len(self.head):
            size = 1 << self.capacity.bit_length()
            self.head = spread_chains(self.head, self.chain, self.before, self.hashes, size)

    def insert(self, rows: Arrivals) -> Int64s:
        slots = self.pool.take(len(rows))
        self.write(slots, rows, slots)
        determined = rows.holder == NO_HOLDER
        self.lifetimes.add(slots[determined], rows.te[determined], rows.holder[determined])
        link(slots, self.hashes, self.head, self.chain, self.before)
        return slots

    def end(self, positions: Int64s, te: Int64s) -> None:
        """Ends that became known: these rows leave in this step."""
        self.te[positions] = te
        self.ended.append(positions)

    def expire(self, upto: int) -> Int64s:
        """Positions of the rows that ended before `upto`, to be given to `free`."""
        slots, _ = self.lifetimes.leave(Ends(), upto)
        gone = np.concatenate([*self.ended, slots])
        self.ended = []
        return gone

    def free(self, positions: Int64s) -> None:
        if len(positions):
            unlink(positions, self.hashes, self.head, self.chain, self.before)
            self.rows.free(positions)
            self.pool.give_back(positions)


@jit
def link(slots, hashes, head, chain, before):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(head) - 1)
    for slot in slots:
        bucket = hashes[slot] & mask
        following = head[bucket]
        chain[slot] = following
        before[slot] = -1
        if following >= 0:
            before[following] = slot
        head[bucket] = slot


@jit
def unlink(slots, hashes, head, chain, before):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(head) - 1)
    for slot in slots:
        previous = before[slot]
        following = chain[slot]
        if previous >= 0:
            chain[previous] = following
        else:
            head[hashes[slot] & mask] = following
        if following >= 0:
            before[following] = previous


@jit
def spread_chains(head, chain, before, hashes, size):  # type: ignore[no-untyped-def]
    fresh = np.full(size, -1, dtype=np.int64)
    mask = np.uint64(size - 1)
    for bucket in range(len(head)):
        slot = head[bucket]
        while slot >= 0:
            following = chain[slot]
            to = hashes[slot] & mask
            chain[slot] = fresh[to]
            before[slot] = -1
            if fresh[to] >= 0:
                before[fresh[to]] = slot
            fresh[to] = slot
            slot = following
    return fresh
