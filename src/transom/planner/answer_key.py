"""The key of an answer: columns whose values name a row of it, because no snapshot has two rows that agree on them.

Only what the plan proves counts: a GROUP BY, DISTINCT, one row a partition, a table that is kept by its primary key.
NULL is a value like any other here, as in GROUP BY. An empty key: no snapshot has more than one row.
"""

from __future__ import annotations

from collections.abc import Sequence

from transom.kernels.joinagg.node import JoinAggregate, MergeAggregate
from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.operator import Operator
from transom.plan.algebra import Aggregate, Distinct, Filter, Join, Project, SetOperation, TableScan, Window
from transom.plan.expression import ColumnRef, Expression
from transom.planner.key_path import without_widening

Key = tuple[int, ...]


def answer_key(root: Operator) -> Key | None:
    """The places of the columns of a key; None where there is none that the plan proves."""
    node = root.node
    below = [answer_key(child) for child in root.inputs]
    match node:
        case Filter():
            return below[0]
        case Project():
            return None if below[0] is None else _projected(below[0], node.expressions)
        case Aggregate():
            return tuple(range(len(node.keys)))
        case JoinAggregate() if not node.partial:
            return tuple(range(len(node.keys)))
        case MergeAggregate():
            return tuple(range(node.key_count))
        case Distinct():
            return _all(root) if below[0] is None else below[0]
        case SetOperation(kind="except"):
            return below[0] if below[0] is not None or node.all else _all(root)
        case SetOperation(kind="intersect"):
            known = [key for key in below if key is not None]
            return min(known, key=len) if known else None if node.all else _all(root)
        case Window() if node.spec.rows == 1 and node.spec.slide is None:
            return node.spec.partition or ()
        case TableScan() if root.tactic.name == "upsert_table":
            return _columns(root.needs[0].keys)
        case Join() | MultiwayJoin():
            return _joined(root, below)
        case _:
            return None


def _all(root: Operator) -> Key:
    return tuple(range(len(root.schema)))


def _columns(expressions: Sequence[Expression]) -> Key | None:
    plain = [without_widening(each) for each in expressions]
    columns = tuple(each.index for each in plain if isinstance(each, ColumnRef))
    return columns if len(columns) == len(plain) else None


def _projected(key: Key, expressions: Sequence[Expression]) -> Key | None:
    """Where the columns of a key are behind a projection that keeps all of them."""
    plain = [without_widening(each) for each in expressions]
    places = [next((i for i, e in enumerate(plain) if isinstance(e, ColumnRef) and e.index == at), None) for at in key]
    found = tuple(place for place in places if place is not None)
    return found if len(found) == len(key) else None


def _joined(root: Operator, below: Sequence[Key | None]) -> Key | None:
    """The keys of all inputs side by side; a side that is joined on its whole key adds no row to those of the other."""
    if root.keys is not None and len(below) == 2:
        width = len(root.inputs[0].schema)
        left, right = below
        if left is not None and _names(right, root.keys.right):
            return left
        if right is not None and _names(left, root.keys.left):
            return tuple(width + at for at in right)
    found: list[int] = []
    width = 0
    for key, child in zip(below, root.inputs, strict=True):
        if key is None:
            return None
        found += [width + at for at in key]
        width += len(child.schema)
    return tuple(found)


def _names(key: Key | None, joined_on: Sequence[Expression]) -> bool:
    """Whether equal values of these expressions name a row."""
    plain = [without_widening(each) for each in joined_on]
    columns = {each.index for each in plain if isinstance(each, ColumnRef)}
    return key is not None and columns.issuperset(key)
