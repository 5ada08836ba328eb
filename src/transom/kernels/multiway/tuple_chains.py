"""How the tuples that a forest keeps are found: chains of those with one key, and the probes of rows for an answer.

`kept_tuples.py` says what is in which array.
"""

from __future__ import annotations

import numpy as np

from transom.core.delta import NO_OPEN_ID
from transom.kernels.jit import inlined, jit
from transom.kernels.kernel import OPEN_END
from transom.kernels.keys import mix

NODE, BEGIN, END, OPEN, CELL, WORDS = range(6)  # of a tuple; then links, two for each table; then members
LINK, COUNT, CLASSES = range(3)  # of what is fixed about a table: its links, how many classes, and which
AHEAD = 256  # chains whose heads are read before they are walked


@inlined
def bucket(key, words_at, table, fixed, ranges):  # type: ignore[no-untyped-def]
    """Where the chain of a key begins: the words of its classes are at `words_at` of `key`."""
    h = np.uint64(0)
    if fixed[table, COUNT] == 1:
        h = np.uint64(key[words_at + fixed[table, CLASSES]])
    else:
        for k in range(fixed[table, COUNT]):
            h = mix(h ^ np.uint64(key[words_at + fixed[table, CLASSES + k]])) + np.uint64(k)
    return ranges[table, 0] + np.int64(h & np.uint64(ranges[table, 1]))


@inlined
def same(key, words_at, table, fixed, other):  # type: ignore[no-untyped-def]
    for k in range(fixed[table, COUNT]):
        c = fixed[table, CLASSES + k]
        if key[words_at + c] != other[WORDS + c]:
            return False
    return True


@inlined
def link_all(node, made, row, end, ahead, fixed, of_node, store):  # type: ignore[no-untyped-def]
    """New tuples of a node are found from now on. Where their chains begin is read ahead, as in `grow`."""
    tuples, _, _, _, _, _, _, heads, ranges, counts = store
    counts[node] += end - row
    seen = np.int64(0)
    while row < end:
        ready = min(AHEAD, end - row)
        for table in range(of_node[node, 0], of_node[node, 1]):
            at = fixed[table, LINK]
            for i in range(ready):
                ahead[i] = bucket(tuples[made[row + i]], WORDS, table, fixed, ranges)
            for i in range(ready):
                if heads[ahead[i]] >= 0:
                    seen += tuples[heads[ahead[i]], at]
            for i in range(ready):
                p = made[row + i]
                following = heads[ahead[i]]
                tuples[p, at] = following
                tuples[p, at + 1] = -1
                if following >= 0:
                    tuples[following, at + 1] = p
                heads[ahead[i]] = p
        row += ready
    return seen


@inlined
def unlink(p, node, fixed, of_node, store):  # type: ignore[no-untyped-def]
    tuples, _, _, _, _, _, _, heads, ranges, counts = store
    counts[node] -= 1
    for table in range(of_node[node, 0], of_node[node, 1]):
        at = fixed[table, LINK]
        following = tuples[p, at]
        previous = tuples[p, at + 1]
        if previous >= 0:
            tuples[previous, at] = following
        else:
            heads[bucket(tuples[p], WORDS, table, fixed, ranges)] = following
        if following >= 0:
            tuples[following, at + 1] = previous


@jit
def spread(table, old, heads, fixed, ranges, tuples):  # type: ignore[no-untyped-def]
    """Lay the chains of a table, which begin in `old`, anew."""
    at = fixed[table, LINK]
    for i in range(len(old)):
        p = old[i]
        while p >= 0:
            following = tuples[p, at]
            head = bucket(tuples[p], WORDS, table, fixed, ranges)
            tuples[p, at] = heads[head]
            tuples[p, at + 1] = -1
            if heads[head] >= 0:
                tuples[heads[head], at + 1] = p
            heads[head] = p
            p = following


@jit
def ends(te, open_id):  # type: ignore[no-untyped-def]
    """The ends of rows, OPEN_END where they have an open row id."""
    until = te.copy()
    for row in range(len(te)):
        if open_id[row] != NO_OPEN_ID:
            until[row] = OPEN_END
    return until


@jit
def begun(i, inputs, positions, begins, ends):  # type: ignore[no-untyped-def]
    """Partial answers of which only the member of input i is bound."""
    partial = np.full((len(positions), inputs + 3), -1, dtype=np.int64)
    for row in range(len(positions)):
        partial[row, i] = positions[row]
        partial[row, inputs] = begins[row]
        partial[row, inputs + 1] = ends[row]
        partial[row, inputs + 2] = row
    return partial


@jit
def meet(partial, words, table, row, p, limit, frontier, fixed, members_at, store):  # type: ignore[no-untyped-def]
    """Partial answers from number `row` on, each with every tuple of a table that has its key.

    A partial answer is its members (-1 where there is none yet), ta, te, and the number of its row in `words`. As in
    `extend.py`, te is OPEN_END where the first member to end is not known yet. `p` is where to go on in the chain (-2:
    at its head). Stops at `limit` and says where.
    """
    tuples, _, _, _, _, _, _, heads, ranges, _ = store
    at = fixed[table, LINK]
    inputs = partial.shape[1] - 3
    size = min(limit, len(partial) + 64)
    met = np.empty((size, partial.shape[1]), dtype=np.int64)
    count = 0
    while row < len(partial):
        key = words[partial[row, inputs + 2]]
        begin = partial[row, inputs]
        end = partial[row, inputs + 1]
        if p == -2:
            p = heads[bucket(key, 0, table, fixed, ranges)]
        while p >= 0:
            if begin < tuples[p, END] and tuples[p, BEGIN] < end and same(key, 0, table, fixed, tuples[p]):
                if count == limit:
                    return met, row, p
                if count == size:
                    size = min(limit, 2 * size)
                    bigger = np.empty((size, partial.shape[1]), dtype=np.int64)
                    bigger[:count] = met
                    met = bigger
                for i in range(inputs):
                    met[count, i] = partial[row, i] & tuples[p, members_at[1] + i]
                first = min(end, tuples[p, END])
                is_open = tuples[p, OPEN] or end == OPEN_END
                met[count, inputs] = max(begin, tuples[p, BEGIN])
                met[count, inputs + 1] = OPEN_END if first > frontier and is_open else first
                met[count, inputs + 2] = partial[row, inputs + 2]
                count += 1
            p = tuples[p, at]
        row += 1
        p = -2
    return met[:count], row, p


@jit
def buckets_of(numbers, table, fixed, ranges, tuples):  # type: ignore[no-untyped-def]
    """Where the chains of these tuples begin."""
    buckets = np.empty(len(numbers), dtype=np.int64)
    for i in range(len(numbers)):
        buckets[i] = bucket(tuples[numbers[i]], WORDS, table, fixed, ranges)
    return buckets
