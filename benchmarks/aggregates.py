"""Aggregates over a window: what a row costs, for windows of 10^3 to 10^6 rows.

A stream brings rows in batches of 10,000, one row a millisecond; a row comes and one leaves, and each changes the
answer of its group. There are ten groups, so that one has 100 to 100,000 rows; STRING_AGG, whose answer is as long as
its group, has groups of ten rows instead. The whole pipeline runs, from Arrow batches to changes.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from benchmarks.cost_of_a_row import by_window, measure, panels, summary, tables, times
from benchmarks.harness import Benchmark, Experiments, Options

BATCH = 10_000
GROUPS = 10
IN_A_FEW = 10
WINDOWS = (1_000, 10_000, 100_000, 1_000_000)
BATCHES, QUICK_BATCHES = 30, 5  # after the window has filled
DECLARATION = (
    "CREATE STREAM sales (ts TIMESTAMP, k BIGINT, few BIGINT, x BIGINT, price DOUBLE, WATERMARK FOR ts AS ts);"
)
_BY = "FROM sales [{window}] GROUP BY k"
QUERIES: Final = {
    "count, sum": f"SELECT k, COUNT(*), SUM(x) {_BY}",
    "filter": f"SELECT k, COUNT(*) FILTER (WHERE x < 500000), SUM(x) FILTER (WHERE x < 500000) {_BY}",
    "var_samp": f"SELECT k, VAR_SAMP(price) {_BY}",
    "count distinct": f"SELECT k, COUNT(DISTINCT x) {_BY}",
    "max": f"SELECT k, MAX(price) {_BY}",
    "arg_max": f"SELECT k, ARG_MAX(x, price) {_BY}",
    "median": f"SELECT k, MEDIAN(price) {_BY}",
    "three quantiles": f"SELECT k, {', '.join(f'QUANTILE_CONT(price, {part})' for part in (0.5, 0.95, 0.99))} {_BY}",
    "string_agg of ten": "SELECT few, STRING_AGG(CAST(x AS VARCHAR), ',' ORDER BY x)"
    " FROM sales [{window}] GROUP BY few",
}


def measured(window: int, batches: int, query: str) -> dict[str, float]:
    random = np.random.default_rng(7)

    def batch(number: int, schema: pa.Schema) -> pa.RecordBatch:
        keys = [random.integers(0, groups, BATCH) for groups in (GROUPS, max(window // IN_A_FEW, 1))]
        values = [*keys, random.integers(0, 10**6, BATCH), random.random(BATCH)]
        return pa.RecordBatch.from_arrays([times(number, BATCH), *map(pa.array, values)], schema=schema)

    text = QUERIES[query].format(window=f"RANGE {window} MILLISECONDS")
    return measure(f"{DECLARATION} {text}", batch, -(-window // BATCH) + 2, batches)


def experiments(options: Options) -> Experiments:
    return by_window(measured, QUERIES, WINDOWS, QUICK_BATCHES if options.quick else BATCHES)


def settings(options: Options) -> dict[str, int]:
    return {"batch_rows": BATCH, "batches": QUICK_BATCHES if options.quick else BATCHES, "groups": GROUPS}


BENCHMARK: Final = Benchmark("Aggregates", experiments, summary, tables, panels, settings)
