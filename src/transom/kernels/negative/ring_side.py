"""Ring: a side of a join under negative tuples whose rows depart in the order in which they arrived.

Meaning: the rows there are of one input, found by the hash of their key.
Emits: nothing; the driver in `join.py` does.
Keeps: the rows, in a ring in order of arrival; freed by moving its tail.
Needs: rows that depart in the order in which they arrived: then the one that departs is the oldest, whatever it says.
Costs: O(1) to arrive and to depart; nothing is ever taken out of a chain, a walk stops behind the tail.

>>> side = NegativeRing.of([pa.int64()], keyed=False)
>>> rows = Changelog(pa.record_batch({"k": [1, 2, 1]}), np.array([7, 3, 4]), 1, 9)
>>> changes = side.take(rows, [rows.values.column(0)])
>>> changes.departed.tolist(), changes.arrived.tolist()
([0], [0, 1])
>>> side.settle(changes); side.alive
1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.core.delta import Changelog, Int64s
from transom.kernels.jit import jit
from transom.kernels.negative.events import Changes, time_order
from transom.kernels.negative.join_keys import chains, key_hashes, key_nulls
from transom.kernels.negative.pair_match import CHAIN, HASH, Chains
from transom.kernels.row_store import RowStore, TextColumn
from transom.kernels.sound import ring, ring_chains
from transom.state.checks import need

LEAST = 64


@dataclass
class NegativeRing:
    """Positions oldest .. newest - 1 are in the ring. The last column of `rows` holds the key's bytes if `keyed`."""

    rows: RowStore
    keyed: bool
    oldest: int = 0
    newest: int = 0
    head: Int64s = field(default_factory=lambda: np.full(2 * LEAST, -1, dtype=np.int64))
    entries: Int64s = field(default_factory=lambda: np.zeros((LEAST, 2), dtype=np.int64))

    def check(self) -> None:
        ring(self.oldest, self.newest, len(self.entries), self.mask)
        need(self.rows.capacity == len(self.entries))
        need(not self.keyed or isinstance(self.rows.columns[-1], TextColumn))
        ring_chains(self.oldest, self.newest, self.mask, self.head, self.entries[:, CHAIN])

    @staticmethod
    def of(types: Sequence[pa.DataType], keyed: bool) -> NegativeRing:
        side = NegativeRing(RowStore.of([*types, pa.binary()] if keyed else types), keyed)
        side.rows.reserve(LEAST)
        return side

    @property
    def alive(self) -> int:
        return self.newest - self.oldest

    @property
    def mask(self) -> int:
        return len(self.entries) - 1

    def take(self, delta: Changelog, keys: Sequence[pa.Array]) -> Changes:
        """Lay the rows that arrive into the ring, in no chain yet; who departs needs no looking for."""
        gone, columns = delta.t[: delta.departed], delta.values.slice(delta.departed).columns
        keys_arrived, arrived = [key.slice(delta.departed) for key in keys], delta.t[delta.departed :]
        null = key_nulls(keys)
        if null is not None:
            gone = gone[~null[: delta.departed]]
            rows = np.flatnonzero(~null[delta.departed :])
            columns, keys_arrived = ([array.take(pa.array(rows)) for array in part] for part in (columns, keys_arrived))
            arrived = arrived[rows]
        order = time_order(gone)
        gone = gone if order is None else gone[order]
        departed = np.arange(self.oldest, self.oldest + len(gone))
        positions = np.arange(self.newest, self.newest + len(arrived))
        changes = Changes(gone, departed, arrived, positions)
        if len(arrived):
            self._reserve(self.alive + len(arrived))
            order, by_row = time_order(arrived), positions
            if order is not None:
                by_row = np.empty_like(positions)
                by_row[order] = positions
                changes = Changes(gone, departed, arrived[order], positions)
            slots = by_row & self.mask
            hashes, key = key_hashes(keys_arrived, len(arrived))
            self.rows.write(slots, columns if key is None else [*columns, key])
            self.entries[slots, HASH] = hashes.view(np.int64)
            self.newest += len(arrived)
        return changes

    def settle(self, changes: Changes) -> None:
        """The step is over: what departed is free to be written over."""
        if len(changes.departed):
            self.rows.free(changes.departed & self.mask)
            self.oldest += len(changes.departed)

    def chains(self) -> Chains:
        return chains(self.rows, self.keyed, self.head, self.entries, self.mask, counting=False)

    def gather(self, positions: Int64s, columns: Sequence[int], types: Sequence[pa.DataType]) -> list[pa.Array]:
        """Some columns of the rows at these positions."""
        return self.rows.gather(positions & self.mask, [types[i] for i in columns], columns)

    def compacted(self) -> NegativeRing:
        """A copy without the room for more, its positions counted anew."""
        capacity = room_for(self.alive)
        positions = np.arange(self.alive, dtype=np.int64)
        old = (positions + self.oldest) & self.mask
        entries, head = laid_anew(self.entries[old], positions, capacity)
        return NegativeRing(self.rows.picked(old, capacity), self.keyed, 0, self.alive, head, entries)

    def compacted_bytes(self) -> int:
        return 32 * room_for(self.alive) + self.rows.bytes_of(room_for(self.alive))

    def _reserve(self, rows: int) -> None:
        capacity = room_for(rows)
        if capacity <= len(self.entries):
            return
        positions = np.arange(self.oldest, self.newest)
        old, new = positions & self.mask, positions & (capacity - 1)
        self.rows.move(old, new, capacity)
        self.entries, self.head = laid_anew(self.entries[old], positions, capacity)


def room_for(rows: int) -> int:
    return max(LEAST, 1 << (rows - 1).bit_length()) if rows else LEAST


def laid_anew(old_entries: Int64s, positions: Int64s, capacity: int) -> tuple[Int64s, Int64s]:
    """Entries and chain heads of a ring with so many places, with the entries of these positions in it."""
    entries = np.zeros((capacity, 2), dtype=np.int64)
    entries[positions & (capacity - 1)] = old_entries
    head = np.full(2 * capacity, -1, dtype=np.int64)
    link_positions(positions, entries, head)
    return entries, head


@jit
def link_positions(positions, entries, head):  # type: ignore[no-untyped-def]
    for position in positions:
        slot = position & (len(entries) - 1)
        bucket = entries[slot, HASH] & (len(head) - 1)
        entries[slot, CHAIN] = head[bucket]
        head[bucket] = position
