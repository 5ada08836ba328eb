"""Every runtime that must give the same answers: name -> function(query, catalogue, inputs) -> History."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from tests.profile import NIGHTLY
from tests.run_in_partitions import one_by_one, run_in_partitions
from tests.run_locally import row_by_row, run_locally
from transom.plan.algebra import Node
from transom.plan.catalogue import Catalogue
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import History

T = TypeVar("T")
Inputs = dict[str, list[tuple[Any, ...]]]


RESTARTS = 12
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


def runs(cases: Sequence[T], by_day: int) -> list[tuple[T, str]]:
    """Each case with so many runtimes, which take turns, and every third with the reference; at night with all of them.

    Neighbours are much alike, and often so are cases twenty apart: their turns differ.
    """
    reference, *others = RUNTIMES
    if NIGHTLY:
        return [(case, runtime) for case in cases for runtime in RUNTIMES]
    return [
        (case, runtime)
        for number, case in enumerate(cases)
        for runtime in (
            *((reference,) if number % 3 == 0 else ()),
            *(others[(by_day * number + number // 20 + i) % len(others)] for i in range(by_day)),
        )
    ]
