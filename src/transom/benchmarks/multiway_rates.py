"""Joins of many inputs at full rate, in large batches; and what a tree costs beside the probes that it consists of.

The time of a step is counted to its end, with all that it leaves to other threads. A **single probe** is a row that is
built and probed by the join of two streams, with the same window, matches and batches, measured in the same run.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from transom.benchmarks.multiway_contestant import CHAIN, TREE, Contestant, is_chain
from transom.benchmarks.multiway_data import Batch, Cell, Feed
from transom.benchmarks.multiway_run import Answer, Effort, check, described, digits, fill

PAIR: Final = "pair"
"""The join of two streams."""


@dataclass(frozen=True)
class Timed:
    """Seconds a row: of the whole step, and of the joins in it."""

    whole: float
    joins: float


def measure_rates(cell: Cell, names: Sequence[str], effort: Effort, batch: int) -> dict[str, Any]:
    """A cell and what every contestant did in it; `effort.rounds` are batches here, of so many rows of each stream."""
    contestants = [Contestant(cell, name) for name in names]
    answers = {name: Answer() for name in names}
    feed = Feed(cell)
    for _ in range(-(-cell.window // batch) + effort.warm):
        step = feed.batch(batch)
        for each in contestants:
            each.take_batch(step)
    gc.collect()
    runs: dict[str, list[Timed]] = {name: [] for name in names}
    for _ in range(effort.runs):
        steps = [feed.batch(batch) for _ in range(effort.rounds)]
        for each in contestants:
            runs[each.name].append(_run(each, steps, answers[each.name]))
    results = check(answers)
    tactics = {}
    for each in contestants:
        taken = [one.whole for one in runs[each.name]]
        rows, size = each.state()
        tactics[each.name] = {
            "chosen": each.chosen,
            "rows_per_s": round(1 / statistics.median(taken)),
            "us_per_row": digits(1e6 * statistics.median(taken)),
            "spread": digits((max(taken) - min(taken)) / statistics.median(taken)),
            "state_rows": rows,
            "state_bytes": size,
        }
        if each.name in (TREE, CHAIN):
            tactics[each.name]["is_chain"] = is_chain(each.pipeline.root)
        each.close()
    return {**described(cell), "batch": batch, "results": results, "tactics": tactics}


def _run(contestant: Contestant, steps: Sequence[Batch], answer: Answer) -> Timed:
    rows, seconds, joined = 0, 0.0, contestant.join_seconds
    for step in steps:
        started = time.perf_counter()
        output = contestant.take_batch(step)
        seconds += time.perf_counter() - started
        rows += sum(len(batch) for _, batch in step)
        answer.follow(output)
    return Timed(seconds / rows, (contestant.join_seconds - joined) / rows)


def measure_floor(cell: Cell, effort: Effort, batches: Effort, batch: int) -> dict[str, Any]:
    """Time a row of `tree` over as many single probes as the tree has joins, one row a step and in batches."""
    pair = replace(cell, streams=2)
    one_by_one = _one_by_one(replace(cell, timed=False), replace(pair, timed=False), effort)
    together = _together(cell, pair, batches, batch)
    return {
        **described(cell),
        "experiment": "floor",
        "label": f"part {cell.part}: a tree of {cell.streams} streams over {cell.streams - 1} probes",
        "probes": cell.streams - 1,
        "batch": batch,
        "one_row_a_step": one_by_one,
        "in_batches": together,
    }


def _one_by_one(cell: Cell, pair: Cell, effort: Effort) -> dict[str, Any]:
    both = {TREE: (Contestant(cell, TREE), Feed(cell)), PAIR: (Contestant(pair, TREE), Feed(pair))}
    for contestant, feed in both.values():
        fill([contestant], feed, effort.warm)
    runs: dict[str, dict[str, list[float]]] = {name: {"whole": [], "joins": [], "with_result": []} for name in both}
    for _ in range(effort.runs):
        for name, (contestant, feed) in both.items():
            stretch = contestant.take(feed.rows(effort.rounds))
            runs[name]["whole"].append(float(np.mean(stretch.nanos)) / 1e3)
            runs[name]["joins"].append(float(np.mean(stretch.join_nanos)) / 1e3)
            runs[name]["with_result"].append(float(np.median(np.array(stretch.nanos)[stretch.answered])) / 1e3)
    return _over(runs, cell.streams - 1)


def _together(cell: Cell, pair: Cell, effort: Effort, batch: int) -> dict[str, Any]:
    both = {TREE: (Contestant(cell, TREE), Feed(cell)), PAIR: (Contestant(pair, TREE), Feed(pair))}
    for contestant, feed in both.values():
        for _ in range(-(-cell.window // batch) + effort.warm):
            contestant.take_batch(feed.batch(batch))
    runs: dict[str, dict[str, list[float]]] = {name: {"whole": [], "joins": []} for name in both}
    for _ in range(effort.runs):
        for name, (contestant, feed) in both.items():
            timed = _run(contestant, [feed.batch(batch) for _ in range(effort.rounds)], Answer())
            runs[name]["whole"].append(1e6 * timed.whole)
            runs[name]["joins"].append(1e6 * timed.joins)
    return _over(runs, cell.streams - 1)


def _over(runs: dict[str, dict[str, list[float]]], probes: int) -> dict[str, Any]:
    """Of the whole step, of the joins alone, and (one row a step) of the rows that yield a result."""
    found: dict[str, Any] = {}
    for measure in runs[TREE]:
        tree, probe = (statistics.median(runs[name][measure]) for name in (TREE, PAIR))
        found[measure] = {
            "tree_us": digits(tree),
            "probe_us": digits(probe),
            "over": digits(tree / (probes * probe)),
        }
    return found
