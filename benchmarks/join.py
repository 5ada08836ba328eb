"""The two-stream window join, from Arrow batches to Arrow results, for windows of 10^3, 10^5 and 10^6 rows.

Each stream brings rows of 8 columns (strings and NULLs among them) in batches of 10,000, one row a millisecond. A
window holds W rows; keys are drawn from W values, so a row meets about one row of the other stream. The whole pipeline
runs: admission, windows, join, output as lifetimes.

With `--partitions N ..` one partition runs beside so many, on the same rows in batches of 65,536, in turn step by step.
Beside rows a second there is the time of all processors for a step, and the time of what is not shared among threads:
rows are judged one input after the other.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import count as count_from
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks.chart import Panel
from benchmarks.harness import (
    Benchmark,
    Experiment,
    Experiments,
    Figures,
    Option,
    Options,
    Outcome,
    Outcomes,
    Table,
    by_contestant,
    count,
    lines_of,
    medians,
    short,
    take_turns,
)
from transom.cql.statements import parse_statements
from transom.kernels.worker_pool import processors
from transom.pipeline.driver import Pipeline
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition
from transom.planner.plan import plan

BATCH = 10_000
WINDOWS = (1_000, 100_000, 1_000_000)
BATCHES, QUICK_BATCHES = 200, 40  # of each stream, after the window has filled
LARGE_BATCH = 65_536
PARTITIONED_WINDOWS = (100_000, 1_000_000)
RING, LAZY = TACTICS = ("ring_hash", "lazy_hash")
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
) -> dict[str, dict[str, float]]:
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
    pairs = (_Pair(*(_moved(pool[(i + 8 * side) % 16], i, window, random) for side in (0, 1))) for i in count_from(0))
    with ExitStack() as threads:
        contestants = {
            str(each): threads.enter_context(closing(Pipeline(root, catalogue, "lifetimes", partitions=each)))
            for each in partitions
        }
        take_turns(contestants, islice(pairs, warm), _step)
        steps = take_turns(contestants, islice(pairs, batches), _step)
    return {name: _measured(measured_steps, 2 * size) for name, measured_steps in steps.items()}


@dataclass(frozen=True)
class _Pair:
    """A batch of each stream."""

    left: pa.RecordBatch
    right: pa.RecordBatch


def _step(pipeline: Pipeline, pair: _Pair) -> dict[str, float]:
    """What a step took: in all, in all processors together, and to judge the rows."""
    busy, started = time.process_time(), time.perf_counter()
    pipeline.push("a", pair.left)
    pipeline.push("b", pair.right)
    judged = time.perf_counter() - started
    output, _ = pipeline.advance()
    took, busy = time.perf_counter() - started, time.process_time() - busy
    results = 0 if output is None else sum(map(len, output.batches))
    return {"step_ms": 1e3 * took, "processor_ms": 1e3 * busy, "judging_ms": 1e3 * judged, "results": results}


def _measured(steps: Sequence[dict[str, float]], rows: int) -> dict[str, float]:
    """The median of five slices of the run, against hiccups of the machine."""
    slices = [{name: statistics.mean(step[name] for step in steps[j::5]) for name in steps[0]} for j in range(5)]
    times = medians(slices)
    del times["results"]
    return {
        "rows_per_s": 1e3 * rows / times["step_ms"],
        "matches_per_row": sum(step["results"] for step in steps) / (rows * len(steps)),
        "batches": len(steps),
        **times,
    }


def _moved(batch: pa.RecordBatch, number: int, keys: int, random: np.random.Generator) -> pa.RecordBatch:
    n = len(batch)
    ts = pa.array((np.arange(number * n, (number + 1) * n) * 1_000).astype(np.int64)).cast(pa.timestamp("us"))
    return batch.set_column(0, "ts", ts).set_column(1, "k", pa.array(random.integers(0, keys, n)))


def experiments(options: Options) -> Experiments:
    batches = QUICK_BATCHES if options.quick else BATCHES
    if options.partitions:
        numbers = _numbers(options)

        def side_by_side(window: int) -> list[Outcome]:
            figures = measure(window, batches, "ring_hash", numbers, LARGE_BATCH)
            return [Outcome({"window": window, "partitions": True}, figures)]

        yield Experiment(PARTITIONED_WINDOWS, side_by_side)
    else:

        def by_tactic(window: int) -> list[Outcome]:
            figures = {tactic: measure(window, batches, tactic)["1"] for tactic in TACTICS}
            return [Outcome({"window": window, "x": window}, figures)]

        yield Experiment(WINDOWS, by_tactic)


def _numbers(options: Options) -> list[int]:
    return [1, *(number for number in dict.fromkeys(options.partitions) if number > 1)]


def summary(outcomes: Outcomes) -> dict[str, Any]:
    if "partitions" not in outcomes[0].cell:
        return {"rows_per_s": {str(outcome.cell["window"]): round(outcome[RING]["rows_per_s"]) for outcome in outcomes}}
    rates: dict[str, dict[str, int]] = {}
    ratios: dict[str, dict[str, float]] = {}
    for outcome in outcomes:
        for number in outcome.contestants:
            window, rate = str(outcome.cell["window"]), outcome[number]["rows_per_s"]
            rates.setdefault(number, {})[window] = round(rate)
            ratios.setdefault(number, {})[window] = round(rate / outcome["1"]["rows_per_s"], 2)
    return {"rows_per_s": rates, "over_one_partition": ratios, "processors": processors()}


def tables(outcomes: Outcomes) -> list[Table]:
    def show(figures: Figures) -> str:
        rate, busy, judging = figures["rows_per_s"], figures["processor_ms"], figures["judging_ms"]
        return f"{short(rate)}, {figures['matches_per_row']:.2f}, {busy:.1f}, {judging:.1f}"

    title = "Rows/s, matches a row, processor ms and judging ms a step, by the rows in a window:"
    return [by_contestant(title, outcomes, show, lambda cell: f"{cell['window']:,}")]


def panels(outcomes: Outcomes) -> list[Panel]:
    if "partitions" in outcomes[0].cell:
        by_number = {
            f"{outcome.cell['window']:,} rows": [
                (float(n), outcome[n]["rows_per_s"] / 1e6) for n in outcome.contestants
            ]
            for outcome in outcomes
        }
        return [Panel("", "partitions", "million rows a second", by_number)]
    lines = lines_of(outcomes, lambda figures: figures["rows_per_s"] / 1e6)
    return [Panel("", "rows in a window", "million rows a second", lines, log_x=True)]


def settings(options: Options) -> dict[str, int]:
    batch = LARGE_BATCH if options.partitions else BATCH
    return {"batch_rows": batch, "batches": QUICK_BATCHES if options.quick else BATCHES}


BENCHMARK: Final = Benchmark(
    "Two-stream window join",
    experiments,
    summary,
    tables,
    panels,
    settings,
    options=[
        Option(
            "--partitions",
            "one partition beside so many, in large batches",
            {"metavar": "N", "type": count, "nargs": "+"},
        )
    ],
)
