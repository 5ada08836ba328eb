"""Going through the events of a step once: which pairs arrive and depart, and the chains kept up to date with it.

A position names a row for as long as it is there, and its slot is `position & mask`: in a ring positions grow forever,
elsewhere the mask is all ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from transom.core.delta import Int64s
from transom.kernels.chain import enter_chain, leave_chain
from transom.kernels.columns import Bytes
from transom.kernels.jit import jit
from transom.kernels.key_index import equal_bytes
from transom.kernels.negative.events import ARRIVES, RIGHT, ChangeEvents

HASH, CHAIN, BEFORE, COUNT = range(4)  # columns of `entries`; a ring has the first two
AHEAD = 256  # events whose chains are read before they are walked
START = -2  # of a chain


class Chains(NamedTuple):
    """What `match_events` reads and writes of a side.

    `head[hash & ..]` starts a chain of positions, which leads on by `entries[slot, CHAIN]` and ends at the first one
    below the oldest. `counting`: a row stands for COUNT equal ones and is in its chain while there are any. `keyed`:
    equal hashes do not mean equal keys yet, their bytes are compared.
    """

    head: Int64s
    entries: Int64s
    mask: int
    counting: bool
    keyed: bool
    start: Int64s
    length: Int64s
    arena: Bytes


class PairBuffer(NamedTuple):
    """Room for pairs: the event that touched each, the positions of its rows, and how many equal ones there are."""

    event: Int64s
    left: Int64s
    right: Int64s
    times: Int64s

    @staticmethod
    def room(size: int, counting: bool) -> PairBuffer:
        return PairBuffer(*(np.empty(length, dtype=np.int64) for length in (size, size, size, size if counting else 0)))

    def first(self, count: int) -> PairBuffer:
        return PairBuffer(*(part[:count] for part in self))

    def picked(self, pairs: Any) -> PairBuffer:
        return PairBuffer(*(part[pairs] if len(part) else part for part in self))


def match(events: ChangeEvents, left: Chains, right: Chains, cursor: Int64s, pairs: PairBuffer) -> int:
    """Go on at `cursor` (event, position in the chain, oldest left, oldest right) until `pairs` is full or all is done.

    Returns how many pairs there are; the cursor is moved on.
    """
    count, _ = match_events(events.kind, events.position, left, right, cursor, pairs)
    return int(count)


@jit
def match_events(kinds, positions, left, right, cursor, pairs):  # type: ignore[no-untyped-def]
    """An event meets the rows of the other side that are there at that moment, then changes its own side.

    All is written out for either side: choosing between arrays at every event costs as much as meeting the rows. The
    chains of the next events are read ahead: loads that do not wait for each other take the time of one. (Their sum is
    returned, too, or the compiler would leave the reading out.)
    """
    event, at, oldest_left, oldest_right = cursor
    left_head, left_entries, left_mask, counting, keyed, left_start, left_length, left_arena = left
    right_head, right_entries, right_mask, _, _, right_start, right_length, right_arena = right
    pair_event, pair_left, pair_right, pair_times = pairs
    limit = len(pair_event)
    hashes = np.empty(AHEAD, dtype=np.int64)
    ahead = np.empty(AHEAD, dtype=np.int64)
    count = 0
    first = event
    ready = 0
    seen = np.int64(0)
    while event < len(kinds):
        if event >= first + ready:
            first = event
            ready = min(AHEAD, len(kinds) - event)
            for i in range(ready):
                position = positions[event + i]
                if kinds[event + i] & RIGHT:
                    h = right_entries[position & right_mask, HASH]
                    ahead[i] = left_head[h & (len(left_head) - 1)]
                else:
                    h = left_entries[position & left_mask, HASH]
                    ahead[i] = right_head[h & (len(right_head) - 1)]
                hashes[i] = h
            for i in range(ready):
                if kinds[event + i] & RIGHT:
                    seen += left_entries[ahead[i] & left_mask, HASH]
                else:
                    seen += right_entries[ahead[i] & right_mask, HASH]
        kind = kinds[event]
        position = positions[event]
        h = hashes[event - first]
        if kind & RIGHT:
            if at == START:
                at = left_head[h & (len(left_head) - 1)]
            while at >= oldest_left:
                l, r = at & left_mask, position & right_mask  # noqa: E741
                if left_entries[l, HASH] == h and (
                    not keyed
                    or equal_bytes(
                        left_arena, left_start[l], left_length[l], right_arena, right_start[r], right_length[r]
                    )
                ):
                    if count == limit:
                        break
                    pair_event[count] = event
                    pair_left[count] = at
                    pair_right[count] = position
                    if counting:
                        pair_times[count] = left_entries[l, COUNT]
                    count += 1
                at = left_entries[l, CHAIN]
            if at >= oldest_left:
                break
        else:
            if at == START:
                at = right_head[h & (len(right_head) - 1)]
            while at >= oldest_right:
                l, r = position & left_mask, at & right_mask  # noqa: E741
                if right_entries[r, HASH] == h and (
                    not keyed
                    or equal_bytes(
                        left_arena, left_start[l], left_length[l], right_arena, right_start[r], right_length[r]
                    )
                ):
                    if count == limit:
                        break
                    pair_event[count] = event
                    pair_left[count] = position
                    pair_right[count] = at
                    if counting:
                        pair_times[count] = right_entries[r, COUNT]
                    count += 1
                at = right_entries[r, CHAIN]
            if at >= oldest_right:
                break
        at = START
        event += 1
        if counting:
            by = 1 if kind & ARRIVES else -1
            if kind & RIGHT:
                recount(position, h, by, right_head, right_entries)
            else:
                recount(position, h, by, left_head, left_entries)
        elif kind & ARRIVES:
            if kind & RIGHT:
                append(position, h, right_head, right_entries)
            else:
                append(position, h, left_head, left_entries)
        elif kind & RIGHT:
            oldest_right = position + 1
        else:
            oldest_left = position + 1
    cursor[0], cursor[1], cursor[2], cursor[3] = event, at, oldest_left, oldest_right
    return count, seen


@jit
def append(position, h, head, entries):  # type: ignore[no-untyped-def]
    """Enter the chain of a ring; nobody ever leaves it."""
    bucket = h & (len(head) - 1)
    entries[position & (len(entries) - 1), CHAIN] = head[bucket]
    head[bucket] = position


@jit
def recount(slot, h, by, head, entries):  # type: ignore[no-untyped-def]
    """Count a row up or down; the first of it enters the chain and the last one leaves it."""
    earlier = entries[slot, COUNT]
    entries[slot, COUNT] = earlier + by
    bucket = h & (len(head) - 1)
    if by > 0 and earlier == 0:
        enter_chain(slot, bucket, head, entries, CHAIN, BEFORE)
    elif earlier + by == 0:
        leave_chain(slot, bucket, head, entries, CHAIN, BEFORE)
