"""Insertion sort, one end after the other: what lazy sorting (`lifetimes.py`) is measured against.

It is here for `transom bench lifetimes` alone; no operator of a query uses it.
"""

from __future__ import annotations

from transom.kernels.jit import jit


@jit
def insert_sorted(te, slots, first, count, new_te, new_slots):  # type: ignore[no-untyped-def]
    """Put each new end behind those not later than it, looked for from the front.

    Entries first .. first + count - 1 are sorted; there must be room behind them for the new ones.
    """
    for i in range(len(new_te)):
        end = new_te[i]
        stop = first + count
        place = first
        while place < stop and te[place] <= end:
            place += 1
        for j in range(stop, place, -1):
            te[j] = te[j - 1]
            slots[j] = slots[j - 1]
        te[place] = end
        slots[place] = new_slots[i]
        count += 1
