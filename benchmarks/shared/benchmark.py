"""Many queries on one join, in three parts; `--part` chooses some, without it all are run.

| part | what it is about |
| --- | --- |
| a | which work is done first when not all can be, simulated: the experiment of paper 2 |
| b | the rate and the state of queries that share their join, and of the same queries each by itself |
| c | rows that come at twice the rate that can be kept up with, for real |
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from benchmarks.chart import Bars, Panel
from benchmarks.harness import Benchmark, Experiments, Option, Options, Outcomes, Table
from benchmarks.shared.overload import OVERLOAD_PART, Rush
from benchmarks.shared.policies import POLICIES_PART
from benchmarks.shared.throughput import THROUGHPUT_PART

PARTS: Final = {"a": POLICIES_PART, "b": THROUGHPUT_PART, "c": OVERLOAD_PART}


def experiments(options: Options) -> Experiments:
    for name in options.part or PARTS:
        yield from PARTS[name].experiments(options)


def _parts(outcomes: Outcomes) -> Iterator[tuple[Benchmark, Outcomes]]:
    """Those that were run, each with what is its own."""
    for name, part in PARTS.items():
        if mine := [one for one in outcomes if one.cell["part"] == name]:
            yield part, mine


def summary(outcomes: Outcomes) -> dict[str, Any]:
    return {figure: value for part, mine in _parts(outcomes) for figure, value in part.summary(mine).items()}


def tables(outcomes: Outcomes) -> list[Table]:
    return [table for part, mine in _parts(outcomes) for table in part.tables(mine)]


def panels(outcomes: Outcomes) -> list[Panel | Bars]:
    return [panel for part, mine in _parts(outcomes) for panel in part.panels(mine)]


def settings(options: Options) -> dict[str, Any]:
    return {name: PARTS[name].settings(options) for name in options.part or PARTS}


BENCHMARK: Final = Benchmark(
    "Many queries on one join",
    experiments,
    summary,
    tables,
    panels,
    settings,
    options=[
        Option("--part", "these parts alone", {"choices": list(PARTS), "nargs": "+"}),
        Option("--over", "how many times the capacity comes in part c", {"type": float, "default": Rush.over}),
        Option("--runtime", "where part c runs", {"choices": ["local", "spark"], "default": "local"}),
    ],
)
