"""An aggregate over a join whose streams change twice: in rate, and in how many rows of the other a row meets.

| phase | rate of a stream | keys | a row meets |
| --- | --- | --- | --- |
| 1 | 500 rows a second | as many as rows in a window | 1 |
| 2 | 1,000 rows a second | a hundredth of that | 100 |
| 3 | 250 rows a second | as many as rows in a window | 1 |

All phases bring as many rows. The contestants are all tactics that can run the query and stay, what is chosen at the
start by a sample of the first rows (auto), and the one that changes. The operators of the query are stepped by prepared
batches, and what comes out is dropped, as in `transom bench joinagg`. Every phase begins with windows full of rows of
the one before; that is in its time, and so are the change of the tactic and what it takes to notice that it is due. All
contestants must come to the same answer after every step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from benchmarks.chart import Panel
from benchmarks.harness import (
    Benchmark,
    Experiment,
    Experiments,
    Figures,
    Option,
    Options,
    Outcome,
    Outcomes,
    Table,
    agreed,
    by_contestant,
    count,
    digits,
    lines_of,
    medians,
    short,
    take_turns,
)
from benchmarks.joinagg.contestants import AUTO, FACTORISED, IC, PC, TC, Bench, Running
from benchmarks.joinagg.data import Brought, Cell, brought
from transom.kernels.joinagg.adaptive import AdaptiveState
from transom.pipeline.memory import state_bytes

ADAPTIVE: Final = "adaptive"
FIXED: Final = (PC, FACTORISED, IC, TC)
CONTESTANTS: Final = (*FIXED, AUTO, ADAPTIVE)

SECONDS: Final = 20  # of a window
_MICROS: Final = 1_000_000


@dataclass(frozen=True)
class Phase:
    """`rate` rows a second of each stream; a row meets `matches` rows of the other."""

    rate: int
    matches: int

    @property
    def keys(self) -> int:
        return self.rate * SECONDS // self.matches


@dataclass(frozen=True)
class Size:
    """Rows of one stream: of a phase, and of a step."""

    phases: tuple[Phase, ...]
    rows: int
    batch: int
    runs: int


FULL: Final = Size((Phase(500, 1), Phase(1_000, 100), Phase(250, 1)), rows=200_000, batch=2_500, runs=3)
QUICK: Final = Size((Phase(500, 1), Phase(1_000, 100), Phase(250, 1)), rows=50_000, batch=2_500, runs=1)


def chosen(options: Options) -> Size:
    size = QUICK if options.quick else FULL
    return replace(size, runs=options.runs or size.runs)


def stream(size: Size) -> Iterator[tuple[int, Brought]]:
    """The phase of every step and what the step brings; the same rows whenever it is asked."""
    random = np.random.default_rng(7)
    begin = 0
    for number, phase in enumerate(size.phases):
        cell = Cell("matches", phase.rate * SECONDS, phase.keys, size.batch)
        apart = _MICROS // phase.rate
        for first in range(0, size.rows, size.batch):
            rows = np.arange(first, first + size.batch)
            times = [begin + rows * apart + index * apart // 2 for index in range(2)]
            yield number, brought(cell, times, begin + (first + size.batch) * apart, random)
        begin += size.rows * apart


def experiments(options: Options) -> Experiments:
    size = chosen(options)
    yield Experiment(["three phases"], lambda cell: measure(size))


def measure(size: Size) -> list[Outcome]:
    """Every phase, by every contestant."""
    first = size.phases[0]
    cell = Cell("matches", first.rate * SECONDS, first.keys, size.batch)
    assert f"[RANGE {1_000 * SECONDS} MILLISECONDS]" in cell.text
    benches = {name: Bench(cell, name) for name in CONTESTANTS}
    answers: dict[str, list[Any]] = {}
    changes: list[str] = []

    def run(name: str, number: int) -> list[dict[str, float]]:
        running = benches[name].start()
        of_phases: list[dict[str, float]] = []
        last = []
        at = 0
        for phase, step in stream(size):
            if phase != at:
                of_phases.append(_figures(running))
                running.reset()
                at = phase
            out = running.take(step)
            last.append(None if not len(out) else tuple(c[int(np.argmax(out.ta))].as_py() for c in out.values.columns))
        of_phases.append(_figures(running))
        answers.setdefault(name, last)
        if name == ADAPTIVE:
            changes[:] = _changes(running)
        return of_phases

    _compile(benches, size)
    runs = take_turns({name: name for name in CONTESTANTS}, range(size.runs), run)
    agreed(answers)
    about = {"changes": list(changes)}
    outcomes = []
    for at, phase in enumerate(size.phases):
        figures = {name: medians([of_run[at] for of_run in runs[name]]) for name in CONTESTANTS}
        x = {"experiment": "phase", "x": at + 1, **asdict(phase), "rows": 2 * size.rows}
        outcomes.append(Outcome(x, {name: _with_rate(measured) for name, measured in figures.items()}, about))
    return outcomes


def _compile(benches: Mapping[str, Bench], size: Size) -> None:
    """A step of every phase by everybody, so that nobody's time has the compiler's in it."""
    for bench in benches.values():
        running = bench.start()
        for _, step in stream(replace(size, rows=size.batch)):
            running.take(step)


def _figures(running: Running) -> dict[str, float]:
    return {
        "seconds": running.seconds,
        "rows": float(running.rows),
        "state_bytes": float(state_bytes(running.state.operators)),
    }


def _with_rate(measured: dict[str, float]) -> Figures:
    return {
        "rows_per_s": round(measured["rows"] / measured["seconds"]),
        "us_per_row": digits(1e6 * measured["seconds"] / measured["rows"]),
        "seconds": digits(measured["seconds"]),
        "state_bytes": round(measured["state_bytes"]),
    }


def _changes(running: Running) -> list[str]:
    """When the tactic changed, and why."""
    states = [state for of_one in running.state.operators for state in of_one if isinstance(state, AdaptiveState)]
    return [str(change) for state in states for change in state.changes]


def settings(options: Options) -> dict[str, Any]:
    return {**asdict(chosen(options)), "window_seconds": SECONDS}


def summary(outcomes: Outcomes) -> dict[str, Any]:
    """`adaptive_over_best_max`: how many times as long as the best tactic of a phase that stays, at most.
    `fixed_over_adaptive_min`: how many times as long as it any tactic that stays takes for the whole, at least."""
    over_best = [outcome[ADAPTIVE]["seconds"] / min(outcome[name]["seconds"] for name in FIXED) for outcome in outcomes]
    whole = {name: sum(outcome[name]["seconds"] for outcome in outcomes) for name in CONTESTANTS}
    over = {name: round(whole[name] / whole[ADAPTIVE], 3) for name in CONTESTANTS if name != ADAPTIVE}
    return {
        "adaptive_over_best_max": round(max(over_best), 3),
        "fixed_over_adaptive_min": min(over[name] for name in FIXED),
        "over_adaptive": over,
        "seconds": {name: digits(seconds) for name, seconds in whole.items()},
    }


def tables(outcomes: Outcomes) -> list[Table]:
    rows = outcomes[0].cell["rows"]
    title = f"Phases of {rows:,} rows, by rate and matches of a row. Rows/s, µs a row, MB of state at the end:"
    shown = by_contestant(title, outcomes, _shown, _head)
    changes = "\n".join(f"- {change}" for change in outcomes[0].cell["changes"])
    return [shown, Table(f"What adaptive did:\n\n{changes}")]


def _head(cell: Figures) -> str:
    return f"{cell['x']}: {cell['rate']:,} rows/s, {cell['matches']:,} matches"


def _shown(figures: Figures) -> str:
    return ", ".join(map(short, (figures["rows_per_s"], figures["us_per_row"], figures["state_bytes"] / 1e6)))


def panels(outcomes: Outcomes) -> list[Panel]:
    lines = lines_of(outcomes, lambda figures: figures["us_per_row"])
    return [Panel("time", "phase", "µs a row", lines, log_y=True)]


OPTIONS: Final = (Option("--runs", "how often each phase is measured; medians are reported", {"type": count}),)
BENCHMARK: Final = Benchmark(
    "Tactics that change while a query runs", experiments, summary, tables, panels, settings, OPTIONS
)
