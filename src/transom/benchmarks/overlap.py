"""Joins of sliding windows within a memory budget: the experiment of paper 4.

| experiment | what is measured |
| --- | --- |
| size | time of a slide by incremental, full and hybrid, by the rows of a basic window |
| selectivity | the same, by the share of pairs of rows that match |
| memory | the most memory of a process beside its budget: windows that do not fit, and results that do not |
| burst | how late every slide is told, of streams that do not wait, before, in and after a burst |

The first ten slides of a run, in which costs are learned, are told apart. All tactics must come to the same answers.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from transom.benchmarks import overlap_burst, overlap_memory
from transom.benchmarks.chart import write_grid
from transom.benchmarks.machine import machine
from transom.benchmarks.overlap_burst import Burst
from transom.benchmarks.overlap_data import Cell
from transom.benchmarks.overlap_report import panels, summary, tables
from transom.benchmarks.overlap_run import HYBRID, LEARNING, TACTICS, Effort, measure

SELECTIVITY: Final = 0.05
ROWS: Final = 1_500


@dataclass(frozen=True)
class Size:
    """The cells. `memory` are those in processes of their own, with how many slides; None: as many as it takes."""

    budget_mb: float
    disk_mb_s: float
    rows: tuple[int, ...]
    selectivities: tuple[float, ...]
    memory: tuple[tuple[Cell, int | None], ...]
    memory_tactics: tuple[str, ...]
    burst: Burst


FULL = Size(
    budget_mb=32,
    disk_mb_s=100,
    rows=(250, 500, 750, 1_000, 1_250, 1_500, 2_000, 3_000, 4_000),
    selectivities=(0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.1, 0.2),
    memory=(
        (Cell("windows", 60_000, 1 / 120_000, 16, 100, filler=40), None),
        (Cell("results", 2_000, SELECTIVITY, 16, 100), 16),
    ),
    memory_tactics=TACTICS,
    burst=Burst(
        calm=1_000, burst=60_000, slides_before=6, slides_of_burst=8, slides_after=24, slide_ms=500, batches=5,
        keys=50_000, budget_mb=8, disk_mb_s=20,
    ),
)  # fmt: skip
QUICK = replace(
    FULL,
    rows=(250, 1_000, 2_000),
    selectivities=(0.005, 0.1),
    memory=((Cell("windows", 30_000, 1 / 60_000, 8, 100, filler=40), None),),
    memory_tactics=(HYBRID,),
    burst=replace(FULL.burst, slides_before=2, slides_of_burst=5, slides_after=13),
)
EFFORT = Effort(slides=12, most=60, seconds=4)
QUICK_EFFORT = Effort(slides=4, most=10, seconds=0.5)


def main(arguments: argparse.Namespace) -> int:
    size, effort = (QUICK, QUICK_EFFORT) if arguments.quick else (FULL, EFFORT)
    started = time.perf_counter()
    found = measured(size, effort)
    _say(f"took {time.perf_counter() - started:.0f} s")
    if arguments.plot:
        write_grid(arguments.plot, "Joins of sliding windows within a memory budget", panels(found))
    if arguments.json:
        settings = {**asdict(size), **asdict(effort), "learning": LEARNING, "machine": machine()}
        print(json.dumps({"cells": found, "settings": settings, "summary": summary(found)}, indent=2))
    else:
        print(tables(found))
    return 0


def measured(size: Size, effort: Effort) -> list[dict[str, Any]]:
    """All cells, as they are written down."""
    _say("warming up ..")
    measure(Cell("size", 250, 0.05, 4, 10_000), Effort(1, 1, 0))  # everything is compiled
    found = []
    for cell in cells(size):
        _say(f"{cell.experiment}, {cell.x:,g} ..")
        found.append(measure(cell, effort))
    for cell, slides in size.memory:
        for tactic in size.memory_tactics:
            _say(f"memory, {cell.experiment} that do not fit, {tactic} ..")
            asked = slides if slides is not None else overlap_memory.slides_for(cell)
            found.append(overlap_memory.in_own_process(cell, tactic, asked))
    _say(f"a burst, {size.burst.slides * size.burst.slide_ms // 1_000} s ..")
    found.append(overlap_burst.measure(size.burst))
    return found


def cells(size: Size) -> Sequence[Cell]:
    by_rows = [Cell("size", rows, SELECTIVITY, size.budget_mb, size.disk_mb_s) for rows in size.rows]
    by_selectivity = [Cell("selectivity", ROWS, share, size.budget_mb, size.disk_mb_s) for share in size.selectivities]
    return [*by_rows, *by_selectivity]


def _say(what: str) -> None:
    print(f"overlap: {what}", file=sys.stderr, flush=True)
