"""Columns that say when a row entered, and operators that may forget: all rows that meet in them enter at one instant.

The rows of TUMBLE, HOP and SESSION enter when their window is over, and stay: whoever knows `window_end` knows when.
An operator that has such a column among its keys sees all rows of a key in one step, so it has nothing to remember; and
its own rows stay, with the same column. Without one it keeps what every operator keeps over rows that never end.
"""

from __future__ import annotations

from dataclasses import replace

from transom.kernels.operator import Operator
from transom.kernels.shared_plan.node import SharedPlan
from transom.kernels.window_table.node import WindowAggregate
from transom.plan.algebra import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Project,
    SetOperation,
    TopN,
    WindowTable,
    WindowTableSpec,
)
from transom.plan.expression import ColumnRef, Expression

Sealed = dict[int, int]
"""By column: how much later than the instant in the column the row enters. Such a row never leaves."""


def sealed_columns(operator: Operator, tick: int) -> Sealed:
    """The columns of an operator that say when a row entered."""
    sealed_by_id: dict[int, Sealed] = {}
    for each in operator.walk():  # what several read is looked at once
        sealed_by_id[id(each)] = _sealed(each, [sealed_by_id[id(child)] for child in each.inputs], tick)
    return sealed_by_id[id(operator)]


def _sealed(operator: Operator, below: list[Sealed], tick: int) -> Sealed:
    node = operator.node
    if isinstance(node, WindowTable):
        return _of_table(node.spec, len(node.input.schema), tick)
    if isinstance(node, WindowAggregate):
        return _read(node.keys, _of_table(node.spec, len(node.input.schema), tick))
    if isinstance(node, Filter | Distinct | SharedPlan):
        return below[0]
    if isinstance(node, Project):
        return _read(node.expressions, below[0])
    if isinstance(node, Aggregate):
        return _read(node.keys, below[0])
    if isinstance(node, TopN):
        return below[0] if any(column in below[0] for column in node.partition) else {}
    if isinstance(node, SetOperation):
        return {column: at for column, at in below[0].items() if below[1].get(column) == at}
    if isinstance(node, Join) and operator.keys is not None and _meet(operator, below):
        width = len(operator.inputs[0].schema)
        return below[0] | {width + column: at for column, at in below[1].items()}
    return {}


def seal(operator: Operator, tick: int) -> Operator:
    """The operator as it is, or as one that remembers nothing because all that meets in it enters at one instant."""
    node = operator.node
    if isinstance(node, SetOperation) and node.kind == "union":
        return operator
    if not isinstance(node, Aggregate | Distinct | SetOperation | Join | TopN) or not sealed_columns(operator, tick):
        return operator
    kept = replace(operator.tactic, keeps="nothing: all rows of a window that meet enter at one instant")
    return replace(operator, tactic=kept, sealed=True, ends_grow=True, open_ends=False)


def _of_table(spec: WindowTableSpec, width: int, tick: int) -> Sealed:
    if spec.slide is None:  # the end of a session says when it is over, its start does not
        return {width + 1: 0, width + 2: 0}
    return {width: spec.size - tick, width + 1: -tick, width + 2: 0}


def _read(expressions: tuple[Expression, ...], below: Sealed) -> Sealed:
    read = ((i, below.get(each.index)) for i, each in enumerate(expressions) if isinstance(each, ColumnRef))
    return {i: at for i, at in read if at is not None}


def _meet(operator: Operator, below: list[Sealed]) -> bool:
    """Whether an equality of the join is between columns that say the same of both sides."""
    assert operator.keys is not None
    for left, right in zip(operator.keys.left, operator.keys.right, strict=True):
        if isinstance(left, ColumnRef) and isinstance(right, ColumnRef):
            at = below[0].get(left.index)
            if at is not None and at == below[1].get(right.index):
                return True
    return False
