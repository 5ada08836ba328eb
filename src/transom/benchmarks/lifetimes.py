"""Direct lifetimes against negative tuples: the experiment of paper 1, for windows and batches small and great.

| what | values |
| --- | --- |
| queries | selection, projection, union all, equi-join with matches at the newest row or anywhere in the window |
| windows | ROWS and RANGE of 10 .. 1,000,000 rows, half on each side where there are two inputs |
| batches | 1,000 and 100,000 rows of each stream a step |
| methods | direct, negative; for joins also direct with lazily sorted sets and with sorted insertion |

A rate is the median of interleaved runs, each measured after its windows were full and had turned over once: rows of
all streams in a second of processor time. `--soak ROWS` is another thing: many rows through one plan, to see that
nothing grows.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict

from transom.benchmarks.chart import write_panels
from transom.benchmarks.lifetimes_data import KINDS, QUERIES, Cell
from transom.benchmarks.lifetimes_memory import in_own_process
from transom.benchmarks.lifetimes_report import Outcome, panels, summary, tables
from transom.benchmarks.lifetimes_run import Effort, measure_cell
from transom.benchmarks.lifetimes_soak import soak, table

WINDOWS = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
QUICK_WINDOWS = (10, 1_000, 100_000)
BATCHES = (1_000, 100_000)
LARGE = (1_000_000, 10_000_000)
EFFORT = Effort(runs=5, seconds=0.15, steps=5, settling=4, most_sorted_rows=10_000)
QUICK_EFFORT = Effort(runs=1, seconds=0.03, steps=2, settling=2, most_sorted_rows=1_000)
LARGE_RUNS, LARGE_SECONDS = 3, 1.0
QUICK_LARGE_RUNS, QUICK_LARGE_SECONDS = 1, 0.3


def main(arguments: argparse.Namespace) -> int:
    if arguments.soak:
        told = soak(arguments.soak)
        print(json.dumps(told, indent=2) if arguments.json else table(told))
        return 0 if all(one["flat"] for one in told["quantities"].values()) else 1
    effort, windows = (QUICK_EFFORT, QUICK_WINDOWS) if arguments.quick else (EFFORT, WINDOWS)
    started = time.perf_counter()
    outcomes = []
    for query in QUERIES:
        for kind in KINDS:
            for batch in BATCHES:
                _say(f"{query}, {kind} windows, batches of {batch:,} rows ..")
                cells = [Cell(query, kind, rows, batch) for rows in windows]
                outcomes += [Outcome(cell, measure_cell(cell, effort)) for cell in cells]
    often = (QUICK_LARGE_RUNS, QUICK_LARGE_SECONDS) if arguments.quick else (LARGE_RUNS, LARGE_SECONDS)
    large = _measure_large(LARGE, *often)
    _say(f"took {time.perf_counter() - started:.0f} s")
    if arguments.plot:
        title = "Direct lifetimes and negative tuples"
        write_panels(arguments.plot, title, "rows in the windows", "million rows a second", panels(outcomes))
    if not arguments.json:
        print(tables(outcomes, large))
        return 0
    settings = {
        **asdict(effort),
        "windows": windows,
        "batches": BATCHES,
        "passing_selection": 0.6,
        "cores": os.cpu_count(),
    }
    told = {"cells": [outcome.told() for outcome in outcomes], "large": large, "settings": settings}
    print(json.dumps({**told, "summary": summary(outcomes, large)}, indent=2))
    return 0


def _measure_large(sizes: Sequence[int], runs: int, seconds: float) -> dict[int, dict[str, float]]:
    """Rates are medians of the runs, one size after the other in each; memory is the most of any run."""
    measured: dict[int, list[dict[str, float]]] = {rows: [] for rows in sizes}
    for run in range(runs):
        for rows in sizes:
            _say(f"a window of {rows:,} rows in a process of its own, run {run + 1} of {runs} ..")
            measured[rows].append(in_own_process(rows, seconds))
    return {
        rows: {
            "rows_per_s": statistics.median(one["rows_per_s"] for one in found),
            "peak_bytes": max(one["peak_bytes"] for one in found),
        }
        for rows, found in measured.items()
    }


def _say(what: str) -> None:
    print(f"lifetimes: {what}", file=sys.stderr, flush=True)
