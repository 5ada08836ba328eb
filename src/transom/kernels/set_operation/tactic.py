"""Tactics of DISTINCT, EXCEPT and INTERSECT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from transom.kernels import description
from transom.kernels.kernel import Kernel
from transom.kernels.negative.set_operation import NegativeSetOperationKernel
from transom.kernels.operator import Alive, Key, Operator, Site, Tactic
from transom.kernels.set_operation.set_operation import SetOperationKernel, SetOperationState
from transom.kernels.tally import Tally
from transom.plan.algebra import Distinct, SetOperation

KEEPS: Final = "each distinct row alive once, two numbers per row alive"
COSTS: Final = "a hash look-up a row"


class CountingTactic(Tactic):
    """What has to know how often a row is there."""

    name = "counting"
    states = (SetOperationState, Tally)

    def with_negative_tuples(self, operator: Operator) -> Tactic:
        return replace(self, keeps="each distinct row alive once, with its counts")


class DistinctTactic(CountingTactic):
    nodes = (Distinct,)
    title = "distinct "
    cheap = True

    def describe(self, operator: Operator) -> str:
        return description.columns(operator.schema)

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        kernel = NegativeSetOperationKernel if operator.negative else SetOperationKernel
        return (kernel("distinct", False, operator.schema.held()),)

    def answer_key(self, operator: Operator, below: Sequence[Key | None]) -> Key | None:
        return _all(operator) if below[0] is None else below[0]


class SetOperationTactic(CountingTactic):
    nodes = (SetOperation,)

    def describe(self, operator: Operator) -> str:
        node = _node(operator)
        return f"{node.kind}{' all' if node.all else ''} of {description.columns(operator.schema)}"

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        kernel = NegativeSetOperationKernel if operator.negative else SetOperationKernel
        node = _node(operator)
        return (kernel(node.kind, node.all, operator.schema.held()),)

    def answer_key(self, operator: Operator, below: Sequence[Key | None]) -> Key | None:
        node = _node(operator)
        if node.kind == "except":
            return below[0] if below[0] is not None or node.all else _all(operator)
        keys = [key for key in below if key is not None]
        return min(keys, key=len) if keys else None if node.all else _all(operator)

    def alive(self, operator: Operator, below: Sequence[Alive]) -> Alive:
        return below[0] if _node(operator).kind == "except" else Alive.joined(below)


def _node(operator: Operator) -> SetOperation:
    assert isinstance(operator.node, SetOperation)
    return operator.node


def _all(operator: Operator) -> Key:
    return tuple(range(len(operator.schema)))
