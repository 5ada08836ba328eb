"""Rows by their place in an order: what a row costs, for windows of 10^3 to 10^6 rows.

A stream brings rows of a key, a number and a price in batches of 10,000, one row a millisecond; a row comes and one
leaves. The whole pipeline runs, from Arrow batches to changes: the first ten of all rows, the first three of each of a
thousand keys without and with their number, and the rows with one of the first three ranks.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from benchmarks.cost_of_a_row import by_window, measure, panels, summary, tables, times
from benchmarks.harness import Benchmark, Experiments, Options

BATCH = 10_000
KEYS = 1_000
WINDOWS = (1_000, 10_000, 100_000, 1_000_000)
BATCHES, QUICK_BATCHES = 50, 10  # after the window has filled
DECLARATION = "CREATE STREAM bids (ts TIMESTAMP, k BIGINT, x BIGINT, price DOUBLE, WATERMARK FOR ts AS ts);"
_WITHIN = "OVER (PARTITION BY k ORDER BY price DESC)"
QUERIES: Final = {
    "limit": "SELECT k, x, price FROM bids [{window}] ORDER BY price DESC LIMIT 10",
    "each key": f"SELECT k, x, price FROM bids [{{window}}] QUALIFY ROW_NUMBER() {_WITHIN} <= 3",
    "numbered": f"SELECT k, x, price, ROW_NUMBER() {_WITHIN} AS n FROM bids [{{window}}] QUALIFY n <= 3",
    "rank": "SELECT k, x, price FROM bids [{window}] QUALIFY RANK() OVER (ORDER BY price DESC) <= 3",
}


def measured(window: int, batches: int, query: str) -> dict[str, float]:
    random = np.random.default_rng(7)

    def batch(number: int, schema: pa.Schema) -> pa.RecordBatch:
        values = [random.integers(0, KEYS, BATCH), random.integers(0, 10**6, BATCH), random.random(BATCH)]
        return pa.RecordBatch.from_arrays([times(number, BATCH), *map(pa.array, values)], schema=schema)

    text = QUERIES[query].format(window=f"RANGE {window} MILLISECONDS")
    return measure(f"{DECLARATION} {text}", batch, -(-window // BATCH) + 2, batches)


def experiments(options: Options) -> Experiments:
    return by_window(measured, QUERIES, WINDOWS, QUICK_BATCHES if options.quick else BATCHES)


def settings(options: Options) -> dict[str, int]:
    return {"batch_rows": BATCH, "batches": QUICK_BATCHES if options.quick else BATCHES}


BENCHMARK: Final = Benchmark("Rows by their place", experiments, summary, tables, panels, settings)
