"""Rows in their order, one tree for each partition: which row has a place, and which place has a row, in O(log n).

A treap over the numbers of values, of which equal rows share one. `nodes[v]` is the node of value v: parent, left and
right (-1: none), how many rows and how many groups there are in the tree below and with it, its own rows, whether it is
the first of its group (rows that ORDER BY does not tell apart), and the first bytes of its key as a word: mostly they
tell who comes first, and nothing but the nodes on the way has to be looked at. A node without rows is in no tree. What
decides who is above whom is drawn from the number of the value, which knows nothing of the order.

`trees` are the roots of the partitions and the partition of each value; `texts` the arena, start and length of the
values' keys and how many bytes of them are of ORDER BY.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from transom.kernels.jit import borrowing, jit
from transom.state.allocator import aligned_zeros

PARENT, LEFT, RIGHT, ROWS, GROUPS, WEIGHT, FIRST, HEAD = range(8)
WIDTH = 8


AHEAD = 32  # values whose way down is read together
LARGE = 1 << 12  # so many nodes are in no cache that is near


def grown_nodes(nodes: Any, needed: int) -> Any:
    """A copy with room for so many nodes, at least twice the old."""
    bigger = aligned_zeros((max(needed, 2 * len(nodes), 64), WIDTH), np.int64)
    bigger[: len(nodes)] = nodes
    return bigger


@borrowing
def priority(v):  # type: ignore[no-untyped-def]
    word = np.uint64(v + 1) * np.uint64(0x9E3779B97F4A7C15)
    word ^= word >> np.uint64(32)
    word *= np.uint64(0xD6E8FEB86659FD93)
    return word ^ (word >> np.uint64(32))


@borrowing
def precedes(nodes, a, b, texts):  # type: ignore[no-untyped-def]
    """Whether value a comes before value b."""
    if nodes[a, HEAD] != nodes[b, HEAD]:
        return nodes[a, HEAD] < nodes[b, HEAD]
    arena, start, length, _ = texts
    i, j = start[a], start[b]
    shorter = min(length[a], length[b])
    for k in range(shorter):
        if arena[i + k] != arena[j + k]:
            return arena[i + k] < arena[j + k]
    return length[a] < length[b]


@borrowing
def same_group(a, b, texts):  # type: ignore[no-untyped-def]
    arena, start, _, prefix = texts
    if prefix[a] != prefix[b]:
        return False
    i, j = start[a], start[b]
    for k in range(prefix[a]):  # noqa: SIM110 -- compiled: numba takes no generator
        if arena[i + k] != arena[j + k]:
            return False
    return True


@borrowing
def add_up(nodes, v, rows, groups):  # type: ignore[no-untyped-def]
    """Count so many more rows and groups below this node and all above it."""
    while v >= 0:
        nodes[v, ROWS] += rows
        nodes[v, GROUPS] += groups
        v = nodes[v, PARENT]


@borrowing
def recount(nodes, v):  # type: ignore[no-untyped-def]
    left, right = nodes[v, LEFT], nodes[v, RIGHT]
    rows, groups = nodes[v, WEIGHT], nodes[v, FIRST]
    if left >= 0:
        rows += nodes[left, ROWS]
        groups += nodes[left, GROUPS]
    if right >= 0:
        rows += nodes[right, ROWS]
        groups += nodes[right, GROUPS]
    nodes[v, ROWS] = rows
    nodes[v, GROUPS] = groups


@borrowing
def rotate_up(nodes, trees, v):  # type: ignore[no-untyped-def]
    """The node takes the place of its parent, which goes below it."""
    parent = nodes[v, PARENT]
    above = nodes[parent, PARENT]
    if nodes[parent, LEFT] == v:
        between = nodes[v, RIGHT]
        nodes[parent, LEFT] = between
        nodes[v, RIGHT] = parent
    else:
        between = nodes[v, LEFT]
        nodes[parent, RIGHT] = between
        nodes[v, LEFT] = parent
    if between >= 0:
        nodes[between, PARENT] = parent
    nodes[parent, PARENT] = v
    nodes[v, PARENT] = above
    if above < 0:
        trees[0][trees[1][v]] = v
    elif nodes[above, LEFT] == parent:
        nodes[above, LEFT] = v
    else:
        nodes[above, RIGHT] = v
    recount(nodes, parent)
    recount(nodes, v)


@borrowing
def link(nodes, trees, v, grouped, texts):  # type: ignore[no-untyped-def]
    """Put a value with its rows into the tree of its partition; `grouped`: groups are counted."""
    nodes[v, LEFT] = -1
    nodes[v, RIGHT] = -1
    nodes[v, FIRST] = 0
    nodes[v, ROWS] = nodes[v, WEIGHT]
    nodes[v, GROUPS] = 0
    at = trees[0][trees[1][v]]
    parent = -1
    side = LEFT
    while at >= 0:
        parent = at
        side = LEFT if precedes(nodes, v, at, texts) else RIGHT
        at = nodes[at, side]
    nodes[v, PARENT] = parent
    if parent < 0:
        trees[0][trees[1][v]] = v
    else:
        nodes[parent, side] = v
        add_up(nodes, parent, nodes[v, WEIGHT], 0)
        while nodes[v, PARENT] >= 0 and priority(v) > priority(nodes[v, PARENT]):
            rotate_up(nodes, trees, v)
    if grouped:
        before = neighbour(nodes, v, LEFT)
        if before < 0 or not same_group(before, v, texts):
            nodes[v, FIRST] = 1
            add_up(nodes, v, 0, 1)
            after = neighbour(nodes, v, RIGHT)
            if after >= 0 and nodes[after, FIRST] and same_group(v, after, texts):
                nodes[after, FIRST] = 0
                add_up(nodes, after, 0, -1)


@borrowing
def unlink(nodes, trees, v, texts):  # type: ignore[no-untyped-def]
    """Take a value out of its tree, with the rows that it still has there."""
    if nodes[v, FIRST]:
        after = neighbour(nodes, v, RIGHT)
        if after >= 0 and not nodes[after, FIRST]:
            nodes[after, FIRST] = 1
            add_up(nodes, after, 0, 1)
        nodes[v, FIRST] = 0
        add_up(nodes, v, 0, -1)
    while nodes[v, LEFT] >= 0 or nodes[v, RIGHT] >= 0:
        left, right = nodes[v, LEFT], nodes[v, RIGHT]
        if right < 0 or (left >= 0 and priority(left) > priority(right)):
            rotate_up(nodes, trees, left)
        else:
            rotate_up(nodes, trees, right)
    parent = nodes[v, PARENT]
    if parent < 0:
        trees[0][trees[1][v]] = -1
    else:
        if nodes[parent, LEFT] == v:
            nodes[parent, LEFT] = -1
        else:
            nodes[parent, RIGHT] = -1
        add_up(nodes, parent, -nodes[v, WEIGHT], 0)
    nodes[v, PARENT] = -1
    nodes[v, ROWS] = 0
    nodes[v, WEIGHT] = 0


@borrowing
def fetch_paths(nodes, trees, values, first, behind, at):  # type: ignore[no-untyped-def]
    """Read the nodes above some values whose rows are about to come or to go, of all of them side by side.

    On the way down a node has to be there before it is known which is the next, and in a large tree most are far away.
    For many values at a time they are fetched together, with those on their left, whose rows are counted on the way up,
    and found nearby when it is their turn. Nothing is changed, and what is given is of no use, but that somebody takes
    it. `at` has room for the values.
    """
    roots, part = trees
    seen = np.int64(0)
    walking = 0
    for i in range(first, behind):
        at[i - first] = roots[part[values[i]]]
        walking += at[i - first] >= 0
    while walking:
        walking = 0
        for i in range(first, behind):
            node = at[i - first]
            if node < 0:
                continue
            left = nodes[node, LEFT]
            if left >= 0:
                seen += nodes[left, ROWS]
            arrived = node == values[i]
            following = left if nodes[values[i], HEAD] < nodes[node, HEAD] else nodes[node, RIGHT]
            at[i - first] = np.int64(-1) if arrived else following
            walking += at[i - first] >= 0
    return seen


@borrowing
def neighbour(nodes, v, side):  # type: ignore[no-untyped-def]
    """The value before (LEFT) or after (RIGHT) this one, or -1."""
    other = LEFT + RIGHT - side
    at = nodes[v, side]
    if at >= 0:
        while nodes[at, other] >= 0:
            at = nodes[at, other]
        return at
    at = v
    above = nodes[v, PARENT]
    while above >= 0 and nodes[above, side] == at:
        at = above
        above = nodes[above, PARENT]
    return above


@borrowing
def before(nodes, v, total, own):  # type: ignore[no-untyped-def]
    """How many rows (ROWS, WEIGHT) or groups (GROUPS, FIRST) there are before a value."""
    left = nodes[v, LEFT]
    count = nodes[left, total] if left >= 0 else 0
    at = v
    above = nodes[v, PARENT]
    while above >= 0:
        if nodes[above, RIGHT] == at:
            count += nodes[above, own]
            left = nodes[above, LEFT]
            if left >= 0:
                count += nodes[left, total]
        at = above
        above = nodes[above, PARENT]
    return count


@borrowing
def select(nodes, root, rank, total, own):  # type: ignore[no-untyped-def]
    """The value that has the row, or begins the group, of this place, counted from 1; -1 where there are fewer."""
    at = root
    if at < 0 or rank > nodes[at, total]:
        return -1
    while True:
        left = nodes[at, LEFT]
        if left >= 0:
            if rank <= nodes[left, total]:
                at = left
                continue
            rank -= nodes[left, total]
        if rank <= nodes[at, own]:
            return at
        rank -= nodes[at, own]
        at = nodes[at, RIGHT]


@borrowing
def not_before(nodes, root, v, texts):  # type: ignore[no-untyped-def]
    """The first value in the tree that is not before the given one, which need not be there; -1: there is none."""
    first = -1
    at = root
    while at >= 0:
        if precedes(nodes, at, v, texts):
            at = nodes[at, RIGHT]
        else:
            first = at
            at = nodes[at, LEFT]
    return first


@borrowing
def last_of(nodes, root):  # type: ignore[no-untyped-def]
    at = root
    while at >= 0 and nodes[at, RIGHT] >= 0:
        at = nodes[at, RIGHT]
    return at


@borrowing
def number_of(nodes, v, dense):  # type: ignore[no-untyped-def]
    """The number that RANK, or DENSE_RANK, gives the rows of a value."""
    groups = before(nodes, v, GROUPS, FIRST) + nodes[v, FIRST]
    if dense:
        return groups
    first = v
    if not nodes[v, FIRST]:
        root = v
        while nodes[root, PARENT] >= 0:
            root = nodes[root, PARENT]
        first = select(nodes, root, groups, GROUPS, FIRST)
    return before(nodes, first, ROWS, WEIGHT) + 1


@borrowing
def group_at(nodes, root, number, dense):  # type: ignore[no-untyped-def]
    """The first value of the group that has this number, or -1."""
    if dense:
        return select(nodes, root, number, GROUPS, FIRST)
    first = select(nodes, root, number, ROWS, WEIGHT)
    if first >= 0 and nodes[first, FIRST] and before(nodes, first, ROWS, WEIGHT) == number - 1:
        return first
    return -1


@jit
def sound_trees(nodes, roots, part, high, seen, waiting):  # type: ignore[no-untyped-def]
    """Whether the trees hold together: links agree both ways, no value is met twice, and the sums are right.

    Which values were met is in `seen`; in which order they lie is another matter.
    """
    for p in range(len(roots)):
        root = roots[p]
        if root < 0:
            continue
        if root >= high or seen[root] or nodes[root, PARENT] != -1:
            return False
        count = 1
        done = 0
        seen[root] = True
        waiting[0] = root
        while done < count:
            at = waiting[done]
            done += 1
            if part[at] != p or nodes[at, WEIGHT] <= 0 or nodes[at, FIRST] not in (0, 1):
                return False
            for side in (LEFT, RIGHT):
                child = nodes[at, side]
                if child < 0:
                    continue
                if child >= high or seen[child] or nodes[child, PARENT] != at:
                    return False
                seen[child] = True
                waiting[count] = child
                count += 1
        for i in range(count - 1, -1, -1):  # children before parents
            at = waiting[i]
            rows, groups = nodes[at, ROWS], nodes[at, GROUPS]
            recount(nodes, at)
            if nodes[at, ROWS] != rows or nodes[at, GROUPS] != groups:
                return False
    return True
