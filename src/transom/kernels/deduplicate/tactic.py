"""The tactic of DEDUPLICATE."""

from __future__ import annotations

from transom.core.time import format_duration
from transom.kernels.deduplicate.deduplicate import DeduplicateKernel, DeduplicateState
from transom.kernels.kernel import Kernel
from transom.kernels.operator import SINGLE, Operator, Partitioning, Site, Tactic, column
from transom.plan.algebra import Deduplicate


class DeduplicateTactic(Tactic):
    name = "deduplicate"
    nodes = (Deduplicate,)
    states = (DeduplicateState,)
    cheap = True

    def describe(self, operator: Operator) -> str:
        node = _node(operator)
        keys = ", ".join(operator.schema[i].name for i in node.partition)
        return f"PARTITION BY {keys}, {format_duration(node.length)}"

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        node = _node(operator)
        return (DeduplicateKernel(node.partition, node.length),)

    def counts_rows(self, operator: Operator) -> bool:
        return True


def deduplicate_operator(node: Deduplicate, below: Operator, in_order: bool) -> Operator:
    """`in_order`: rows of one instant are wanted in arrival order, which several partitions together do not know."""
    keys = Partitioning("keys", tuple(column(node.schema, i) for i in node.partition))
    kept = f"the keys of the rows that passed within {format_duration(node.length)}"
    tactic = DeduplicateTactic(kept, "a hash look-up a row")
    return Operator(node, tactic, (below,), None, (SINGLE if in_order else keys,))


def _node(operator: Operator) -> Deduplicate:
    assert isinstance(operator.node, Deduplicate)
    return operator.node
