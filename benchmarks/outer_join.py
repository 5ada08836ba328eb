"""Joins that keep rows without a partner, beside the inner join: what a row costs, for windows of 10^3 to 10^6 rows.

Two streams bring rows of 8 columns in batches of 10,000, one row a millisecond each. A window holds W rows; keys are
drawn from W values, so a row meets about one row of the other stream, and every third none. The whole pipeline runs,
from Arrow batches to changes or lifetimes. Each kind of join takes turns with the inner join, batch by batch on the
same rows, so that whatever else the machine does hits both; the median of the batches' ratios is what it costs beside
the inner join. Times are those of the processor.

An outer join has more to write than the inner join: what it costs to know who has a partner is seen where it has not.
So of one window there are two cells more, in which a row of `a` has the row of `b` of the same instant for a partner
and nobody else: every row, whose LEFT, RIGHT and FULL JOIN are the inner join, and every second one.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks.chart import Panel
from benchmarks.cost_of_a_row import growth_over_log
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
    medians,
    take_turns,
)
from benchmarks.join import DECLARATIONS, make_batch
from transom.cql.statements import parse_statements
from transom.pipeline.driver import Pipeline
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition
from transom.planner.plan import plan

BATCH = 10_000
WINDOWS = (1_000, 10_000, 100_000, 1_000_000)
BATCHES, QUICK_BATCHES = 40, 10  # of each stream, after the window has filled
EMITS: Final = ("changes", "lifetimes")
INNER: Final = "inner"
OUTER: Final = ("left", "right", "full")
BY_CHANCE, EVERY_ROW, EVERY_SECOND = "about one", "every row one", "every second row one"
PARTNERS: Final = {BY_CHANCE: 1.0, EVERY_ROW: 1.0, EVERY_SECOND: 0.5}
KINDS: Final = {kind: f"{kind.upper()} JOIN" for kind in (INNER, "left", "right", "full", "semi", "anti")}


def given_keys(
    batch: pa.RecordBatch, first: int, name: str, share: float, random: np.random.Generator
) -> pa.RecordBatch:
    """The rows with their numbers for keys; of those of `b` only this share, the others meet nobody."""
    keys = np.arange(first, first + len(batch))
    if name == "b":
        keys = np.where(random.random(len(batch)) < share, keys, ~keys)
    at = batch.schema.get_field_index("k")
    return batch.set_column(at, batch.schema.field(at), pa.array(keys))


class Contestant:
    """A pipeline of one kind of join, and what its batches took and made."""

    def __init__(self, window: int, kind: str, emit: str) -> None:
        catalogue = Catalogue()
        extent = f"[RANGE {window} MILLISECONDS]"
        text = f"SELECT * FROM a {extent} {KINDS[kind]} b {extent} ON a.k = b.k"
        statement = parse_statements(f"{DECLARATIONS} {text}", catalogue)[-1]
        definition = catalogue.relations["a"]
        assert isinstance(statement, QueryStatement) and isinstance(definition, StreamDefinition)
        self.columns = definition.columns.arrow()
        self._pipeline = Pipeline(plan(statement.query, catalogue), catalogue, emit)

    def take(self, batches: Mapping[str, pa.RecordBatch]) -> tuple[float, int]:
        """What they took, in seconds, and how many rows came out."""
        started = time.process_time()
        for name, batch in batches.items():
            self._pipeline.push(name, batch)
        output, _ = self._pipeline.advance()
        took = time.process_time() - started
        return took, 0 if output is None else sum(map(len, output.batches))


def measure(
    window: int, batches: int, kind: str, emit: str, partners: str = BY_CHANCE
) -> tuple[dict[str, float], dict[str, float]]:
    """Of a kind and of the inner join beside it: microseconds a row of either stream, the median of five slices of the
    run, and how many rows come out for it; of the kind also the median of what a batch took beside the other."""
    contestants = {INNER: Contestant(window, INNER, emit), kind: Contestant(window, kind, emit)}
    random = np.random.default_rng(7)
    columns = contestants[INNER].columns

    def given(number: int) -> dict[str, pa.RecordBatch]:
        made = {name: make_batch(number * BATCH, BATCH, window, random, columns) for name in ("a", "b")}
        if partners == BY_CHANCE:
            return made
        share = PARTNERS[partners]
        return {name: given_keys(batch, number * BATCH, name, share, random) for name, batch in made.items()}

    warm = -(-window // BATCH) + 2
    runs = take_turns(contestants, map(given, range(warm + batches)), lambda each, rows: each.take(rows))
    took = {name: [seconds for seconds, _ in run[warm:]] for name, run in runs.items()}
    rows = 2 * BATCH
    figures = {
        name: {
            "us_per_row": 1e6 * statistics.median(statistics.mean(took[name][j::5]) for j in range(5)) / rows,
            "out_per_row": sum(written for _, written in run[warm:]) / (rows * batches),
            "batches": batches,
        }
        for name, run in runs.items()
    }
    beside = statistics.median(own / inner for own, inner in zip(took[kind], took[INNER], strict=True))
    return {**figures[kind], "over_inner": beside}, figures[INNER]


def experiments(options: Options) -> Experiments:
    batches = QUICK_BATCHES if options.quick else BATCHES

    def by_kind(cell: tuple[str, str, int]) -> list[Outcome]:
        emit, partners, window = cell
        duels = {kind: measure(window, batches, kind, emit, partners) for kind in KINDS if kind != INNER}
        inner = medians([beside for _, beside in duels.values()])
        figures = {INNER: inner, **{kind: own for kind, (own, _) in duels.items()}}
        return [Outcome({"emit": emit, "partners": partners, "window": window, "x": window}, figures)]

    yield Experiment([(emit, BY_CHANCE, window) for emit in EMITS for window in WINDOWS], by_kind)
    yield Experiment(
        [(emit, partners, WINDOWS[1]) for emit in EMITS for partners in (EVERY_ROW, EVERY_SECOND)], by_kind
    )


def over_inner(one: Outcome, kind: str, *, by_answer: bool = False) -> float:
    """What a row costs beside the inner join; `by_answer`: for as many rows out, where there are more of them.

    An outer join has the pairs of the inner join and, besides, the rows that are alone, which come and go.
    """
    mine, inner = one[kind], one[INNER]
    more = max(1.0, mine["out_per_row"] / inner["out_per_row"]) if by_answer else 1.0
    return round(float(mine["over_inner"] / more), 2)


def cell_name(cell: Figures) -> str:
    return str(cell["emit"]) if cell["partners"] == BY_CHANCE else f"{cell['emit']}, {cell['partners']}"


def _by_chance(outcomes: Outcomes, emit: str) -> list[Outcome]:
    """Those whose windows differ."""
    return [one for one in outcomes if one.cell["emit"] == emit and one.cell["partners"] == BY_CHANCE]


def answer_over_inner(one: Outcome, kind: str) -> float:
    """How many rows come out beside the inner join: the ratio of the costs, if writing were all of them."""
    return round(float(one[kind]["out_per_row"] / one[INNER]["out_per_row"]), 2)


def summary(outcomes: Outcomes) -> dict[str, Any]:
    """What a row costs beside the inner join, by form and window, and how it grows with the window."""
    others = [(one, kind) for one in outcomes for kind in KINDS if kind != INNER]
    found: dict[str, Any] = {
        f"{kind} of {INNER}, {cell_name(one.cell)}, {one.cell['window']}": over_inner(one, kind) for one, kind in others
    }
    same_answer = [over_inner(one, kind) for one, kind in others if one.cell["partners"] == EVERY_ROW and kind in OUTER]
    grows = {}
    for emit in EMITS:
        first, *_, last = _by_chance(outcomes, emit)
        for kind in KINDS:
            much = last[kind]["us_per_row"] / first[kind]["us_per_row"]
            over_log = growth_over_log(first.cell["window"], last.cell["window"], much)
            grows[f"{kind}, {emit}"] = round(over_log, 2)
    return {
        **found,
        "outer_over_inner_max": max(over_inner(one, kind) for one, kind in others),
        "outer_over_inner_same_answer_max": max(same_answer),
        "outer_over_inner_by_answer_max": max(over_inner(one, kind, by_answer=True) for one, kind in others),
        "answer_over_inner_max": max(answer_over_inner(one, kind) for one, kind in others),
        "growth_over_log": grows,
        "growth_over_log_max": max(grows.values()),
    }


def tables(outcomes: Outcomes) -> list[Table]:
    def show(figures: Figures) -> str:
        beside = f", {figures['over_inner']:.2f}" if "over_inner" in figures else ""
        return f"{figures['us_per_row']:.2f}, {figures['out_per_row']:.2f}{beside}"

    title = (
        "Microseconds a row, rows out for each, and what it takes beside the inner join, by what is written and the "
        "rows in a window:"
    )
    return [by_contestant(title, outcomes, show, lambda cell: f"{cell_name(cell)}, {cell['window']:,}")]


def panels(outcomes: Outcomes) -> list[Panel]:
    found = []
    for emit in EMITS:
        lines = lines_of(_by_chance(outcomes, emit), lambda figures: figures["us_per_row"])
        found.append(Panel(emit, "rows in a window", "microseconds a row", lines, log_x=True))
    return found


def settings(options: Options) -> dict[str, int]:
    return {"batch_rows": BATCH, "batches": QUICK_BATCHES if options.quick else BATCHES}


BENCHMARK: Final = Benchmark("Joins that keep rows without a partner", experiments, summary, tables, panels, settings)
