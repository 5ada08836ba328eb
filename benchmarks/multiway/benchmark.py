"""Joins of many inputs: the experiment of paper 3, for streams and windows; costly probes; and full rate.

| part | rows | what changes |
| --- | --- | --- |
| 1 | one by one, as in the paper | streams, windows, columns |
| 2 | one by one, with probes that cost many hand-overs between threads | streams |
| 3 | in large batches | matches a probe |

Contestants are the tactics of `SET multiway`, and in part 3 a chain of joins of two. Figures are medians of runs in
which the contestants take turns, measured after their windows were full. All contestants of a cell must come to the
same results. The parts can be run apart; `--read` shows what was written down before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from benchmarks.chart import Bars, Panel
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
    by_contestant,
    lines_of,
    of,
    short,
)
from benchmarks.meters import machine, usable_cores
from benchmarks.multiway.contestants import AUTO, CHAIN, MJOIN, TACTICS, TREE
from benchmarks.multiway.data import ROUND, VALUES, Cell
from benchmarks.multiway.latency import Effort, measure_latency
from benchmarks.multiway.rates import measure_floor, measure_rates
from transom.kernels.worker_pool import measured_handover

PARTS: Final = (1, 2, 3)
CONTESTANTS: Final = (*TACTICS, AUTO)
PER_SECOND: Final = 1_000_000 // ROUND
MILLISECOND: Final = 1_000


@dataclass(frozen=True)
class Size:
    """The cells; windows of part 1 are seconds, those of part 3 rows of a stream."""

    streams: tuple[int, ...]
    windows: tuple[int, ...]
    window_streams: int
    other_streams: int  # with all columns, and with changes
    paced: tuple[int, ...]
    probe_streams: tuple[int, ...]
    candidates: int
    rate_streams: int
    rate_window: int
    batch: int
    latency: Effort  # of part 1: rounds of 50 milliseconds
    in_real_time: Effort
    probes: Effort  # of part 2
    rates: Effort  # of part 3: batches
    floor: Effort
    matches: tuple[int, ...] = (1, 2)
    values: int = 2  # of the key in part 2


FULL = Size(
    streams=(5, 10, 15, 20),
    windows=(1, 2, 3, 4, 5),
    window_streams=10,
    other_streams=20,
    paced=(10, 20),
    probe_streams=(4, 8, 12),
    candidates=2_000,
    rate_streams=5,
    rate_window=10_000,
    batch=2_000,
    latency=Effort(runs=3, rounds=400, warm=20),
    in_real_time=Effort(runs=1, rounds=100, warm=20),
    probes=Effort(runs=2, rounds=60, warm=10),
    rates=Effort(runs=5, rounds=8, warm=3),
    floor=Effort(runs=3, rounds=400, warm=50),
)
QUICK = Size(
    streams=(5, 20),
    windows=(1, 2),
    window_streams=5,
    other_streams=20,
    paced=(5,),
    probe_streams=(4,),
    candidates=500,
    rate_streams=5,
    rate_window=2_000,
    batch=1_000,
    latency=Effort(runs=1, rounds=60, warm=5),
    in_real_time=Effort(runs=1, rounds=20, warm=5),
    probes=Effort(runs=1, rounds=20, warm=5),
    rates=Effort(runs=1, rounds=3, warm=1),
    floor=Effort(runs=1, rounds=60, warm=5),
)


def experiments(options: Options) -> Experiments:
    size, cores = QUICK if options.quick else FULL, usable_cores()
    parts = options.part or PARTS
    if 1 in parts:
        cells = list(paper_cells(size))
        yield Experiment(cells, lambda cell: [measure_latency(cell, CONTESTANTS, size.latency, cores)])
        paced = [Cell(1, "paced", streams, streams, PER_SECOND, ROUND) for streams in size.paced]
        yield Experiment(paced, lambda cell: [measure_latency(cell, CONTESTANTS, size.in_real_time, cores, paced=True)])
    if 2 in parts:
        handover = measured_handover()

        def with_probes(cell: Cell) -> list[Outcome]:
            found = measure_latency(cell, CONTESTANTS, size.probes, cores)
            price = found[MJOIN]["join_us"] / (cell.streams - 1)
            prices = {"probe_us": round(price, 1), "handover_us": round(handover, 2)}
            about = {**found.about, **prices, "probe_over_handover": round(price / handover, 1)}
            return [replace(found, about=about)]

        window = size.candidates * size.values
        costly = [
            Cell(2, "probes", streams, streams, window, streams * MILLISECOND, "few", size.values)
            for streams in size.probe_streams
        ]
        yield Experiment(costly, with_probes)
    if 3 in parts:
        rates = [rate_cell(size, matches) for matches in size.matches]
        yield Experiment(rates, lambda cell: [measure_rates(cell, (*CONTESTANTS, CHAIN), size.rates, size.batch)])
        yield Experiment([rate_cell(size, 1)], lambda cell: [measure_floor(cell, size.floor, size.rates, size.batch)])


def paper_cells(size: Size) -> Iterator[Cell]:
    for streams in size.streams:
        yield Cell(1, "streams", streams, streams, PER_SECOND, ROUND)
    for seconds in size.windows:
        if seconds > 1 or size.window_streams not in size.streams:
            yield Cell(1, "window", seconds, size.window_streams, seconds * PER_SECOND, ROUND)
    others = size.other_streams
    yield Cell(1, "columns", others, others, PER_SECOND, ROUND, columns=len(VALUES))
    yield Cell(1, "changes", others, others, PER_SECOND, ROUND, emit="changes")


def rate_cell(size: Size, matches: int) -> Cell:
    streams, window = size.rate_streams, size.rate_window
    return Cell(
        3, "rate", matches, streams, window, streams * MILLISECOND, "drawn", max(window // matches, 1), timed=True
    )


def settings(options: Options) -> dict[str, Any]:
    return asdict(QUICK if options.quick else FULL)


def described_machine() -> dict[str, Any]:
    return {**machine(), "handover_us": round(measured_handover(), 2)}


# --- what it comes to ------------------------------------------------------------------------------------------------


def summary(outcomes: Outcomes) -> dict[str, Any]:
    """The figures that answer the questions of the experiment; null where the part was not run."""
    found: dict[str, Any] = {"best_p50_us_20": None, "best_tactic_20": None}
    twenty = _find(outcomes, "streams", 20)
    if twenty is not None:
        best = min(TACTICS, key=lambda name: price(twenty, name))
        found = {"best_p50_us_20": price(twenty, best), "best_tactic_20": best}
    compared = [_auto(one) for one in outcomes if one.cell["experiment"] not in ("floor", "paced")]
    worst = max(compared, key=lambda one: float(one["over_best"]), default={})
    found |= {
        "auto_over_best_max": worst.get("over_best"),
        "auto_over_best_cell": worst.get("cell"),
        "auto_over_best_spread": worst.get("spread"),
        "auto_cells": compared,
        "mjoin_state_over_tree_5": None,
        "mjoin_state_bytes_over_tree_5": None,
        "tree_over_probe_floor": None,
    }
    if rates := of(outcomes, "rate"):
        most = max(rates, key=lambda one: float(one.cell["x"]))
        for name, state in (
            ("mjoin_state_over_tree_5", "state_rows"),
            ("mjoin_state_bytes_over_tree_5", "state_bytes"),
        ):
            found[name] = round(most[MJOIN][state] / most[TREE][state], 3)
    for floor in of(outcomes, "floor"):
        both = (*floor.cell["one_row_a_step"].values(), *floor.cell["in_batches"].values())
        found["tree_over_probe_floor"] = max(one["over"] for one in both)
    return found


def price(outcome: Outcome, name: str) -> float:
    """What a contestant is judged by: the median latency of rows with a result, at full rate the time a row."""
    figures = outcome[name]
    return float(figures["us_per_row"] if outcome.cell["experiment"] == "rate" else figures["with_result"]["p50_us"])


def _auto(outcome: Outcome) -> dict[str, Any]:
    best = min(TACTICS, key=lambda name: price(outcome, name))
    return {
        "cell": outcome.cell["label"],
        "chosen": outcome[AUTO]["chosen"],
        "best": best,
        "over_best": round(price(outcome, AUTO) / price(outcome, best), 3),
        "spread": max(outcome[AUTO]["spread"], outcome[best]["spread"]),
    }


def _find(outcomes: Outcomes, experiment: str, x: float) -> Outcome | None:
    return next((one for one in of(outcomes, experiment) if one.cell["x"] == x), None)


_TABLES: Final = (
    (("streams",), "Streams at a window of 1 s"),
    (("window",), "Seconds of the window, {streams} streams"),
    (("columns", "changes"), "{streams} streams at a window of 1 s, with other answers"),
    (("paced",), "Streams at a window of 1 s, rows in real time"),
    (("probes",), "Streams, where a probe meets {candidates:,.0f} candidates"),
)
_HEADS: Final = {"columns": "all 10 columns of each", "changes": "as changes, emitted again at the end"}


def tables(outcomes: Outcomes) -> list[Table]:
    found = []
    for experiments, title in _TABLES:
        here = [one for experiment in experiments for one in _with_one_second(outcomes, experiment)]
        if here:
            head = title.format(**here[0].cell)
            found += [
                _by_tactic(f"{head}. Rows with a result: mean, p50, p99 µs:", here, _latency("with_result")),
                _by_tactic(f"{head}. All rows: mean, p50, p99 µs:", here, _latency("all_rows")),
                _by_tactic(f"{head}. Rows of state, probes on the critical path:", here, _state_and_path),
            ]
    probes = of(outcomes, "probes")
    if probes:
        found.append(_probes(probes))
    found += [_profile(one) for one in [*of(outcomes, "streams")[-1:], *probes]]
    if rates := of(outcomes, "rate"):
        cell = rates[0].cell
        title = (
            f"Matches a probe, {cell['streams']} streams, windows of {cell['window_rows']:,} rows, batches of "
            f"{cell['batch']:,} rows of each. Rows/s, rows of state, MB of state:"
        )
        found.append(_by_tactic(title, rates, _rate))
        if all(one[TREE]["is_chain"] for one in rates):
            found.append(Table("The tree is a chain already."))
    return [*found, *map(_floor, of(outcomes, "floor")), _chosen(outcomes)]


def _with_one_second(outcomes: Outcomes, experiment: str) -> list[Outcome]:
    """The cells of an experiment; that with a window of 1 s belongs to those with other windows as well."""
    found = of(outcomes, experiment)
    if experiment == "window" and found:
        first = _find(outcomes, "streams", found[0].cell["streams"])
        if first is not None:
            found.insert(0, replace(first, cell={**first.cell, "x": first.cell["window_s"]}))
    return found


def _by_tactic(title: str, outcomes: Outcomes, show: Callable[[Figures], str]) -> Table:
    return by_contestant(title, outcomes, show, lambda cell: _HEADS.get(cell["experiment"], f"{cell['x']:,g}"))


def _latency(rows: str) -> Callable[[Figures], str]:
    return lambda one: ", ".join(short(one[rows][figure]) for figure in ("mean_us", "p50_us", "p99_us"))


def _state_and_path(one: Figures) -> str:
    here = f" ({one['path_here']:.3g} here)" if one["path_here"] != one["path"] else ""
    return f"{one['state_rows']:,}, {one['path']:.3g}{here}"


def _rate(one: Figures) -> str:
    return f"{short(one['rows_per_s'])}, {one['state_rows']:,}, {short(one['state_bytes'] / 1e6)}"


def _probes(outcomes: Outcomes) -> Table:
    body = []
    for one in outcomes:
        cell = one.cell
        figures = [f"{cell['probe_us']:,g}", f"{cell['handover_us']:g}", f"{cell['probe_over_handover']:g}"]
        body.append([f"{cell['x']:g}", *figures, *(f"{one[name]['handed_over']:.3g}" for name in CONTESTANTS)])
    return Table(
        "What a probe costs, beside a hand-over between threads; hand-overs for a row with a result:",
        ["streams", "µs a probe", "µs a hand-over", "hand-overs a probe costs", *CONTESTANTS],
        body,
    )


def _profile(outcome: Outcome) -> Table:
    body = []
    for name in outcome.contestants:
        one = outcome[name]
        whole, joins, behind = one["with_result"]["p50_us"], one["join_us"], one["background_us"]
        figures = [short(each) for each in (whole, joins, whole - joins)]
        figures += [f"{one['handed_over']:.3g}", short(behind["p50"]), short(behind["p99"])]
        body.append([name, *figures, f"{behind['longer_than_gap']:.1%}"])
    return Table(
        f"Where the time goes, {outcome.cell['label']}; µs, medians of rows with a result:",
        ["", "whole", "in joins", "around them", "hand-overs", "background, any row", "p99", "over the gap"],
        body,
    )


def _floor(outcome: Outcome) -> Table:
    body = []
    for way in ("one_row_a_step", "in_batches"):
        for measure, one in outcome.cell[way].items():
            what = f"{way.replace('_', ' ')}, {measure.replace('_', ' ')}"
            body.append([what, *(f"{one[figure]:.3g}" for figure in ("tree_us", "probe_us", "over"))])
    title = f"A row of the tree over {outcome.cell['probes']} single probes, µs:"
    return Table(title, ["measured", "tree, a row", "single probe", "tree / probes"], body)


def _chosen(outcomes: Outcomes) -> Table:
    compared = summary(outcomes)["auto_cells"]
    body = [
        [one["cell"], one["chosen"], one["best"], f"{one['over_best']:.3g}", f"{one['spread']:.2g}"] for one in compared
    ]
    return Table("What auto chose:", ["cell", "auto chose", "best", "auto / best", "spread of runs"], body)


def panels(outcomes: Outcomes) -> list[Panel | Bars]:
    """Latency of rows with a result and state, by what each experiment changes."""
    wanted: list[tuple[str, str, str, str, Callable[[Figures], float]]] = [
        ("streams", "mean latency", "streams", "µs to a result", lambda one: one["with_result"]["mean_us"]),
        ("streams", "99th percentile", "streams", "µs to a result", lambda one: one["with_result"]["p99_us"]),
        ("streams", "state", "streams", "rows kept", lambda one: one["state_rows"]),
        ("window", "mean latency", "seconds in a window", "µs to a result", lambda one: one["with_result"]["mean_us"]),
        ("probes", "costly probes, median", "streams", "µs to a result", lambda one: one["with_result"]["p50_us"]),
        (
            "probes",
            "costly probes, 99th percentile",
            "streams",
            "µs to a result",
            lambda one: one["with_result"]["p99_us"],
        ),
    ]
    lines = [
        Panel(title, axis, unit, lines_of(here, figure), log_x=True, log_y=True)
        for experiment, title, axis, unit, figure in wanted
        if (here := _with_one_second(outcomes, experiment))
    ]
    return [*lines, *(_rates_as_bars(of(outcomes, "rate")))]


def _rates_as_bars(outcomes: Outcomes) -> list[Bars]:
    """There are two numbers of matches only, so a line would say nothing."""
    if not outcomes:
        return []
    groups = [one.cell["label"].partition(", ")[2] for one in outcomes]
    wanted: list[tuple[str, str, Callable[[Figures], float]]] = [
        ("in batches", "million rows a second", lambda one: one["rows_per_s"] / 1e6),
        ("in batches, state", "thousand rows kept", lambda one: one["state_rows"] / 1e3),
    ]
    names = list(outcomes[0].contestants)
    return [
        Bars(title, "matches a probe", unit, groups, {name: [figure(one[name]) for one in outcomes] for name in names})
        for title, unit, figure in wanted
    ]


BENCHMARK: Final = Benchmark(
    "Joins of many inputs",
    experiments,
    summary,
    tables,
    panels,
    settings,
    options=[Option("--part", "these parts alone", {"type": int, "choices": PARTS, "nargs": "+"})],
    machine=described_machine,
)
