"""Sets of matches and their product, which is walked with a cursor in each set and not written down (paper 3, 3.2.2).

A probe gives, for each tuple that it starts from, the rows of one input that match: a semi-join. A tuple of the product
is one row out of each set; it exists if their lifetimes meet. Whoever wants something of the product gets just that:
how long its tuples live, or where the rows of one input are, tuple by tuple. Positions of whole tuples are written down
only for those who have to ask something of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from transom.core.delta import Int64s
from transom.kernels.formula import NO_MEMBERS
from transom.kernels.jit import inlined, jit
from transom.kernels.kernel import OPEN_END
from transom.kernels.multiway.pruned_walk import Formulas, pruned_walk

_NO_COLUMNS: Final = np.empty((0, 4), dtype=np.int64)


@dataclass(frozen=True)
class Matches:
    """Of one input: those of tuple t are members[offsets[t] : offsets[t + 1]]: position, ta and te."""

    offsets: Int64s
    members: Int64s

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @staticmethod
    def none(tuples: int) -> Matches:
        """Of tuples that were not looked for."""
        return Matches(np.zeros(tuples + 1, dtype=np.int64), NO_MEMBERS)

    @cached_property
    def counts(self) -> Int64s:
        counts: Int64s = self.offsets[1:] - self.offsets[:-1]
        return counts

    def kept(self, rows: Int64s) -> Matches:
        """Only these members."""
        return Matches(np.searchsorted(rows, self.offsets), self.members[rows])


@dataclass(frozen=True)
class WaveMatches:
    """Of several inputs: those on input n are members[offsets[n, t] : offsets[n, t + 1]]."""

    offsets: Int64s
    members: Int64s

    @staticmethod
    def of(each: Sequence[Matches]) -> WaveMatches:
        """As many tuples as all of them go to."""
        length = min([len(matches.offsets) for matches in each])
        offsets = np.empty((len(each), length), dtype=np.int64)
        base = 0
        for n, matches in enumerate(each):
            np.add(matches.offsets[:length], base, out=offsets[n])
            base += len(matches.members)
        return WaveMatches(offsets, np.concatenate([matches.members for matches in each]))


class MatchSets:
    """The product of a tuple with its matches on some inputs, for many tuples.

    `tuples` are as in `extend.py`; `indexes[t]` is where the sets of tuple t are among the matches.
    """

    def __init__(
        self, tuples: Int64s, indexes: Int64s, targets: Sequence[int], matches: WaveMatches, frontier: int
    ) -> None:
        self._tuples = tuples
        self._targets = targets
        ta, te = np.ascontiguousarray(tuples[:, -2]), np.ascontiguousarray(tuples[:, -1])
        self._sets = ta, te, indexes, matches.offsets, matches.members, frontier
        self._sizes: Int64s | None = None
        self._total = 0

    def lifetimes(self) -> tuple[Int64s, Int64s]:
        """When the tuples of the product begin and end; OPEN_END where the first member to end is not known yet."""
        self._sizes, ta, te = walk_lifetimes(*self._sets)
        self._total = len(ta)
        return ta, te

    def positions(self, i: int) -> Int64s:
        """Where the rows of input i are, tuple by tuple. `lifetimes` comes first: it counts them."""
        assert self._sizes is not None
        if i not in self._targets:
            positions: Int64s = np.repeat(self._tuples[:, i], self._sizes)
        else:
            positions = walk_members(*self._sets, self._sizes, self._total, self._targets.index(i))
        return positions

    def blocks(
        self, limit: int, checked: Formulas | None = None, columns: Int64s = _NO_COLUMNS
    ) -> Iterator[tuple[Int64s, Int64s]]:
        """The tuples of the product written down, at most `limit` at a time, and the places that they came from.

        With formulas to be asked, the set of each has one, only those that pass; `columns` is where they are.
        """
        depth = len(self._targets)
        checked = Formulas.of([None] * depth) if checked is None else checked
        cursors = np.full(depth + 2, -1, dtype=np.int64)
        cursors[0] = 0
        life = np.empty((depth, 3), dtype=np.int64)
        bound = np.empty(self._tuples.shape[1], dtype=np.int64)
        targets = np.array(self._targets, dtype=np.int64)
        while cursors[0] < len(self._tuples):
            tuples, indexes = pruned_walk(
                self._sets, self._tuples, targets, limit, (cursors, life, bound),
                (checked.program, checked.constants, checked.begins, checked.depth), columns,
            )  # fmt: skip
            if len(tuples):
                yield tuples, indexes


@inlined
def following(index, level, offsets, members, cursors, life):  # type: ignore[no-untyped-def]
    """Move the cursors, from the one of `level` on, to members whose lifetimes meet; whether there are any left.

    life[l] is what the members before level l have in common: ta, te, and the latest of their ends.
    """
    while level >= 0:
        at = cursors[level]
        if at == offsets[level, index + 1]:
            level -= 1
            if level >= 0:
                cursors[level] += 1
            continue
        ta = max(life[level, 0], members[at, 1])
        te = min(life[level, 1], members[at, 2])
        if ta >= te:
            cursors[level] += 1
            continue
        life[level + 1, 0] = ta
        life[level + 1, 1] = te
        life[level + 1, 2] = max(life[level, 2], members[at, 2])
        level += 1
        if level == len(offsets):
            return True
        cursors[level] = offsets[level, index]
    return False


@inlined
def begin(ta, te, index, offsets, members, cursors, life):  # type: ignore[no-untyped-def]
    """Set the cursors to the first members whose lifetimes meet."""
    for level in range(len(offsets)):
        if offsets[level, index] == offsets[level, index + 1]:
            return False
    life[0, 0] = ta
    life[0, 1] = te
    life[0, 2] = te
    cursors[0] = offsets[0, index]
    return following(index, 0, offsets, members, cursors, life)


@inlined
def end_of(life, depth, frontier):  # type: ignore[no-untyped-def]
    """As in `extend`: an open member ends at `frontier` or later, so a known end up to there is the tuple's end."""
    te = life[depth, 1]
    return OPEN_END if te > frontier and life[depth, 2] == OPEN_END else te


@jit
def walk_lifetimes(ta, te, indexes, offsets, members, frontier):  # type: ignore[no-untyped-def]
    """How many tuples there are for each one given, and their ta and te."""
    depth = len(offsets)
    cursors = np.empty(depth, dtype=np.int64)
    life = np.empty((depth + 1, 3), dtype=np.int64)
    sizes = np.zeros(len(ta), dtype=np.int64)
    size = len(ta) + 64
    lifetimes = np.empty((2, size), dtype=np.int64)
    count = 0
    for t in range(len(ta)):
        index = indexes[t]
        more = begin(ta[t], te[t], index, offsets, members, cursors, life)
        before = count
        while more:
            if count == size:
                size *= 2
                bigger = np.empty((2, size), dtype=np.int64)
                bigger[:, :count] = lifetimes
                lifetimes = bigger
            lifetimes[0, count] = life[depth, 0]
            lifetimes[1, count] = end_of(life, depth, frontier)
            count += 1
            cursors[depth - 1] += 1
            more = following(index, depth - 1, offsets, members, cursors, life)
        sizes[t] = count - before
    return sizes, lifetimes[0, :count], lifetimes[1, :count]


@jit
def walk_members(ta, te, indexes, offsets, members, frontier, sizes, total, level):  # type: ignore[no-untyped-def]
    """The positions of the members of one set, tuple by tuple. Where all of a product is alive nothing is compared."""
    depth = len(offsets)
    cursors = np.empty(depth, dtype=np.int64)
    life = np.empty((depth + 1, 3), dtype=np.int64)
    positions = np.empty(total, dtype=np.int64)
    count = 0
    for t in range(len(ta)):
        if sizes[t] == 0:
            continue
        index = indexes[t]
        before = 1
        after = 1
        for other in range(depth):
            if other < level:
                before *= offsets[other, index + 1] - offsets[other, index]
            elif other > level:
                after *= offsets[other, index + 1] - offsets[other, index]
        first = offsets[level, index]
        last = offsets[level, index + 1]
        if sizes[t] == before * after * (last - first):
            for _ in range(before):
                for at in range(first, last):
                    for _ in range(after):
                        positions[count] = members[at, 0]
                        count += 1
            continue
        more = begin(ta[t], te[t], index, offsets, members, cursors, life)
        while more:
            positions[count] = members[cursors[level], 0]
            count += 1
            cursors[depth - 1] += 1
            more = following(index, depth - 1, offsets, members, cursors, life)
    return positions
