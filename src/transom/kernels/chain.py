"""Chains of rows, the newest first: `head` has the first row of each, -1 where there is none.

A chain that leads both ways, by two columns of `entries`, is left in one step; one that leads on alone, by `following`,
is walked from its head.
"""

from __future__ import annotations

from transom.kernels.jit import inlined


@inlined
def enter_chain(slot, chain, head, entries, following, before):  # type: ignore[no-untyped-def]
    first = head[chain]
    entries[slot, following] = first
    entries[slot, before] = -1
    if first >= 0:
        entries[first, before] = slot
    head[chain] = slot


@inlined
def leave_chain(slot, chain, head, entries, following, before):  # type: ignore[no-untyped-def]
    previous, after = entries[slot, before], entries[slot, following]
    if previous >= 0:
        entries[previous, following] = after
    else:
        head[chain] = after
    if after >= 0:
        entries[after, before] = previous


@inlined
def leave_walked_chain(slot, chain, head, following):  # type: ignore[no-untyped-def]
    """For a row that is in the chain."""
    at = head[chain]
    if at == slot:
        head[chain] = following[slot]
    else:
        while following[at] != slot:
            at = following[at]
        following[at] = following[slot]
    following[slot] = -1
