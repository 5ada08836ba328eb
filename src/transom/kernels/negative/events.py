"""What happens to the two sides of a join under negative tuples, in order of time.

`Changes` are what one side takes in a step, `ChangeEvents` those of both sides as one history. A position names a row
for as long as it is there.

>>> def changes(departed, arrived):
...     return Changes(np.array(departed), np.arange(len(departed)), np.array(arrived), np.arange(len(arrived)))
>>> events = ChangeEvents.of(changes([4], [1, 4]), changes([4], [3]))
>>> events.t.tolist(), [("right" if kind & RIGHT else "left", bool(kind & ARRIVES)) for kind in events.kind]
([1, 3, 4, 4, 4], [('left', True), ('right', True), ('left', False), ('right', False), ('left', True)])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from transom.core.delta import Int64s
from transom.kernels.columns import Bytes, alike
from transom.kernels.jit import jit

RIGHT, ARRIVES = 1, 2  # bits of the kind of an event
AFTER_ALL = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Changes:
    """Positions of the rows that depart from a side, and that arrive at it, each in order of time."""

    departed_t: Int64s
    departed: Int64s
    arrived_t: Int64s
    arrived: Int64s


class ChangeEvents(NamedTuple):
    """The changes of both sides in order of time; at one instant all that departs comes before all that arrives."""

    t: Int64s
    kind: Bytes
    position: Int64s

    @staticmethod
    def of(left: Changes, right: Changes) -> ChangeEvents:
        return ChangeEvents(
            *merge_changes(
                alike(left.departed_t), left.departed, alike(right.departed_t), right.departed,
                alike(left.arrived_t), left.arrived, alike(right.arrived_t), right.arrived,
            )
        )  # fmt: skip


def time_order(t: Int64s) -> npt.NDArray[np.intp] | None:
    """The order of time, rows of one instant as they come; None when that is how they come already."""
    if len(t) < 2 or bool((t[1:] >= t[:-1]).all()):
        return None
    return np.argsort(t, kind="stable")


@jit
def merge_changes(  # type: ignore[no-untyped-def]
    left_gone_t, left_gone, right_gone_t, right_gone, left_new_t, left_new, right_new_t, right_new
):
    size = len(left_gone) + len(right_gone) + len(left_new) + len(right_new)
    t = np.empty(size, dtype=np.int64)
    kind = np.empty(size, dtype=np.uint8)
    position = np.empty(size, dtype=np.int64)
    a = b = c = d = i = 0
    while i < size:
        now = AFTER_ALL
        if a < len(left_gone):
            now = min(now, left_gone_t[a])
        if b < len(right_gone):
            now = min(now, right_gone_t[b])
        if c < len(left_new):
            now = min(now, left_new_t[c])
        if d < len(right_new):
            now = min(now, right_new_t[d])
        first = i
        while a < len(left_gone) and left_gone_t[a] == now:
            kind[i] = 0
            position[i] = left_gone[a]
            a += 1
            i += 1
        while b < len(right_gone) and right_gone_t[b] == now:
            kind[i] = RIGHT
            position[i] = right_gone[b]
            b += 1
            i += 1
        while c < len(left_new) and left_new_t[c] == now:
            kind[i] = ARRIVES
            position[i] = left_new[c]
            c += 1
            i += 1
        while d < len(right_new) and right_new_t[d] == now:
            kind[i] = ARRIVES | RIGHT
            position[i] = right_new[d]
            d += 1
            i += 1
        t[first:i] = now
    return t, kind, position
