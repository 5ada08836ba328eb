"""A plan that several queries share: the same part of each, such as a view, is computed once, and each reads its rows.

The part is that of the query as it is written, before selections are moved into it and columns dropped: so it is the
same whatever a query makes of it. All that the query reads comes through it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from transom.kernels.operator import ANY, Operator
from transom.kernels.shared_plan.node import SharedPlan, WindowedPlan
from transom.kernels.shared_plan.tactic import SharedPlanTactic, WindowedTactic
from transom.plan.algebra import (
    Aggregate,
    Distinct,
    Join,
    Node,
    OuterJoin,
    Relation,
    SemiJoin,
    SetOperation,
    StreamScan,
    TableScan,
    TopN,
)
from transom.plan.catalogue import Catalogue
from transom.plan.options import OPTIONS, partitions_of
from transom.plan.rewrites import only_joined
from transom.planner.plan import Planner, plan
from transom.planner.running_frames import bound_frames

_MOST_NODES: Final = 300
"""Of a query in which a part is looked for."""


@dataclass(frozen=True)
class SharablePlan:
    """A query that reads nothing but a part that others may read as well. `query` has a `SharedPlan` in its place."""

    part: Relation
    query: Node
    surroundings: tuple[object, ...]

    @property
    def common(self) -> tuple[object, ...]:
        """What queries must have in common to share the part."""
        return self.part, self.surroundings

    @property
    def size(self) -> int:
        return len(_nodes(self.part))

    @property
    def works(self) -> int:
        """How many of its nodes put rows together."""
        return sum(map(_works, _nodes(self.part)))

    @property
    def only_joins(self) -> bool:
        """Whether there is no work in the part but joins: those of two streams are shared in a way of their own."""
        return all(isinstance(node, Join) for node in _nodes(self.part) if _works(node))


def sharable_plans(query: Node, catalogue: Catalogue) -> list[SharablePlan] | str:
    """What the query could share, the largest part first; or why it can share nothing."""
    reason = why_no_part(catalogue)
    if reason is not None:
        return reason
    tick = catalogue.options.get("tick", OPTIONS["tick"].default)
    query = only_joined(bound_frames(query, catalogue, tick))
    nodes = _nodes(query)
    if len(nodes) > _MOST_NODES:
        return f"its plan has more than {_MOST_NODES} nodes"
    parts = [node for node in nodes if isinstance(node, Relation) and _worth_sharing(node) and _all_of(query, node)]
    if not parts:
        return "it has no part that computes something and through which all that it reads comes"
    return [_sharable(query, part, catalogue) for part in sorted(parts, key=lambda part: -len(_nodes(part)))]


def shared_plan(request: SharablePlan, catalogue: Catalogue) -> Operator:
    """The part as it is computed for all."""
    return plan(request.part, catalogue, is_part=True)


def plan_reader(request: SharablePlan, catalogue: Catalogue, subplan: Operator) -> Operator:
    """What one query does with the rows of the part."""
    reader = _Reader(catalogue, subplan)
    return reader.plan(reader.rewritten(request.query))


def why_no_part(catalogue: Catalogue) -> str | None:
    """Why a query with these options can share no part; None where it can."""

    def option(name: str) -> Any:
        return catalogue.options.get(name, OPTIONS[name].default)

    if option("sharing") == "off":
        return "SET sharing is 'off'"
    if option("lifetimes") == "negative":
        return "lifetimes are sent as negative tuples"
    if option("schedule") not in ("off", "auto"):
        return "its work is put in order"
    if option("memory") is not None or option("slide_join") not in ("auto", "off"):
        return "its join is made slide by slide"
    if partitions_of(catalogue) > 1:
        return "it is spread over partitions of this process"
    return None


def _sharable(query: Node, part: Relation, catalogue: Catalogue) -> SharablePlan:
    reads = {node.name.lower() for node in _nodes(part) if isinstance(node, StreamScan | TableScan)}
    return SharablePlan(part, _replaced(query, part, SharedPlan(part.schema)), surroundings_of(reads, catalogue))


def surroundings_of(reads: Iterable[str], catalogue: Catalogue) -> tuple[object, ...]:
    """The options of queries that share a part which reads these, and what is read."""
    options = tuple(sorted((name, value) for name, value in catalogue.options.items()))
    return (options, *(catalogue.relations[name] for name in sorted(set(reads))))


def _worth_sharing(part: Relation) -> bool:
    """Whether rows of streams are put together in it; what passes them on, or holds them, is cheap to repeat."""
    nodes = _nodes(part)
    return any(map(_works, nodes)) and any(isinstance(node, StreamScan) for node in nodes)


def _works(node: Node) -> bool:
    if isinstance(node, SetOperation):
        return node.kind != "union" or not node.all
    return isinstance(node, Aggregate | Distinct | Join | OuterJoin | SemiJoin | TopN)


def _all_of(query: Node, part: Node) -> bool:
    """Whether all that the query reads comes through the part."""
    through_part: dict[int, bool] = {}

    def through(node: Node) -> bool:
        if id(node) not in through_part:
            through_part[id(node)] = node is part or (
                bool(node.inputs) and all(through(child) for child in node.inputs)
            )
        return through_part[id(node)]

    return through(query)


def _replaced(query: Node, part: Node, by: Node) -> Node:
    made: dict[int, Node] = {id(part): by}

    def done(node: Node) -> Node:
        if id(node) not in made:
            made[id(node)] = node.over(tuple(done(child) for child in node.inputs))
        return made[id(node)]

    return done(query)


def _nodes(query: Node) -> list[Node]:
    """All nodes, each once: equal ones are the same object."""
    by_id: dict[int, Node] = {}

    def visit(node: Node) -> Iterator[Node]:
        if id(node) not in by_id:
            by_id[id(node)] = node
            for child in node.inputs:
                yield from visit(child)
            yield node

    return list(visit(query))


class _Reader(Planner):
    """The planner of one query, which finds the rows of the part where the query reads them."""

    def __init__(self, catalogue: Catalogue, subplan: Operator) -> None:
        super().__init__(catalogue)
        self._subplan = subplan

    def _plan(self, node: Node) -> Operator:
        below = self._subplan
        if isinstance(node, WindowedPlan):
            return Operator(node, WindowedTactic.chosen(node), (below,), None, (ANY,))
        if not isinstance(node, SharedPlan):
            return super()._plan(node)
        tactic = SharedPlanTactic.chosen()
        return Operator(
            node, tactic, (below,), None, (ANY,), below.ends_grow, open_ends=below.open_ends and not below.sealed
        )
