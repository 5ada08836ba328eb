"""Windows that are over as tables, and sessions: what a row costs, for windows of 10^3 to 10^6 rows.

A stream brings rows in batches of 10,000, one row a millisecond. TUMBLE and HOP, which slides by a fifth of its size,
are grouped by a thousand keys, and TUMBLE is also taken row by row; beside them is the window in brackets that slides
by its size. In the stream of the sessions a hundred keys are busy for as long as a window is and then never come
again: a session has a hundredth of the rows, and is over two seconds after the last. The whole pipeline runs, from
Arrow batches to changes, for whole windows, since all of a window is told at its end.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from benchmarks.cost_of_a_row import by_window, measure, panels, summary, tables, times
from benchmarks.harness import Benchmark, Experiments, Options

BATCH = 10_000
KEYS = 1_000
BUSY = 100
GAP = "INTERVAL '2' SECOND"
WINDOWS = (1_000, 10_000, 100_000, 1_000_000)
BATCHES, QUICK_BATCHES = 30, 5  # at least, after the first window
DECLARATION = "CREATE STREAM events (ts TIMESTAMP, k BIGINT, busy BIGINT, x BIGINT, WATERMARK FOR ts AS ts);"
_TUMBLE = "TUMBLE(events, ts, {size} MILLISECONDS)"
_HOP = "HOP(events, ts, {slide} MILLISECONDS, {size} MILLISECONDS)"
QUERIES: Final = {
    "tumble": f"SELECT k, window_end, COUNT(*), SUM(x) FROM {_TUMBLE} GROUP BY k, window_end",
    "hop by a fifth": f"SELECT k, window_end, COUNT(*), SUM(x) FROM {_HOP} GROUP BY k, window_end",
    "tumble, all rows": f"SELECT k, x, window_end FROM {_TUMBLE}",
    "[RANGE SLIDE]": "RSTREAM(SELECT k, COUNT(*), SUM(x) FROM events"
    " [RANGE {size} MILLISECONDS SLIDE {size} MILLISECONDS] GROUP BY k)",
    "session": "SELECT busy, window_start, window_end, COUNT(*), SUM(x)"
    f" FROM SESSION(events PARTITION BY busy, ts, {GAP}) GROUP BY busy, window_start, window_end",
    "[SESSION]": "SELECT busy, COUNT(*), SUM(x) FROM events [PARTITION BY busy SESSION 2 SECONDS] GROUP BY busy",
}


def measured(window: int, batches: int, query: str) -> dict[str, float]:
    random = np.random.default_rng(7)

    def batch(number: int, schema: pa.Schema) -> pa.RecordBatch:
        turn = np.arange(number * BATCH, (number + 1) * BATCH) // window
        values = [random.integers(0, KEYS, BATCH), turn * BUSY + random.integers(0, BUSY, BATCH)]
        values.append(random.integers(0, 10**6, BATCH))
        return pa.RecordBatch.from_arrays([times(number, BATCH), *map(pa.array, values)], schema=schema)

    text = QUERIES[query].format(size=window, slide=window // 5)
    whole = -(-window // BATCH)
    return measure(f"{DECLARATION} {text}", batch, whole + 2, -(-batches // whole) * whole)


def experiments(options: Options) -> Experiments:
    return by_window(measured, QUERIES, WINDOWS, QUICK_BATCHES if options.quick else BATCHES)


def settings(options: Options) -> dict[str, int]:
    return {"batch_rows": BATCH, "batches": QUICK_BATCHES if options.quick else BATCHES, "keys": KEYS}


BENCHMARK: Final = Benchmark("Windows as tables and sessions", experiments, summary, tables, panels, settings)
