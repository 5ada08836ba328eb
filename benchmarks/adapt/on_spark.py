"""The aggregate over a join whose streams change twice, as a session on Spark runs it: in batches, to the end.

The rows are those of `aggregates.py`, fewer of them, and all of them are there at the beginning, so a batch takes as
many as it may. Contestants are the two tactics that the adaptive one hosts, kept for the whole, and the adaptive one.
A contestant takes what its run takes on the wall; the seconds of its operators, by their counters in the tasks, leave
out what Spark takes for a batch. What the answer shows at the end of each batch must be the same for all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Final

import pyarrow as pa

from benchmarks.adapt import aggregates
from benchmarks.adapt.aggregates import SECONDS
from benchmarks.adapt.phases import ADAPTIVE
from benchmarks.harness import Figures, Options, Outcome, agreed, digits, medians, take_turns
from benchmarks.joinagg.contestants import FACTORISED, PC
from benchmarks.spark_session import session_with
from transom import Session
from transom.session import workspace_of

FIXED: Final = (PC, FACTORISED)
CONTESTANTS: Final = (*FIXED, ADAPTIVE)
QUERY: Final = (
    f"SELECT COUNT(*) AS n, SUM(b.v) AS s FROM a [RANGE {SECONDS} SECONDS], b [RANGE {SECONDS} SECONDS] WHERE a.k = b.k"
)


FULL: Final = aggregates.Size(aggregates.FULL.phases, rows=100_000, batch=10_000, runs=1)
QUICK: Final = replace(FULL, rows=20_000, batch=5_000)


def chosen(options: Options) -> aggregates.Size:
    size = QUICK if options.quick else FULL
    return replace(size, runs=options.runs or size.runs)


def measure(size: aggregates.Size) -> list[Outcome]:
    """The whole by every contestant, after a short run of each that starts and compiles everything."""
    rows = _rows(size)
    for name in CONTESTANTS:
        _ran(name, {stream: table.slice(0, 2 * size.batch) for stream, table in rows.items()}, size.batch)
    answers: dict[str, Any] = {}
    changes: list[str] = []

    def run(name: str, number: int) -> dict[str, float]:
        figures, answer, changed = _ran(name, rows, size.batch)
        answers.setdefault(name, answer)
        if name == ADAPTIVE:
            changes[:] = changed
        return figures

    runs = take_turns({name: name for name in CONTESTANTS}, range(size.runs), run)
    shown = agreed(answers)
    total = 2 * size.rows * len(size.phases)
    cell = {**asdict(size), "experiment": "spark", "x": total, "rows": total, "batches": len(shown)}
    figures = {name: {key: digits(value) for key, value in medians(taken).items()} for name, taken in runs.items()}
    return [Outcome(cell, figures, {"changes": changes})]


def _rows(size: aggregates.Size) -> dict[str, pa.Table]:
    steps = aggregates.stream(aggregates.Size(size.phases, size.rows, 2_500, 1))
    batches: dict[str, list[pa.RecordBatch]] = {"a": [], "b": []}
    for _, step in steps:
        for name, given in step.batches.items():
            batches[name].append(given.values)
    return {name: pa.Table.from_batches(parts) for name, parts in batches.items()}


def _ran(name: str, rows: dict[str, pa.Table], batch: int) -> tuple[dict[str, float], list[Any], list[str]]:
    """Seconds of a run; what the answer showed at the end of each batch; and how the tactic changed."""
    spark, _ = session_with({})
    session = Session(spark=spark, batch_rows=batch, joinagg=name)
    for stream, table in rows.items():
        session.stream(stream, table, time="ts")
    shown: list[Any] = []

    def note(table: pa.Table, number: int) -> None:
        shown.append(sorted(map(str, table.to_pylist())))

    run = workspace_of(session).assemble(workspace_of(session).prepare(QUERY), emit="latest", on_batch=note)
    started = time.perf_counter()
    run.run()
    seconds = time.perf_counter() - started
    (query,) = run.queries
    operators = query.status().operators
    changes = [line for operator in operators for line in operator.changes]
    session.close()
    return {"seconds": seconds, "operator_seconds": sum(each.seconds for each in operators)}, shown, changes


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """How many times as long as the one that changes each that stays takes: on the wall, and in operators alone."""
    (outcome,) = outcomes
    changes = [line for line in {**outcome.cell, **outcome.about}["changes"] if "from " in line]

    def over(figure: str) -> dict[str, float]:
        return {name: round(outcome[name][figure] / outcome[ADAPTIVE][figure], 3) for name in FIXED}

    return {
        "over_adaptive": over("seconds"),
        "operators_over_adaptive": over("operator_seconds"),
        "changes": len(changes),
        "answers": "equal",
    }


def head(cell: Figures) -> str:
    return f"{cell['rows']:,} rows in batches of {cell['batch']:,} rows of a stream"


def shown(figures: Figures) -> str:
    return f"{figures['seconds']:.3g} s, {figures['operator_seconds']:.3g} s"
