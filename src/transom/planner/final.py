"""Operators of which the answer shows less than they could give.

Net changes and snapshots say what a batch has made of the answer: rows that an aggregate would show and take back
within a step are seen by nobody, so long as only selections and projections are between it and the answer. Lifetimes
have a row once it is over: so long, an outer join need not give a row that is without a partner, nor a semi join one
that has some.
"""

from __future__ import annotations

from typing import Final

from transom.kernels.joinagg.node import JoinAggregate, MergeAggregate
from transom.kernels.operator import Operator
from transom.plan.algebra import Aggregate, Filter, Node, OuterJoin, Project, SemiJoin, SetOperation

SHOWN_LESS: Final[dict[str, tuple[type[Node], ...]]] = {
    "net": (Aggregate, JoinAggregate, MergeAggregate),
    "latest": (Aggregate, JoinAggregate, MergeAggregate),
    "lifetimes": (OuterJoin, SemiJoin),
}
"""By the form of an answer."""


def seen_at_the_end(root: Operator, emit: str) -> frozenset[int]:
    """The ids of such operators in the plan of an answer in this form.

    Whatever else reads one of them, or what is made of it, sees all of its rows: then it is none.
    """
    kinds = SHOWN_LESS.get(emit)
    if kinds is None:
        return frozenset()
    operators = list(root.walk())
    once_seen = {id(root): True}
    for operator in reversed(operators):  # whoever reads it first
        passes = once_seen[id(operator)] and _only_passes(operator)
        for child in operator.inputs:
            once_seen[id(child)] = once_seen.get(id(child), True) and passes
    return frozenset(id(each) for each in operators if once_seen[id(each)] and isinstance(each.node, kinds))


def _only_passes(operator: Operator) -> bool:
    node = operator.node
    return isinstance(node, Filter | Project) or (isinstance(node, SetOperation) and node.kind == "union" and node.all)
