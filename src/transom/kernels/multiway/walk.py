"""All hops of a route in one compiled call: depth first, a tuple at a time, so nothing in between is written down.

For routes on which nothing is checked but keys and lifetimes. As `extend`, hop by hop, but tables are found by their
addresses (`directory.py`), and the call takes as long as the chains that it follows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from transom.core.delta import Int64s
from transom.kernels.address import word_at
from transom.kernels.chain_table import BUCKETS, ENTRIES, HEAD, KEYED, MASK, OLDEST, equal_texts
from transom.kernels.jit import jit
from transom.kernels.join.side import AHEAD, CHAIN, HASH, TA, TE
from transom.kernels.kernel import OPEN_END
from transom.kernels.multiway.directory import Directory
from transom.kernels.multiway.graph import Route
from transom.kernels.multiway.probe_order import ProbeOrder

SOURCE, SOURCE_TABLE, TARGET, TARGET_TABLE = range(4)  # columns of the hops of a walk
AT, KEY, FROM, TILL = range(4)  # columns of its stack: where in the chain, hash, and lifetime of the tuple so far


class Walk:
    """The way of rows of one input along a route. `direct`: nothing is to be checked, one call does it all."""

    def __init__(self, start: int, route: Route, directory: Directory) -> None:
        self.route = route
        self.direct = route.check is None and all(hop.check is None for hop in route.hops)
        self._start = start
        self._directory = directory
        first = directory.first
        hops = [
            (hop.source, first[hop.source] + hop.source_index, hop.target, first[hop.target] + hop.target_index)
            for hop in route.hops
        ]
        self._hops = np.array(hops, dtype=np.int64)
        self._index = np.empty(2 + 4 * len(hops) + len(hops) + 1, dtype=np.int64)

    def tuples(self, positions: Int64s, frontier: int, limit: int, order: ProbeOrder) -> Iterator[Int64s]:
        """All tuples of these rows with those that were linked before, at most `limit` at a time."""
        index, i = self._index, self._start
        index[0], index[1] = 0, -1
        while index[0] < len(positions):
            block, _ = walk(
                self._directory.tables,
                self._hops,
                i,
                positions,
                frontier,
                limit,
                index,
                order.probes[i],
                order.matches[i],
            )
            if len(block):
                yield block


@jit
def walk(tables, hops, start, positions, frontier, limit, index, probes, matches):  # type: ignore[no-untyped-def]
    """Tuples of the rows of input `start` at `positions` with a row of each other input: members, ta and te.

    Stops at `limit` tuples. `index` is where to go on: the number of the row and the hop (-1: the row is not begun),
    then the stack, then the members bound so far. Probes and matches are counted for each input. The heads of the first
    chains are read ahead; their sum is returned, or the compiler would leave the reading out.
    """
    depth = len(hops)
    width = depth + 3
    stack = index[2 : 2 + 4 * depth].reshape(depth, 4)
    bound = index[2 + 4 * depth :]
    size = min(limit, len(positions) + 15)
    tuples = np.empty((size, width), dtype=np.int64)
    count = 0
    row = index[0]
    level = index[1]
    table = tables[hops[0, SOURCE_TABLE]]
    first = tables[hops[0, TARGET_TABLE]]
    heads = np.empty(min(AHEAD, len(positions)), dtype=np.int64)
    begun = row
    ready = 0
    seen = np.int64(0)
    while row < len(positions):
        if level < 0:
            if row >= begun + ready:
                begun = row
                ready = min(AHEAD, len(positions) - row)
                for i in range(ready):
                    key = word_at(table[ENTRIES] + ((positions[row + i] & table[MASK]) << 5), HASH)
                    heads[i] = word_at(first[HEAD], key & first[BUCKETS])
                for i in range(ready):
                    if heads[i] >= first[OLDEST]:
                        seen += word_at(first[ENTRIES] + ((heads[i] & first[MASK]) << 5), HASH)
            bound[start] = positions[row]
            entry = table[ENTRIES] + ((positions[row] & table[MASK]) << 5)
            level = 0
            stack[0, KEY] = word_at(entry, HASH)
            stack[0, FROM] = word_at(entry, TA)
            stack[0, TILL] = word_at(entry, TE)
            stack[0, AT] = heads[row - begun]
            probes[hops[0, TARGET]] += 1
        while level >= 0:
            other = tables[hops[level, TARGET_TABLE]]
            oldest = other[OLDEST]
            at = stack[level, AT]
            key = stack[level, KEY]
            ta = stack[level, FROM]
            te = stack[level, TILL]
            entry = at
            while at >= oldest:
                entry = other[ENTRIES] + ((at & other[MASK]) << 5)
                if word_at(entry, HASH) == key and ta < word_at(entry, TE) and word_at(entry, TA) < te:
                    if not other[KEYED]:
                        break
                    source_table = tables[hops[level, SOURCE_TABLE]]
                    my_slot = bound[hops[level, SOURCE]] & source_table[MASK]
                    if equal_texts(source_table, my_slot, other, at & other[MASK]):
                        break
                at = word_at(entry, CHAIN)
            if at < oldest:
                level -= 1
                continue
            if level + 1 == depth and count == limit:
                stack[level, AT] = at
                index[0] = row
                index[1] = level
                return tuples[:count], seen
            target = hops[level, TARGET]
            matches[target] += 1
            bound[target] = at
            stack[level, AT] = word_at(entry, CHAIN)
            other_te = word_at(entry, TE)
            end = min(te, other_te)
            if end > frontier and max(te, other_te) == OPEN_END:
                end = OPEN_END
            ta = max(ta, word_at(entry, TA))
            if level + 1 < depth:
                level += 1
                source_table = tables[hops[level, SOURCE_TABLE]]
                key = word_at(source_table[ENTRIES] + ((bound[hops[level, SOURCE]] & source_table[MASK]) << 5), HASH)
                other = tables[hops[level, TARGET_TABLE]]
                stack[level, KEY] = key
                stack[level, FROM] = ta
                stack[level, TILL] = end
                stack[level, AT] = word_at(other[HEAD], key & other[BUCKETS])
                probes[hops[level, TARGET]] += 1
                continue
            if count == size:
                size = min(limit, 2 * size)
                bigger = np.empty((size, width), dtype=np.int64)
                bigger[:count] = tuples
                tuples = bigger
            tuples[count, : depth + 1] = bound
            tuples[count, depth + 1] = ta
            tuples[count, depth + 2] = end
            count += 1
        row += 1
    index[0] = row
    index[1] = -1
    return tuples[:count], seen
