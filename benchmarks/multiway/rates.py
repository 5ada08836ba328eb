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

from benchmarks.harness import Outcome, digits, medians, take_turns
from benchmarks.multiway.contestants import CHAIN, TREE, Contestant, is_chain
from benchmarks.multiway.data import Batch, Cell, Feed
from benchmarks.multiway.latency import Answer, Effort, fill, results

PAIR: Final = "pair"
"""The join of two streams."""


def measure_rates(cell: Cell, names: Sequence[str], effort: Effort, batch: int) -> Outcome:
    """`effort.rounds` are batches here, of so many rows of each stream."""
    contestants = {name: Contestant(cell, name) for name in names}
    answers = {name: Answer() for name in names}
    feed = Feed(cell)
    for _ in range(-(-cell.window // batch) + effort.warm):
        step = feed.batch(batch)
        for each in contestants.values():
            each.take_batch(step)
    gc.collect()
    inputs = ([feed.batch(batch) for _ in range(effort.rounds)] for _ in range(effort.runs))
    runs = take_turns(contestants, inputs, lambda each, steps: _run(each, steps, answers[each.name]))
    found = {}
    for name, each in contestants.items():
        taken = [one["whole"] for one in runs[name]]
        rows, size = each.state()
        found[name] = {
            "chosen": each.chosen,
            "rows_per_s": round(1e6 / statistics.median(taken)),
            "us_per_row": digits(statistics.median(taken)),
            "spread": digits((max(taken) - min(taken)) / statistics.median(taken)),
            "state_rows": rows,
            "state_bytes": size,
        }
        if name in (TREE, CHAIN):
            found[name]["is_chain"] = is_chain(each.pipeline.root)
        each.close()
    return Outcome({**cell.as_json(), "batch": batch}, found, {"results": results(answers)})


def _run(contestant: Contestant, steps: Sequence[Batch], answer: Answer) -> dict[str, float]:
    """Microseconds a row: of the whole step, and of the joins in it."""
    rows, seconds, joined = 0, 0.0, contestant.join_seconds
    for step in steps:
        started = time.perf_counter()
        output = contestant.take_batch(step)
        seconds += time.perf_counter() - started
        rows += sum(len(batch) for _, batch in step)
        answer.follow(output)
    return {"whole": 1e6 * seconds / rows, "joins": 1e6 * (contestant.join_seconds - joined) / rows}


@dataclass(frozen=True)
class _Fed:
    """A contestant and the rows that it takes: those of a pair are others than those of the tree."""

    contestant: Contestant
    feed: Feed


def measure_floor(cell: Cell, effort: Effort, batches: Effort, batch: int) -> Outcome:
    """Time a row of `tree` over as many single probes as the tree has joins, one row a step and in batches."""
    described = {
        **cell.as_json(),
        "experiment": "floor",
        "label": f"part {cell.part}: a tree of {cell.streams} streams over {cell.streams - 1} probes",
        "probes": cell.streams - 1,
        "batch": batch,
    }
    one_by_one = _one_by_one(_both(replace(cell, timed=False)), effort)
    together = _together(_both(cell), batches, batch)
    probes = cell.streams - 1
    return Outcome(described, {}, {"one_row_a_step": _over(one_by_one, probes), "in_batches": _over(together, probes)})


def _both(cell: Cell) -> dict[str, _Fed]:
    cells = {TREE: cell, PAIR: replace(cell, streams=2)}
    return {name: _Fed(Contestant(one, TREE), Feed(one)) for name, one in cells.items()}


def _one_by_one(both: dict[str, _Fed], effort: Effort) -> dict[str, list[dict[str, float]]]:
    for one in both.values():
        fill([one.contestant], one.feed, effort.warm)

    def run(one: _Fed, number: int) -> dict[str, float]:
        span = one.contestant.take(one.feed.rows(effort.rounds))
        return {
            "whole": float(np.mean(span.nanos)) / 1e3,
            "joins": float(np.mean(span.join_nanos)) / 1e3,
            "with_result": float(np.median(np.array(span.nanos)[span.answered])) / 1e3,
        }

    return take_turns(both, range(effort.runs), run)


def _together(both: dict[str, _Fed], effort: Effort, batch: int) -> dict[str, list[dict[str, float]]]:
    for one in both.values():
        for _ in range(-(-one.feed.cell.window // batch) + effort.warm):
            one.contestant.take_batch(one.feed.batch(batch))

    def run(one: _Fed, number: int) -> dict[str, float]:
        return _run(one.contestant, [one.feed.batch(batch) for _ in range(effort.rounds)], Answer())

    return take_turns(both, range(effort.runs), run)


def _over(runs: dict[str, list[dict[str, float]]], probes: int) -> dict[str, Any]:
    """Of the whole step, of the joins alone, and (one row a step) of the rows that yield a result."""
    tree, probe = (medians(runs[name]) for name in (TREE, PAIR))
    return {
        name: {
            "tree_us": digits(tree[name]),
            "probe_us": digits(probe[name]),
            "over": digits(tree[name] / (probes * probe[name])),
        }
        for name in tree
    }
