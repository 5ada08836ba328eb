"""Whether what a saved state says of itself can be true: compiled loops look up what it says, and look nowhere else.

A state that was read back is checked once, in time linear in its size, by the method `check` of each of its classes:
numbers that name a place lie within the arrays that they lead into, lists end and share nothing, and what is in use is
not free as well. `codec.decode` calls it, and makes a CheckpointError of whatever is raised.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from transom.kernels.jit import jit
from transom.state.checks import need, within
from transom.state.slots import SlotPool

Mask = npt.NDArray[np.bool_]


def listed(heads: Any, following: Any, count: int, back: Any = None) -> Mask:
    """The nodes of lists that start at the heads (-1: none) and go on by `following`; each is in one list, once.

    `back`, if given, leads back along them, and is -1 at their beginnings.
    """
    need(count >= 0 and len(following) >= count and (back is None or len(back) >= count))
    seen = np.zeros(count, dtype=np.bool_)
    heads, following = np.ascontiguousarray(heads).reshape(-1), np.ascontiguousarray(following)
    need(walk(heads, following, np.empty(0, np.int64) if back is None else np.ascontiguousarray(back), seen))
    return seen


def listed_in_use(heads: Any, following: Any, pool: SlotPool, back: Any = None) -> None:
    """The lists hold the places in use, and these alone."""
    need(bool((listed(heads, following, pool.high, back) == pool.mask()).all()))


def owned(heads: Any, owner: Any, following: Any, of: Any, pool: SlotPool, back: Any) -> None:
    """The list of heads[i] holds nodes n with of[n] == owner[i]; all lists together hold the places in use."""
    listed_in_use(heads, following, pool, back)
    arrays = [np.ascontiguousarray(array) for array in (heads, owner, following, of)]
    need(belong(*arrays))


def numbered(numbers: Any, pool: SlotPool) -> None:
    """The numbers are places that are in use."""
    within(numbers, pool.high)
    need(bool(pool.mask()[numbers].all()))


@jit
def walk(heads, following, back, seen):  # type: ignore[no-untyped-def]
    for head in heads:
        at = head
        before = -1
        while at >= 0:
            if at >= len(seen) or seen[at]:
                return False
            if len(back) and back[at] != before:
                return False
            seen[at] = True
            before = at
            at = following[at]
        if at < -1:
            return False
    return True


@jit
def belong(heads, owner, following, of):  # type: ignore[no-untyped-def]
    for i in range(len(heads)):
        at = heads[i]
        while at >= 0:
            if of[at] != owner[i]:
                return False
            at = following[at]
    return True


def lengths(heads: Any, following: Any) -> npt.NDArray[np.int64]:
    """How many nodes each of the lists has; they are known to end."""
    counts = np.zeros(len(heads), dtype=np.int64)
    count_nodes(np.ascontiguousarray(heads), np.ascontiguousarray(following), counts)
    return counts


def ring(oldest: int, newest: int, capacity: int, mask: int, *arrays: Any) -> None:
    """Positions oldest .. newest - 1 of a ring with so many places, a power of two, which the arrays have."""
    need(0 <= oldest <= newest <= oldest + capacity and newest < 1 << 62)
    need(all(len(array) == capacity for array in arrays) and mask == capacity - 1 and capacity & mask == 0)


def ring_chains(oldest: int, newest: int, mask: int, head: Any, chain: Any) -> None:
    """Chains lead from new positions to old ones, so they come to an end."""
    need(len(head) > 0)
    within(head, newest, -1)
    positions = np.arange(oldest, newest)
    need(bool((chain[positions & mask] < positions).all()))


@jit
def count_nodes(heads, following, counts):  # type: ignore[no-untyped-def]
    for i in range(len(heads)):
        at = heads[i]
        while at >= 0:
            counts[i] += 1
            at = following[at]
