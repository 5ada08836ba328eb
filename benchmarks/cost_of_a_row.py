"""What a row costs on its way through a whole pipeline, from Arrow batches to changes, by the size of the window.

CPU time, so that a machine shared with others says the same. Benchmarks that ask only this share how it is measured,
summed up and shown.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

import pyarrow as pa

from benchmarks.chart import Panel
from benchmarks.harness import (
    Experiment,
    Experiments,
    Figures,
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

Batch = Callable[[int, pa.Schema], pa.RecordBatch]
"""The batch with this number."""

Measured = Callable[[int, int, str], dict[str, float]]
"""What a row costs in a window of so many rows, over so many batches, by a query of this name."""


def measure(text: str, batch: Batch, warm: int, batches: int) -> dict[str, float]:
    """Microseconds a row over some batches, after those that fill the window, and how many changes a row makes.

    `text` declares one stream and has one query over it.
    """
    catalogue = Catalogue()
    statement = parse_statements(text, catalogue)[-1]
    (definition,) = catalogue.relations.values()
    assert isinstance(statement, QueryStatement) and isinstance(definition, StreamDefinition)
    pipeline = Pipeline(plan(statement.query, catalogue), catalogue, "changes")
    schema = definition.columns.arrow()
    took, rows, changes = 0.0, 0, 0
    for number in range(warm + batches):
        made = batch(number, schema)
        started = time.process_time()
        pipeline.push(definition.name, made)
        output, _ = pipeline.advance()
        if number >= warm:
            took += time.process_time() - started
            rows += len(made)
            changes += 0 if output is None else sum(map(len, output.batches))
    return {"us_per_row": 1e6 * took / rows, "changes_per_row": changes / rows, "batches": batches}


def by_window(measured: Measured, queries: Collection[str], windows: Sequence[int], batches: int) -> Experiments:
    """Each query over each window, measured over so many batches."""

    def by_query(window: int) -> list[Outcome]:
        return [Outcome({"window": window, "x": window}, {name: measured(window, batches, name) for name in queries})]

    yield Experiment(windows, by_query)


def times(number: int, rows: int) -> pa.Array:
    """Of the batch with this number: a row every millisecond."""
    return pa.array(range(number * rows * 1_000, (number + 1) * rows * 1_000, 1_000)).cast(pa.timestamp("us"))


def growth_over_log(least: int, most: int, grows: float) -> float:
    """How much more a row costs in the largest window than in the smallest, to how much more the logarithm is.

    Up to 1 it grows at most as the logarithm does: for windows of 10^3 and 10^6 rows a row may cost twice as much.
    """
    return grows / (math.log(most) / math.log(least))


def summary(outcomes: Outcomes) -> dict[str, Any]:
    """What a row costs in each window, and how much more in the largest than in the smallest, for a tenfold, and to
    the logarithm."""
    first, last = outcomes[0], outcomes[-1]
    decades = math.log10(last.cell["window"] / first.cell["window"])
    costs = {
        name: {str(outcome.cell["window"]): round(outcome[name]["us_per_row"], 2) for outcome in outcomes}
        for name in first.contestants
    }
    grows = {name: last[name]["us_per_row"] / first[name]["us_per_row"] for name in first.contestants}
    bounds = first.cell["window"], last.cell["window"]
    over_log = {name: round(growth_over_log(*bounds, much), 2) for name, much in grows.items()}
    return {
        "us_per_row": costs,
        "grows": {name: round(much, 2) for name, much in grows.items()},
        "grows_per_decade": {name: round(much ** (1 / decades), 2) for name, much in grows.items()},
        "growth_over_log": over_log,
        "growth_over_log_max": max(over_log.values()),
    }


def tables(outcomes: Outcomes) -> list[Table]:
    def show(figures: Figures) -> str:
        return f"{figures['us_per_row']:.2f}, {figures['changes_per_row']:.3f}"

    title = "Microseconds of CPU a row and changes a row, by the rows in a window:"
    return [by_contestant(title, outcomes, show, lambda cell: f"{cell['window']:,}")]


def panels(outcomes: Outcomes) -> list[Panel]:
    lines = lines_of(outcomes, lambda figures: figures["us_per_row"])
    return [Panel("", "rows in a window", "microseconds of CPU a row", lines, log_x=True)]
