"""Operators of which the answer shows less than they could give.

Net changes and snapshots say what a batch has made of the answer: rows that an aggregate would show and take back
within a step are seen by nobody, so long as only selections and projections are between it and the answer. Lifetimes
have a row once it is over: so long, an outer join need not give a row that is without a partner, nor a semi join one
that has some. Changes have it when it comes and when it goes: there such a join gives it twice, and the answer need not
keep what the join has anyway.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from transom.kernels.joinagg.node import JoinAggregate, MergeAggregate
from transom.kernels.operator import Operator
from transom.plan.algebra import Aggregate, Filter, Node, OuterJoin, Project, SemiJoin, SetOperation

SHOWN_LESS: Final[dict[str, tuple[type[Node], ...]]] = {
    "net": (Aggregate, JoinAggregate, MergeAggregate),
    "latest": (Aggregate, JoinAggregate, MergeAggregate),
    "lifetimes": (OuterJoin, SemiJoin),
    "changes": (OuterJoin, SemiJoin),
}
"""By the form of an answer."""


def seen_at_the_end(root: Operator, emit: str, moved: Collection[int] = ()) -> Mapping[int, str]:
    """The ids of such operators in the plan of an answer in this form, each with that form.

    Whatever else reads one of them, or what is made of it, sees all of its rows: then it is none. Nor does who writes
    changes know rows that come twice once they were `moved` to where they meet others (by the ids of their operators).
    """
    kinds = SHOWN_LESS.get(emit)
    if kinds is None:
        return {}
    twice = emit == "changes"
    operators = list(root.walk())
    once_seen = {id(root): True}
    for operator in reversed(operators):  # whoever reads it first
        passes = once_seen[id(operator)] and _only_passes(operator, twice)
        passes = passes and not (twice and id(operator) in moved)
        for child in operator.inputs:
            once_seen[id(child)] = once_seen.get(id(child), True) and passes
    seen = [each for each in operators if once_seen[id(each)] and isinstance(each.node, kinds)]
    return {id(each): emit for each in seen if not (twice and (id(each) in moved or each.negative))}


def _only_passes(operator: Operator, twice: bool) -> bool:
    """Changes of a union are counted by value, in which what is the same row is lost."""
    node = operator.node
    if isinstance(node, Filter | Project):
        return True
    return isinstance(node, SetOperation) and node.kind == "union" and node.all and not twice
