"""Changes that went by as lifetimes of rows, for who looks at an answer: operators have lifetimes, and need it not."""

from __future__ import annotations

import numpy as np

from transom.kernels.jit import jit
from transom.kernels.keys import mix


@jit
def lifetimes_of_changes(numbers, begins):  # type: ignore[no-untyped-def]
    """Of changes, where equal rows have equal numbers: `began[i]` is the change that began the lifetime which change i
    ends, the first that no other has ended, or -1 if there is none. `alive` are those that begin what none
    ends."""
    size = 64
    while size < 2 * len(numbers):
        size *= 2
    mask = np.uint64(size - 1)
    row = np.full(size, -1, dtype=np.int64)  # of the value whose place in the table this is
    first = np.full(size, -1, dtype=np.int64)
    last = np.full(size, -1, dtype=np.int64)
    next_ = np.full(len(numbers), -1, dtype=np.int64)
    began = np.full(len(numbers), -1, dtype=np.int64)
    alive = begins.copy()
    for i in range(len(numbers)):
        at = mix(np.uint64(numbers[i])) & mask
        while row[at] >= 0 and numbers[row[at]] != numbers[i]:
            at = (at + np.uint64(1)) & mask
        row[at] = i
        if not begins[i]:
            begin = first[at]
            began[i] = begin
            if begin >= 0:
                alive[begin] = False
                first[at] = next_[begin]
        elif first[at] >= 0:
            next_[last[at]] = i
            last[at] = i
        else:
            first[at] = i
            last[at] = i
    return began, alive
