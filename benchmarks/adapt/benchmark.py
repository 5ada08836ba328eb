"""Tactics that change while a query runs, beside those that stay: an aggregate over a join, and a join of three."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from benchmarks.adapt import aggregates, joins, on_spark
from benchmarks.adapt.phases import summary as summary_of
from benchmarks.chart import Panel
from benchmarks.harness import (
    Benchmark,
    Experiment,
    Experiments,
    Figures,
    Option,
    Options,
    Outcomes,
    Table,
    by_contestant,
    count,
    lines_of,
    short,
)
from transom.cli.query_file import UsageError

PARTS: Final = {"aggregate": aggregates, "join": joins}


def _requested(options: Options) -> Any:
    if options.runtime == "local":
        return PARTS[options.part]
    if options.part != "aggregate":
        raise UsageError("on Spark the part 'aggregate' is measured")
    return on_spark


def experiments(options: Options) -> Experiments:
    part = _requested(options)
    yield Experiment(["three phases"], lambda cell: part.measure(part.chosen(options)))


def settings(options: Options) -> dict[str, Any]:
    part = _requested(options)
    return {
        **asdict(part.chosen(options)),
        "part": options.part,
        "runtime": options.runtime,
        "window_seconds": part.SECONDS,
    }


def _part(outcomes: Outcomes) -> Any:
    return {"join": joins, "spark": on_spark}.get(outcomes[0].cell["experiment"], aggregates)


def summary(outcomes: Outcomes) -> dict[str, Any]:
    part = _part(outcomes)
    return on_spark.summary(outcomes) if part is on_spark else summary_of(outcomes, part.FIXED)


def tables(outcomes: Outcomes) -> list[Table]:
    rows, part = outcomes[0].cell["rows"], _part(outcomes)
    if part is on_spark:
        title = "Three phases, one after the other. Seconds on the wall, and of the operators in their tasks:"
        shown = by_contestant(title, outcomes, on_spark.shown, on_spark.head)
    else:
        title = f"Phases of {rows:,} rows, by what comes. Rows/s, µs a row, MB of state at the end:"
        shown = by_contestant(title, outcomes, _shown, part.head)
    changes = "\n".join(f"- {change}" for change in outcomes[0].cell["changes"])
    return [shown, Table(f"What adaptive did:\n\n{changes}")]


def _shown(figures: Figures) -> str:
    return ", ".join(map(short, (figures["rows_per_s"], figures["us_per_row"], figures["state_bytes"] / 1e6)))


def panels(outcomes: Outcomes) -> list[Panel]:
    if _part(outcomes) is on_spark:
        return []
    lines = lines_of(outcomes, lambda figures: figures["us_per_row"])
    return [Panel("time", "phase", "µs a row", lines, log_y=True)]


OPTIONS: Final = (
    Option("--runs", "how often each phase is measured; medians are reported", {"type": count}),
    Option(
        "--part",
        "an aggregate over a join of two streams, or a join of three",
        {"choices": list(PARTS), "default": "aggregate"},
    ),
    Option("--runtime", "where the aggregate runs", {"choices": ["local", "spark"], "default": "local"}),
)
BENCHMARK: Final = Benchmark(
    "Tactics that change while a query runs", experiments, summary, tables, panels, settings, OPTIONS
)
