"""Rows by their place in an order: what a row costs, for windows of 10^3 to 10^6 rows.

A stream brings rows of a key, a number and a price in batches of 10,000, one row a millisecond; a row comes and one
leaves. The whole pipeline runs, from Arrow batches to changes: the first ten of all rows, the first three of each of a
thousand keys without and with their number, and the rows with one of the first three ranks.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks.chart import Panel
from benchmarks.harness import (
    Benchmark,
    Experiment,
    Experiments,
    Figures,
    Options,
    Outcome,
    Outcomes,
    Table,
    by_contestant,
    lines_of,
)
from transom.cql.statements import parse_statements
from transom.pipeline.driver import Pipeline
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition
from transom.planner.plan import plan

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


def measure(window: int, batches: int, query: str) -> dict[str, float]:
    """Microseconds a row, the median of five slices of the run, and how many changes a row makes."""
    catalogue = Catalogue()
    text = QUERIES[query].format(window=f"RANGE {window} MILLISECONDS")
    statement = parse_statements(f"{DECLARATION} {text}", catalogue)[-1]
    definition = catalogue.relations["bids"]
    assert isinstance(statement, QueryStatement) and isinstance(definition, StreamDefinition)
    pipeline = Pipeline(plan(statement.query, catalogue), catalogue, "changes")
    random = np.random.default_rng(7)
    warm = -(-window // BATCH) + 2
    took, changes = [], 0
    for number in range(warm + batches):
        batch = _batch(number, random, definition.columns.arrow())
        started = time.perf_counter()
        pipeline.push("bids", batch)
        output, _ = pipeline.advance()
        if number >= warm:
            took.append(time.perf_counter() - started)
            changes += 0 if output is None else sum(map(len, output.batches))
    median = statistics.median(statistics.mean(took[j::5]) for j in range(5))
    return {"us_per_row": 1e6 * median / BATCH, "changes_per_row": changes / (BATCH * batches), "batches": batches}


def _batch(number: int, random: np.random.Generator, schema: pa.Schema) -> pa.RecordBatch:
    ts = pa.array((np.arange(number * BATCH, (number + 1) * BATCH) * 1_000).astype(np.int64)).cast(pa.timestamp("us"))
    values = [random.integers(0, KEYS, BATCH), random.integers(0, 10**6, BATCH), random.random(BATCH)]
    return pa.RecordBatch.from_arrays([ts, *map(pa.array, values)], schema=schema)


def experiments(options: Options) -> Experiments:
    batches = QUICK_BATCHES if options.quick else BATCHES

    def by_query(window: int) -> list[Outcome]:
        return [Outcome({"window": window, "x": window}, {name: measure(window, batches, name) for name in QUERIES})]

    yield Experiment(WINDOWS, by_query)


def summary(outcomes: Outcomes) -> dict[str, Any]:
    """What a row costs in each window, and how much more in the largest than in the smallest."""
    costs = {name: {str(one.cell["window"]): round(one[name]["us_per_row"], 2) for one in outcomes} for name in QUERIES}
    grows = {name: round(outcomes[-1][name]["us_per_row"] / outcomes[0][name]["us_per_row"], 2) for name in QUERIES}
    return {"us_per_row": costs, "grows": grows}


def tables(outcomes: Outcomes) -> list[Table]:
    def show(figures: Figures) -> str:
        return f"{figures['us_per_row']:.2f}, {figures['changes_per_row']:.3f}"

    title = "Microseconds a row and changes a row, by the rows in a window:"
    return [by_contestant(title, outcomes, show, lambda cell: f"{cell['window']:,}")]


def panels(outcomes: Outcomes) -> list[Panel]:
    lines = lines_of(outcomes, lambda figures: figures["us_per_row"])
    return [Panel("", "rows in a window", "microseconds a row", lines, log_x=True)]


def settings(options: Options) -> dict[str, int]:
    return {"batch_rows": BATCH, "batches": QUICK_BATCHES if options.quick else BATCHES}


BENCHMARK: Final = Benchmark("Rows by their place", experiments, summary, tables, panels, settings)
