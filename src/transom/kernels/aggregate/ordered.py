"""The least of a changing set: pairing heaps over row slots, one root per group, any row removable in O(log n).

Rows are slots; `links[0..2, slot]` are first child, next sibling and (for a first child) parent or (otherwise) previous
sibling; -1 is none. Values are compared by (hi, lo) as a signed and an unsigned word, then, for texts longer than 16
bytes, by the rest of their bytes: text k of `width` in a slot is entry slot * width + k of `start` and `length`; k = -1
is no text. `values` are hi and lo; with a third array `at` the value of slot s is that in slot at[s].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from transom.kernels.jit import borrowing, jit
from transom.state.checks import need

ANY_GROUP = -2  # of a slot whose group is not known


def slot_of(values: Any, slot: Any) -> Any:
    """Where the value of a slot is."""
    return slot if len(values) == 2 else values[2][slot]


@overload(slot_of)
def _slot_of(values, slot):  # type: ignore[no-untyped-def]
    """Which of the two kinds of values there is, is settled when the loop is compiled."""
    if len(values) == 2:
        return lambda values, slot: slot
    return lambda values, slot: values[2][slot]


@borrowing
def compare(a, b, values, texts):  # type: ignore[no-untyped-def]
    """Negative, zero or positive as the value in slot a is less than, equal to or greater than that in slot b."""
    hi, lo = values[0], values[1]
    start, length, arena, width, k = texts
    a = slot_of(values, a)
    b = slot_of(values, b)
    if hi[a] != hi[b]:
        return -1 if hi[a] < hi[b] else 1
    if lo[a] != lo[b]:
        return -1 if lo[a] < lo[b] else 1
    if k < 0:
        return 0
    a = a * width + k
    b = b * width + k
    shorter = min(length[a], length[b])
    for i in range(16, shorter):
        x = arena[start[a] + i]
        y = arena[start[b] + i]
        if x != y:
            return -1 if x < y else 1
    return length[a] - length[b]


@borrowing
def meld(a, b, turn, links, values, texts):  # type: ignore[no-untyped-def]
    """One heap of two; a root has neither sibling nor parent. `turn` is 1 for the least, -1 for the greatest on top."""
    if a < 0:
        return b
    if b < 0:
        return a
    if turn * compare(b, a, values, texts) < 0:
        a, b = b, a
    child = links[0, a]
    links[1, b] = child
    if child >= 0:
        links[2, child] = b
    links[2, b] = a
    links[0, a] = b
    return a


@borrowing
def meld_children(slot, turn, links, values, texts):  # type: ignore[no-untyped-def]
    """One heap of the children of a slot: in pairs from the left, then together from the right."""
    at = links[0, slot]
    links[0, slot] = -1
    done = -1  # the pairs made so far, linked backwards by links[2]
    while at >= 0:
        second = links[1, at]
        links[1, at] = -1
        links[2, at] = -1
        if second < 0:
            links[2, at] = done
            done = at
            break
        following = links[1, second]
        links[1, second] = -1
        links[2, second] = -1
        pair = meld(at, second, turn, links, values, texts)
        links[2, pair] = done
        done = pair
        at = following
    root = -1
    while done >= 0:
        before = links[2, done]
        links[2, done] = -1
        root = meld(root, done, turn, links, values, texts)
        done = before
    return root


@borrowing
def insert(root, slot, turn, links, values, texts):  # type: ignore[no-untyped-def]
    links[0, slot] = -1
    links[1, slot] = -1
    links[2, slot] = -1
    return meld(root, slot, turn, links, values, texts)


@borrowing
def remove(root, slot, turn, links, values, texts):  # type: ignore[no-untyped-def]
    below = meld_children(slot, turn, links, values, texts)
    if slot == root:
        return below
    previous = links[2, slot]
    following = links[1, slot]
    if links[0, previous] == slot:
        links[0, previous] = following
    else:
        links[1, previous] = following
    if following >= 0:
        links[2, following] = previous
    links[1, slot] = -1
    links[2, slot] = -1
    return meld(root, below, turn, links, values, texts)


def check_heaps(roots: Any, links: Any, members: Any, group: Any) -> None:
    """The heap of every group has its members, and these alone, each once; and the links agree both ways."""
    seen = np.zeros(len(members), dtype=np.bool_)
    seen[heap_members(roots, links, group)] = True
    need(bool((seen == members).all()))


def heap_members(roots: Any, links: Any, group: Any) -> Any:
    """The slots that are in the heaps of their groups."""
    seen = np.zeros(len(group), dtype=np.bool_)
    need(walk_heaps(roots, np.ascontiguousarray(links), group, seen, np.empty(len(group), dtype=np.int64)))
    return np.flatnonzero(seen)


@jit
def walk_heaps(roots, links, group, seen, waiting):  # type: ignore[no-untyped-def]
    for g in range(len(roots)):
        root = roots[g]
        if root < 0:
            continue
        if root >= len(seen) or seen[root] or links[1, root] != -1 or links[2, root] != -1:
            return False
        seen[root] = True
        waiting[0] = root
        count = 1
        while count:
            count -= 1
            slot = waiting[count]
            if group[slot] != g and group[slot] != ANY_GROUP:
                return False
            before = slot
            child = links[0, slot]
            while child >= 0:
                if child >= len(seen) or seen[child] or links[2, child] != before:
                    return False
                seen[child] = True
                waiting[count] = child
                count += 1
                before = child
                child = links[1, child]
    return True
