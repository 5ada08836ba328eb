"""Ring hash: a side of a join whose rows end in the order in which they came.

Meaning: the rows alive of one input, found by the hash of their key.
Emits: nothing; the driver in `join.py` does.
Keeps: the rows alive, in a ring in arrival order; freed by moving its tail.
Needs: ends that grow with arrival (RANGE, ROWS, NOW and unbounded windows, tables that only grow).
Costs: O(1) to insert and to expire; a row follows the chain from new to old and stops at the first row that has ended,
    so nothing is ever deleted from the table.

>>> side = RingSide.of([pa.int64()], keyed=False)
>>> side.reserve(3); side.mask
63
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s
from transom.core.time import FOREVER
from transom.kernels.chain_table import table_row
from transom.kernels.jit import jit
from transom.kernels.join.side import CHAIN, HASH, TE, Arrivals, JoinSide, key_store
from transom.kernels.record_ring import RecordRing
from transom.kernels.sound import ring, ring_chains
from transom.state.allocator import aligned_zeros


@dataclass
class RingSide(JoinSide):
    """Positions oldest .. newest - 1 are in the ring."""

    rows: RecordRing
    newest: int = 0

    @staticmethod
    def of(types: Sequence[pa.DataType], keyed: bool) -> RingSide:
        return RingSide(RecordRing.of(types), key_store(keyed))

    def check(self) -> None:
        super().check()
        ring(self.oldest, self.newest, self.capacity, self.mask)
        ring_chains(self.oldest, self.newest, self.mask, self.head, self.entries[:, CHAIN])
        used = np.zeros(self.capacity, dtype=np.bool_)
        used[self.used()] = True
        self.rows.check_rows(self.used())
        self.lifetimes.check_slots(used)

    def used(self) -> Int64s:
        """The slots of the rows that are there."""
        return np.arange(self.oldest, self.newest) & self.mask

    @property
    def alive(self) -> int:
        return self.newest - self.oldest

    def reserve(self, count: int) -> None:
        """Make room for `count` more rows."""
        needed = self.alive + count
        if needed <= self.capacity:
            return
        capacity = max(64, 1 << (needed - 1).bit_length())
        positions = np.arange(self.oldest, self.newest)
        old, new = positions & self.mask, positions & (capacity - 1)
        self.rows.move(old, new, capacity)
        self.keys.move(old, new, capacity)
        self.lifetimes.move(old, new, capacity)
        entries = aligned_zeros((capacity, 4), np.int64)
        entries[new] = self.entries[old]
        self.entries = entries
        first_pair = np.zeros(capacity, dtype=np.int64)
        first_pair[new] = self.first_pair[old]
        self.first_pair = first_pair
        self.capacity, self.mask = capacity, capacity - 1
        self.head = aligned_zeros(2 * capacity, np.int64)
        self.head[:] = -1
        append_to_chains(positions, self.mask, self.entries, self.head)

    def trimmed_bytes(self) -> int:
        """About what `trimmed` takes."""
        rows = max(64, self.alive)
        return 96 * rows + self.rows.bytes_of(rows) + self.keys.bytes_of(rows)

    def trimmed(self) -> RingSide:
        """A copy without the room for more, its positions counted anew. Nothing open may be in it."""
        capacity = max(64, 1 << (self.alive - 1).bit_length()) if self.alive else 64
        positions = np.arange(self.alive, dtype=np.int64)
        old = (positions + self.oldest) & self.mask
        entries = np.zeros((capacity, 4), dtype=np.int64)
        entries[positions] = self.entries[old]
        head = np.full(2 * capacity, -1, dtype=np.int64)
        append_to_chains(positions, capacity - 1, entries, head)
        first_pair = np.full(capacity, -1, dtype=np.int64)
        rows, keys = self.rows.picked(old, capacity), self.keys.picked(old, capacity)
        return RingSide(rows, keys, capacity, capacity - 1, 0, head, entries, first_pair, newest=self.alive)

    def gather_among_nulls(
        self, positions: Int64s, types: Sequence[pa.DataType], before: int, behind: int
    ) -> list[pa.Array]:
        return self.rows.gather(self.slots(positions), types, None, before, behind)

    def table(self) -> list[int]:
        """Where the sweep finds its chains."""
        return table_row(self.head, self.entries, self.mask, self.oldest, self.keys)

    def insert(self, rows: Arrivals) -> Int64s:
        """Positions of the rows, which come in the order of time; nobody finds them before they are linked."""
        positions = np.arange(self.newest, self.newest + len(rows))
        self.write(positions & self.mask, rows)
        self.newest += len(rows)
        return positions

    def link(self, positions: Int64s) -> None:
        """Rows that look for nobody themselves are found from now on."""
        append_to_chains(positions, self.mask, self.entries, self.head)

    def lay(self, slots: Int64s, rows: Arrivals) -> None:
        """Write rows into slots that lie side by side, but where the ring begins again: much faster than one by one."""
        for first, behind in self._spans(int(slots[0]), len(slots)) if len(slots) else ():
            done = (first - int(slots[0])) & self.mask
            count = behind - first
            self.rows.write(first, [column.slice(done, count) for column in rows.columns])
            self.keys.write(slice(first, behind), [column.slice(done, count) for column in rows.key])

    def _spans(self, first: int, count: int) -> list[tuple[int, int]]:
        """So many slots from the first one on, as ranges."""
        over = first + count - self.capacity
        return [(first, first + count)] if over <= 0 else [(first, self.capacity), (0, over)]

    @property
    def next_timer(self) -> int:
        """When the next row ends."""
        return int(self.entries[self.oldest & self.mask, TE]) if self.alive else FOREVER

    def expire(self, frontier: int) -> Int64s:
        """Positions of the rows that ended before `frontier`, to be given to `free`."""
        return np.arange(self.oldest, first_alive(self.entries, self.mask, self.oldest, self.newest, frontier))

    def end(self, slots: Int64s, te: Int64s) -> None:
        """Ends that became known."""
        self.entries[slots, TE] = te

    def free(self, positions: Int64s) -> None:
        if len(positions):
            for first, behind in self._spans(int(positions[0]) & self.mask, len(positions)):
                self.keys.free(slice(first, behind))
            self.oldest += len(positions)
            self.rows.release(self.oldest & self.mask if self.alive else None)


@jit
def append_to_chains(positions, mask, entries, head):  # type: ignore[no-untyped-def]
    bucket_mask = np.uint64(len(head) - 1)
    for position in positions:
        slot = position & mask
        bucket = np.uint64(entries[slot, HASH]) & bucket_mask
        entries[slot, CHAIN] = head[bucket]
        head[bucket] = position


@jit
def first_alive(entries, mask, oldest, newest, frontier):  # type: ignore[no-untyped-def]
    while oldest < newest and entries[oldest & mask, TE] < frontier:
        oldest += 1
    return oldest
