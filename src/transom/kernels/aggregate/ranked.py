"""The k-th of a changing set: search trees over row slots, one root per group, any row removable in O(log n).

A tree is a treap: ordered by value (then by slot) from left to right, and from the root down by a number that is mixed
from the slot, so that it is as balanced as one built in random order, and the same after a restart. Rows are slots;
`links[0..3, slot]` are the left and the right child, the parent, and the weight of all below and itself; -1 is none. A
row has a weight: how often its value counts. Values are compared as in `ordered.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from transom.kernels.aggregate.ordered import ANY_GROUP, compare
from transom.kernels.jit import borrowing, jit
from transom.state.checks import need

LEFT, RIGHT, PARENT, WEIGHT = range(4)


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
def weight_of(slot, links):  # type: ignore[no-untyped-def]
    """Of all from a slot down; of none 0."""
    return links[WEIGHT, slot] if slot >= 0 else np.int64(0)


@borrowing
def own_weight(slot, links):  # type: ignore[no-untyped-def]
    below = weight_of(links[LEFT, slot], links) + weight_of(links[RIGHT, slot], links)
    return links[WEIGHT, slot] - below


@borrowing
def put_below(above, slot, instead, links):  # type: ignore[no-untyped-def]
    """Make `instead` the child of `above` that `slot` is."""
    if above >= 0:
        if links[LEFT, above] == slot:
            links[LEFT, above] = instead
        else:
            links[RIGHT, above] = instead
    if instead >= 0:
        links[PARENT, instead] = above


@borrowing
def rise(slot, links):  # type: ignore[no-untyped-def]
    """Let a slot change places with its parent; the order from left to right stays."""
    parent = links[PARENT, slot]
    put_below(links[PARENT, parent], parent, slot, links)
    if links[LEFT, parent] == slot:
        moved = links[RIGHT, slot]
        links[LEFT, parent] = moved
        links[RIGHT, slot] = parent
    else:
        moved = links[LEFT, slot]
        links[RIGHT, parent] = moved
        links[LEFT, slot] = parent
    if moved >= 0:
        links[PARENT, moved] = parent
    links[PARENT, parent] = slot
    whole = links[WEIGHT, parent]
    links[WEIGHT, parent] = whole - links[WEIGHT, slot] + weight_of(moved, links)
    links[WEIGHT, slot] = whole


@borrowing
def insert(root, slot, weight, links, values, texts):  # type: ignore[no-untyped-def]
    links[LEFT, slot] = -1
    links[RIGHT, slot] = -1
    links[PARENT, slot] = -1
    links[WEIGHT, slot] = weight
    at = root
    while at >= 0:
        links[WEIGHT, at] += weight
        order = compare(slot, at, values, texts)
        side = LEFT if order < 0 or (order == 0 and slot < at) else RIGHT
        if links[side, at] < 0:
            links[side, at] = slot
            links[PARENT, slot] = at
            break
        at = links[side, at]
    while links[PARENT, slot] >= 0 and height(links[PARENT, slot]) < height(slot):
        rise(slot, links)
    return root if links[PARENT, slot] >= 0 else slot


@borrowing
def remove(root, slot, links):  # type: ignore[no-untyped-def]
    while links[LEFT, slot] >= 0 and links[RIGHT, slot] >= 0:
        left, right = links[LEFT, slot], links[RIGHT, slot]
        higher = left if height(left) > height(right) else right
        rise(higher, links)
        if slot == root:
            root = higher
    child = max(links[LEFT, slot], links[RIGHT, slot])
    weight = own_weight(slot, links)
    at = links[PARENT, slot]
    put_below(at, slot, child, links)
    if slot == root:
        root = child
    while at >= 0:
        links[WEIGHT, at] -= weight
        at = links[PARENT, at]
    return root


@borrowing
def weigh(slot, more, links):  # type: ignore[no-untyped-def]
    """Let the value of a slot count so many times more."""
    while slot >= 0:
        links[WEIGHT, slot] += more
        slot = links[PARENT, slot]


@borrowing
def beside(slot, side, links):  # type: ignore[no-untyped-def]
    """The slot just before (LEFT) or just behind (RIGHT) another in the order, or -1."""
    other = RIGHT if side == LEFT else LEFT
    at = links[side, slot]
    if at >= 0:
        while links[other, at] >= 0:
            at = links[other, at]
        return at
    at = slot
    above = links[PARENT, at]
    while above >= 0 and links[side, above] == at:
        at = above
        above = links[PARENT, at]
    return above


@borrowing
def equal_beside(slot, links, values, texts):  # type: ignore[no-untyped-def]
    """A slot beside another that has an equal value, or -1."""
    for side in (LEFT, RIGHT):
        at = beside(slot, side, links)
        if at >= 0 and compare(at, slot, values, texts) == 0:
            return at
    return np.int64(-1)


@borrowing
def insert_once(root, slot, links, values, texts):  # type: ignore[no-untyped-def]
    """As `insert`, where equal values count once: one of those that are beside each other has the weight 1."""
    root = insert(root, slot, 0, links, values, texts)
    if equal_beside(slot, links, values, texts) < 0:
        weigh(slot, 1, links)
    return root


@borrowing
def remove_once(root, slot, links, values, texts):  # type: ignore[no-untyped-def]
    if own_weight(slot, links) > 0:
        heir = equal_beside(slot, links, values, texts)
        if heir >= 0:
            weigh(slot, -1, links)
            weigh(heir, 1, links)
    return remove(root, slot, links)


@borrowing
def kth(root, k, links):  # type: ignore[no-untyped-def]
    """The slot with the k-th value, counted from 0; there are more than k."""
    at = root
    while True:
        before = weight_of(links[LEFT, at], links)
        if k < before:
            at = links[LEFT, at]
            continue
        k -= before
        own = own_weight(at, links)
        if k < own:
            return at
        k -= own
        at = links[RIGHT, at]


def check_trees(roots: Any, links: Any, members: Any, group: Any) -> None:
    """The tree of every group has its members, and these alone, each once; and links and weights agree."""
    seen = np.zeros(len(members), dtype=np.bool_)
    need(bool(_walk(roots, np.ascontiguousarray(links), group, seen, np.empty(len(group), dtype=np.int64))))
    need(bool((seen == members).all()))


@jit
def _walk(roots, links, group, seen, waiting):  # type: ignore[no-untyped-def]
    for g in range(len(roots)):
        root = roots[g]
        if root < 0:
            continue
        if root >= len(seen) or seen[root] or links[PARENT, root] != -1:
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
            for side in (LEFT, RIGHT):
                child = links[side, slot]
                if child < 0:
                    continue
                if child >= len(seen) or seen[child] or links[PARENT, child] != slot or links[WEIGHT, child] < 0:
                    return False
                seen[child] = True
                below += links[WEIGHT, child]
                waiting[count] = child
                count += 1
            if links[WEIGHT, slot] < below:
                return False
    return True
