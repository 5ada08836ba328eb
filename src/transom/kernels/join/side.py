"""What both hash tactics share of one side of a join: rows by position, hash chains from new to old, and the sweep.

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
from transom.kernels.jit import inlined, jit
from transom.kernels.kernel import OPEN_END
from transom.kernels.key_index import equal_bytes
from transom.kernels.keys import Hashes, encode_keys, hash_words, single_word
from transom.kernels.lifetimes import LifetimeSet
from transom.kernels.record_ring import RecordRing
from transom.kernels.row_store import RowStore, TextColumn
from transom.state.checks import need

HASH, TA, TE, CHAIN = range(4)  # columns of `entries`
LEFT, RIGHT, PAIR_TA, PAIR_TE = range(4)  # rows of what a sweep finds
VISITS = 3  # where a sweep counts
TAKEN_OUT = -2  # what leads back from a row that is in no chain
AHEAD = 256  # chains whose heads are read before they are walked


@dataclass(frozen=True)
class Arrivals:
    """New rows of a side, those with a NULL in the key left out; `key` is empty where the hash tells it."""

    columns: list[pa.Array]
    hashes: Hashes
    key: list[pa.Array]
    ta: Int64s
    te: Int64s
    holder: Int64s

    def __len__(self) -> int:
        return len(self.hashes)


def arrivals(delta: Delta, keys: Sequence[pa.Array]) -> Arrivals:
    """The rows of a delta, prepared for a side; no keys at all is one key for everything."""
    if single_word(keys):
        hashes, null = hash_words(keys)
        key = []
    elif keys:
        encoded = encode_keys(keys, len(delta))
        hashes, null = encoded.hashes, encoded.null
        buffers = [None, pa.py_buffer(encoded.offsets.astype(np.int32)), pa.py_buffer(encoded.data)]
        key = [pa.Array.from_buffers(pa.binary(), len(delta), buffers)]
    else:
        return Arrivals(
            delta.values.columns, np.zeros(len(delta), dtype=np.uint64), [], delta.ta, delta.te, delta.holder
        )
    if not null.any():
        return Arrivals(delta.values.columns, hashes, key, delta.ta, delta.te, delta.holder)
    rows = np.flatnonzero(~null)
    take = pa.array(rows)
    return Arrivals(
        delta.values.take(take).columns,
        hashes[rows],
        [each.take(take) for each in key],
        delta.ta[rows],
        delta.te[rows],
        delta.holder[rows],
    )


def key_store(keyed: bool) -> RowStore:
    """For the bytes of keys, where they are needed."""
    return RowStore.of([pa.binary()] if keyed else [])


@dataclass
class Side:
    """`head[hash & ..]` starts a chain of positions; `first_pair` lists the row's open pairs.

    `entries[slot]` holds together what a sweep reads: hash, ta, te (OPEN_END, later than forever, while a row is open)
    and the next position of the chain.
    """

    rows: RowStore | RecordRing
    keys: RowStore  # the bytes of the key, where its hash does not tell
    capacity: int = 0
    mask: int = -1
    oldest: int = 0
    head: Int64s = field(default_factory=lambda: np.full(64, -1, dtype=np.int64))
    entries: Int64s = field(default_factory=lambda: np.empty((0, 4), dtype=np.int64))
    first_pair: Int64s = field(default_factory=no_int64s)
    lifetimes: LifetimeSet = field(default_factory=LifetimeSet)

    def check(self) -> None:
        need(len(self.first_pair) == len(self.entries) == self.rows.capacity == self.capacity)
        need(self.keys.capacity == self.capacity and all(isinstance(key, TextColumn) for key in self.keys.columns))

    def arrays(self) -> tuple[Any, ...]:
        """What the sweep reads and links; only in a lazy side chains lead back as well."""
        keyed = bool(self.keys.columns)
        key = self.keys.columns[0] if keyed else TextColumn()
        assert isinstance(key, TextColumn)
        return (self.head, self.entries, self.mask, self.oldest, self.back(), keyed, key.start, key.length, key.arena)

    def back(self) -> Int64s:
        """What leads back along the chains, where there is something."""
        return no_int64s()

    def write(self, slots: Int64s, rows: Arrivals) -> None:
        """Lay the rows into their slots; whoever is open is observed, by slot: positions of a ring grow forever."""
        self.lay(slots, rows)
        waiting = write_entries(slots, rows.hashes, rows.ta, rows.te, rows.holder, self.entries, self.first_pair)
        if waiting:
            is_open = rows.holder != NO_HOLDER
            self.lifetimes.observe(rows.holder[is_open], slots[is_open])

    def lay(self, slots: Int64s, rows: Arrivals) -> None:
        """Put the values of new rows into their slots."""
        raise NotImplementedError

    @property
    def te(self) -> Int64s:
        return self.entries[:, TE]

    def slots(self, positions: Int64s) -> Int64s:
        return positions & self.mask

    def gather(self, positions: Int64s, columns: Sequence[int], types: Sequence[pa.DataType]) -> list[pa.Array]:
        """Some columns of the rows at these positions."""
        return self.rows.gather(self.slots(positions), [types[i] for i in columns], columns)


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


@inlined
def take_out(slot, entries, head, before):  # type: ignore[no-untyped-def]
    """Unlink a row from its chain; which one that is tells its hash."""
    previous = before[slot]
    following = entries[slot, CHAIN]
    if previous >= 0:
        entries[previous, CHAIN] = following
    else:
        head[np.uint64(entries[slot, HASH]) & np.uint64(len(head) - 1)] = following
    if following >= 0:
        before[following] = previous
    before[slot] = TAKEN_OUT


@inlined
def read_ahead(positions, first, my_head, my_entries, my_mask, head, entries, mask, oldest, heads):  # type: ignore[no-untyped-def]
    """Look at the chains that the next rows lead to: loads that do not wait for each other take the time of one.

    Gives the sum of what was read, or the compiler would leave the reading out.
    """
    seen = np.int64(0)
    count = min(AHEAD, len(positions) - first)
    for k in range(count):
        h = np.uint64(my_entries[positions[first + k] & my_mask, HASH])
        heads[k] = head[h & np.uint64(len(head) - 1)]
        seen += my_head[h & np.uint64(len(my_head) - 1)]
    for _ in range(2):  # the first two rows of each chain
        for k in range(count):
            if heads[k] >= oldest:
                heads[k] = entries[heads[k] & mask, CHAIN]
                seen += heads[k]
    return seen


@jit
def sweep(left, right, of_left, of_right, place, limit, upto):  # type: ignore[no-untyped-def]
    """Link the new rows of both sides one by one, in the order of time, each after it met those that are alive then.

    Pairs are (left, right, ta, te) of equal keys whose lifetimes meet; te is OPEN_END where the first member to end is
    not known yet: an open member ends at `upto` or later, so a known end up to there is the pair's end.

    All rows in a chain have begun, so those that have not ended are alive with the row that comes. Those that have are
    alive with nobody who comes later: a lazy side unlinks them, and in a ring those before them have ended as well.

    Stops at `limit` pairs; `place` is where to go on: the next new row of either side, and where it is in the chain
    that it follows (-2: it is not begun). `place[VISITS]` counts the rows that were looked at. All is written out for
    either side: to choose between arrays, or to hand them to somebody, costs more than what is done with them.
    """
    l_head, l_entries, l_mask, l_oldest, l_before, keyed, l_start, l_length, l_arena = left
    r_head, r_entries, r_mask, r_oldest, r_before, _, r_start, r_length, r_arena = right
    l_buckets = np.uint64(len(l_head) - 1)
    r_buckets = np.uint64(len(r_head) - 1)
    l_lazy = len(l_before) > 0
    r_lazy = len(r_before) > 0
    room = min(limit, len(of_left) + len(of_right) + 64)
    found = np.empty((4, room), dtype=np.int64)
    heads = np.empty(AHEAD, dtype=np.int64)
    count = 0
    i, j, at, visits = place
    l_ready = i
    r_ready = j
    l_ta = l_entries[of_left[i] & l_mask, TA] if i < len(of_left) else OPEN_END
    r_ta = r_entries[of_right[j] & r_mask, TA] if j < len(of_right) else OPEN_END
    seen = np.int64(0)
    while i < len(of_left) or j < len(of_right):
        if r_ta <= l_ta:
            if j >= r_ready:
                seen += read_ahead(of_right, j, r_head, r_entries, r_mask, l_head, l_entries, l_mask, l_oldest, heads)
                r_ready = j + AHEAD
            position = of_right[j]
            slot = position & r_mask
            h = r_entries[slot, HASH]
            te = r_entries[slot, TE]
            if at == -2:
                at = l_head[np.uint64(h) & l_buckets]
            while at >= l_oldest and count < room:
                visits += 1
                o = at & l_mask
                following = l_entries[o, CHAIN]
                other_te = l_entries[o, TE]
                if other_te <= r_ta:
                    if not l_lazy:
                        at = -1
                        break
                    take_out(o, l_entries, l_head, l_before)
                elif l_entries[o, HASH] == h and (
                    not keyed or equal_bytes(r_arena, r_start[slot], r_length[slot], l_arena, l_start[o], l_length[o])
                ):
                    found[RIGHT, count] = position
                    found[LEFT, count] = at
                    found[PAIR_TA, count] = r_ta
                    end = min(te, other_te)
                    found[PAIR_TE, count] = OPEN_END if end > upto and max(te, other_te) == OPEN_END else end
                    count += 1
                at = following
            if at < l_oldest:
                bucket = np.uint64(h) & r_buckets
                following = r_head[bucket]
                r_entries[slot, CHAIN] = following
                r_head[bucket] = position
                if r_lazy:
                    r_before[slot] = -1
                    if following >= 0:
                        r_before[following] = position
                at = -2
                j += 1
                r_ta = r_entries[of_right[j] & r_mask, TA] if j < len(of_right) else OPEN_END
        else:
            if i >= l_ready:
                seen += read_ahead(of_left, i, l_head, l_entries, l_mask, r_head, r_entries, r_mask, r_oldest, heads)
                l_ready = i + AHEAD
            position = of_left[i]
            slot = position & l_mask
            h = l_entries[slot, HASH]
            te = l_entries[slot, TE]
            if at == -2:
                at = r_head[np.uint64(h) & r_buckets]
            while at >= r_oldest and count < room:
                visits += 1
                o = at & r_mask
                following = r_entries[o, CHAIN]
                other_te = r_entries[o, TE]
                if other_te <= l_ta:
                    if not r_lazy:
                        at = -1
                        break
                    take_out(o, r_entries, r_head, r_before)
                elif r_entries[o, HASH] == h and (
                    not keyed or equal_bytes(l_arena, l_start[slot], l_length[slot], r_arena, r_start[o], r_length[o])
                ):
                    found[LEFT, count] = position
                    found[RIGHT, count] = at
                    found[PAIR_TA, count] = l_ta
                    end = min(te, other_te)
                    found[PAIR_TE, count] = OPEN_END if end > upto and max(te, other_te) == OPEN_END else end
                    count += 1
                at = following
            if at < r_oldest:
                bucket = np.uint64(h) & l_buckets
                following = l_head[bucket]
                l_entries[slot, CHAIN] = following
                l_head[bucket] = position
                if l_lazy:
                    l_before[slot] = -1
                    if following >= 0:
                        l_before[following] = position
                at = -2
                i += 1
                l_ta = l_entries[of_left[i] & l_mask, TA] if i < len(of_left) else OPEN_END
        if at >= 0:
            if room == limit:
                break
            room = min(limit, 2 * room)
            bigger = np.empty((4, room), dtype=np.int64)
            bigger[:, :count] = found
            found = bigger
    place[0] = i
    place[1] = j
    place[2] = at
    place[VISITS] = visits
    return found[:, :count], seen
