"""The window of one input of a join of many: its rows alive, once, and a hash table for each way to probe it.

As a side of a join of two (`kernels/join/side.py`): a row is known by its position, its slot is `position & mask`, and
`entries` of a table hold together what a probe reads. Rows that end in the order in which they come are in a ring, the
others in slots that are reused, with their ends in the lazily sorted set of paper 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Ends, Int64s, no_int64s
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.columns import alike
from transom.kernels.join.lazy_hash import link, spread_chains, unlink
from transom.kernels.join.ring_hash import append_to_chains, first_alive
from transom.kernels.join.side import CHAIN, HASH, TA, TE, write_entries
from transom.kernels.lifetimes import LifetimeSet
from transom.kernels.multiway.graph import JoinGraph
from transom.kernels.multiway.newcomers import Newcomers
from transom.kernels.row_store import RowStore, TextColumn
from transom.kernels.sound import belong, listed_in_use, ring, ring_chains
from transom.state.checks import need
from transom.state.slots import SlotPool, grown

_NO_KEYS = TextColumn()


@dataclass
class HashTable:
    """`head[hash & ..]` starts a chain of slots; the bytes of the keys are kept where hashes do not tell."""

    keys: RowStore
    head: Int64s = field(default_factory=lambda: np.full(64, -1, dtype=np.int64))
    entries: Int64s = field(default_factory=lambda: np.empty((0, 4), dtype=np.int64))
    before: Int64s = field(default_factory=no_int64s)

    @staticmethod
    def of(keyed: bool) -> HashTable:
        return HashTable(RowStore.of([pa.binary()] if keyed else []))

    def grow(self, capacity: int) -> None:
        """Room for slots below `capacity`, which stay what they are."""
        entries = np.zeros((capacity, 4), dtype=np.int64)
        entries[: len(self.entries)] = self.entries
        self.entries = entries
        before = np.full(capacity, -1, dtype=np.int64)
        before[: len(self.before)] = self.before
        self.before = before
        if self.keys.columns:
            self.keys.reserve(capacity)
        if capacity > len(self.head):
            self.head = spread_chains(self.head, self.entries, self.before, 1 << capacity.bit_length())

    def move(self, positions: Int64s, old: Int64s, new: Int64s, capacity: int) -> None:
        """The rows at these positions go from their old slots to new ones, in a ring of another size."""
        entries = np.zeros((capacity, 4), dtype=np.int64)
        entries[new] = self.entries[old]
        self.entries = entries
        self.keys.move(old, new, capacity)
        self.head = np.full(2 * capacity, -1, dtype=np.int64)
        append_to_chains(positions, capacity - 1, self.entries, self.head)


@dataclass
class InputRows:
    """`first_open[slot]` starts the list of the open tuples that the row is in."""

    rows: RowStore
    tables: list[HashTable]
    capacity: int = 0
    mask: int = -1
    oldest: int = 0
    lifetimes: LifetimeSet = field(default_factory=LifetimeSet)
    first_open: Int64s = field(default_factory=no_int64s)

    def check(self) -> None:
        need(len(self.tables) > 0 and self.rows.capacity == self.capacity == len(self.first_open))
        for table in self.tables:
            need(len(table.entries) == self.capacity and len(table.head) > 0)
            need(not table.keys.columns or table.keys.capacity == self.capacity)

    @property
    def ta(self) -> Int64s:
        return self.tables[0].entries[:, TA]

    @property
    def te(self) -> Int64s:
        return self.tables[0].entries[:, TE]

    def arrays(self, table: int) -> tuple[Any, ...]:
        """What a probe of a table reads."""
        own = self.tables[table]
        key = own.keys.columns[0] if own.keys.columns else _NO_KEYS
        assert isinstance(key, TextColumn)
        return own.head, own.entries, self.mask, self.oldest, key is not _NO_KEYS, key.start, key.length, key.arena

    def gather(self, positions: Int64s, columns: Sequence[int], types: Sequence[pa.DataType]) -> list[pa.Array]:
        """Some columns of the rows at these positions."""
        return self.rows.gather(positions & self.mask, [types[i] for i in columns], columns)

    def write(self, slots: Int64s, rows: Newcomers) -> int:
        """Lay the rows into their slots; how many of them are open."""
        self.rows.write(slots, rows.columns)
        waiting, times = 0, (alike(rows.ta), alike(rows.te), alike(rows.open_id))
        for table, hashes, key in zip(self.tables, rows.hashes, rows.keys, strict=True):
            waiting = write_entries(slots, hashes, *times, table.entries, self.first_open)
            if key is not None:
                table.keys.write(slots, [key])
        return waiting

    def note_ends(self, ends: Ends) -> Int64s:
        """The slots of rows whose ends became known; those are noted."""
        slots, te = self.lifetimes.closed(ends)
        if len(slots):
            for table in self.tables:
                table.entries[slots, TE] = te
        return slots


@dataclass
class LazyRows(InputRows):
    """Rows that end in any order; a position is a slot. `next_timer` is the next end that is known."""

    pool: SlotPool = field(default_factory=SlotPool)
    ended: list[Int64s] = field(default_factory=list)
    next_timer: int = FOREVER

    def check(self) -> None:
        super().check()
        need(self.mask == -1 and self.oldest == 0 and self.pool.high <= self.capacity and not self.ended)
        for table in self.tables:
            need(len(table.before) == self.capacity)
            chain = np.ascontiguousarray(table.entries[:, CHAIN])
            listed_in_use(table.head, chain, self.pool, table.before)
            buckets = (table.entries[:, HASH].view(np.uint64) & np.uint64(len(table.head) - 1)).astype(np.int64)
            need(bool(belong(table.head, np.arange(len(table.head)), chain, buckets)))
        self.lifetimes.check_slots(self.pool.mask())

    def used(self) -> Int64s:
        """The slots of the rows that are there."""
        return self.pool.used()

    @property
    def alive(self) -> int:
        return self.pool.in_use

    def insert(self, rows: Newcomers) -> Int64s:
        """Positions of the rows, which nobody finds before they are linked."""
        needed = self.pool.in_use + len(rows.ta)
        if needed > self.capacity:
            self.first_open = grown(self.first_open, needed, -1)
            self.capacity = len(self.first_open)
            self.rows.reserve(self.capacity)
            for table in self.tables:
                table.grow(self.capacity)
        slots = self.pool.take(len(rows.ta))
        self.write(slots, rows)
        self.lifetimes.add(slots, rows.te, rows.open_id)
        if len(slots):
            self.next_timer = min(self.next_timer, int(rows.te.min()))
        return slots

    def link(self, positions: Int64s) -> None:
        for table in self.tables:
            link(positions, table.entries, table.head, table.before)

    def end(self, ends: Ends) -> None:
        """Ends that became known: these rows leave in this step."""
        slots = self.note_ends(ends)
        if len(slots):
            self.ended.append(slots)
            self.next_timer = BEGINNING

    def expire(self, frontier: int) -> Int64s:
        """Positions of the rows that ended before `frontier`, to be given to `free`."""
        slots = no_int64s()
        if self.next_timer < frontier:
            slots, _ = self.lifetimes.leave(Ends(), frontier)
            self.next_timer = self.lifetimes.next_timer
        if not self.ended:
            return slots
        gone = np.concatenate([*self.ended, slots])
        self.ended = []
        return gone

    def free(self, positions: Int64s) -> None:
        if len(positions):
            for table in self.tables:
                unlink(positions, table.entries, table.head, table.before)
                table.keys.free(positions)
            self.rows.free(positions)
            self.pool.give_back(positions)


@dataclass
class RingRows(InputRows):
    """Rows that end in the order in which they came: positions oldest .. newest - 1. Chains are never unlinked.

    `next_timer` is the next end; of rows that are open nobody knows.
    """

    newest: int = 0
    next_timer: int = FOREVER

    def check(self) -> None:
        super().check()
        ring(self.oldest, self.newest, self.capacity, self.mask)
        for table in self.tables:
            ring_chains(self.oldest, self.newest, self.mask, table.head, table.entries[:, CHAIN])
        used = np.zeros(self.capacity, dtype=np.bool_)
        used[self.used()] = True
        self.lifetimes.check_slots(used)

    def used(self) -> Int64s:
        """The slots of the rows that are there."""
        return np.arange(self.oldest, self.newest) & self.mask

    @property
    def alive(self) -> int:
        return self.newest - self.oldest

    def insert(self, rows: Newcomers) -> Int64s:
        """Positions of the rows, which nobody finds before they are linked."""
        needed = self.alive + len(rows.ta)
        if needed > self.capacity:
            self._grow(max(64, 1 << (needed - 1).bit_length()))
        positions = np.arange(self.newest, self.newest + len(rows.ta))
        slots = positions & self.mask
        if self.write(slots, rows):
            waiting = rows.open_id != NO_OPEN_ID
            self.lifetimes.observe(rows.open_id[waiting], slots[waiting])
        first = self.newest == self.oldest
        self.newest += len(positions)
        if first:
            self._next_timer()
        return positions

    def link(self, positions: Int64s) -> None:
        for table in self.tables:
            append_to_chains(positions, self.mask, table.entries, table.head)

    def end(self, ends: Ends) -> None:
        if len(self.note_ends(ends)):
            self._next_timer()

    def expire(self, frontier: int) -> Int64s:
        """Positions of the rows that ended before `frontier`, to be given to `free`."""
        if self.next_timer >= frontier:
            return no_int64s()
        entries = self.tables[0].entries
        return np.arange(self.oldest, first_alive(entries, self.mask, self.oldest, self.newest, frontier))

    def free(self, positions: Int64s) -> None:
        if len(positions):
            slots = positions & self.mask
            for table in self.tables:
                table.keys.free(slots)
            self.rows.free(slots)
            self.oldest += len(positions)
            self._next_timer()

    def _next_timer(self) -> None:
        alive = self.newest > self.oldest
        self.next_timer = min(FOREVER, int(self.tables[0].entries[self.oldest & self.mask, TE])) if alive else FOREVER

    def _grow(self, capacity: int) -> None:
        positions = np.arange(self.oldest, self.newest)
        old, new = positions & self.mask, positions & (capacity - 1)
        self.rows.move(old, new, capacity)
        self.lifetimes.move(old, new, capacity)
        for table in self.tables:
            table.move(positions, old, new, capacity)
        first_open = np.full(capacity, -1, dtype=np.int64)
        first_open[new] = self.first_open[old]
        self.first_open = first_open
        self.capacity, self.mask = capacity, capacity - 1


def input_rows(graph: JoinGraph, i: int) -> LazyRows | RingRows:
    """What input i keeps, empty."""
    tables = [HashTable.of(graph.keyed(classes)) for classes in graph.indexes[i]]
    return (RingRows if graph.growing[i] else LazyRows)(RowStore.of(graph.types[i]), tables)
