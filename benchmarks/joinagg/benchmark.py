"""Aggregates over joins: the experiment of paper 5, for windows, rates, groups, inputs and matches.

| experiment | contestants |
| --- | --- |
| window, rate | pc, ic, tc, tc_paper, factorised |
| grouped | pc, ic, tc, factorised |
| matches | the same, and what is chosen by a sample: auto |
| inputs | pc, tc, factorised; ic supports no more than two |

`tc_paper` is tc as the paper has it, with a scan over all rows alive at each arrival; no plan makes it. Figures are
medians of interleaved runs, each measured after its windows were full. All contestants of a cell must come to the same
answer. What takes too long is left out, null in JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

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
    of,
    short,
)
from benchmarks.joinagg.contestants import AUTO, FACTORISED, IC, PC, TC, Effort, measure_falling, measure_steady
from benchmarks.joinagg.data import GROUPS, Cell

MATCHES: Final = (1, 10, 100, 1_000)


@dataclass(frozen=True)
class Size:
    """The cells. Windows and batches are rows of one stream."""

    windows: tuple[int, ...]
    grouped: tuple[int, ...]
    falling: int  # the window at the first rate
    inputs: tuple[int, ...]
    inputs_window: int
    matches_window: int
    window_batch: int
    matches_batch: int
    keys: int = 20  # as many as the paper has hash buckets
    other_keys: int = 100  # grouped, and with many inputs: a selectivity of 0.01, as in the paper


FULL = Size(
    windows=(1_000, 3_000, 10_000, 30_000, 100_000),
    grouped=(1_000, 3_000, 10_000),
    falling=10_000,
    inputs=(2, 3, 4, 5),
    inputs_window=400,
    matches_window=10_000,
    window_batch=500,
    matches_batch=2_500,
)
QUICK = Size(
    windows=(1_000, 10_000),
    grouped=(1_000,),
    falling=2_000,
    inputs=(2, 3),
    inputs_window=400,
    matches_window=2_000,
    window_batch=500,
    matches_batch=1_000,
)
EFFORT = Effort(runs=3, seconds=0.3, steps=2, most_join_rows=12_000_000, most_scanned_rows=10_000, most_matches=2_000)
QUICK_EFFORT = Effort(
    runs=1, seconds=0.05, steps=2, most_join_rows=12_000_000, most_scanned_rows=10_000, most_matches=2_000
)


TITLES: Final = {
    "window": "Rows in a window of one stream, at a steady rate and with a fixed number of keys",
    "rate": "Seconds of a falling rate, 1 / i^2 of the first in second i",
    "grouped": "Rows in a window of one stream, with GROUP BY a column that is no join key",
    "inputs": "Streams, all joined on one key",
    "matches": "Matches of a row in the other stream",
}
_AXES: Final = {
    "window": "rows in a window",
    "rate": "seconds, while the rate falls",
    "grouped": "rows in a window, grouped",
    "inputs": "streams",
    "matches": "matches of a row",
}


def _chosen(options: Options) -> tuple[Size, Effort]:
    return (QUICK, QUICK_EFFORT) if options.quick else (FULL, EFFORT)


def experiments(options: Options) -> Experiments:
    size, effort = _chosen(options)
    yield Experiment(list(_steady_cells(size)), lambda cell: [measure_steady(cell, effort)])
    yield Experiment([Cell("rate", size.falling, size.keys, 0)], lambda cell: measure_falling(cell, effort))


def _steady_cells(size: Size) -> Iterator[Cell]:
    for rows in size.windows:
        yield Cell("window", rows, size.keys, size.window_batch)
    for rows in size.grouped:
        yield Cell("grouped", rows, size.other_keys, size.window_batch)
    for inputs in size.inputs:
        yield Cell("inputs", size.inputs_window, size.other_keys, size.window_batch, inputs)
    for matches in MATCHES:
        yield Cell("matches", size.matches_window, size.matches_window // matches, size.matches_batch)


def settings(options: Options) -> dict[str, Any]:
    size, effort = _chosen(options)
    return {**asdict(effort), **asdict(size), "groups": GROUPS}


def summary(outcomes: Outcomes) -> dict[str, Any]:
    """Ratios of rows a second at so many matches a row, and how state grew when the window grew tenfold.

    `auto_over_best_max` is how many times as long as the best the tactic takes that is chosen, at most. State grew from
    a tenth of the greatest window that all contestants were measured with.
    """
    rates = {
        round(outcome.cell["matches"]): {
            name: f["rows_per_s"] for name, f in outcome.contestants.items() if f is not None
        }
        for outcome in of(outcomes, "matches")
    }
    ratios = {f"{name}_over_pc_100": rates[100][name] / rates[100][PC] for name in (FACTORISED, IC, TC)}
    ratios["auto_over_best_max"] = max(
        max(rate for name, rate in rate_of.items() if name != AUTO) / rate_of[AUTO] for rate_of in rates.values()
    )
    ratios["factorised_1000_over_1"] = rates[1_000][FACTORISED] / rates[1][FACTORISED]
    windows = {outcome.cell["window"]: outcome for outcome in of(outcomes, "window")}
    great = max(rows for rows, outcome in windows.items() if None not in outcome.contestants.values())
    before, after = windows[great // 10], windows[great]
    growth = {name: round(after[name]["state_bytes"] / before[name]["state_bytes"], 2) for name in after.contestants}
    return {**{name: round(value, 3) for name, value in ratios.items()}, "state_growth": growth}


def tables(outcomes: Outcomes) -> list[Table]:
    all_tables = []
    for experiment, title in TITLES.items():
        here = of(outcomes, experiment)
        keys = {outcome.cell["keys"] for outcome in here}
        what = f"{keys.pop()} keys" if len(keys) == 1 else f"windows of {here[0].cell['window']:,} rows"
        all_tables.append(by_contestant(f"{title}; {what}. Rows/s, µs a row, MB of state:", here, _figures))
        reasons = {name: why for outcome in reversed(here) for name, why in outcome.cell.get("unsupported", {}).items()}
        all_tables += [Table(f"{name} is not supported: {why}.") for name, why in reasons.items()]
    joins = [Outcome(outcome.cell, {PC: outcome.contestants[PC]}) for outcome in of(outcomes, "matches")]
    made = "The joins of pc alone, join rows/s, by matches of a row:"
    return [*all_tables, by_contestant(made, joins, lambda figures: short(figures["join_rows_per_s"]))]


def _figures(figures: Figures) -> str:
    return ", ".join(map(short, (figures["rows_per_s"], figures["us_per_row"], figures["state_bytes"] / 1e6)))


def panels(outcomes: Outcomes) -> list[Panel]:
    """A panel for time and one for state where it shows something."""
    drawn = []
    for experiment, axis in _AXES.items():
        here = of(outcomes, experiment)
        times = lines_of(here, lambda figures: figures["us_per_row"])
        drawn.append(Panel("time", axis, "µs a row", times, log_x=True, log_y=True))
        if experiment not in ("grouped", "inputs"):
            state = lines_of(here, lambda figures: figures["state_bytes"] / 1e6)
            drawn.append(Panel("state", axis, "MB", state, log_x=True, log_y=True))
    return drawn


BENCHMARK: Final = Benchmark("Aggregates over joins", experiments, summary, tables, panels, settings)
