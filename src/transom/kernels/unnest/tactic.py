"""The tactic of UNNEST."""

from __future__ import annotations

from transom.kernels.kernel import Kernel
from transom.kernels.operator import Operator, Site, Tactic
from transom.kernels.unnest.unnest import UnnestKernel
from transom.plan.algebra import Unnest
from transom.plan.expression import Expression, columns_of


class UnnestTactic(Tactic):
    name = "unnest"
    nodes = (Unnest,)
    cheap = True

    def describe(self, operator: Operator) -> str:
        node = _node(operator)
        return f"{node.array} as {', '.join(node.names)}{', or NULL' * node.outer}"

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        node = _node(operator)
        return (UnnestKernel(node.array, operator.schema.held(), node.outer, len(node.names) > 1),)

    def keys_below(self, operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
        """What is known before there are elements."""
        return (key,) if max(columns_of(key), default=-1) < len(operator.inputs[0].schema) else None

    def lasts(self, operator: Operator, below: bool) -> bool:
        return below


def _node(operator: Operator) -> Unnest:
    assert isinstance(operator.node, Unnest)
    return operator.node
