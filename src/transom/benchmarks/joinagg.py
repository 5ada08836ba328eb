"""Aggregates over joins: the experiment of paper 5, for windows, rates, groups, inputs and matches.

| experiment | contestants |
| --- | --- |
| window, rate | pc, ic, tc, tc_paper, factorised |
| grouped | pc, ic, tc, factorised |
| matches | the same, and what is chosen by a sample: auto |
| inputs | pc, tc, factorised; ic refuses more than two |

`tc_paper` is tc as the paper has it, with a scan over all rows alive at each arrival; no plan makes it. Figures are
medians of interleaved runs, each measured after its windows were full. All contestants of a cell must come to the same
answer. What takes too long is left out, null in JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from transom.benchmarks.chart import write_panels
from transom.benchmarks.joinagg_data import GROUPS, Cell, falling_rates
from transom.benchmarks.joinagg_report import Outcome, panels, summary, tables
from transom.benchmarks.joinagg_run import Effort, measure_falling, measure_steady

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


def main(arguments: argparse.Namespace) -> int:
    effort, size = (QUICK_EFFORT, QUICK) if arguments.quick else (EFFORT, FULL)
    started = time.perf_counter()
    outcomes = list(_measured(size, effort))
    _say(f"took {time.perf_counter() - started:.0f} s")
    if arguments.plot:
        write_panels(arguments.plot, "Aggregates over joins", "", "", panels(outcomes), logarithmic=True)
    if not arguments.json:
        print(tables(outcomes))
        return 0
    settings = {**asdict(effort), **asdict(size), "groups": GROUPS, "cores": os.cpu_count()}
    told = {"cells": [outcome.told() for outcome in outcomes], "settings": settings}
    print(json.dumps({**told, "summary": summary(outcomes)}, indent=2))
    return 0


def _measured(size: Size, effort: Effort) -> Iterator[Outcome]:
    for x, cell in _steady_cells(size):
        _say(f"{cell.experiment}, {x:,} ..")
        yield Outcome(cell, x, *measure_steady(cell, effort))
    cell = Cell("rate", size.falling, size.keys, 0)
    _say(f"rate, {' '.join(map(str, falling_rates(cell)))} rows a second of each stream ..")
    for second, results in enumerate(measure_falling(cell, effort), 1):
        yield Outcome(cell, second, results)


def _steady_cells(size: Size) -> Iterator[tuple[int, Cell]]:
    for rows in size.windows:
        yield rows, Cell("window", rows, size.keys, size.window_batch)
    for rows in size.grouped:
        yield rows, Cell("grouped", rows, size.other_keys, size.window_batch)
    for inputs in size.inputs:
        yield inputs, Cell("inputs", size.inputs_window, size.other_keys, size.window_batch, inputs)
    for matches in MATCHES:
        yield matches, Cell("matches", size.matches_window, size.matches_window // matches, size.matches_batch)


def _say(what: str) -> None:
    print(f"joinagg: {what}", file=sys.stderr, flush=True)
