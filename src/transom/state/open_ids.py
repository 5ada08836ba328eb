"""Ids of open rows (holders in paper 1): slots of one int64 array for ends, shared by all operators of a query.

The operator that makes a row with an open end takes an open row id for it and is its owner. When the end is learned,
the owner writes it, once; selections, projections and unions carry the number along and never hear of the row again.
Keepers (stateful operators) act on the closing in the step that brings it; after that step the slot is used again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from transom.core.delta import Ends, Int64s, no_int64s
from transom.state.checks import need, rooms, within
from transom.state.slots import SlotPool, grown

Span = list[int]  # from, and up to but without

OPEN: Final = np.iinfo(np.int64).min


@dataclass
class OpenIdPool:
    """`end[h]` is OPEN until it is written. `closed` waits for the end of the step to be reused.

    `idle` slots belong to a queue (below) that has no row for them at present.
    """

    slots: SlotPool = field(default_factory=SlotPool)
    end: Int64s = field(default_factory=no_int64s)
    closed: list[Int64s] = field(default_factory=list)
    idle: int = 0

    def check(self) -> None:
        rooms(self.slots.high, self.end)
        need(not self.closed and 0 <= self.idle <= self.slots.in_use)

    def check_owned(self, owned: list[Int64s]) -> None:
        """Open row ids of rows that are open belong to one owner each."""
        open_ids = np.concatenate([no_int64s(), *owned])
        within(open_ids, self.slots.high)
        need(len(np.unique(open_ids)) == len(open_ids))
        need(bool(self.slots.mask()[open_ids].all() and (self.end[open_ids] == OPEN).all()))

    @property
    def in_use(self) -> int:
        return self.slots.in_use - self.idle

    def reserve(self, count: int) -> int:
        """So many fresh slots side by side, for a queue; the first of them."""
        start = self.slots.high
        self.slots.high += count
        self.idle += count
        if self.slots.high > len(self.end):
            self.end = grown(self.end, self.slots.high)
        return start

    def take(self, count: int) -> Int64s:
        open_ids = self.slots.take(count)
        if self.slots.high > len(self.end):
            self.end = grown(self.end, self.slots.high)
        self.end[open_ids] = OPEN
        return open_ids

    def close(self, open_ids: Int64s, te: Int64s) -> Ends:
        """Write the ends of these open row ids, each for the first and only time."""
        if not len(open_ids):
            return Ends()
        assert (self.end[open_ids] == OPEN).all(), "an end was written twice"
        self.end[open_ids] = te
        self.closed.append(open_ids)
        return Ends.of(open_ids, te)

    def finish_step(self) -> None:
        """From here on the open row ids closed in this step may be given to other rows."""
        for open_ids in self.closed:
            self.slots.give_back(open_ids)
        self.closed.clear()


@dataclass
class OpenIdQueue:
    """Open row ids of an owner whose rows end in the order in which they began.

    They are numbers side by side, so that taking and closing them is to say where they begin, whatever their number.

    `spans` are the open row ids in use, oldest first. They lie in the last of the `regions`, whose places are used
    round and round; the earlier ones were too small and are given back when they are empty. Places from `following`,
    behind the youngest, up to `limit` are known to be free.

    >>> pool, queue = OpenIdPool(), OpenIdQueue()
    >>> queue.take(pool, 3, most=5).tolist(), queue.close(pool, np.array([7, 8])).arrays()[0].tolist(), len(queue)
    ([0, 1, 2], [0, 1], 1)
    """

    spans: list[Span] = field(default_factory=list)
    regions: list[Span] = field(default_factory=list)
    count: int = 0
    following: int = 0
    limit: int = 0

    def check(self) -> None:
        indexes = [index for span in (*self.spans, *self.regions) for index in span]
        need(all(len(span) == 2 and 0 <= span[0] <= span[1] for span in (*self.spans, *self.regions)))
        need(all(span[0] < span[1] for span in self.spans) and all(type(index) is int for index in indexes))
        need(self.count == sum(stop - start for start, stop in self.spans))
        last = self.regions[-1] if self.regions else [0, 0]
        need(last[0] <= self.following <= last[1] and self.limit <= last[1])
        inside = [any(a <= start and stop <= b for a, b in self.regions) for start, stop in self.spans]
        need(all(inside))

    def owned(self) -> list[Int64s]:
        return [np.arange(start, stop) for start, stop in self.spans]

    def __len__(self) -> int:
        return self.count

    def take(self, pool: OpenIdPool, count: int, most: int) -> Int64s:
        """To be called before `close`: what is closed in a step may not be used in it again.

        After `close` there will be no more than `most` in use.
        """
        if not count:
            return no_int64s()
        start = self.following
        stop = start + count
        if stop > self.limit:
            start = self._room(pool, count, most)
            stop = start + count
        if self.spans and self.spans[-1][1] == start:
            self.spans[-1][1] = stop
        else:
            self.spans.append([start, stop])
        self.following = stop
        self.count += count
        pool.idle -= count
        pool.end[start:stop] = OPEN
        return np.arange(start, stop)

    def close(self, pool: OpenIdPool, te: Int64s) -> Ends:
        """Write the ends of the oldest open row ids."""
        left = len(te)
        if not left:
            return Ends()
        self.count -= left
        pool.idle += left
        chunks = []
        while left:
            span = self.spans[0]
            start = span[0]
            stop = min(span[1], start + left)
            part = te[len(te) - left : len(te) - left + stop - start]
            pool.end[start:stop] = part
            chunks.append((np.arange(start, stop), part))
            left -= stop - start
            span[0] = stop
            if stop == span[1]:
                del self.spans[0]
        if len(self.regions) > 1:
            self._give_back(pool)
        return Ends(tuple(chunks))

    def _room(self, pool: OpenIdPool, count: int, most: int) -> int:
        """Where so many open row ids fit: from the start, behind the youngest, or in places made for them.

        Places from `following` up to `limit` are free; whoever was closed since is found here.
        """
        if self.regions:
            region = self.regions[-1]
            here = [span for span in self.spans if region[0] <= span[0] < region[1]]
            oldest = here[0][0] if here else region[1]
            if not here or self.following > oldest:
                if here and self.following + count <= region[1]:
                    self.limit = region[1]
                    return self.following
                if region[0] + count <= oldest:
                    self.limit = oldest
                    return region[0]
                if here and region[1] == pool.slots.high:
                    pool.reserve(self.following + count - region[1])
                    region[1] = self.limit = self.following + count
                    return self.following
            elif self.following + count <= oldest:
                self.limit = oldest
                return self.following
        size = max(min(4 * (self.count + count), most + 2 * count), 32)
        start = pool.reserve(size)
        self.regions.append([start, start + size])
        self.limit = start + size
        return start

    def _give_back(self, pool: OpenIdPool) -> None:
        for region in self.regions[:-1]:
            if not any(region[0] <= span[0] < region[1] for span in self.spans):
                self.regions.remove(region)
                pool.idle -= region[1] - region[0]
                pool.closed.append(np.arange(*region))
