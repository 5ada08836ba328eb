"""Dense numbers for tuples of numbers, found and made inside compiled loops.

A chained hash table over flat arrays: `head[hash & mask]` starts a chain of numbers linked by `next`; -1 ends it.
`words[w, number]` are the words of a tuple.

>>> index = TupleIndex.of(2)
>>> index.number(np.array([[1, 2, 1], [5, 5, 5]]))[0].tolist()
[0, 1, 0]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from transom.core.delta import Int64s
from transom.kernels.chain import leave_walked_chain
from transom.kernels.jit import inlined, jit
from transom.kernels.keys import mix
from transom.kernels.trim import trimmed, trimmed_bytes
from transom.state.checks import need, rooms
from transom.state.slots import SlotPool, grown

FEW = 64  # new numbers that there is room for at first; what is indexed by them should not be much longer than needed


class IndexArrays(NamedTuple):
    """What compiled loops read and write of an index."""

    words: Int64s
    head: Int64s
    chain: Int64s


@dataclass
class TupleIndex:
    words: Int64s
    slots: SlotPool = field(default_factory=SlotPool)
    head: Int64s = field(default_factory=lambda: np.full(64, -1, dtype=np.int64))
    next: Int64s = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def check(self) -> None:
        """The chains follow from the tuples, so they are made anew."""
        rooms(self.slots.high, self.next, self.words)
        need(len(self.head) > 0 and len(self.head) & (len(self.head) - 1) == 0)
        self.head[:] = -1
        self.next[:] = -1
        link_tuples(self.slots.used(), self.arrays())

    @staticmethod
    def of(width: int) -> TupleIndex:
        return TupleIndex(np.zeros((width, 0), dtype=np.int64))

    def number(self, words: Int64s) -> tuple[Int64s, Int64s]:
        """The number of each tuple words[:, i], and which of them brought one never seen before."""
        words = np.ascontiguousarray(words)
        rows = words.shape[1]
        numbers = np.empty(rows, dtype=np.int64)
        brought = np.empty(rows, dtype=np.int64)
        done, count, room = 0, 0, FEW
        while done < rows:
            fresh = self.room(min(room, rows - done))
            done, used = number_tuples(words, done, self.arrays(), fresh, numbers, brought[count:])
            self.give_back(fresh[used:])
            count += used
            room *= 2
        return numbers, brought[:count]

    def room(self, count: int) -> Int64s:
        """Numbers for so many new tuples, to be used in order; what is not used is given back."""
        fresh = self.slots.take(count)
        if self.slots.high > len(self.next):
            self.next = grown(self.next, self.slots.high, -1)
            self.words = grown(self.words, self.slots.high)
            if len(self.next) > len(self.head):
                self.head = np.full(1 << (len(self.next) - 1).bit_length(), -1, dtype=np.int64)
                used = np.setdiff1d(self.slots.used(), fresh)
                link_tuples(used, self.arrays())
        return fresh

    def give_back(self, fresh: Int64s) -> None:
        self.slots.give_back(fresh[::-1])

    def forget(self, numbers: Int64s) -> None:
        """Free the numbers of tuples that nobody holds any more."""
        if len(numbers):
            unlink_tuples(numbers, self.arrays())
            self.slots.give_back(numbers)

    def arrays(self) -> IndexArrays:
        return IndexArrays(self.words, self.head, self.next)

    def compacted(self) -> TupleIndex:
        return trimmed(self, self.slots.high, ("words", "next"))

    def compacted_bytes(self) -> int:
        return trimmed_bytes(self.compacted())


@inlined
def hash_tuple(key, width):  # type: ignore[no-untyped-def]
    h = np.uint64(width)
    for w in range(width):
        h = mix(h ^ np.uint64(key[w])) * np.uint64(0x9E3779B97F4A7C15)
    return mix(h)


@jit
def find_or_make(key, index, fresh, used):  # type: ignore[no-untyped-def]
    """The number of a tuple, and how many of `fresh` are used now."""
    words, head, chain = index
    width = len(words)
    bucket = hash_tuple(key, width) & np.uint64(len(head) - 1)
    at = head[bucket]
    while at >= 0:
        same = True
        for w in range(width):
            if words[w, at] != key[w]:
                same = False
                break
        if same:
            return at, used
        at = chain[at]
    at = fresh[used]
    for w in range(width):
        words[w, at] = key[w]
    chain[at] = head[bucket]
    head[bucket] = at
    return at, used + 1


@jit
def number_tuples(tuples, i, index, fresh, numbers, brought):  # type: ignore[no-untyped-def]
    """From tuple i on, as long as there are fresh numbers: how far it came, and how many of them are used."""
    used = 0
    key = np.empty(len(tuples), dtype=np.int64)
    while i < tuples.shape[1] and used < len(fresh):
        for w in range(len(tuples)):
            key[w] = tuples[w, i]
        before = used
        numbers[i], used = find_or_make(key, index, fresh, used)
        if used > before:
            brought[before] = i
        i += 1
    return i, used


@jit
def link_tuples(numbers, index):  # type: ignore[no-untyped-def]
    words, head, chain = index
    key = np.empty(len(words), dtype=np.int64)
    for at in numbers:
        for w in range(len(words)):
            key[w] = words[w, at]
        bucket = hash_tuple(key, len(words)) & np.uint64(len(head) - 1)
        chain[at] = head[bucket]
        head[bucket] = at


@jit
def unlink_tuples(numbers, index):  # type: ignore[no-untyped-def]
    words, head, chain = index
    key = np.empty(len(words), dtype=np.int64)
    for number in numbers:
        for w in range(len(words)):
            key[w] = words[w, number]
        leave_walked_chain(number, hash_tuple(key, len(words)) & np.uint64(len(head) - 1), head, chain)
