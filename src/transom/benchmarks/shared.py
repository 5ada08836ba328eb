"""Many queries on one join.

Part a: which work is done first when not all can be, the experiment of paper 2. It is a simulation: it has no noise and
is the same on any machine. Part b: the rate and the state of queries that share their join, and of the same queries
each by itself. Part c: rows that come at twice the rate that can be kept up with, for real. `--part` chooses some
parts; without it all are run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from transom.benchmarks import shared_assumptions_report as assumptions_report
from transom.benchmarks import shared_overload as overloaded
from transom.benchmarks import shared_throughput_report as throughput_report
from transom.benchmarks.chart import Panel, write_grid
from transom.benchmarks.machine import machine
from transom.benchmarks.shared_assumptions import RESTORED, Count, Miss, as_drawn, drawn, miss, restored
from transom.benchmarks.shared_cases import CASES, OTHER_PLANS, PLAN, WORLD
from transom.benchmarks.shared_overload import Rush
from transom.benchmarks.shared_scheduling import (
    VARIED,
    Case,
    Seed,
    plan_name,
    reading_name,
    run_case,
    run_reading,
    run_seeds,
)
from transom.benchmarks.shared_scheduling_report import Findings, panels, summary, tables, told
from transom.benchmarks.shared_throughput import Cell, Effort, measure

SEEDS: Final = 50
COUNTS: Final = (1, 10, 100, 500)
MATCHES: Final = (0.04, 1.0, 10.0)
CELLS: Final = (
    *(Cell(queries, matches) for matches in MATCHES for queries in COUNTS),
    *(Cell(queries, MATCHES[0], "changes") for queries in COUNTS[:3]),
)
QUICK_CELLS: Final = tuple(Cell(queries, matches, largest=20_000) for matches in MATCHES[:2] for queries in COUNTS[:3])
EFFORT: Final = Effort(runs=5, seconds=0.5, most_seconds=20.0)
RUSHED: Final = ("fifo", "mqt", "mandf", "admandf", "slack")
QUICK_RUSH: Final = Rush(0.3, 1.0, 1.0, buffer=500, windows=(50, 100, 200))
QUICK_EFFORT: Final = Effort(runs=2, seconds=0.2, most_seconds=4.0)


@dataclass(frozen=True)
class Part:
    """What a part found: for programs, for people, and for a chart."""

    cells: Sequence[dict[str, Any]]
    settings: dict[str, Any]
    summary: dict[str, Any]
    text: str
    title: str
    panels: Sequence[Panel]


def main(arguments: argparse.Namespace) -> int:
    started = time.perf_counter()
    asked = arguments.part or PARTS
    parts = {name: PARTS[name](arguments.quick) for name in PARTS if name in asked}
    if arguments.plot:
        title = "; ".join(part.title for part in parts.values())
        write_grid(arguments.plot, title, [panel for part in parts.values() for panel in part.panels])
    _say(f"took {time.perf_counter() - started:.0f} s")
    if arguments.json:
        cells = [{"part": name, **cell} for name, part in parts.items() for cell in part.cells]
        settings = {name: part.settings for name, part in parts.items()}
        figures = {figure: value for part in parts.values() for figure, value in part.summary.items()}
        print(json.dumps({"cells": cells, "settings": settings, "summary": figures}, indent=2))
    else:
        print("\n\n".join(part.text for part in parts.values()))
    return 0


def scheduling(quick: bool) -> Part:
    """Part a. A quick run has the nine cases alone."""
    _say("the nine cases ..")
    cases = [run_case(name, PLAN) for name in CASES]
    readings: dict[str, Sequence[Case]] = {reading_name({}): cases}
    plans: dict[str, Sequence[Case]] = {}
    seeds: dict[str, Sequence[Seed]] = {}
    if not quick:
        for changed in VARIED[1:]:
            _say(f"the reading {reading_name(changed)} ..")
            readings[reading_name(changed)] = run_reading(changed, cases, PLAN)
        for plan in OTHER_PLANS:
            _say(f"the plan {plan_name(plan)} ..")
            plans[plan_name(plan)] = [run_case(name, plan) for name in CASES]
        _say(f"{SEEDS} arrival plans ..")
        every = run_seeds(SEEDS, PLAN.intervals)
        served = [one for one in every if one.served]
        seeds = {"any": every[:SEEDS], "that FIFO serves without a drop": served[:SEEDS]}
        seeds["that FIFO does not serve"] = [one for one in every[:SEEDS] if not one.served]
    found = Findings(cases, readings, plans, seeds)
    figures, text = summary(found), tables(found)
    if not quick:
        why = _assumptions(seeds["any"])
        figures["assumptions"] = assumptions_report.summary(*why)
        text += "\n\n" + assumptions_report.tables(*why)
    return Part(
        [told(case) for case in cases],
        {"plan": asdict(PLAN), **asdict(WORLD)},
        figures,
        text,
        "Which work of a shared join is done first",
        panels(cases),
    )


def _assumptions(seeds: Sequence[Seed]) -> tuple[list[Miss], dict[str, Count]]:
    """The plans under which adMandF drops more than MandF, and how many they are when an assumption is made to hold."""
    counts = as_drawn(seeds)
    for name, changes in RESTORED.items():
        _say(f"{name} ..")
        counts[name] = restored(changes, len(seeds), PLAN.intervals)
    misses = [miss(seed, drawn(seed, PLAN.intervals)) for seed in counts["as drawn"].more]
    return misses, counts


def throughput(quick: bool) -> Part:
    """Part b. A quick run has smaller windows, fewer queries and fewer matches."""
    cells, effort = (QUICK_CELLS, QUICK_EFFORT) if quick else (CELLS, EFFORT)
    found = []
    for cell in cells:
        _say(f"{cell.queries} queries, {cell.matches:g} matches a row and query, as {cell.emit} ..")
        found.append(measure(cell, effort))
        _say(throughput_report.in_short(found[-1]))
    return Part(
        [throughput_report.told(outcome) for outcome in found],
        {"effort": asdict(effort), "machine": machine()},
        throughput_report.summary(found),
        throughput_report.tables(found),
        "Queries on one join, shared and separate",
        throughput_report.panels(found),
    )


def overload(quick: bool) -> Part:
    """Part c. A quick run has a short rush, and one policy."""
    rush, policies = (QUICK_RUSH, ("admandf",)) if quick else (Rush(), RUSHED)
    _say("the capacity ..")
    rate = overloaded.capacity(rush)
    found = []
    for policy in policies:
        _say(f"twice {rate:,.0f} rows a second of each stream, {policy} ..")
        found.append(overloaded.measure(policy, rush, rate))
    return Part(
        [overloaded.told(outcome) for outcome in found],
        {"rush": asdict(rush), "machine": machine()},
        overloaded.summary(found),
        overloaded.tables(found),
        "More rows than can be joined",
        overloaded.panels(found),
    )


PARTS: Final = {"a": scheduling, "b": throughput, "c": overload}


def _say(what: str) -> None:
    print(f"shared: {what}", file=sys.stderr, flush=True)
