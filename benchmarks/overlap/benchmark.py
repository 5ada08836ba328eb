"""Joins of sliding windows within a memory budget: the experiment of paper 4.

| experiment | what is measured |
| --- | --- |
| size | time of a slide by incremental, full and hybrid, by the rows of a basic window |
| selectivity | the same, by the share of pairs of rows that match |
| memory | the most memory of a process beside its budget: windows that do not fit, and results that do not |
| burst | how late every slide is reported, of streams that do not wait, before, in and after a burst |

The first ten slides of a run, in which costs are learned, are reported apart. All tactics must come to the same
answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from benchmarks.chart import Panel, Points
from benchmarks.harness import (
    Benchmark,
    Experiment,
    Experiments,
    Option,
    Options,
    Outcome,
    Outcomes,
    Table,
    by_contestant,
    lines_of,
    of,
    short,
)
from benchmarks.overlap import burst, memory
from benchmarks.overlap.burst import Burst
from benchmarks.overlap.contestants import FULL, HYBRID, INCREMENTAL, LEARNING, TACTICS, Effort, measure
from benchmarks.overlap.data import Cell
from benchmarks.processes import call_apart

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


WHOLE = Size(
    budget_mb=32,
    disk_mb_s=100,
    rows=(250, 500, 750, 1_000, 1_250, 1_500, 2_000, 3_000, 4_000),
    selectivities=(0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.1, 0.2),
    memory=(
        (Cell("windows", 60_000, 1 / 120_000, 16, 100, filler=40), None),
        (Cell("results", 2_000, SELECTIVITY, 16, 100), 16),
        (Cell("files", 1_500, SELECTIVITY, 8, 100, filler=400, sink="parquet"), 6),
        (Cell("text", 2_000, SELECTIVITY, 8, 100, sink="jsonl"), 8),
    ),
    memory_tactics=TACTICS,
    burst=Burst(
        calm=1_000, burst=60_000, slides_before=6, slides_of_burst=8, slides_after=24, slide_ms=500, batches=5,
        keys=50_000, budget_mb=8, disk_mb_s=20,
    ),
)  # fmt: skip
QUICK = replace(
    WHOLE,
    rows=(250, 1_000, 2_000),
    selectivities=(0.005, 0.1),
    memory=(
        (Cell("windows", 30_000, 1 / 60_000, 8, 100, filler=40), None),
        (Cell("files", 1_000, SELECTIVITY, 8, 100, filler=400, sink="parquet"), 6),
    ),
    memory_tactics=(HYBRID,),
    burst=replace(WHOLE.burst, slides_before=2, slides_of_burst=5, slides_after=13),
)
EFFORT = Effort(slides=12, most=60, seconds=4)
QUICK_EFFORT = Effort(slides=4, most=10, seconds=0.5)


TIMED: Final = {"size": "rows of a stream in a basic window", "selectivity": "selectivity"}
KEPT: Final = {
    "windows": "Windows do not fit into memory",
    "results": "Windows fit, results do not",
    "files": "The answer goes to Parquet files, with a checkpoint",
    "text": "The answer goes to JSON lines, with a checkpoint",
}


def _chosen(options: Options) -> tuple[Size, Effort]:
    return (QUICK, QUICK_EFFORT) if options.quick else (WHOLE, EFFORT)


def experiments(options: Options) -> Experiments:
    size, effort = _chosen(options)
    if getattr(options, "runtime", "local") == "spark":
        from benchmarks.overlap import burst_on_spark

        # Fewer results: a batch emits a quarter of the budget at most, and takes half a second.
        yield Experiment([replace(size.burst, keys=8 * size.burst.keys)], lambda cell: [burst_on_spark.measure(cell)])
        return
    measure(Cell("size", 250, 0.05, 4, 10_000), Effort(1, 1, 0))  # everything is compiled
    yield Experiment(cells(size), lambda cell: [measure(cell, effort)])
    slides = {cell: memory.slides_for(cell) if count is None else count for cell, count in size.memory}

    def kept(cell: Cell) -> list[Outcome]:
        watched = "benchmarks.overlap.memory:watched"
        found = {name: call_apart(watched, asdict(cell), name, slides[cell]) for name in size.memory_tactics}
        return [Outcome({**cell.as_json(), "batch_rows": memory.BATCH_ROWS}, found)]

    yield Experiment(list(slides), kept)
    yield Experiment([size.burst], lambda cell: [burst.measure(cell)])


def cells(size: Size) -> Sequence[Cell]:
    by_rows = [Cell("size", rows, SELECTIVITY, size.budget_mb, size.disk_mb_s) for rows in size.rows]
    by_selectivity = [Cell("selectivity", ROWS, share, size.budget_mb, size.disk_mb_s) for share in size.selectivities]
    return [*by_rows, *by_selectivity]


def settings(options: Options) -> dict[str, Any]:
    size, effort = _chosen(options)
    return {**asdict(size), **asdict(effort), "learning": LEARNING}


# --- what it comes to ------------------------------------------------------------------------------------------------


def summary(outcomes: Outcomes) -> dict[str, Any]:
    """Hybrid beside the better and the worse of the two others; where they cross; memory; the burst."""
    found: dict[str, Any] = {}
    if timed := of(outcomes, *TIMED):
        found |= _hybrid(timed)
    if kept := of(outcomes, *KEPT):
        found["peak_over_budget_mb"] = max(one[name]["peak_over_budget_mb"] for one in kept for name in one.contestants)
    figures = of(outcomes, "burst")[0][HYBRID]
    found["burst"] = {name: figures[name] for name in ("complete", "put_off", "completed_later")}
    found["burst"]["unfinished"] = len(figures["unfinished"])
    found["burst"] |= {name: figures[name] for name in ("peak_over_budget_mb", "holds") if name in figures}
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in found.items()}


def _hybrid(outcomes: Outcomes) -> dict[str, Any]:
    best, worst = [], []
    for one in outcomes:
        better, worse = sorted(one[tactic]["ms"] for tactic in (INCREMENTAL, FULL))
        best.append(one[HYBRID]["ms"] / better)
        worst.append(one[HYBRID]["ms"] / worse)
    found: dict[str, Any] = {"max_hybrid_over_best": max(best), "min_hybrid_over_worst": min(worst)}
    for experiment in TIMED:
        found[f"full_is_faster_from_{experiment}"] = _crossing(of(outcomes, experiment))
    return found


def _crossing(outcomes: Outcomes) -> float | None:
    """From where on full is the faster one, if it is in the end."""
    at = None
    for one in reversed(outcomes):
        if one[FULL]["ms"] >= one[INCREMENTAL]["ms"]:
            break
        at = float(one.cell["x"])
    return at


def tables(outcomes: Outcomes) -> list[Table]:
    found = []
    for experiment, what in TIMED.items():
        if not (here := of(outcomes, experiment)):
            continue
        cell = here[0].cell
        fixed = f"{cell['rows']:,} rows" if experiment == "selectivity" else f"selectivity {cell['selectivity']:g}"
        setting = f"{cell['budget_mb']:g} MB of memory, a disk of {cell['disk_mb_s']:g} MB/s"
        learned = "The slides of learning, milliseconds in all (in the first three the windows fill):"
        found += [
            _times(f"Milliseconds a slide, by {what}; {fixed}, {setting}:", here),
            _choices("How hybrid made the measured slides, and what it estimated, in milliseconds:", here),
            by_contestant(learned, here, lambda figures: short(sum(figures["learning_ms"]))),
        ]
    if kept := of(outcomes, *KEPT):
        found.append(_memory(kept))
    return [*found, *map(_delays, of(outcomes, "burst"))]


def _times(title: str, outcomes: Outcomes) -> Table:
    body = [["results of a slide", *(f"{one.cell['results_a_slide']:,}" for one in outcomes)]]
    for tactic in TACTICS:
        body.append([tactic, *(short(one[tactic]["ms"]) for one in outcomes)])
    for name, pick in (("hybrid / better", min), ("hybrid / worse", max)):
        others = [pick(one[INCREMENTAL]["ms"], one[FULL]["ms"]) for one in outcomes]
        body.append([name, *(f"{one[HYBRID]['ms'] / ms:.2f}" for one, ms in zip(outcomes, others, strict=True))])
    for tactic in (INCREMENTAL, HYBRID):
        disk = [(one[tactic]["written_mb_a_slide"], one[tactic]["read_mb_a_slide"]) for one in outcomes]
        body.append([f"{tactic}: MB written, read", *(", ".join(map(short, each)) for each in disk)])
    return _by_x(title, outcomes, body)


def _choices(title: str, outcomes: Outcomes) -> Table:
    ways = sorted({way for one in outcomes for way in one[HYBRID]["ways"]})
    body = [[way, *(str(one[HYBRID]["ways"].get(way, 0)) for one in outcomes)] for way in ways]
    for cost, name in (("reuse_cost_ms", "C_reuse"), ("join_cost_ms", "C_join")):
        known = [one[HYBRID]["estimates"][cost] for one in outcomes]
        body.append([name, *("not asked" if value is None else short(value) for value in known)])
    return _by_x(title, outcomes, body)


def _memory(outcomes: Outcomes) -> Table:
    body = []
    for one in outcomes:
        for tactic in one.contestants:
            figures = one[tactic]
            ways = ", ".join(f"{count} {way}" for way, count in sorted(figures["ways"].items()))
            names = ("input_mb", "peak_mb", "peak_over_budget_mb", "written_mb", "read_mb", "ms")
            sizes = [one.cell["budget_mb"], *(figures[name] for name in names)]
            body.append([KEPT[one.cell["experiment"]], tactic, *map(short, sizes), ways])
    heads = ["run", "tactic", "budget", "came in", "peak", "peak above budget", "written", "read", "ms a slide", "ways"]
    return Table("Memory of a process above what it has when idle, in MB:", heads, body)


def _delays(outcome: Outcome) -> Table:
    cell, figures = outcome.cell, outcome[HYBRID]
    calm = cell["slides_before"]
    stages = {"before": (0, calm), "burst": (calm, calm + cell["slides_of_burst"])}
    body = []
    for one in figures["slides"]:
        # What a basic window brings is emitted by the slide at its end.
        stage = next((name for name, (begin, end) in stages.items() if begin < one["slide"] <= end), "after")
        put_off = ", ".join(map(short, one["put_off_ms"])) or "-"
        body.append([str(one["slide"]), stage, str(one["attempts"]), put_off, short(one["delay_ms"])])
    rows = f"{cell['calm']:,} rows of a stream a slide, then {cell['burst']:,} for {cell['slides_of_burst']} slides"
    setting = f"{cell['budget_mb']:g} MB of memory, a disk of {cell['disk_mb_s']:g} MB/s"
    counts = (
        f"{figures['complete']} complete, {figures['put_off']} put off, {figures['completed_later']} completed later"
    )
    if cell.get("runtime") == "spark":
        setting += (
            f"; on Spark, {cell['put_off_ms']} ms of a step, the largest process"
            f" {short(figures['peak_over_budget_mb'])} MB above the budget, all slides right: "
            + ("NO" if figures["wrong"] else "yes")
        )
    return Table(
        f"A burst: {rows} of {cell['slide_ms']} ms; {setting}. Slides: {counts}:",
        ["slide", "rows of", "attempts", "put off after ms", "complete after ms"],
        body,
    )


def _by_x(title: str, outcomes: Outcomes, body: Sequence[Sequence[str]]) -> Table:
    return Table(title, ["", *(f"{one.cell['x']:,g}" for one in outcomes)], body)


def panels(outcomes: Outcomes) -> list[Panel]:
    drawn = [_drawn_delays(*of(outcomes, "burst"))]
    for experiment, what in TIMED.items():
        if not (here := of(outcomes, experiment)):
            continue
        times = lines_of(here, lambda figures: figures["ms"])
        drawn.append(Panel(f"a slide, by {what}", what, "ms a slide", times, log_x=True, log_y=True))
        costs: dict[str, Points] = {}
        for tactic, cost in ((INCREMENTAL, "reuse_cost_ms"), (FULL, "join_cost_ms")):
            costs[f"{tactic}, measured"] = times[tactic]
            known = [(one.cell["x"], one[HYBRID]["estimates"][cost]) for one in here]
            costs[f"C_{cost.split('_')[0]}, estimated"] = [(x, value) for x, value in known if value is not None]
        drawn.append(Panel(f"costs, by {what}", what, "ms a slide", costs, log_x=True, log_y=True))
    return drawn


def _drawn_delays(outcome: Outcome) -> Panel:
    cell, slides = outcome.cell, outcome[HYBRID]["slides"]
    seconds = cell["slide_ms"] / 1e3
    lines = {
        "until it was complete": [(one["slide"] * seconds, one["delay_ms"] / 1e3) for one in slides],
        "until it was put off": [(one["slide"] * seconds, ms / 1e3) for one in slides for ms in one["put_off_ms"]],
    }
    begin = cell["slides_before"] * seconds
    shaded = [(begin, begin + cell["slides_of_burst"] * seconds)]
    return Panel(
        "delay of every slide; the burst is shaded", "seconds, when a slide was due", "seconds", lines, shaded=shaded
    )


BENCHMARK: Final = Benchmark(
    "Joins of sliding windows within a memory budget",
    experiments,
    summary,
    tables,
    panels,
    settings,
    options=[Option("--runtime", "on Spark the burst alone", {"choices": ["local", "spark"], "default": "local"})],
)
