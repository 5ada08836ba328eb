"""The probe of one input by itself: for each tuple the rows that match, as a set (`Matches` of `match_sets.py`)."""

from __future__ import annotations

import numpy as np

from transom.kernels.formula import passing
from transom.kernels.jit import jit
from transom.kernels.join.side import AHEAD, CHAIN, HASH, TA, TE
from transom.kernels.key_index import equal_bytes


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
    size = len(members) + 1024
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


@jit
def semi_join_passing(  # type: ignore[no-untyped-def]
    positions, ta, te, mine, other, wanted, limit, formula, addresses, tuples, target
):
    """As `semi_join`, but only the matches of which a formula is true; and how many there were without it."""
    offsets, members, _ = semi_join(positions, ta, te, mine, other, wanted, limit)
    of = np.empty(len(members), dtype=np.int64)
    for t in range(len(offsets) - 1):
        of[offsets[t] : offsets[t + 1]] = t
    if len(of) == 0:
        return offsets, members, 0
    program, constants, depth = formula
    kept = passing(program, constants, depth, addresses, tuples, of, members, target)
    found = np.empty((len(kept), 3), dtype=np.int64)
    left = np.zeros(len(offsets), dtype=np.int64)
    for n in range(len(kept)):
        found[n] = members[kept[n]]
        left[of[kept[n]] + 1] += 1
    for t in range(1, len(left)):
        left[t] += left[t - 1]
    return left, found, len(members)
