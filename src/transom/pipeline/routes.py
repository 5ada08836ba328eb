"""Where open rows went: a sender remembers it, so that an end goes where its row did, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from transom.core.delta import NO_OPEN_ID, Int64s, no_int64s
from transom.kernels.jit import jit
from transom.kernels.sound import listed_in_use
from transom.pipeline.exchange import SentEnds
from transom.state.checks import need, rooms
from transom.state.slots import SlotPool, grown


@dataclass
class Routes:
    """A list of partitions for every open row id: `head[open_id]` is the first node of it, -1 where there is none.

    >>> routes = Routes()
    >>> routes.note(np.array([5, 5, NO_OPEN_ID, 7]), [np.array([0, 3]), np.array([1, 2])])
    >>> [(to, ends.open_id.tolist()) for to, ends in routes.ends(SentEnds(0, np.array([5, 6]), np.array([9, 9])), 2)]
    [(0, [5]), (1, [5])]
    """

    nodes: SlotPool = field(default_factory=SlotPool)
    head: Int64s = field(default_factory=no_int64s)
    following: Int64s = field(default_factory=no_int64s)
    to: Int64s = field(default_factory=no_int64s)

    def check(self) -> None:
        rooms(self.nodes.high, self.following, self.to)
        listed_in_use(self.head, self.following, self.nodes)
        need(bool((self.to[self.nodes.used()] >= 0).all()))

    def check_partitions(self, partitions: int) -> None:
        need(bool((self.to[self.nodes.used()] < partitions).all()))

    def note(self, open_ids: Int64s, positions: Sequence[Int64s]) -> None:
        """Of rows with these open row ids, those at positions[p] go to partition p."""
        to = np.full(len(open_ids), -1, dtype=np.int64)
        for partition, rows in enumerate(positions):
            to[rows] = partition
        rows = np.flatnonzero((open_ids != NO_OPEN_ID) & (to >= 0))
        if not len(rows):
            return
        nodes = self.nodes.take(len(rows))
        if self.nodes.high > len(self.to):
            self.to = grown(self.to, self.nodes.high)
            self.following = grown(self.following, self.nodes.high, -1)
        top = int(open_ids[rows].max()) + 1
        if top > len(self.head):
            self.head = grown(self.head, top, -1)
        used = note_routes(open_ids[rows], to[rows], nodes, self.head, self.following, self.to)
        self.nodes.give_back(nodes[used:])

    def ends(self, ends: SentEnds, partitions: int) -> Iterator[tuple[int, SentEnds]]:
        """Who is to know which of these ends; the rows have gone then."""
        bounds, open_id, te, gone = take_routes(ends.open_id, ends.te, self.head, self.following, self.to, partitions)
        self.nodes.give_back(gone)
        for partition in np.flatnonzero(np.diff(bounds)).tolist():
            part = slice(bounds[partition], bounds[partition + 1])
            yield partition, SentEnds(ends.sender, open_id[part], te[part])


@jit
def note_routes(open_ids, to, nodes, head, following, partition_of):  # type: ignore[no-untyped-def]
    """How many of the nodes are in use then: an open row id of several rows may have a list with that partition
    already."""
    used = 0
    for i in range(len(open_ids)):
        at = head[open_ids[i]]
        while at >= 0 and partition_of[at] != to[i]:
            at = following[at]
        if at < 0:
            node = nodes[used]
            partition_of[node] = to[i]
            following[node] = head[open_ids[i]]
            head[open_ids[i]] = node
            used += 1
    return used


@jit
def take_routes(open_ids, te, head, following, partition_of, partitions):  # type: ignore[no-untyped-def]
    """Open row ids and ends by partition, within bounds; and the nodes of their lists, which are empty then."""
    bounds = np.zeros(partitions + 1, dtype=np.int64)
    for open_id in open_ids:
        at = head[open_id] if open_id < len(head) else -1
        while at >= 0:
            bounds[partition_of[at] + 1] += 1
            at = following[at]
    bounds = np.cumsum(bounds)
    cursor = bounds[:-1].copy()
    out_id = np.empty(bounds[-1], dtype=np.int64)
    out_te = np.empty(bounds[-1], dtype=np.int64)
    gone = np.empty(bounds[-1], dtype=np.int64)
    count = 0
    for i in range(len(open_ids)):
        if open_ids[i] >= len(head):
            continue
        at = head[open_ids[i]]
        head[open_ids[i]] = -1
        while at >= 0:
            index = cursor[partition_of[at]]
            out_id[index] = open_ids[i]
            out_te[index] = te[i]
            cursor[partition_of[at]] += 1
            gone[count] = at
            count += 1
            at = following[at]
    return bounds, out_id, out_te, gone
