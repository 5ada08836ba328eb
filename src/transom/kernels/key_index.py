"""Dense numbers for keys: equal keys get one number, which is free again once the caller forgets the key.

A chained hash table over flat arrays; the bytes of each key are kept to verify candidates and to order by value.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.delta import Int64s, no_int64s
from transom.kernels.chain import leave_walked_chain
from transom.kernels.copying import SLACK, copy_run
from transom.kernels.jit import jit
from transom.kernels.keys import Hashes, Keys
from transom.kernels.row_store import RowStore
from transom.kernels.sound import belong, listed_in_use
from transom.state.checks import need, rooms
from transom.state.codec import saved_bytes
from transom.state.slots import SlotPool, grown


@dataclass
class KeyIndex:
    """`head[hash & mask]` starts a chain of numbers linked by `next`; -1 ends it.

    >>> from transom.kernels.keys import encode_keys
    >>> index = KeyIndex()
    >>> index.number(encode_keys([pa.array(["x", None, "x"])], 3))[0].tolist()
    [0, 1, 0]
    """

    slots: SlotPool = field(default_factory=SlotPool)
    head: Int64s = field(default_factory=lambda: np.full(64, -1, dtype=np.int64))
    next: Int64s = field(default_factory=no_int64s)
    hashes: Hashes = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    keys: RowStore = field(default_factory=lambda: RowStore.of([pa.binary()]))

    def check(self) -> None:
        need(len(self.head) > 0 and len(self.keys.columns) == 1)
        rooms(self.slots.high, self.next, self.hashes)
        need(self.keys.capacity >= self.slots.high)
        listed_in_use(self.head, self.next, self.slots)
        self._check_buckets()

    def _check_buckets(self) -> None:
        """Each key is in the chain of its hash, where it is looked for when it is forgotten."""
        mask = np.uint64(len(self.head) - 1)
        need(len(self.head) & (len(self.head) - 1) == 0)
        buckets = (self.hashes & mask).astype(np.int64)
        need(bool(belong(self.head, np.arange(len(self.head)), self.next, buckets)))

    def number(self, keys: Keys) -> tuple[Int64s, Int64s]:
        """The number of each row's key, and the rows that brought a key never seen before (in order)."""
        rows = len(keys)
        self._reserve(self.slots.high + max(0, rows - self.slots.free_count))
        column = self.keys.columns[0]
        numbers = np.empty(rows, dtype=np.int64)
        fresh = self.slots.take(rows)
        brought = np.empty(rows, dtype=np.int64)
        arena, start, length = column.arena, column.start, column.length  # type: ignore[union-attr]
        count = number_keys(
            keys.hashes, keys.data, keys.offsets, self.head, self.next, self.hashes,
            arena, start, length, fresh, numbers, brought,
        )  # fmt: skip
        self.slots.give_back(fresh[count:][::-1])
        brought = brought[:count]
        if count:
            lengths = keys.offsets[brought + 1] - keys.offsets[brought]
            offsets = np.zeros(count + 1, dtype=np.int64)
            np.cumsum(lengths, out=offsets[1:])
            picked = np.empty(int(offsets[-1]) + SLACK, dtype=np.uint8)
            pick_texts(keys.data, keys.offsets, brought, offsets, picked)
            binary = pa.Array.from_buffers(
                pa.binary(), count, [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(picked)]
            )
            self.keys.write(fresh[:count], [binary])
        return numbers, brought

    def forget(self, numbers: Int64s) -> None:
        """Free the numbers of keys that nobody holds any more."""
        if len(numbers):
            unlink_keys(numbers, self.hashes, self.head, self.next)
            self.keys.free(numbers)
            self.slots.give_back(numbers)

    def ranks(self, numbers: Int64s) -> Int64s:
        """For each number, its place in the order of values among the given ones (equal numbers, equal places)."""
        unique, inverse = np.unique(numbers, return_inverse=True)
        order = pc.sort_indices(self.keys.gather(unique, [pa.binary()])[0])
        rank = np.empty(len(unique), dtype=np.int64)
        rank[order.to_numpy()] = np.arange(len(unique))
        return rank[inverse]

    def compacted(self) -> KeyIndex:
        """The index without the room for more keys."""
        high = self.slots.high
        return KeyIndex(self.slots, self.head, self.next[:high], self.hashes[:high], self.keys.first(high))

    def compacted_bytes(self) -> int:
        return 16 * self.slots.high + saved_bytes([self.slots, self.head, self.keys.first(self.slots.high)])

    def picked(self, numbers: Int64s) -> KeyIndex:
        """An index of these keys alone, numbered from 0 on in this order."""
        (texts,) = self.keys.gather(numbers, [pa.binary()])
        offsets = np.frombuffer(texts.buffers()[1], dtype=np.int32)[: len(numbers) + 1].astype(np.int64)
        data = np.zeros(int(offsets[-1]) + SLACK, dtype=np.uint8)
        data[: int(offsets[-1])] = np.frombuffer(texts.buffers()[2] or b"", dtype=np.uint8)[: int(offsets[-1])]
        index = KeyIndex()
        index.number(Keys(self.hashes[numbers], np.zeros(len(numbers), dtype=np.bool_), data, offsets))
        return index

    def _reserve(self, capacity: int) -> None:
        if capacity <= len(self.next):
            return
        self.next = grown(self.next, capacity, -1)
        self.hashes = grown(self.hashes, capacity)
        self.keys.reserve(len(self.next))
        if len(self.next) > len(self.head):
            size = 1 << (len(self.next) - 1).bit_length()
            self.head = rebuild_chains(self.head, self.next, self.hashes, size)


@jit
def equal_bytes(a, a_start, a_size, b, b_start, b_size):  # type: ignore[no-untyped-def]
    if a_size != b_size:
        return False
    for j in range(a_size):  # noqa: SIM110 -- compiled: numba takes no generator
        if a[a_start + j] != b[b_start + j]:
            return False
    return True


@jit
def number_keys(  # type: ignore[no-untyped-def]
    row_hashes, data, offsets, head, chain, hashes, arena, start, length, fresh, numbers, brought
):
    """Keys new in this batch are not in the arena yet: `start` holds -1 - (the row that brought it) for them."""
    mask = np.uint64(len(head) - 1)
    count = 0
    for i in range(len(row_hashes)):
        h = row_hashes[i]
        size = offsets[i + 1] - offsets[i]
        at = head[h & mask]
        while at >= 0:
            if hashes[at] == h:
                if start[at] < 0:
                    other = -1 - start[at]
                    if equal_bytes(data, offsets[i], size, data, offsets[other], offsets[other + 1] - offsets[other]):
                        break
                elif equal_bytes(data, offsets[i], size, arena, start[at], length[at]):
                    break
            at = chain[at]
        if at < 0:
            at = fresh[count]
            start[at] = -1 - i
            brought[count] = i
            count += 1
            hashes[at] = h
            chain[at] = head[h & mask]
            head[h & mask] = at
        numbers[i] = at
    return count


@jit
def pick_texts(data, offsets, rows, to, out):  # type: ignore[no-untyped-def]
    for k in range(len(rows)):
        copy_run(out, to[k], data, offsets[rows[k]], to[k + 1] - to[k])


@jit
def unlink_keys(numbers, hashes, head, chain):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(head) - 1)
    for number in numbers:
        leave_walked_chain(number, hashes[number] & mask, head, chain)


@jit
def rebuild_chains(head, chain, hashes, size):  # type: ignore[no-untyped-def]
    fresh = np.full(size, -1, dtype=np.int64)
    mask = np.uint64(size - 1)
    for bucket in range(len(head)):
        at = head[bucket]
        while at >= 0:
            following = chain[at]
            to = hashes[at] & mask
            chain[at] = fresh[to]
            fresh[to] = at
            at = following
    return fresh
