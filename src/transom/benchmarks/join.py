"""The two-stream window join, from Arrow batches to Arrow results, for windows of 10^3, 10^5 and 10^6 rows.

Each stream brings rows of 8 columns (strings and NULLs among them) in batches of 10,000, one row a millisecond. A
window holds W rows; keys are drawn from W values, so a row meets about one row of the other stream. The whole pipeline
runs: admission, windows, join, output as lifetimes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa

from transom.benchmarks.chart import write_chart
from transom.cql.statements import parse_statements
from transom.pipeline.driver import Pipeline
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.planner.plan import plan

BATCH = 10_000
WINDOWS = (1_000, 100_000, 1_000_000)
BATCHES, QUICK_BATCHES = 200, 40  # of each stream, after the window has filled
COLUMNS = "ts TIMESTAMP, k BIGINT, name VARCHAR, city VARCHAR, price DOUBLE, amount INTEGER, paid BOOLEAN, note VARCHAR"
DECLARATIONS = f"""
CREATE STREAM a ({COLUMNS}, WATERMARK FOR ts AS ts);
CREATE STREAM b ({COLUMNS}, WATERMARK FOR ts AS ts);
"""


def make_batch(first: int, keys: int, random: np.random.Generator, schema: pa.Schema) -> pa.RecordBatch:
    """Rows number first, first + 1, .., one a millisecond."""
    n = BATCH
    ts = pa.array((np.arange(first, first + n) * 1_000).astype(np.int64)).cast(pa.timestamp("us"))
    names = pa.array([f"customer-{i:05d}" for i in range(1_000)]).take(pa.array(random.integers(0, 1_000, n)))
    cities = pa.array(["Lisbon", "Oslo", "Kyoto", None, "Accra", ""]).take(pa.array(random.integers(0, 6, n)))
    notes = pa.array([None, "left at the door", "call before delivery, please"])
    arrays = [
        ts,
        pa.array(random.integers(0, keys, n)),
        names,
        cities,
        pa.array(random.random(n), mask=random.random(n) < 0.1),
        pa.array(random.integers(0, 100, n).astype(np.int32), mask=random.random(n) < 0.1),
        pa.array(random.random(n) < 0.5),
        notes.take(pa.array(random.integers(0, 3, n))),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def measure(window: int, batches: int, tactic: str) -> dict[str, float]:
    """Rows a second (both streams counted) over `batches` batches of each stream, after the window has filled."""
    catalogue = Catalogue()
    query = f"SELECT a.*, b.* FROM a [RANGE {window} MILLISECONDS], b [RANGE {window} MILLISECONDS] WHERE a.k = b.k"
    statement = parse_statements(f"{DECLARATIONS} SET join = '{tactic}'; {query}", catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    pipeline = Pipeline(plan(statement.query, catalogue), catalogue, "lifetimes")
    random = np.random.default_rng(7)
    schema = pipeline.inputs["a"].definition.columns.arrow()
    warm = -(-window // BATCH) + 2
    # Input is made before the clock runs; times and keys are fresh in every batch, the payload serves again.
    pool = [make_batch(i * BATCH, window, random, schema) for i in range(16)]
    rows = results = 0
    spent: list[float] = []
    for i in range(warm + batches):
        pair = [_moved(pool[(i + 8 * side) % 16], i, window, random) for side in (0, 1)]
        started = time.perf_counter()
        pipeline.push("a", pair[0])
        pipeline.push("b", pair[1])
        output, _ = pipeline.advance()
        took = time.perf_counter() - started
        if i >= warm:
            spent.append(took)
            rows += 2 * BATCH
            results += 0 if output is None else len(output.rows)
    # The median of five slices of the run, against hiccups of the machine.
    slices = [sum(spent[j::5]) / len(spent[j::5]) for j in range(5)]
    return {
        "rows_per_s": 2 * BATCH / statistics.median(slices),
        "matches_per_row": results / rows,
        "batches": batches,
    }


def _moved(batch: pa.RecordBatch, number: int, keys: int, random: np.random.Generator) -> pa.RecordBatch:
    ts = pa.array((np.arange(number * BATCH, (number + 1) * BATCH) * 1_000).astype(np.int64)).cast(pa.timestamp("us"))
    return batch.set_column(0, "ts", ts).set_column(1, "k", pa.array(random.integers(0, keys, BATCH)))


def main(arguments: argparse.Namespace) -> int:
    batches = QUICK_BATCHES if arguments.quick else BATCHES
    cells: dict[str, dict[str, Any]] = {}
    for window in WINDOWS:
        for tactic in ("ring_hash", "lazy_hash"):
            print(f"join: window of {window:,} rows, {tactic} ..", file=sys.stderr, flush=True)
            cells[f"{tactic}/{window}"] = measure(window, batches, tactic)
    if arguments.plot:
        lines = {t: [(w, cells[f"{t}/{w}"]["rows_per_s"] / 1e6) for w in WINDOWS] for t in ("ring_hash", "lazy_hash")}
        write_chart(arguments.plot, "Two-stream window join", "rows in a window", "million rows a second", lines)
    summary = {"rows_per_s": {str(w): round(cells[f"ring_hash/{w}"]["rows_per_s"]) for w in WINDOWS}}
    if arguments.json:
        print(json.dumps({"cells": cells, "summary": summary}, indent=2))
        return 0
    print(f"{'window rows':>12} {'ring_hash rows/s':>18} {'lazy_hash rows/s':>18} {'ratio':>6} {'matches a row':>14}")
    for window in WINDOWS:
        ring, lazy = cells[f"ring_hash/{window}"], cells[f"lazy_hash/{window}"]
        ratio = ring["rows_per_s"] / lazy["rows_per_s"]
        line = f"{window:>12,} {ring['rows_per_s']:>18,.0f} {lazy['rows_per_s']:>18,.0f} {ratio:>6.2f}"
        print(f"{line} {ring['matches_per_row']:>14.2f}")
    return 0
