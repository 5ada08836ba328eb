"""What both hash tactics share of one side of a join: rows by position, hash chains from new to old, and the probe.

A position names a row for as long as it lives; its slot in the arrays is `position & mask`. In a ring positions grow
forever and the mask folds them; otherwise the mask is all ones and a position is its slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_HOLDER, Delta, Int64s, no_int64s
from transom.kernels.jit import jit
from transom.kernels.kernel import OPEN_END
from transom.kernels.key_index import equal_bytes
from transom.kernels.keys import Hashes, encode_keys, hash_words, single_word
from transom.kernels.lifetimes import LifetimeSet
from transom.kernels.row_store import RowStore, TextColumn
from transom.state.checks import need

HASH, TA, TE, CHAIN = range(4)  # columns of `entries`
MINE, OTHER, PAIR_TA, PAIR_TE = range(4)  # rows of what a probe finds
AHEAD = 256  # chains whose heads are read before they are walked


@dataclass(frozen=True)
class Arrivals:
    """New rows of a side, those with a NULL in the key left out; `key` only where the hash does not tell."""

    columns: list[pa.Array]
    hashes: Hashes
    key: pa.Array | None
    ta: Int64s
    te: Int64s
    holder: Int64s

    def __len__(self) -> int:
        return len(self.hashes)


def arrivals(delta: Delta, keys: Sequence[pa.Array]) -> Arrivals:
    """The rows of a delta, prepared for a side; no keys at all is one key for everything."""
    if single_word(keys):
        hashes, null = hash_words(keys)
        key = None
    elif keys:
        encoded = encode_keys(keys, len(delta))
        hashes, null = encoded.hashes, encoded.null
        buffers = [None, pa.py_buffer(encoded.offsets.astype(np.int32)), pa.py_buffer(encoded.data)]
        key = pa.Array.from_buffers(pa.binary(), len(delta), buffers)
    else:
        return Arrivals(
            delta.values.columns, np.zeros(len(delta), dtype=np.uint64), None, delta.ta, delta.te, delta.holder
        )
    if not null.any():
        return Arrivals(delta.values.columns, hashes, key, delta.ta, delta.te, delta.holder)
    rows = np.flatnonzero(~null)
    take = pa.array(rows)
    return Arrivals(
        delta.values.take(take).columns,
        hashes[rows],
        None if key is None else key.take(take),
        delta.ta[rows],
        delta.te[rows],
        delta.holder[rows],
    )


@dataclass
class Side:
    """`head[hash & ..]` starts a chain of positions; `first_pair` lists the row's open pairs.

    `entries[slot]` holds together what a probe reads: hash, ta, te (OPEN_END, later than forever, while a row is open)
    and the next position of the chain.
    """

    rows: RowStore
    keyed: bool  # the last column of `rows` holds the bytes of the key
    capacity: int = 0
    mask: int = -1
    oldest: int = 0
    head: Int64s = field(default_factory=lambda: np.full(64, -1, dtype=np.int64))
    entries: Int64s = field(default_factory=lambda: np.empty((0, 4), dtype=np.int64))
    first_pair: Int64s = field(default_factory=no_int64s)
    lifetimes: LifetimeSet = field(default_factory=LifetimeSet)

    def check(self) -> None:
        need(len(self.first_pair) == len(self.entries) == self.rows.capacity == self.capacity)
        need(not self.keyed or isinstance(self.rows.columns[-1], TextColumn))

    def arrays(self) -> tuple[Any, ...]:
        """What the probe reads."""
        key = self.rows.columns[-1] if self.keyed else TextColumn()
        assert isinstance(key, TextColumn)
        texts = (key.start, key.length, key.arena)
        return (self.head, self.entries, self.mask, self.oldest, self.keyed, *texts)

    def write(self, slots: Int64s, rows: Arrivals) -> None:
        """Lay the rows into their slots; whoever is open is observed, by slot: positions of a ring grow forever."""
        self.rows.write(slots, [*rows.columns, rows.key] if self.keyed else rows.columns)
        waiting = write_entries(slots, rows.hashes, rows.ta, rows.te, rows.holder, self.entries, self.first_pair)
        if waiting:
            is_open = rows.holder != NO_HOLDER
            self.lifetimes.observe(rows.holder[is_open], slots[is_open])

    @property
    def te(self) -> Int64s:
        return self.entries[:, TE]

    def slots(self, positions: Int64s) -> Int64s:
        return positions & self.mask

    def gather(self, positions: Int64s, columns: Sequence[int], types: Sequence[pa.DataType]) -> list[pa.Array]:
        """Some columns of the rows at these positions."""
        slots = self.slots(positions)
        part = RowStore(self.rows.capacity, [self.rows.columns[i] for i in columns])
        return part.gather(slots, [types[i] for i in columns])


@jit
def write_entries(slots, hashes, ta, te, holder, entries, first_pair):  # type: ignore[no-untyped-def]
    """One pass over what belongs together; how many of the rows are open."""
    waiting = 0
    for i in range(len(slots)):
        slot = slots[i]
        entries[slot, HASH] = np.int64(hashes[i])
        entries[slot, TA] = ta[i]
        if holder[i] == NO_HOLDER:
            entries[slot, TE] = te[i]
        else:
            entries[slot, TE] = OPEN_END
            waiting += 1
        first_pair[slot] = -1
    return waiting


@jit
def probe(mine, positions, other, row, at, limit, upto):  # type: ignore[no-untyped-def]
    """Pairs of equal keys whose lifetimes meet: rows of `positions` from number `row` on against the other side.

    A pair is (mine, other, ta, te); te is OPEN_END where the first member to end is not known yet: an open member ends
    at `upto` or later, so a known end up to there is the pair's end.
    `at` is where to go on in the chain of that row (-2: at its head). Stops at `limit` pairs and says where.
    The heads of the next chains are read ahead: loads that do not wait for each other take the time of one. (Their
    sum is returned, too, or the compiler would leave the reading out.)
    """
    _, my_entries, my_mask, _, keyed, my_start, my_length, my_arena = mine
    head, entries, mask, oldest, _, start, length, arena = other
    bucket_mask = np.uint64(len(head) - 1)
    size = min(limit, len(positions) + 64)
    found = np.empty((4, size), dtype=np.int64)
    count = 0
    heads = np.empty(AHEAD, dtype=np.int64)
    first = row
    ready = 0
    seen = np.int64(0)
    while row < len(positions):
        if row >= first + ready:
            first = row
            ready = min(AHEAD, len(positions) - row)
            for i in range(ready):
                heads[i] = head[np.uint64(my_entries[positions[row + i] & my_mask, HASH]) & bucket_mask]
            for i in range(ready):
                seen += entries[heads[i] & mask, HASH]
        position = positions[row]
        slot = position & my_mask
        h = my_entries[slot, HASH]
        ta = my_entries[slot, TA]
        te = my_entries[slot, TE]
        if at == -2:
            at = heads[row - first]
        while at >= oldest:
            if count == limit:
                return found[:, :count], row, at, seen
            o = at & mask
            other_ta = entries[o, TA]
            other_te = entries[o, TE]
            if (
                entries[o, HASH] == h
                and ta < other_te
                and other_ta < te
                and (not keyed or equal_bytes(my_arena, my_start[slot], my_length[slot], arena, start[o], length[o]))
            ):
                if count == size:
                    size = min(limit, 2 * size)
                    bigger = np.empty((4, size), dtype=np.int64)
                    bigger[:, :count] = found
                    found = bigger
                found[MINE, count] = position
                found[OTHER, count] = at
                found[PAIR_TA, count] = max(ta, other_ta)
                end = min(te, other_te)
                found[PAIR_TE, count] = OPEN_END if end > upto and max(te, other_te) == OPEN_END else end
                count += 1
            at = entries[o, CHAIN]
        row += 1
        at = -2
    return found[:, :count], row, at, seen
