"""The two-stream window join, from Arrow batches to Arrow results, for windows of 10^3, 10^5 and 10^6 rows.

Each stream brings rows of 8 columns (strings and NULLs among them) in batches of 10,000, one row a millisecond. A
window holds W rows; keys are drawn from W values, so a row meets about one row of the other stream. The whole pipeline
runs: admission, windows, join, output as lifetimes.

With `--partitions N ..` one partition runs beside so many, on the same rows in batches of 65,536, in turn step by step.
Beside rows a second there is the time of all processors for a step, and the time of what is not shared among threads:
rows are judged one input after the other.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from typing import Any

import numpy as np
import pyarrow as pa

from transom.benchmarks.chart import write_chart
from transom.cql.statements import parse_statements
from transom.kernels.crew import processors
from transom.pipeline.driver import Pipeline
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition
from transom.planner.plan import plan

BATCH = 10_000
WINDOWS = (1_000, 100_000, 1_000_000)
BATCHES, QUICK_BATCHES = 200, 40  # of each stream, after the window has filled
LARGE_BATCH = 65_536
PARTITIONED_WINDOWS = (100_000, 1_000_000)
COLUMNS = "ts TIMESTAMP, k BIGINT, name VARCHAR, city VARCHAR, price DOUBLE, amount INTEGER, paid BOOLEAN, note VARCHAR"
DECLARATIONS = f"""
CREATE STREAM a ({COLUMNS}, WATERMARK FOR ts AS ts);
CREATE STREAM b ({COLUMNS}, WATERMARK FOR ts AS ts);
"""


def make_batch(first: int, n: int, keys: int, random: np.random.Generator, schema: pa.Schema) -> pa.RecordBatch:
    """Rows number first, first + 1, .., one a millisecond."""
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


def measure(
    window: int, batches: int, tactic: str, partitions: Sequence[int] = (1,), size: int = BATCH
) -> dict[int, dict[str, float]]:
    """Rows a second (both streams counted) over `batches` batches of each stream, after the window has filled.

    All numbers of partitions take the same steps in turn.
    """
    catalogue = Catalogue()
    query = f"SELECT a.*, b.* FROM a [RANGE {window} MILLISECONDS], b [RANGE {window} MILLISECONDS] WHERE a.k = b.k"
    statement = parse_statements(f"{DECLARATIONS} SET join = '{tactic}'; {query}", catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    root = plan(statement.query, catalogue)
    random = np.random.default_rng(7)
    definition = catalogue.relations["a"]
    assert isinstance(definition, StreamDefinition)
    schema = definition.columns.arrow()
    warm = -(-window // size) + 2
    # Input is made before the clock runs; times and keys are fresh in every batch, the payload serves again.
    pool = [make_batch(i * size, size, window, random, schema) for i in range(16)]
    with ExitStack() as threads:
        contestants = [
            _Contestant(threads.enter_context(closing(Pipeline(root, catalogue, "lifetimes", partitions=each))))
            for each in partitions
        ]
        for i in range(warm + batches):
            left, right = (_moved(pool[(i + 8 * side) % 16], i, window, random) for side in (0, 1))
            for each in contestants if i % 2 else contestants[::-1]:
                each.step(left, right, counts=i >= warm)
    return {number: each.measured(2 * size, batches) for number, each in zip(partitions, contestants, strict=True)}


class _Contestant:
    """A pipeline, and what its steps took: in all, in all processors together, and to judge the rows."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._spent: list[tuple[float, float, float]] = []
        self._results = 0

    def step(self, left: pa.RecordBatch, right: pa.RecordBatch, counts: bool) -> None:
        busy, started = time.process_time(), time.perf_counter()
        self._pipeline.push("a", left)
        self._pipeline.push("b", right)
        judged = time.perf_counter() - started
        output, _ = self._pipeline.advance()
        spent = time.perf_counter() - started, time.process_time() - busy, judged
        if counts:
            self._spent.append(spent)
            self._results += 0 if output is None else sum(map(len, output.batches))

    def measured(self, rows: int, batches: int) -> dict[str, float]:
        # The median of five slices of the run, against hiccups of the machine.
        slices = [[statistics.mean(part) for part in zip(*self._spent[j::5], strict=True)] for j in range(5)]
        took, busy, judged = (statistics.median(part) for part in zip(*slices, strict=True))
        return {
            "rows_per_s": rows / took,
            "matches_per_row": self._results / (rows * batches),
            "batches": batches,
            "step_ms": 1e3 * took,
            "processor_ms": 1e3 * busy,
            "judging_ms": 1e3 * judged,
        }


def _moved(batch: pa.RecordBatch, number: int, keys: int, random: np.random.Generator) -> pa.RecordBatch:
    n = len(batch)
    ts = pa.array((np.arange(number * n, (number + 1) * n) * 1_000).astype(np.int64)).cast(pa.timestamp("us"))
    return batch.set_column(0, "ts", ts).set_column(1, "k", pa.array(random.integers(0, keys, n)))


def side_by_side(arguments: argparse.Namespace, batches: int) -> int:
    """One partition beside the others that were asked for."""
    numbers = [1, *(number for number in dict.fromkeys(arguments.partitions) if number > 1)]
    cells: dict[str, dict[str, Any]] = {}
    for window in PARTITIONED_WINDOWS:
        print(f"join: window of {window:,} rows, partitions {numbers} ..", file=sys.stderr, flush=True)
        found = measure(window, batches, "ring_hash", numbers, LARGE_BATCH)
        for number, cell in found.items():
            cells[f"{number}/{window}"] = {**cell, "over_one": cell["rows_per_s"] / found[1]["rows_per_s"]}
    rates = {n: {str(w): round(cells[f"{n}/{w}"]["rows_per_s"]) for w in PARTITIONED_WINDOWS} for n in numbers}
    ratios = {n: {str(w): round(cells[f"{n}/{w}"]["over_one"], 2) for w in PARTITIONED_WINDOWS} for n in numbers}
    if arguments.plot:
        lines = {
            f"{w:,} rows": [(n, cells[f"{n}/{w}"]["rows_per_s"] / 1e6) for n in numbers] for w in PARTITIONED_WINDOWS
        }
        write_chart(arguments.plot, "Two-stream window join", "partitions", "million rows a second", lines)
    if arguments.json:
        summary = {"rows_per_s": rates, "over_one_partition": ratios, "processors": processors()}
        print(json.dumps({"cells": cells, "summary": summary}, indent=2))
        return 0
    print(f"batches of {LARGE_BATCH:,} rows, {processors()} processors")
    print(f"{'window rows':>12} {'partitions':>10} {'rows/s':>12} {'ratio':>6} {'processor ms':>13} {'judging ms':>11}")
    for window in PARTITIONED_WINDOWS:
        for number in numbers:
            cell = cells[f"{number}/{window}"]
            line = f"{window:>12,} {number:>10} {cell['rows_per_s']:>12,.0f} {cell['over_one']:>6.2f}"
            print(f"{line} {cell['processor_ms']:>13.1f} {cell['judging_ms']:>11.1f}")
    return 0


def main(arguments: argparse.Namespace) -> int:
    batches = QUICK_BATCHES if arguments.quick else BATCHES
    if getattr(arguments, "partitions", None):
        return side_by_side(arguments, batches)
    cells: dict[str, dict[str, Any]] = {}
    for window in WINDOWS:
        for tactic in ("ring_hash", "lazy_hash"):
            print(f"join: window of {window:,} rows, {tactic} ..", file=sys.stderr, flush=True)
            cells[f"{tactic}/{window}"] = measure(window, batches, tactic)[1]
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
