"""Tactics of rows by their place in an order: over rows that leave, and over rows that stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from transom.kernels.kernel import Kernel
from transom.kernels.negative.top_n import NegativeTopNKernel
from transom.kernels.operator import Alive, Key, Operator, Site, Tactic
from transom.kernels.top_n.row_order import RowOrder
from transom.kernels.top_n.top_n import Places, TopNKernel, TopNState
from transom.plan.algebra import TopN


class TopNTactic(Tactic):
    nodes = (TopN,)
    title = "top "
    states = (TopNState,)
    cheap = True

    lasting = False

    def describe(self, operator: Operator) -> str:
        node = _node(operator)
        names = node.input.schema.names
        order = [
            names[key.column] + (" DESC" if key.descending else "") + (" NULLS FIRST" if key.nulls_first else "")
            for key in node.order
        ]
        over = [f"by {', '.join(order)}" if order else "in the order of their columns"]
        if node.partition:
            over.append(f"within {', '.join(names[i] for i in node.partition)}")
        shown = "" if node.number is None else f", with {node.number}"
        return f"{node.function} {_bounds(node)} {' '.join(over)}{shown}"

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        node = _node(operator)
        order = RowOrder(node.partition, node.order)
        places = Places(node.function, node.least, node.most, node.number is not None, self.lasting)
        if operator.negative:
            return (NegativeTopNKernel(order, places, operator.schema.held()),)
        return (TopNKernel(order, places, operator.schema.held()),)

    def answer_key(self, operator: Operator, below: Sequence[Key | None]) -> Key | None:
        """One row a partition, or what names a row of the input; else its number within the partition does."""
        node = _node(operator)
        rows = node.function == "row_number"
        if rows and node.least == node.most:
            return node.partition
        if below[0] is not None or not rows or node.number is None:
            return below[0]
        return (*node.partition, len(node.input.schema))

    def alive(self, operator: Operator, below: Sequence[Alive]) -> Alive:
        """So many rows a partition, whatever comes; rows that share a rank may be more and more."""
        node = _node(operator)
        bounded = node.most is not None and node.function == "row_number" and not node.partition
        return Alive() if bounded else super().alive(operator, below)


class OrderedTactic(TopNTactic):
    """Over rows that leave: whoever is alive may take a place one day."""

    name = "ordered"

    @classmethod
    def chosen(cls, node: TopN) -> OrderedTactic:
        behind = ", and the rows behind it that have a place" if node.number is not None else ""
        return cls("each row alive, in its order", f"O(log rows alive) a row{behind}")

    def with_negative_tuples(self, operator: Operator) -> Tactic:
        return replace(self, keeps="each distinct row alive, in its order")


class BestTactic(TopNTactic):
    """Over rows that never leave: who has no place never takes one."""

    name = "best"
    lasting = True

    @staticmethod
    def runs(node: TopN, lasting: bool) -> bool:
        return lasting and node.most is not None

    @classmethod
    def chosen(cls, node: TopN) -> BestTactic:
        behind = ", and the rows behind it that have a place" if node.number is not None else ""
        each = " of each partition" if node.partition else ""
        assert node.most is not None
        if node.function == "row_number":
            kept = f"the first {node.most:,} rows{each}"
        else:
            kept = f"the rows{each} with a {node.function.replace('_', ' ')} up to {node.most:,}"
        return cls(kept, f"O(log rows kept) a row{behind}")

    def grows_by(self, operator: Operator) -> str | None:
        node = _node(operator)
        return "partitions" if node.partition else None if node.function == "row_number" else "ties"


def _bounds(node: TopN) -> str:
    """
    >>> from transom.core.schema import Schema
    >>> from transom.plan.algebra import TableScan
    >>> table = TableScan("t", Schema(()))
    >>> [_bounds(TopN(table, (), (), least=a, most=b)) for a, b in [(1, 3), (2, None), (1, None), (4, 4), (2, 3)]]
    ['<= 3', '>= 2', 'of all', '= 4', 'from 2 to 3']
    """
    if node.most is None:
        return "of all" if node.least == 1 else f">= {node.least:,}"
    if node.least == node.most:
        return f"= {node.most:,}"
    return f"<= {node.most:,}" if node.least == 1 else f"from {node.least:,} to {node.most:,}"


def _node(operator: Operator) -> TopN:
    assert isinstance(operator.node, TopN)
    return operator.node
