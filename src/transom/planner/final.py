"""Operators of which only what they give at the end of a step is seen.

Net changes and snapshots say what a batch has made of the answer: rows that an aggregate would show and take back
within a step are seen by nobody, so long as only selections and projections are between it and the answer.
"""

from __future__ import annotations

from typing import Final

from transom.kernels.operator import Operator
from transom.plan.algebra import Aggregate, Filter, Project, SetOperation

FORMS: Final = ("net", "latest")
"""The forms of an answer that say only how it is when a batch is over."""


def seen_at_the_end(root: Operator, emit: str) -> frozenset[int]:
    """The ids of such aggregates in the plan of an answer in this form.

    Whatever else reads one of them, or what is made of it, sees all of its rows: then it is none.
    """
    if emit not in FORMS:
        return frozenset()
    operators = list(root.walk())
    known = {id(root): True}
    for operator in reversed(operators):  # whoever reads it first
        passes = known[id(operator)] and _only_passes(operator)
        for child in operator.inputs:
            known[id(child)] = known.get(id(child), True) and passes
    return frozenset(id(each) for each in operators if known[id(each)] and isinstance(each.node, Aggregate))


def _only_passes(operator: Operator) -> bool:
    node = operator.node
    return isinstance(node, Filter | Project) or (isinstance(node, SetOperation) and node.kind == "union" and node.all)
