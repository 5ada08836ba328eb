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

import statistics
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import product
from typing import Any, Final

from benchmarks.chart import Panel
from benchmarks.harness import (
    Benchmark,
    Experiment,
    Experiments,
    Option,
    Options,
    Outcome,
    Outcomes,
    Table,
    count,
    of,
)
from benchmarks.lifetimes import soak
from benchmarks.lifetimes.contestants import DIRECT, LAZY, NEGATIVE, SORTED, Effort, measure_cell
from benchmarks.lifetimes.data import JOINS, KINDS, QUERIES, STATELESS, Cell
from benchmarks.processes import call_apart

WINDOWS = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
QUICK_WINDOWS = (10, 1_000, 100_000)
BATCHES = (1_000, 100_000)
LARGE = (1_000_000, 10_000_000)
EFFORT = Effort(runs=5, seconds=0.15, steps=5, settling=4, most_sorted_rows=10_000)
QUICK_EFFORT = Effort(runs=1, seconds=0.03, steps=2, settling=2, most_sorted_rows=1_000)
LARGE_RUNS, LARGE_SECONDS = 3, 1.0
QUICK_LARGE_RUNS, QUICK_LARGE_SECONDS = 1, 0.3


_DRAWN: Final = (*STATELESS, "join")
_WINDOWS: Final = {"rows": "ROWS", "time": "RANGE"}


def experiments(options: Options) -> Experiments:
    if options.soak:
        yield Experiment([options.soak], lambda rows: [soak.soak(rows)])
        return
    effort, windows = (QUICK_EFFORT, QUICK_WINDOWS) if options.quick else (EFFORT, WINDOWS)
    runs, seconds = (QUICK_LARGE_RUNS, QUICK_LARGE_SECONDS) if options.quick else (LARGE_RUNS, LARGE_SECONDS)
    cells = [Cell(query, kind, rows, batch) for query, kind, batch, rows in product(QUERIES, KINDS, BATCHES, windows)]
    yield Experiment(cells, lambda cell: [measure_cell(cell, effort)])
    yield Experiment([LARGE], lambda sizes: measure_large(sizes, runs, seconds))


def measure_large(sizes: tuple[int, ...], runs: int, seconds: float) -> Iterator[Outcome]:
    """Rates are medians of the runs, one size after the other in each; memory is the most of any run."""
    measured: dict[int, list[dict[str, float]]] = {rows: [] for rows in sizes}
    for _ in range(runs):
        for rows in sizes:
            measured[rows].append(call_apart("benchmarks.lifetimes.large:measure", rows, seconds))
    for rows, of_size in measured.items():
        figures = {
            "rows_per_s": statistics.median(of_run["rows_per_s"] for of_run in of_size),
            "peak_bytes": max(of_run["peak_bytes"] for of_run in of_size),
        }
        yield Outcome({"experiment": "large", "rows": rows}, {DIRECT: figures})


def settings(options: Options) -> dict[str, Any]:
    effort, windows = (QUICK_EFFORT, QUICK_WINDOWS) if options.quick else (EFFORT, WINDOWS)
    return {**asdict(effort), "windows": windows, "batches": BATCHES, "passing_selection": 0.6}


# --- what it comes to ------------------------------------------------------------------------------------------------


def _ratio(outcome: Outcome) -> float:
    return float(outcome[DIRECT]["rows_per_s"] / outcome[NEGATIVE]["rows_per_s"])


def _visits_ratio(outcome: Outcome) -> float:
    return float(outcome[NEGATIVE]["visits_per_row"] / outcome[DIRECT]["visits_per_row"])


def summary(outcomes: Outcomes) -> dict[str, Any]:
    """Ratios are rates of direct over those of negative tuples."""
    if soaked := of(outcomes, "soak"):
        return {"flat": {name: quantity["flat"] for name, quantity in soaked[0][soak.SOAKED]["quantities"].items()}}
    cells = of(outcomes, "cells")
    stateless = [outcome for outcome in cells if outcome.cell["query"] in STATELESS]
    counted = [outcome for outcome in stateless if outcome.cell["kind"] == "rows"]
    # Of the ratios of visits the one that is farthest from the two that they should be.
    visits = max(map(_visits_ratio, stateless), key=lambda ratio: abs(ratio - 2))
    figures = {"visits_ratio_stateless": visits, "min_ratio_stateless": min(map(_ratio, counted))}
    for batch in _batches(cells):
        figures[f"min_ratio_stateless_{batch}"] = min(
            _ratio(outcome) for outcome in counted if outcome.cell["batch"] == batch
        )
    for kind in ("time", "rows"):
        for query in JOINS:
            ratios = [
                _ratio(outcome) for outcome in cells if (outcome.cell["query"], outcome.cell["kind"]) == (query, kind)
            ]
            figures[f"ratio_{kind}_{query}"] = statistics.median(ratios)
            figures[f"ratio_{kind}_{query}_min"] = min(ratios)
    small, great = sorted(of(outcomes, "large"), key=lambda outcome: int(outcome.cell["rows"]))
    figures["rows_10m_over_1m"] = great[DIRECT]["rows_per_s"] / small[DIRECT]["rows_per_s"]
    figures["peak_mb_10m"] = great[DIRECT]["peak_bytes"] / 1e6
    return {name: round(value, 3) for name, value in figures.items()}


def tables(outcomes: Outcomes) -> list[Table]:
    if soaked := of(outcomes, "soak"):
        return [soak.table(soaked[0])]
    cells, large = of(outcomes, "cells"), of(outcomes, "large")
    joins = [outcome for outcome in cells if outcome.cell["query"] in JOINS]
    return [
        _pivot("Million rows a second, direct / negative tuples = ratio, by the rows in the windows:", cells, _pair),
        _pivot(
            "Million rows a second, direct joins with `lazy_hash` / the same with sorted insertion (-: not measured, "
            "it takes too long):",
            joins,
            _sets,
        ),
        _visits(cells),
        Table(
            "A selection over the greatest windows, in batches of 100,000 rows:",
            ["rows in the window", "million rows a second", "most MB above the idle process"],
            [
                [f"{outcome.cell['rows']:,}", _millions(outcome, DIRECT), f"{outcome[DIRECT]['peak_bytes'] / 1e6:,.0f}"]
                for outcome in large
            ],
        ),
    ]


def _pair(outcome: Outcome) -> str:
    return f"{_millions(outcome, DIRECT)} / {_millions(outcome, NEGATIVE)} = {_ratio(outcome):.2f}"


def _sets(outcome: Outcome) -> str:
    return f"{_millions(outcome, LAZY)} / {_millions(outcome, SORTED)}"


def _millions(outcome: Outcome, method: str) -> str:
    figures = outcome.contestants[method]
    if figures is None:
        return "-"
    millions = figures["rows_per_s"] / 1e6
    return f"{millions:,.0f}" if millions >= 100 else f"{millions:.3g}"


def _pivot(title: str, outcomes: Outcomes, show: Callable[[Outcome], str]) -> Table:
    windows = sorted({outcome.cell["rows"] for outcome in outcomes})
    lines: dict[tuple[str, ...], dict[int, str]] = {}
    for outcome in outcomes:
        line = (outcome.cell["query"], _WINDOWS[outcome.cell["kind"]], f"{outcome.cell['batch']:,}")
        lines.setdefault(line, {})[outcome.cell["rows"]] = show(outcome)
    body = [[*line, *(cells[rows] for rows in windows)] for line, cells in lines.items()]
    return Table(title, ["query", "window", "batch", *(f"{rows:,}" for rows in windows)], body)


def _visits(outcomes: Outcomes) -> Table:
    body = []
    for query in dict.fromkeys(outcome.cell["query"] for outcome in outcomes):
        here = [outcome for outcome in outcomes if outcome.cell["query"] == query]
        counts = [sorted({outcome[method]["visits_per_row"] for outcome in here}) for method in (DIRECT, NEGATIVE)]
        body.append([query, *(" to ".join(dict.fromkeys(f"{c:g}" for c in (each[0], each[-1]))) for each in counts)])
    title = "Visits: rows that came into the operator above the windows, per input row, once the windows are full:"
    return Table(title, ["query", DIRECT, NEGATIVE], body)


def panels(outcomes: Outcomes) -> list[Panel]:
    """A panel for each query and cut into batches, like the paper's figure 5."""
    if soaked := of(outcomes, "soak"):
        return [soak.panel(soaked[0])]
    cells = of(outcomes, "cells")
    drawn = []
    for batch, query in product(_batches(cells), _DRAWN):
        lines: dict[str, list[tuple[float, float]]] = {}
        for outcome in cells:
            if (outcome.cell["query"], outcome.cell["batch"]) == (query, batch):
                for method in (DIRECT, NEGATIVE, SORTED):
                    if (figures := outcome.contestants.get(method)) is not None:
                        line = f"{method.replace('_', ' ')}, {_WINDOWS[outcome.cell['kind']]}"
                        lines.setdefault(line, []).append((outcome.cell["rows"], figures["rows_per_s"] / 1e6))
        title = f"{query}, batches of {batch:,}"
        drawn.append(Panel(title, "rows in the windows", "million rows a second", lines, log_x=True))
    return drawn


def _batches(outcomes: Outcomes) -> list[int]:
    return sorted({outcome.cell["batch"] for outcome in outcomes})


def fails(outcomes: Outcomes) -> bool:
    """A soak in which something grew."""
    soaked = of(outcomes, "soak")
    return any(not quantity["flat"] for each in soaked for quantity in each[soak.SOAKED]["quantities"].values())


BENCHMARK: Final = Benchmark(
    "Direct lifetimes and negative tuples",
    experiments,
    summary,
    tables,
    panels,
    settings,
    options=[Option("--soak", "so many rows through one plan instead", {"metavar": "ROWS", "type": count})],
    fails=fails,
)
