"""The rows alive of a factorised join-aggregate, in bundles: those of one input that agree on the key and on the part.

A bundle has the partial aggregates of its rows: how many, and per call of its input the count, the sum and the heap.
The bundles of a key and an input are a list. `slot` of lists is key * inputs + input.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from transom.core.delta import Int64s, no_int64s
from transom.kernels.aggregate import exact_sum
from transom.kernels.aggregate.cells import Words
from transom.kernels.jit import jit
from transom.kernels.joinagg.spec import KIND, LEAST, SUM_FLOAT, JoinAggregateSpec
from transom.kernels.joinagg.tuple_index import TupleIndex
from transom.kernels.key_index import KeyIndex
from transom.kernels.keys import Keys
from transom.kernels.sound import lengths, numbered, owned
from transom.kernels.trim import trimmed, trimmed_bytes
from transom.state.checks import need, within
from transom.state.slots import grown


def widths(spec: JoinAggregateSpec) -> tuple[int, int]:
    """How many floating sums, and how many heaps, a bundle has at most."""
    most = []
    for wanted in (spec.table[:, KIND] == SUM_FLOAT, spec.table[:, KIND] >= LEAST):
        inputs = spec.table[wanted, 1]
        most.append(int(np.bincount(inputs).max()) if len(inputs) else 0)
    return most[0], most[1]


class BundleArrays(NamedTuple):
    """What compiled loops read and write of the bundles."""

    words: Int64s
    rows: Int64s
    n: Int64s
    top: Int64s
    hi: Int64s
    lo: Words
    roots: Int64s
    floats: Int64s
    first: Int64s
    length: Int64s
    following: Int64s


@dataclass
class Bundles:
    """`rows` are alive, `held` have come and are not forgotten. (top, hi, lo) is a sum that may leave 128 bits."""

    n: Int64s
    top: Int64s
    hi: Int64s
    lo: Words
    roots: Int64s
    floats: Int64s
    index: TupleIndex = field(default_factory=lambda: TupleIndex.of(2))
    keys: KeyIndex = field(default_factory=KeyIndex)
    rows: Int64s = field(default_factory=no_int64s)
    held: Int64s = field(default_factory=no_int64s)
    next: Int64s = field(default_factory=no_int64s)
    before: Int64s = field(default_factory=no_int64s)
    first: Int64s = field(default_factory=no_int64s)
    length: Int64s = field(default_factory=no_int64s)

    def check_spec(self, spec: JoinAggregateSpec, of_rows: Int64s) -> None:
        """`of_rows` is the bundle of each row alive."""
        inputs, pool, size = len(spec.input_types), self.index.slots, len(self.rows)
        need(pool.high <= size and all(a.shape[-1] == size for a in (self.n, self.top, self.hi, self.lo, self.roots)))
        need(len(self.held) == len(self.next) == len(self.before) == size)
        need(len(self.floats) >= size * widths(spec)[0] and len(self.first) == len(self.length))
        index = self.index.words[0]
        numbered(index[pool.used()] // inputs, self.keys.slots)
        within(index[pool.used()], len(self.first) // inputs * inputs)
        owned(self.first, np.arange(len(self.first)), self.next, np.ascontiguousarray(index), pool, self.before)
        need(np.array_equal(lengths(self.first, self.next), self.length))
        numbered(of_rows, pool)
        held = np.bincount(of_rows, minlength=size)
        used = pool.used()
        need(bool((held[used] == self.held[used]).all() and (held[used] == self.rows[used]).all()))

    @staticmethod
    def of(spec: JoinAggregateSpec) -> Bundles:
        calls, (_, heaps) = len(spec.calls), widths(spec)
        numbers = np.zeros((calls, 0), dtype=np.int64)
        return Bundles(
            n=numbers,
            top=numbers.copy(),
            hi=numbers.copy(),
            lo=np.zeros((calls, 0), dtype=np.uint64),
            roots=np.zeros((heaps, 0), dtype=np.int64),
            floats=np.zeros((0, exact_sum.WIDTH), dtype=np.int64),
        )

    def number(self, spec: JoinAggregateSpec, i: int, keys: Keys, part: Int64s) -> Int64s:
        """The bundle of each new row of input i; the row is held by it."""
        inputs = len(spec.input_types)
        key, _ = self.keys.number(keys)
        lists = (int(key.max(initial=-1)) + 1) * inputs
        if lists > len(self.first):
            self.first = grown(self.first, lists, -1)
            self.length = grown(self.length, len(self.first))
        bundle, brought = self.index.number(np.stack([key * inputs + i, part]))
        if self.index.slots.high > len(self.rows):
            self.rows = grown(self.rows, self.index.slots.high)
            size = len(self.rows)
            for name in ("held", "n", "top", "hi", "lo"):
                setattr(self, name, grown(getattr(self, name), size))
            for name in ("roots", "next", "before"):
                setattr(self, name, grown(getattr(self, name), size, -1))
            bigger = np.zeros((size * widths(spec)[0], exact_sum.WIDTH), dtype=np.int64)
            bigger[: len(self.floats)] = self.floats
            self.floats = bigger
        hold(bundle, bundle[brought], self.held, self.index.words[0], self.lists())
        return bundle

    def release(self, inputs: int, bundle: Int64s) -> None:
        """Rows of these bundles are forgotten, one for each; so are bundles and keys that hold no row any more."""
        empty, keys = let_go(bundle, inputs, self.held, self.index.words[0], self.lists())
        self.index.forget(empty)
        self.keys.forget(keys)

    def compacted(self) -> Bundles:
        names = ("n", "top", "hi", "lo", "roots", "rows", "held", "next", "before")
        high = self.index.slots.high
        width = len(self.floats) // max(len(self.rows), 1)
        return trimmed(self, high, names, floats=self.floats[: high * width])

    def compacted_bytes(self) -> int:
        return trimmed_bytes(self.compacted())

    def lists(self) -> tuple[Any, ...]:
        return self.first, self.length, self.next, self.before

    def arrays(self) -> BundleArrays:
        return BundleArrays(
            self.index.words, self.rows, self.n, self.top, self.hi, self.lo, self.roots, self.floats,
            self.first, self.length, self.next,
        )  # fmt: skip


@jit
def hold(bundle, brought, held, index, lists):  # type: ignore[no-untyped-def]
    first, length, following, before = lists
    for b in brought:
        at = index[b]
        following[b] = first[at]
        before[b] = -1
        if first[at] >= 0:
            before[first[at]] = b
        first[at] = b
        length[at] += 1
    for b in bundle:
        held[b] += 1


@jit
def let_go(bundle, inputs, held, index, lists):  # type: ignore[no-untyped-def]
    first, length, following, before = lists
    empty = np.empty(len(bundle), dtype=np.int64)
    keys = np.empty(len(bundle), dtype=np.int64)
    bundles = 0
    count = 0
    for b in bundle:
        held[b] -= 1
        if held[b] > 0:
            continue
        empty[bundles] = b
        bundles += 1
        at = index[b]
        if before[b] >= 0:
            following[before[b]] = following[b]
        else:
            first[at] = following[b]
        if following[b] >= 0:
            before[following[b]] = before[b]
        length[at] -= 1
        if length[at] > 0:
            continue
        key = at // inputs
        left = 0
        for j in range(inputs):
            left += length[key * inputs + j]
        if left == 0:
            keys[count] = key
            count += 1
    return empty[:bundles], keys[:count]
