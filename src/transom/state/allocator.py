"""How the C library treats memory that is freed.

A step makes arrays of a few megabytes and frees them again. At first the C library gives each such block back to the
system at once and gets it anew in the next step, page by page: a union in batches of 100,000 rows was five times
slower. It learns to keep blocks once it has seen a great one freed; here is one.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

_GREAT = 31 << 20  # bytes; from 32 MB on it would learn nothing. Never touched, so it takes no memory


@cache
def keep_freed_memory() -> None:
    """Once a process."""
    np.empty(_GREAT, dtype=np.uint8)


@cache
def give_back_freed_memory() -> None:
    """Once a process that keeps to a budget: Arrow's own allocator would hold on to twice of what is in use."""
    pa.set_memory_pool(pa.system_memory_pool())
