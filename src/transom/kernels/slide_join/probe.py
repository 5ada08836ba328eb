"""The probe: tuples that are bound in part, each with every row of a sorted run that has their key."""

from __future__ import annotations

import numpy as np

from transom.kernels.jit import jit
from transom.kernels.key_index import equal_bytes


@jit
def match(rows, my_hashes, row, at, hashes, directory, shift, limit, keyed, my_keys, keys):  # type: ignore[no-untyped-def]
    """Pairs (number of a tuple, row of the sorted run): tuples from number `row` on.

    Tuple i began with row rows[i] of a sorted run with `my_hashes`. The rows of a sorted run are sorted by hash;
    directory[d] is where those begin whose hash, shifted, is d. `at` is where to go on among them (-1: at the first).
    Stops at `limit` pairs and says where. `keyed`: the bytes of the keys are compared, too.
    """
    my_starts, my_bytes = my_keys
    starts, bytes_ = keys
    size = min(limit, len(rows) - row + 64)
    pairs = np.empty((2, size), dtype=np.int64)
    count = 0
    while row < len(rows):
        own = rows[row]
        h = my_hashes[own]
        d = np.int64(h >> shift)
        if at < 0:
            at = directory[d]
        end = directory[d + 1]
        while at < end and hashes[at] <= h:
            if hashes[at] == h and (
                not keyed
                or equal_bytes(
                    my_bytes, my_starts[own], my_starts[own + 1] - my_starts[own],
                    bytes_, starts[at], starts[at + 1] - starts[at],
                )
            ):  # fmt: skip
                if count == limit:
                    return pairs[:, :count], row, at
                if count == size:
                    size = min(limit, 2 * size)
                    bigger = np.empty((2, size), dtype=np.int64)
                    bigger[:, :count] = pairs
                    pairs = bigger
                pairs[0, count] = row
                pairs[1, count] = at
                count += 1
            at += 1
        row += 1
        at = -1
    return pairs[:, :count], row, at
