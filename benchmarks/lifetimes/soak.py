"""A soak: many rows through row-count windows, a join and an aggregate, and what the process holds meanwhile.

A whole pipeline runs: admission, operators, output as changes, which is dropped. Keys are drawn from as many values as
a window has rows, so a row meets about one of the other stream. After the first tenth nothing may grow any more.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks.chart import Panel
from benchmarks.harness import Outcome, Table
from benchmarks.meters import anonymous_bytes, open_files, resident_bytes, threads
from transom.cql.statements import parse_statements
from transom.pipeline.driver import Pipeline
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.planner.plan import plan

BATCH: Final = 10_000
WINDOW: Final = 10_000
SAMPLES: Final = 100
SOAKED: Final = "transom"
TEXT: Final = f"""
CREATE STREAM a (ts TIMESTAMP, k BIGINT, v BIGINT, WATERMARK FOR ts AS ts);
CREATE STREAM b (ts TIMESTAMP, k BIGINT, v BIGINT, WATERMARK FOR ts AS ts);
SET joinagg = 'pc';
SELECT a.k, COUNT(*) AS n, SUM(b.v) AS s FROM a [ROWS {WINDOW}], b [ROWS {WINDOW}] WHERE a.k = b.k GROUP BY a.k
"""


@dataclass(frozen=True)
class Limit:
    """Flat is: at most so much more than the greatest value of the first tenth."""

    share: float
    room: float = 0.0

    def allows(self, first: float, later: float) -> bool:
        return later <= first * (1 + self.share) + self.room


# What is alive changes with the keys that are drawn, and the allocator keeps pages: a leak grows far beyond this.
LIMITS: Final = {
    "rss_mb": Limit(0.05, 8),
    "anonymous_mb": Limit(0.05, 8),
    "holders_in_use": Limit(0.10),
    "holder_slots": Limit(0.10),
    "threads": Limit(0),
    "open_files": Limit(0),
}
METERS: Final[dict[str, Callable[[Pipeline], float]]] = {
    "rss_mb": lambda _: resident_bytes() / 1e6,
    "anonymous_mb": lambda _: anonymous_bytes() / 1e6,
    "holders_in_use": lambda pipeline: pipeline.state.part.open_ids.in_use,
    "holder_slots": lambda pipeline: pipeline.state.part.open_ids.slots.high,
    "threads": lambda _: threads(),
    "open_files": lambda _: open_files(),
}


def soak(rows: int, lifetimes: str = "auto") -> Outcome:
    """`rows` of both streams together; every hundredth part of them is sampled."""
    catalogue = Catalogue()
    statement = parse_statements(f"SET lifetimes = '{lifetimes}'; {TEXT}", catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    pipeline = Pipeline(plan(statement.query, catalogue), catalogue)
    schemas = {name: pipeline.inputs[name].definition.columns.arrow() for name in ("a", "b")}
    random = np.random.default_rng(7)
    steps = max(-(-rows // (2 * BATCH)), SAMPLES)
    samples: list[dict[str, float]] = []
    seconds, sampled_at = 0.0, 0
    for i in range(steps):
        batches = {name: _batch(i, random, schema) for name, schema in schemas.items()}
        started = time.perf_counter()
        for name, batch in batches.items():
            pipeline.push(name, batch)
        pipeline.advance()
        seconds += time.perf_counter() - started
        if (i + 1) * SAMPLES // steps > len(samples):
            came = 2 * BATCH * (i + 1 - sampled_at)
            values = {name: meter(pipeline) for name, meter in METERS.items()}
            samples.append({"rows": 2 * BATCH * (i + 1), "rows_per_s": came / seconds, **values})
            seconds, sampled_at = 0.0, i + 1
    cell = {"experiment": "soak", "rows": 2 * BATCH * steps, "batch": BATCH}
    return Outcome(cell, {SOAKED: {"quantities": judged(samples), "samples": samples}})


def judged(samples: Sequence[dict[str, float]]) -> dict[str, dict[str, Any]]:
    """Of every quantity the greatest value in the first tenth and after it, and whether that is flat."""
    tenth = len(samples) // 10
    verdicts = {}
    for name, limit in LIMITS.items():
        values = [sample[name] for sample in samples]
        first, later = max(values[:tenth]), max(values[tenth:])
        allowed = f"{100 * limit.share:g} % + {limit.room:g}"
        verdicts[name] = {"first_tenth": first, "later": later, "flat": limit.allows(first, later), "allowed": allowed}
    return verdicts


def table(outcome: Outcome) -> Table:
    figures = outcome[SOAKED]
    body = []
    for name, verdict in figures["quantities"].items():
        flat = "yes" if verdict["flat"] else "NO"
        body.append([name, f"{verdict['first_tenth']:,.1f}", f"{verdict['later']:,.1f}", verdict["allowed"], flat])
    rate = statistics.median(sample["rows_per_s"] for sample in figures["samples"])
    title = f"{outcome.cell['rows']:,} rows, {rate:,.0f} rows/s (the median of the samples):"
    return Table(title, ["quantity", "most in the first tenth", "most after it", "allowed more", "flat"], body)


def panel(outcome: Outcome) -> Panel:
    samples = outcome[SOAKED]["samples"]
    lines = {name: [(sample["rows"], sample[name]) for sample in samples] for name in ("rss_mb", "anonymous_mb")}
    return Panel("a soak", "rows", "MB", lines)


def _batch(number: int, random: np.random.Generator, schema: pa.Schema) -> pa.RecordBatch:
    t = np.arange(number * BATCH, (number + 1) * BATCH) * 1_000
    columns = [pa.array(t).cast(pa.timestamp("us")), *(pa.array(random.integers(0, WINDOW, BATCH)) for _ in range(2))]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
