"""Joins that keep rows without a partner, beside the inner join: what a row costs, for windows of 10^3 to 10^6 rows.

Two streams bring rows of 8 columns in batches of 10,000, one row a millisecond each. A window holds W rows; keys are
drawn from W values, so a row meets about one row of the other stream, and every third none. The whole pipeline runs,
from Arrow batches to changes or lifetimes, on the same rows for each kind of join. Times are those of the processor.

An outer join has more to write than the inner join: what it costs to know who has a partner is seen where it has not.
So of one window there are two cells more, in which a row of `a` has the row of `b` of the same instant for a partner
and nobody else: every row, whose LEFT, RIGHT and FULL JOIN are the inner join, and every second one.
"""

from __future__ import annotations

import statistics
import time
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


def measure(window: int, batches: int, kind: str, emit: str, partners: str = BY_CHANCE) -> dict[str, float]:
    """Microseconds a row of either stream, the median of five slices of the run, and how many rows come out for it."""
    catalogue = Catalogue()
    extent = f"[RANGE {window} MILLISECONDS]"
    text = f"SELECT * FROM a {extent} {KINDS[kind]} b {extent} ON a.k = b.k"
    statement = parse_statements(f"{DECLARATIONS} {text}", catalogue)[-1]
    definition = catalogue.relations["a"]
    assert isinstance(statement, QueryStatement) and isinstance(definition, StreamDefinition)
    pipeline = Pipeline(plan(statement.query, catalogue), catalogue, emit)
    random = np.random.default_rng(7)
    warm = -(-window // BATCH) + 2
    took, written = [], 0
    for number in range(warm + batches):
        given = {
            name: make_batch(number * BATCH, BATCH, window, random, definition.columns.arrow()) for name in ("a", "b")
        }
        if partners != BY_CHANCE:
            share = PARTNERS[partners]
            given = {name: given_keys(batch, number * BATCH, name, share, random) for name, batch in given.items()}
        started = time.process_time()
        for name, batch in given.items():
            pipeline.push(name, batch)
        output, _ = pipeline.advance()
        if number >= warm:
            took.append(time.process_time() - started)
            written += 0 if output is None else sum(map(len, output.batches))
    median = statistics.median(statistics.mean(took[j::5]) for j in range(5))
    rows = 2 * BATCH
    return {"us_per_row": 1e6 * median / rows, "out_per_row": written / (rows * batches), "batches": batches}


def experiments(options: Options) -> Experiments:
    batches = QUICK_BATCHES if options.quick else BATCHES

    def by_kind(cell: tuple[str, str, int]) -> list[Outcome]:
        emit, partners, window = cell
        figures = {kind: measure(window, batches, kind, emit, partners) for kind in KINDS}
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
    return round(float(mine["us_per_row"] / inner["us_per_row"] / more), 2)


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
        return f"{figures['us_per_row']:.2f}, {figures['out_per_row']:.2f}"

    title = "Microseconds a row and rows out for each, by what is written and the rows in a window:"
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
