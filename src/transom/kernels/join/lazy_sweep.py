"""The sweep of two sides whose rows end in any order: one new row after the other, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from transom.core.delta import Int64s
from transom.kernels.jit import inlined, jit
from transom.kernels.join.side import AHEAD, CHAIN, HASH, LEFT, NOT_BEGUN, PAIR_TA, PAIR_TE, RIGHT, TA, TE
from transom.kernels.kernel import OPEN_END
from transom.kernels.key_index import equal_bytes

VISITS = 3  # where a sweep counts
TAKEN_OUT = -2  # what leads back from a row that is in no chain


def lazy_pairs(
    left: tuple[Any, ...], right: tuple[Any, ...], of_left: Int64s, of_right: Int64s, limit: int, frontier: int
) -> Iterator[Int64s]:
    """Link new rows in these slots of either side; the pairs that they make."""
    index = np.array([0, 0, NOT_BEGUN, 0])
    while index[0] < len(of_left) or index[1] < len(of_right):
        yield sweep(left, right, of_left, of_right, index, limit, frontier)[0]


@inlined
def take_out(slot, entries, head, before):  # type: ignore[no-untyped-def]
    """Unlink a row from its chain; its hash says which one that is."""
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
def read_ahead(slots, first, my_head, my_entries, head, entries, heads):  # type: ignore[no-untyped-def]
    """Look at the chains that the next rows lead to: loads that do not wait for each other take the time of one.

    Gives the sum of what was read, or the compiler would leave the reading out.
    """
    seen = np.int64(0)
    count = min(AHEAD, len(slots) - first)
    for k in range(count):
        h = np.uint64(my_entries[slots[first + k], HASH])
        heads[k] = head[h & np.uint64(len(head) - 1)]
        seen += my_head[h & np.uint64(len(my_head) - 1)]
    for _ in range(2):  # the first two rows of each chain
        for k in range(count):
            if heads[k] >= 0:
                heads[k] = entries[heads[k], CHAIN]
                seen += heads[k]
    return seen


@jit
def sweep(left, right, of_left, of_right, index, limit, frontier):  # type: ignore[no-untyped-def]
    """Link the new rows of both sides one by one, in the order of time, each after it met those that are alive then.

    Pairs are (left, right, ta, te) of equal keys whose lifetimes meet; te is OPEN_END where the first member to end is
    not known yet: an open member ends at `frontier` or later, so a known end up to there is the pair's end.

    All rows in a chain have begun, so those that have not ended are alive with the row that comes. Those that have are
    alive with nobody who comes later, and are unlinked.

    Stops at `limit` pairs; `index` is where to go on: the next new row of either side, and where it is in the chain
    that it follows, or NOT_BEGUN. `index[VISITS]` counts the rows that were looked at. All is written out for
    either side: to choose between arrays, or to hand them to somebody, costs more than what is done with them.
    """
    l_head, l_entries, l_before, keyed, l_start, l_length, l_arena = left
    r_head, r_entries, r_before, _, r_start, r_length, r_arena = right
    l_buckets = np.uint64(len(l_head) - 1)
    r_buckets = np.uint64(len(r_head) - 1)
    room = min(limit, len(of_left) + len(of_right) + 64)
    pairs = np.empty((4, room), dtype=np.int64)
    heads = np.empty(AHEAD, dtype=np.int64)
    count = 0
    i, j, at, visits = index
    l_ready = i
    r_ready = j
    l_ta = l_entries[of_left[i], TA] if i < len(of_left) else OPEN_END
    r_ta = r_entries[of_right[j], TA] if j < len(of_right) else OPEN_END
    seen = np.int64(0)
    while i < len(of_left) or j < len(of_right):
        if r_ta <= l_ta:
            if j >= r_ready:
                seen += read_ahead(of_right, j, r_head, r_entries, l_head, l_entries, heads)
                r_ready = j + AHEAD
            slot = of_right[j]
            h = r_entries[slot, HASH]
            te = r_entries[slot, TE]
            if at == NOT_BEGUN:
                at = l_head[np.uint64(h) & l_buckets]
            while at >= 0 and count < room:
                visits += 1
                following = l_entries[at, CHAIN]
                other_te = l_entries[at, TE]
                if other_te <= r_ta:
                    take_out(at, l_entries, l_head, l_before)
                elif l_entries[at, HASH] == h and (
                    not keyed or equal_bytes(r_arena, r_start[slot], r_length[slot], l_arena, l_start[at], l_length[at])
                ):
                    pairs[RIGHT, count] = slot
                    pairs[LEFT, count] = at
                    pairs[PAIR_TA, count] = r_ta
                    end = min(te, other_te)
                    pairs[PAIR_TE, count] = OPEN_END if end > frontier and max(te, other_te) == OPEN_END else end
                    count += 1
                at = following
            if at < 0:
                bucket = np.uint64(h) & r_buckets
                following = r_head[bucket]
                r_entries[slot, CHAIN] = following
                r_head[bucket] = slot
                r_before[slot] = -1
                if following >= 0:
                    r_before[following] = slot
                at = NOT_BEGUN
                j += 1
                r_ta = r_entries[of_right[j], TA] if j < len(of_right) else OPEN_END
        else:
            if i >= l_ready:
                seen += read_ahead(of_left, i, l_head, l_entries, r_head, r_entries, heads)
                l_ready = i + AHEAD
            slot = of_left[i]
            h = l_entries[slot, HASH]
            te = l_entries[slot, TE]
            if at == NOT_BEGUN:
                at = r_head[np.uint64(h) & r_buckets]
            while at >= 0 and count < room:
                visits += 1
                following = r_entries[at, CHAIN]
                other_te = r_entries[at, TE]
                if other_te <= l_ta:
                    take_out(at, r_entries, r_head, r_before)
                elif r_entries[at, HASH] == h and (
                    not keyed or equal_bytes(l_arena, l_start[slot], l_length[slot], r_arena, r_start[at], r_length[at])
                ):
                    pairs[LEFT, count] = slot
                    pairs[RIGHT, count] = at
                    pairs[PAIR_TA, count] = l_ta
                    end = min(te, other_te)
                    pairs[PAIR_TE, count] = OPEN_END if end > frontier and max(te, other_te) == OPEN_END else end
                    count += 1
                at = following
            if at < 0:
                bucket = np.uint64(h) & l_buckets
                following = l_head[bucket]
                l_entries[slot, CHAIN] = following
                l_head[bucket] = slot
                l_before[slot] = -1
                if following >= 0:
                    l_before[following] = slot
                at = NOT_BEGUN
                i += 1
                l_ta = l_entries[of_left[i], TA] if i < len(of_left) else OPEN_END
        if at >= 0:
            if room == limit:
                break
            room = min(limit, 2 * room)
            bigger = np.empty((4, room), dtype=np.int64)
            bigger[:, :count] = pairs
            pairs = bigger
    index[0] = i
    index[1] = j
    index[2] = at
    index[VISITS] = visits
    return pairs[:, :count], seen
