"""Rows that never end: an aggregate over them needs their totals, and not them."""

from __future__ import annotations

import pyarrow as pa

from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.operator import Operator
from transom.plan.algebra import Aggregate, Filter, Join, Project, SetOperation, TableScan, Window


def runs_on(node: Aggregate, below: Operator) -> bool:
    """Whether an aggregate can do without the rows that it has taken. Texts that are compared are kept with theirs."""
    texts = any(
        call.function in ("min", "max") and call.argument is not None and pa.types.is_string(call.argument.type)
        for call in node.calls
    )
    return not texts and lasting(below)


def counts_once(node: Aggregate) -> bool:
    """Whether a call has to know which values it has counted; of MIN and MAX, DISTINCT changes nothing."""
    return any(call.distinct and call.function not in ("min", "max") for call in node.calls)


def lasting(operator: Operator) -> bool:
    """Whether no row of a relation that has come ever leaves it."""
    known: dict[int, bool] = {}
    for each in operator.walk():
        known[id(each)] = _lasts(each, all(known[id(child)] for child in each.inputs))
    return known[id(operator)]


def _lasts(operator: Operator, below: bool) -> bool:
    node = operator.node
    if isinstance(node, Window):
        return node.spec.unbounded
    if isinstance(node, TableScan):
        return operator.tactic.name == "static_table"
    if isinstance(node, SetOperation):
        return node.kind == "union" and node.all and below
    return isinstance(node, Filter | Project | Join | MultiwayJoin) and below
