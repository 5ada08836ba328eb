"""Sets of matches and their product, which is walked with a cursor in each set and not written down (paper 3, 3.2.2).

A probe gives, for each tuple that it starts from, the rows of one input that match: a semi-join. A tuple of the product
is one row out of each set; it exists if their lifetimes meet. Whoever wants something of the product gets just that:
how long its tuples live, or where the rows of one input are, tuple by tuple. Positions of whole tuples are written down
only for those who have to ask something of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from transom.core.delta import Int64s
from transom.kernels.jit import inlined, jit
from transom.kernels.join.side import AHEAD, CHAIN, HASH, TA, TE
from transom.kernels.kernel import OPEN_END
from transom.kernels.key_index import equal_bytes


@dataclass(frozen=True)
class Matches:
    """Of one input: those of tuple t are members[offsets[t] : offsets[t + 1]]: position, ta and te."""

    offsets: Int64s
    members: Int64s

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> Int64s:
        return np.diff(self.offsets)

    def kept(self, rows: Int64s) -> Matches:
        """Only these members."""
        return Matches(np.searchsorted(rows, self.offsets), self.members[rows])


class MatchSets:
    """The product of a tuple with its matches on some inputs, for many tuples.

    `tuples` are as in `extend.py`; `places[t]` is where the sets of tuple t are among the matches.
    """

    def __init__(
        self, tuples: Int64s, places: Int64s, targets: Sequence[int], matches: Sequence[Matches], upto: int
    ) -> None:
        self._tuples = tuples
        self._targets = targets
        bases = np.cumsum([0, *(len(one.members) for one in matches)])
        length = min(len(one.offsets) for one in matches)
        offsets = [one.offsets[:length] + base for one, base in zip(matches, bases[:-1], strict=True)]
        one_set = len(matches) == 1
        self._sets = (
            np.ascontiguousarray(tuples[:, -2]),
            np.ascontiguousarray(tuples[:, -1]),
            places,
            np.ascontiguousarray(np.stack(offsets)),
            matches[0].members if one_set else np.concatenate([one.members for one in matches]),
            upto,
        )
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
            found: Int64s = np.repeat(self._tuples[:, i], self._sizes)
        else:
            found = walk_members(*self._sets, self._sizes, self._total, self._targets.index(i))
        return found

    def blocks(self, limit: int) -> Iterator[tuple[Int64s, Int64s]]:
        """The tuples of the product written down, at most `limit` at a time, and the places that they came from."""
        depth = len(self._targets)
        cursors = np.full(depth + 2, -1, dtype=np.int64)  # the tuple, whether it is begun, and one in each set
        cursors[0] = 0
        life = np.empty((depth + 1, 3), dtype=np.int64)
        targets = np.array(self._targets, dtype=np.int64)
        while cursors[0] < len(self._tuples):
            found, places = walk_tuples(*self._sets, self._tuples, targets, limit, cursors, life)
            if len(found):
                yield found, places


@jit
def semi_join(members, ta, te, mine, other, wanted, limit):  # type: ignore[no-untyped-def]
    """The matches of tuples by the key of a member, whose positions these are: offsets and members as in `Matches`.

    Tuples that are not wanted get none; an empty `wanted` means all. At `limit` members no other tuple is begun. The
    heads of the next chains are read ahead, and their sum is returned, or the compiler would leave the reading out.
    """
    _, my_entries, my_mask, _, keyed, my_start, my_length, my_arena = mine
    head, entries, mask, oldest, _, start, length, arena = other
    bucket_mask = np.uint64(len(head) - 1)
    offsets = np.zeros(len(members) + 1, dtype=np.int64)
    size = len(members) + 64
    found = np.empty((size, 3), dtype=np.int64)
    count = 0
    heads = np.empty(AHEAD, dtype=np.int64)
    first = 0
    ready = 0
    seen = np.int64(0)
    row = 0
    while row < len(members) and (count < limit or row == 0):
        if row >= first + ready:
            first = row
            ready = min(AHEAD, len(members) - row)
            for i in range(ready):
                heads[i] = head[np.uint64(my_entries[members[row + i] & my_mask, HASH]) & bucket_mask]
            for i in range(ready):
                if heads[i] >= oldest:
                    seen += entries[heads[i] & mask, HASH]
        at = heads[row - first]
        if len(wanted) and not wanted[row]:
            at = -1
        slot = members[row] & my_mask
        h = my_entries[slot, HASH]
        while at >= oldest:
            o = at & mask
            if (
                entries[o, HASH] == h
                and ta[row] < entries[o, TE]
                and entries[o, TA] < te[row]
                and (not keyed or equal_bytes(my_arena, my_start[slot], my_length[slot], arena, start[o], length[o]))
            ):
                if count == size:
                    size *= 2
                    bigger = np.empty((size, 3), dtype=np.int64)
                    bigger[:count] = found
                    found = bigger
                found[count, 0] = at
                found[count, 1] = entries[o, TA]
                found[count, 2] = entries[o, TE]
                count += 1
            at = entries[o, CHAIN]
        row += 1
        offsets[row] = count
    return offsets[: row + 1], found[:count], seen


@inlined
def following(place, level, offsets, members, cursors, life):  # type: ignore[no-untyped-def]
    """Move the cursors, from the one of `level` on, to members whose lifetimes meet; whether there are any left.

    life[l] is what the members before level l have in common: ta, te, and the latest of their ends.
    """
    while level >= 0:
        at = cursors[level]
        if at == offsets[level, place + 1]:
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
        cursors[level] = offsets[level, place]
    return False


@inlined
def begin(ta, te, place, offsets, members, cursors, life):  # type: ignore[no-untyped-def]
    """Set the cursors to the first members whose lifetimes meet."""
    for level in range(len(offsets)):
        if offsets[level, place] == offsets[level, place + 1]:
            return False
    life[0, 0] = ta
    life[0, 1] = te
    life[0, 2] = te
    cursors[0] = offsets[0, place]
    return following(place, 0, offsets, members, cursors, life)


@inlined
def end_of(life, depth, upto):  # type: ignore[no-untyped-def]
    """As in `extend`: an open member ends at `upto` or later, so a known end up to there is the tuple's end."""
    te = life[depth, 1]
    return OPEN_END if te > upto and life[depth, 2] == OPEN_END else te


@jit
def walk_lifetimes(ta, te, places, offsets, members, upto):  # type: ignore[no-untyped-def]
    """How many tuples there are for each one given, and their ta and te."""
    depth = len(offsets)
    cursors = np.empty(depth, dtype=np.int64)
    life = np.empty((depth + 1, 3), dtype=np.int64)
    sizes = np.zeros(len(ta), dtype=np.int64)
    size = len(ta) + 64
    found = np.empty((2, size), dtype=np.int64)
    count = 0
    for t in range(len(ta)):
        place = places[t]
        more = begin(ta[t], te[t], place, offsets, members, cursors, life)
        before = count
        while more:
            if count == size:
                size *= 2
                bigger = np.empty((2, size), dtype=np.int64)
                bigger[:, :count] = found
                found = bigger
            found[0, count] = life[depth, 0]
            found[1, count] = end_of(life, depth, upto)
            count += 1
            cursors[depth - 1] += 1
            more = following(place, depth - 1, offsets, members, cursors, life)
        sizes[t] = count - before
    return sizes, found[0, :count], found[1, :count]


@jit
def walk_members(ta, te, places, offsets, members, upto, sizes, total, level):  # type: ignore[no-untyped-def]
    """The positions of the members of one set, tuple by tuple. Where all of a product is alive nothing is compared."""
    depth = len(offsets)
    cursors = np.empty(depth, dtype=np.int64)
    life = np.empty((depth + 1, 3), dtype=np.int64)
    found = np.empty(total, dtype=np.int64)
    count = 0
    for t in range(len(ta)):
        if sizes[t] == 0:
            continue
        place = places[t]
        before = 1
        after = 1
        for other in range(depth):
            if other < level:
                before *= offsets[other, place + 1] - offsets[other, place]
            elif other > level:
                after *= offsets[other, place + 1] - offsets[other, place]
        first = offsets[level, place]
        last = offsets[level, place + 1]
        if sizes[t] == before * after * (last - first):
            for _ in range(before):
                for at in range(first, last):
                    for _ in range(after):
                        found[count] = members[at, 0]
                        count += 1
            continue
        more = begin(ta[t], te[t], place, offsets, members, cursors, life)
        while more:
            found[count] = members[cursors[level], 0]
            count += 1
            cursors[depth - 1] += 1
            more = following(place, depth - 1, offsets, members, cursors, life)
    return found


@jit
def walk_tuples(  # type: ignore[no-untyped-def]
    ta, te, places, offsets, members, upto, tuples, targets, limit, cursors, life
):
    """Whole tuples, at most `limit`, and their places; `cursors` and `life` tell where to go on."""
    depth = len(offsets)
    width = tuples.shape[1]
    size = min(limit, len(tuples) + 64)
    found = np.empty((size, width), dtype=np.int64)
    came = np.empty(size, dtype=np.int64)
    count = 0
    t = cursors[0]
    begun = cursors[1] >= 0
    own = cursors[2:]
    while t < len(ta):
        place = places[t]
        more = begun or begin(ta[t], te[t], place, offsets, members, own, life)
        begun = False
        while more:
            if count == limit:
                cursors[0] = t
                cursors[1] = 1
                return found[:count], came[:count]
            if count == size:
                size = min(limit, 2 * size)
                bigger = np.empty((size, width), dtype=np.int64)
                bigger[:count] = found
                found = bigger
                longer = np.empty(size, dtype=np.int64)
                longer[:count] = came
                came = longer
            found[count] = tuples[t]
            for level in range(depth):
                found[count, targets[level]] = members[own[level], 0]
            found[count, width - 2] = life[depth, 0]
            found[count, width - 1] = end_of(life, depth, upto)
            came[count] = place
            count += 1
            own[depth - 1] += 1
            more = following(place, depth - 1, offsets, members, own, life)
        t += 1
    cursors[0] = t
    cursors[1] = -1
    return found[:count], came[:count]
