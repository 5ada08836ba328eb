"""The k-th of a changing set: search trees over row slots, one root per group, any row removable in O(log n).

A tree is a treap: ordered by value (then by slot) from left to right, and from the root down by a number that is mixed
from the slot, so that it is as balanced as one built in random order, and the same after a restart. Rows are slots;
`nodes[slot]` has the left and the right child and the parent (-1 is none), the weight of all below and itself, that of
all below on the left, its own, and the value in two words, compared as in `ordered.py`. A row has a weight: how often
its value counts. A node is one line of the cache, and on the way down no other is looked at: a large tree is in memory
far away, and to wait for that is most of what a row costs there (`fetch_paths`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from transom.core.delta import Int64s
from transom.kernels.aggregate.ordered import ANY_GROUP, compare, slot_of
from transom.kernels.jit import borrowing, jit
from transom.state.allocator import aligned_zeros
from transom.state.checks import need

LEFT, RIGHT, PARENT, WEIGHT, BEFORE, OWN, HI, LO = range(8)
NODE = 8
AHEAD = 32  # rows whose way down is read together
LARGE = 1 << 12  # so many nodes are in no cache that is near


def grown_nodes(nodes: Int64s, size: int) -> Int64s:
    """A copy with room for so many nodes in each of the trees."""
    bigger = aligned_zeros((len(nodes), size, NODE), np.int64)
    bigger[:, : nodes.shape[1]] = nodes
    return bigger


@borrowing
def height(slot):  # type: ignore[no-untyped-def]
    """The number by which a slot is above others (the finisher of MurmurHash3)."""
    word = np.uint64(slot) + np.uint64(0x9E3779B97F4A7C15)
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xFF51AFD7ED558CCD)
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> np.uint64(33))


@borrowing
def precedes(a, b, nodes, values, texts):  # type: ignore[no-untyped-def]
    """Whether slot a comes before slot b, by value and then by slot; both have nodes."""
    if nodes[a, HI] != nodes[b, HI]:
        return nodes[a, HI] < nodes[b, HI]
    if nodes[a, LO] != nodes[b, LO]:
        return np.uint64(nodes[a, LO]) < np.uint64(nodes[b, LO])
    order = compare(a, b, values, texts)
    return order < 0 or (order == 0 and a < b)


@borrowing
def put_below(above, slot, instead, nodes):  # type: ignore[no-untyped-def]
    """Make `instead` the child of `above` that `slot` is."""
    if above >= 0:
        if nodes[above, LEFT] == slot:
            nodes[above, LEFT] = instead
        else:
            nodes[above, RIGHT] = instead
    if instead >= 0:
        nodes[instead, PARENT] = above


@borrowing
def rise(slot, nodes):  # type: ignore[no-untyped-def]
    """Let a slot change places with its parent; the order from left to right stays."""
    parent = nodes[slot, PARENT]
    put_below(nodes[parent, PARENT], parent, slot, nodes)
    if nodes[parent, LEFT] == slot:
        moved = nodes[slot, RIGHT]
        below = nodes[parent, BEFORE] - nodes[slot, BEFORE] - nodes[slot, OWN]
        nodes[parent, LEFT] = moved
        nodes[parent, BEFORE] = below
        nodes[slot, RIGHT] = parent
    else:
        moved = nodes[slot, LEFT]
        below = nodes[slot, BEFORE]
        nodes[parent, RIGHT] = moved
        nodes[slot, LEFT] = parent
        nodes[slot, BEFORE] = below + nodes[parent, BEFORE] + nodes[parent, OWN]
    if moved >= 0:
        nodes[moved, PARENT] = parent
    nodes[parent, PARENT] = slot
    whole = nodes[parent, WEIGHT]
    nodes[parent, WEIGHT] = whole - nodes[slot, WEIGHT] + below
    nodes[slot, WEIGHT] = whole


@borrowing
def insert(root, slot, weight, nodes, values, texts):  # type: ignore[no-untyped-def]
    nodes[slot, LEFT] = -1
    nodes[slot, RIGHT] = -1
    nodes[slot, PARENT] = -1
    nodes[slot, WEIGHT] = weight
    nodes[slot, BEFORE] = 0
    nodes[slot, OWN] = weight
    nodes[slot, HI] = values[0][slot_of(values, slot)]
    nodes[slot, LO] = np.int64(values[1][slot_of(values, slot)])
    at = root
    while at >= 0:
        nodes[at, WEIGHT] += weight
        side = RIGHT
        if precedes(slot, at, nodes, values, texts):
            side = LEFT
            nodes[at, BEFORE] += weight
        if nodes[at, side] < 0:
            nodes[at, side] = slot
            nodes[slot, PARENT] = at
            break
        at = nodes[at, side]
    while nodes[slot, PARENT] >= 0 and height(nodes[slot, PARENT]) < height(slot):
        rise(slot, nodes)
    return root if nodes[slot, PARENT] >= 0 else slot


@borrowing
def remove(root, slot, nodes):  # type: ignore[no-untyped-def]
    while nodes[slot, LEFT] >= 0 and nodes[slot, RIGHT] >= 0:
        left, right = nodes[slot, LEFT], nodes[slot, RIGHT]
        higher = left if height(left) > height(right) else right
        rise(higher, nodes)
        if slot == root:
            root = higher
    weigh(slot, -nodes[slot, OWN], nodes)
    child = max(nodes[slot, LEFT], nodes[slot, RIGHT])
    put_below(nodes[slot, PARENT], slot, child, nodes)
    return child if slot == root else root


@borrowing
def weigh(slot, more, nodes):  # type: ignore[no-untyped-def]
    """Let the value of a slot count so many times more."""
    nodes[slot, OWN] += more
    nodes[slot, WEIGHT] += more
    below = slot
    at = nodes[slot, PARENT]
    while at >= 0:
        nodes[at, WEIGHT] += more
        if nodes[at, LEFT] == below:
            nodes[at, BEFORE] += more
        below = at
        at = nodes[at, PARENT]


@borrowing
def fetch_paths(slots, groups, first, behind, roots, nodes, values, at):  # type: ignore[no-untyped-def]
    """Read the nodes above some rows that are about to come or to go, of all of them side by side.

    On the way down a node has to be there before it is known which is the next. For many rows at a time they are
    fetched together, and found nearby when it is their turn. Nothing is changed, and what is given is of no use, but
    that somebody takes it. `at` has room for the rows.
    """
    hi, lo = values[0], values[1]
    seen = np.int64(0)
    walking = 0
    for i in range(first, behind):
        at[i - first] = roots[groups[i]] if slots[i] >= 0 else np.int64(-1)
        walking += at[i - first] >= 0
    while walking:
        walking = 0
        for i in range(first, behind):
            node = at[i - first]
            if node < 0:
                continue
            slot = slots[i]
            less = slot < node
            if lo[slot] != np.uint64(nodes[node, LO]):
                less = lo[slot] < np.uint64(nodes[node, LO])
            if hi[slot] != nodes[node, HI]:
                less = hi[slot] < nodes[node, HI]
            seen += node
            at[i - first] = nodes[node, LEFT] if less else nodes[node, RIGHT]
            walking += at[i - first] >= 0
    return seen


@borrowing
def beside(slot, side, nodes):  # type: ignore[no-untyped-def]
    """The slot just before (LEFT) or just behind (RIGHT) another in the order, or -1."""
    other = RIGHT if side == LEFT else LEFT
    at = nodes[slot, side]
    if at >= 0:
        while nodes[at, other] >= 0:
            at = nodes[at, other]
        return at
    at = slot
    above = nodes[at, PARENT]
    while above >= 0 and nodes[above, side] == at:
        at = above
        above = nodes[at, PARENT]
    return above


@borrowing
def equal_beside(slot, nodes, values, texts):  # type: ignore[no-untyped-def]
    """A slot beside another that has an equal value, or -1."""
    for side in (LEFT, RIGHT):
        at = beside(slot, side, nodes)
        if at >= 0 and compare(at, slot, values, texts) == 0:
            return at
    return np.int64(-1)


@borrowing
def insert_once(root, slot, nodes, values, texts):  # type: ignore[no-untyped-def]
    """Insert a value where equal ones count once: of those that are beside each other one has the weight 1."""
    root = insert(root, slot, 0, nodes, values, texts)
    if equal_beside(slot, nodes, values, texts) < 0:
        weigh(slot, 1, nodes)
    return root


@borrowing
def remove_once(root, slot, nodes, values, texts):  # type: ignore[no-untyped-def]
    if nodes[slot, OWN] > 0:
        heir = equal_beside(slot, nodes, values, texts)
        if heir >= 0:
            weigh(slot, -1, nodes)
            weigh(heir, 1, nodes)
    return remove(root, slot, nodes)


@borrowing
def kth(root, k, nodes):  # type: ignore[no-untyped-def]
    """The slot with the k-th value, counted from 0; there are more than k."""
    at = root
    while True:
        if k < nodes[at, BEFORE]:
            at = nodes[at, LEFT]
            continue
        k -= nodes[at, BEFORE]
        if k < nodes[at, OWN]:
            return at
        k -= nodes[at, OWN]
        at = nodes[at, RIGHT]


def check_trees(roots: Any, nodes: Any, members: Any, group: Any) -> None:
    """The tree of every group has its members, and these alone, each once; and links and weights agree."""
    seen = np.zeros(len(members), dtype=np.bool_)
    need(bool(_walk(roots, np.ascontiguousarray(nodes), group, seen, np.empty(len(group), dtype=np.int64))))
    need(bool((seen == members).all()))


@jit
def _walk(roots, nodes, group, seen, waiting):  # type: ignore[no-untyped-def]
    for g in range(len(roots)):
        root = roots[g]
        if root < 0:
            continue
        if root >= len(seen) or seen[root] or nodes[root, PARENT] != -1:
            return False
        seen[root] = True
        waiting[0] = root
        count = 1
        while count:
            count -= 1
            slot = waiting[count]
            if group[slot] != g and group[slot] != ANY_GROUP:
                return False
            below = np.int64(0)
            on_the_left = np.int64(0)
            for side in (LEFT, RIGHT):
                child = nodes[slot, side]
                if child < 0:
                    continue
                if child >= len(seen) or seen[child] or nodes[child, PARENT] != slot or nodes[child, WEIGHT] < 0:
                    return False
                seen[child] = True
                below += nodes[child, WEIGHT]
                if side == LEFT:
                    on_the_left = nodes[child, WEIGHT]
                waiting[count] = child
                count += 1
            if nodes[slot, BEFORE] != on_the_left or nodes[slot, OWN] < 0:
                return False
            if nodes[slot, WEIGHT] != below + nodes[slot, OWN]:
                return False
    return True
