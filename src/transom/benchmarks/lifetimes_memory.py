"""The greatest windows: a selection over so many rows in a process of its own, which measures its own memory.

`python -m transom.benchmarks.lifetimes_memory ROWS SECONDS` prints what it measured as JSON.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Sequence
from typing import Final

from transom.benchmarks.lifetimes_data import Cell
from transom.benchmarks.lifetimes_run import DIRECT, Bench
from transom.benchmarks.own_process import own_process
from transom.benchmarks.process_meter import anonymous_bytes
from transom.core.errors import SourceError

BATCH: Final = 100_000


def in_own_process(rows: int, seconds: float) -> dict[str, float]:
    """`rows_per_s`, and `peak_bytes` of anonymous memory above what the idle process has."""
    with own_process("transom.benchmarks.lifetimes_memory", str(rows), str(seconds)) as process:
        output, errors = process.communicate()
    if process.returncode != 0:
        last = errors.strip().splitlines()[-5:]
        raise SourceError(
            f"the window of {rows:,} rows ended with status {process.returncode}", remedy="\n  ".join(last)
        )
    told: dict[str, float] = json.loads(output)
    return told


def measure(rows: int, seconds: float) -> dict[str, float]:
    """In this process; the batches that come in are counted, too."""
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
    return {"rows": rows, "rows_per_s": running.rows / running.seconds, "peak_bytes": peak - idle, "idle_bytes": idle}


def main(arguments: Sequence[str]) -> int:
    print(json.dumps(measure(int(arguments[0]), float(arguments[1]))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
