"""Every runtime that must give the same answers: name -> function(query, catalogue, inputs) -> History."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar
from zlib import crc32

from tests.profile import NIGHTLY
from tests.run_in_partitions import one_by_one, run_in_partitions
from tests.run_locally import row_by_row, run_locally
from transom.plan.algebra import Node
from transom.plan.catalogue import Catalogue
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import History

T = TypeVar("T")
CAUGHT_BY: Final = Path(__file__).parent / "planted" / "caught_by.json"
Inputs = dict[str, list[tuple[Any, ...]]]


RESTARTS = 2
"""So many by day where there are more rows; at night a run is restarted after every row."""


def after_rows(inputs: Inputs) -> Callable[[int], bool]:
    """Behind which rows a run is restarted."""
    every = 1 if NIGHTLY else max(1, sum(map(len, inputs.values())) // RESTARTS)
    return lambda i: i % every == 0


def in_one_batch(query: Node, catalogue: Catalogue, inputs: Inputs) -> History:
    return run_locally(query, catalogue, inputs)


def restarted_after_rows(query: Node, catalogue: Catalogue, inputs: Inputs) -> History:
    pushes = row_by_row(inputs)
    return run_locally(query, catalogue, inputs, pushes, emit="lifetimes", restart=after_rows(inputs))


def in_partitions(query: Node, catalogue: Catalogue, inputs: Inputs) -> History:
    """By threads."""
    return run_locally(query, catalogue, inputs, partitions=3, threads=True)


def in_partitions_restarted(query: Node, catalogue: Catalogue, inputs: Inputs) -> History:
    pushes = row_by_row(inputs)
    return run_locally(query, catalogue, inputs, pushes, emit="lifetimes", partitions=3, restart=after_rows(inputs))


def in_two_partitions_restarted(query: Node, catalogue: Catalogue, inputs: Inputs) -> History:
    """Row by row, every row in a task of its own, saved and restored between batches."""
    batches, restart = one_by_one(row_by_row(inputs)), after_rows(inputs)
    return run_in_partitions(query, catalogue, inputs, batches, partitions=2, emit="lifetimes", restart=restart)


def by_negative_tuples(runtime: Callable[[Node, Catalogue, Inputs], History]) -> Callable[..., History]:
    """The same, with every row reported twice; joins of many inputs are trees then, whatever the query requests."""

    def run(query: Node, catalogue: Catalogue, inputs: Inputs) -> History:
        options = {**catalogue.options, "lifetimes": "negative", "multiway": "tree"}
        return runtime(query, replace(catalogue, options=options), inputs)

    return run


RUNTIMES: dict[str, Callable[[Node, Catalogue, Inputs], History]] = {
    "reference": evaluate,
    "local": in_one_batch,
    "local_restarted": restarted_after_rows,
    "partitions": in_partitions,
    "partitions_restarted": in_partitions_restarted,
    "buckets_restarted": in_two_partitions_restarted,
    "negative": by_negative_tuples(in_one_batch),
    "negative_restarted": by_negative_tuples(restarted_after_rows),
    "negative_partitions_restarted": by_negative_tuples(in_partitions_restarted),
}


def runs(test: str, cases: Mapping[str, T], by_day: int, every: int = 1) -> list[tuple[T, str]]:
    """Each case of a test, or one of so many, with so many runtimes, and every third with the reference.

    At night all of them run with all.

    The name of a case says which, so that a new case changes nothing for others. What is known to catch a planted bug
    runs by day as well: tests/planted/caught_by.json.
    """
    reference, *others = RUNTIMES
    if NIGHTLY:
        return [(case, runtime) for case in cases.values() for runtime in RUNTIMES]
    catching = set(json.loads(CAUGHT_BY.read_text(encoding="utf-8")).values())
    chosen_runs = []
    for name, case in cases.items():
        number = crc32(name.encode())
        chosen = {others[(number + i) % len(others)] for i in range(by_day)}
        chosen |= {reference} if number % 3 == 0 else set()
        chosen = chosen if number // len(others) % every == 0 else set()
        chosen_runs += [(case, each) for each in RUNTIMES if each in chosen or f"{test}[{name}-{each}]" in catching]
    return chosen_runs
