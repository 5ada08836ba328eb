"""The probe of a join of many inputs: tuples that are bound in part get their next member.

A tuple is a row of numbers: the position of its member on each input (-1 while there is none), then its ta and te.
"""

from __future__ import annotations

import numpy as np

from transom.kernels.jit import jit
from transom.kernels.join.side import AHEAD, CHAIN, HASH, TA, TE
from transom.kernels.kernel import OPEN_END
from transom.kernels.key_index import equal_bytes


@jit
def extend(tuples, source, own, target, other, row, at, limit, frontier):  # type: ignore[no-untyped-def]
    """Tuples from number `row` on, each with every row of `target` that has the key of its member of `source`.

    As `probe` of kernels/join/side.py: te is OPEN_END where the first member to end is not known yet. An open member
    ends at `frontier` or later, so a known end up to there is the tuple's end; all rows begin before `frontier`, so
    that a later end is forgotten meanwhile takes nothing away. `at` is where to go on in the chain (-2: at its head).
    Stops at `limit` tuples and says where. The heads of the next chains are read ahead, and their sum is returned, or
    the compiler would leave the reading out.
    """
    _, my_entries, my_mask, _, keyed, my_start, my_length, my_arena = own
    head, entries, mask, oldest, _, start, length, arena = other
    bucket_mask = np.uint64(len(head) - 1)
    count_of = tuples.shape[1] - 2
    width = tuples.shape[1]
    size = min(limit, len(tuples) + 64)
    extended = np.empty((size, width), dtype=np.int64)
    count = 0
    heads = np.empty(AHEAD, dtype=np.int64)
    first = row
    ready = 0
    seen = np.int64(0)
    while row < len(tuples):
        if row >= first + ready:
            first = row
            ready = min(AHEAD, len(tuples) - row)
            for i in range(ready):
                heads[i] = head[np.uint64(my_entries[tuples[row + i, source] & my_mask, HASH]) & bucket_mask]
            for i in range(ready):
                if heads[i] >= oldest:
                    seen += entries[heads[i] & mask, HASH]
        slot = tuples[row, source] & my_mask
        h = my_entries[slot, HASH]
        ta = tuples[row, count_of]
        te = tuples[row, count_of + 1]
        if at == -2:
            at = heads[row - first]
        while at >= oldest:
            if count == limit:
                return extended[:count], row, at, seen
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
                    bigger = np.empty((size, width), dtype=np.int64)
                    bigger[:count] = extended
                    extended = bigger
                extended[count] = tuples[row]
                extended[count, target] = at
                extended[count, count_of] = max(ta, other_ta)
                end = min(te, other_te)
                extended[count, count_of + 1] = OPEN_END if end > frontier and max(te, other_te) == OPEN_END else end
                count += 1
            at = entries[o, CHAIN]
        row += 1
        at = -2
    return extended[:count], row, at, seen
