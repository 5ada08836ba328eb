"""What both hash tactics share of one side of a join: rows by position, and hash chains from new to old.

A position names a row for as long as it lives; its slot in the arrays is `position & mask`. In a ring positions grow
forever and the mask folds them; otherwise the mask is all ones and a position is its slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Delta, Int64s, no_int64s
from transom.kernels.columns import alike
from transom.kernels.jit import jit
from transom.kernels.kernel import OPEN_END
from transom.kernels.keys import Hashes, encode_keys, hash_words, single_word
from transom.kernels.lifetimes import LifetimeSet
from transom.kernels.record_ring import RecordRing
from transom.kernels.row_store import RowStore, TextColumn
from transom.state.checks import need

HASH, TA, TE, CHAIN = range(4)  # columns of `entries`
LEFT, RIGHT, PAIR_TA, PAIR_TE = range(4)  # rows of what a sweep finds
NOT_BEGUN = -2  # instead of a position: the chain of a row is not followed yet
AHEAD = 256  # chains whose heads are read before they are walked


@dataclass(frozen=True)
class Arrivals:
    """New rows of a side, those with a NULL in the key left out; `key` is empty where the hash stands for it."""

    columns: list[pa.Array]
    hashes: Hashes
    key: list[pa.Array]
    ta: Int64s
    te: Int64s
    open_id: Int64s

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
            delta.values.columns, np.zeros(len(delta), dtype=np.uint64), [], delta.ta, delta.te, delta.open_id
        )
    if not null.any():
        return Arrivals(delta.values.columns, hashes, key, delta.ta, delta.te, delta.open_id)
    rows = np.flatnonzero(~null)
    take = pa.array(rows)
    return Arrivals(
        delta.values.take(take).columns,
        hashes[rows],
        [each.take(take) for each in key],
        delta.ta[rows],
        delta.te[rows],
        delta.open_id[rows],
    )


def key_store(keyed: bool) -> RowStore:
    """A store for the bytes of keys, which holds none where the hashes are enough."""
    return RowStore.of([pa.binary()] if keyed else [])


@dataclass
class JoinSide:
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

    def write(self, slots: Int64s, rows: Arrivals) -> None:
        """Lay the rows into their slots; whoever is open is observed, by slot: positions of a ring grow forever."""
        self.lay(slots, rows)
        times = alike(rows.ta), alike(rows.te), alike(rows.open_id)
        waiting = write_entries(slots, rows.hashes, *times, self.entries, self.first_pair)
        if waiting:
            is_open = rows.open_id != NO_OPEN_ID
            self.lifetimes.observe(rows.open_id[is_open], slots[is_open])

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

    def gather_among_nulls(
        self, positions: Int64s, types: Sequence[pa.DataType], before: int, behind: int
    ) -> list[pa.Array]:
        """The columns of the rows at these positions, with so many rows of NULLs before and behind them."""
        raise NotImplementedError


@jit
def write_entries(slots, hashes, ta, te, open_id, entries, first_pair):  # type: ignore[no-untyped-def]
    """One pass over what belongs together; how many of the rows are open."""
    waiting = 0
    for i in range(len(slots)):
        slot = slots[i]
        entries[slot, HASH] = np.int64(hashes[i])
        entries[slot, TA] = ta[i]
        if open_id[i] == NO_OPEN_ID:
            entries[slot, TE] = te[i]
        else:
            entries[slot, TE] = OPEN_END
            waiting += 1
        first_pair[slot] = -1
    return waiting
