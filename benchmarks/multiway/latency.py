"""Latency of joins of many inputs: rows come one by one, and each is followed to the output of what follows from it.

A query is planned and run as a user has it, `SET multiway` in its text; what ran is read off its plan. A row is created
when it is handed to the query, and its answer is out when the step returns it.

Rows come as fast as they are answered, with the times that they would have. A tactic that leaves work to other threads
is given the time to finish it before the next row, as the gap between two rows would, and that time is not counted; it
is told apart (`background`), with the share of rows for which it is longer than the gap. `paced` rows come in real time
instead, and nothing is waited for.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.harness import Outcome, agreed, digits, take_turns
from benchmarks.multiway.contestants import Contestant, Span, results_of
from benchmarks.multiway.data import Cell, Feed, Row

FILL: Final = 50
"""Rounds of a batch while windows are filled."""


@dataclass(frozen=True)
class Effort:
    """Runs of every contestant, and the rounds or batches of each; `warm` rounds before the first are not counted."""

    runs: int
    rounds: int
    warm: int


class Answer:
    """What contestants must agree on: how many results there were, and the sum of every column."""

    def __init__(self) -> None:
        self.rows = 0
        self._sums: dict[str, float] = {}

    def follow(self, output: pa.RecordBatch | None) -> None:
        rows = results_of(output)
        if rows is None:
            return
        self.rows += len(rows)
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
                self._sums[name] = self._sums.get(name, 0) + pc.sum(column).as_py()

    def compared(self) -> tuple[Any, ...]:
        return self.rows, tuple(sorted(self._sums.items()))


def results(answers: dict[str, Answer]) -> int:
    """How many results there were, which all contestants agree on."""
    rows, *_ = agreed({name: answer.compared() for name, answer in answers.items()})
    assert rows, "there is no answer"
    return int(rows)


def measure_latency(cell: Cell, names: Sequence[str], effort: Effort, cores: int, paced: bool = False) -> Outcome:
    contestants = {name: Contestant(cell, name) for name in names}
    answers = {name: Answer() for name in names}
    feed = Feed(cell)
    fill(contestants.values(), feed, effort.warm)
    gc.collect()

    def run(contestant: Contestant, rows: Sequence[Row]) -> Span:
        span = contestant.take(rows, paced)
        for output in span.outputs:
            answers[contestant.name].follow(output)
        return span

    spans = take_turns(contestants, (feed.rows(effort.rounds) for _ in range(effort.runs)), run)
    gap = 1_000 * cell.round_us // cell.streams
    found = {name: _figures(each, spans[name], gap, cores) for name, each in contestants.items()}
    for each in contestants.values():
        each.close()
    return Outcome({**cell.as_json(), "paced": paced}, found, {"results": results(answers)})


def fill(contestants: Collection[Contestant], feed: Feed, warm: int) -> None:
    """Windows that are full, and then some rows one by one."""
    cell = feed.cell
    if cell.ticked:
        for first in range(0, cell.window, FILL):
            batch = feed.batch(min(FILL, cell.window - first))
            for each in contestants:
                each.take_batch(batch, first * cell.round_us)
    rows = feed.rows(warm if cell.ticked else cell.window + warm)
    for each in contestants:
        each.take(rows)


def _figures(contestant: Contestant, runs: Sequence[Span], gap: int, cores: int) -> dict[str, Any]:
    answered = [run.answered for run in runs]
    of_results = [np.array(run.nanos)[mask] for run, mask in zip(runs, answered, strict=True)]
    of_all = [np.array(run.nanos) for run in runs]
    medians = [float(np.median(one)) / 1e3 for one in of_results]
    joins = np.concatenate([np.array(run.join_nanos)[mask] for run, mask in zip(runs, answered, strict=True)])
    background = np.concatenate([np.array(run.background) for run in runs])
    handed = np.concatenate([np.array(run.submitted)[mask] for run, mask in zip(runs, answered, strict=True)])
    rows, size = contestant.state()
    return {
        "chosen": contestant.chosen,
        "with_result": _latencies(of_results),
        "all_rows": _latencies(of_all),
        "p50_us_of_runs": [digits(one) for one in medians],
        "spread": digits((max(medians) - min(medians)) / statistics.median(medians)),
        "join_us": digits(float(np.median(joins)) / 1e3),
        "background_us": {
            "p50": digits(float(np.median(background)) / 1e3),
            "p99": digits(float(np.quantile(background, 0.99)) / 1e3),
            "longer_than_gap": digits(float((background > gap).mean())),
        },
        "handed_over": digits(float(handed.mean())),
        "path": contestant.path(),
        "path_here": contestant.path(_helpers(float(handed.mean()), cores)),
        "state_rows": rows,
        "state_bytes": size,
    }


def _helpers(submitted: float, cores: int) -> int:
    """Threads that probe at once: nobody but the caller, where a row was answered without handing anything over."""
    return cores if submitted >= 0.5 else 1


def _latencies(runs: Sequence[npt.NDArray[np.int64]]) -> dict[str, float]:
    """Microseconds: medians of the runs' means, medians and 99th percentiles."""
    found = {
        "mean_us": [float(run.mean()) for run in runs],
        "p50_us": [float(np.median(run)) for run in runs],
        "p99_us": [float(np.quantile(run, 0.99)) for run in runs],
    }
    return {name: digits(statistics.median(values) / 1e3) for name, values in found.items()} | {
        "rows": float(sum(map(len, runs)))
    }
