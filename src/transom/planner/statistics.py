"""What the planner may know of the inputs of a join and of the machine; whoever plans a query brings it.

Nothing of it changes an answer. What nobody knows is assumed: inputs of the same rate, and one match a probe.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Final, Protocol

from transom.core.time import SECOND
from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.multiway.statistics import PASSING, InputStatistics, JoinStatistics, Machine, of, predicates_over
from transom.plan.algebra import Filter, Node, Project, Relation, StreamScan, TableScan, Window, WindowSpec
from transom.plan.catalogue import Catalogue, StreamDefinition

RATE: Final = 100.0
"""Rows a second of a stream, and rows of a table, of which nobody knows more."""

UNBOUNDED_SECONDS: Final = 3600.0
"""A window without an end is taken to hold what came in an hour."""

Where = Callable[[], Machine]
"""Says where queries run, if somebody wants to know."""


class Statistics(Protocol):
    """Asked by the planner only where there is something to decide."""

    @property
    def machine(self) -> Machine: ...

    def join(self, node: MultiwayJoin) -> JoinStatistics: ...


@dataclass(frozen=True)
class DeclaredStatistics:
    """Nothing is known but what is declared: rates of streams. The others are taken to be like those."""

    catalogue: Catalogue
    machine: Machine = field(default_factory=Machine)

    def join(self, node: MultiwayJoin) -> JoinStatistics:
        declared = [declared_rate(relation, self.catalogue) for relation in node.relations]
        rates = [rate for rate in declared if rate is not None]
        usual = sum(rates) / len(rates) if rates else RATE
        inputs = tuple(map(partial(input_of, usual=usual), node.relations, declared))
        members = members_of(node)
        residual = tuple((over, PASSING) for over in predicates_over(node))
        return JoinStatistics(inputs, members, (None,) * len(members), residual)


def declared_rate(relation: Relation, catalogue: Catalogue) -> float | None:
    """Of the one stream that the rows come from."""
    node: Node = relation
    while len(node.inputs) == 1:
        (node,) = node.inputs
    definition = catalogue.relations[node.name.lower()] if isinstance(node, StreamScan) else None
    return definition.rate if isinstance(definition, StreamDefinition) else None


def input_of(relation: Relation, declared: float | None, usual: float) -> InputStatistics:
    """An input with the rate that is declared, or the usual one; a table that never changes has so many rows."""
    below: Relation = relation
    while isinstance(below, Filter | Project):
        below = below.input
    if isinstance(below, TableScan):
        return InputStatistics(0.0, usual)
    rate = usual if declared is None else declared
    alive = population(below.spec, rate) if isinstance(below, Window) else rate
    return InputStatistics(rate, alive, "assumed" if declared is None else "declared")


def population(spec: WindowSpec, rate: float) -> float:
    """The rows that a window holds; each partition is taken to be a row or so.

    >>> population(WindowSpec(range=5_000_000), 20.0), population(WindowSpec(range=5_000_000, rows=30), 20.0)
    (100.0, 30.0)
    """
    if spec.now:
        return 1.0
    if spec.session is not None:
        return max(rate * spec.session / SECOND, 1.0)
    seconds = UNBOUNDED_SECONDS if spec.range is None else max(spec.range, spec.slide or 0) / SECOND
    alive = rate * (seconds if spec.rows is None or spec.range is not None else inf)
    if spec.rows is not None:
        alive = min(alive, rate * UNBOUNDED_SECONDS if spec.partition is not None else float(spec.rows))
    return max(alive, 1.0)


def members_of(node: MultiwayJoin) -> tuple[int, ...]:
    """The inputs that each class of keys is on."""
    return tuple(of(i for i, key in enumerate(members) if key is not None) for members in zip(*node.keys, strict=True))
