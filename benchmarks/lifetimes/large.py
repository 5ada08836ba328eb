"""The greatest windows: a selection over so many rows in a process of its own, which measures its own memory."""

from __future__ import annotations

import gc
from typing import Final

from benchmarks.lifetimes.contestants import DIRECT, Bench
from benchmarks.lifetimes.data import Cell
from benchmarks.meters import anonymous_bytes

BATCH: Final = 100_000


def measure(rows: int, seconds: float) -> dict[str, float]:
    """`rows_per_s`, and `peak_bytes` of anonymous memory above what the idle process has, batches that come in too."""
    small = Bench(Cell("selection", "rows", 1_000, 1_000), DIRECT).start()
    small.warm_up(settling=0)
    del small
    gc.collect()
    idle = peak = anonymous_bytes()
    cell = Cell("selection", "rows", rows, BATCH)
    running = Bench(cell, DIRECT).start()
    for _ in range(2 * rows // BATCH + 3):
        running.advance(1)
        peak = max(peak, anonymous_bytes())
    running.reset()
    while running.seconds <= seconds:
        running.advance(1)
        peak = max(peak, anonymous_bytes())
    return {"rows_per_s": running.rows / running.seconds, "peak_bytes": peak - idle, "idle_bytes": idle}
