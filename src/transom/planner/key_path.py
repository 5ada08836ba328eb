"""The path of a key through a plan: for the rows of an operator to be spread by a key, how must its inputs be?"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pyarrow as pa

from transom.kernels.joinagg.node import JoinAggregate, MergeAggregate
from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.operator import Operator, column
from transom.kernels.shared_join.node import Narrow, SharedJoin
from transom.plan.algebra import (
    Aggregate,
    Filter,
    Join,
    Project,
    SetOperation,
    StreamFilter,
    StreamProject,
    Window,
)
from transom.plan.expression import Cast, ColumnRef, Expression, columns_of, remap, substitute, transform


def same_key(one: Expression, other: Expression) -> bool:
    """Whether two expressions over the same columns spread rows alike, whatever the columns are called."""
    return _plain(one) == _plain(other)


def keys_below(operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
    """Keys over the columns of each input, so that the output is spread by `key`; None when the operator forbids it.

    It does so where it needs rows together that the key would separate, and where the key would be computed for rows
    for which it was never meant to be: the ones that a filter takes away.
    """
    node = operator.node
    plain = _plain(key)
    if any(need.kind == "single" for need in operator.needs):
        return None
    match node:
        case Filter() | StreamFilter():
            return (key,) if isinstance(plain, ColumnRef) else None
        case Project() | StreamProject():
            return (substitute(key, node.expressions),)
        case SetOperation(kind="union"):
            return key, key
        case Join() | SharedJoin():
            return _join_keys(operator, plain)
        case Narrow():
            return (substitute(key, _read(operator, node)),)
        case MultiwayJoin():
            return _multiway_keys(operator, node, plain)
        case Aggregate():
            if isinstance(plain, ColumnRef) and plain.index < len(node.keys):
                return (node.keys[plain.index],)
            return None
        case JoinAggregate():
            return _join_aggregate_keys(operator, node, plain)
        case MergeAggregate():
            return (key,) if isinstance(plain, ColumnRef) and plain.index < node.key_count else None
        case Window() if operator.needs[0].kind == "any":
            return (key,)
        case _:  # windows by partition, DISTINCT, set operations, streams of changes, and changing tables
            needed = any(same_key(plain, need) for need in operator.needs[0].keys)
            return (key,) * len(operator.needs) if needed else None


def _read(operator: Operator, node: Narrow) -> tuple[Expression, ...]:
    """The columns of a shared join that a query reads."""
    (trunk,) = operator.inputs  # one that counts rows is in one place, and has no keys
    assert isinstance(trunk.node, SharedJoin)
    return tuple(column(trunk.schema, trunk.node.places.index(place)) for place in node.read)


def _join_keys(operator: Operator, plain: Expression) -> tuple[Expression, ...] | None:
    """A key of one side is the key of the other side as well."""
    assert operator.keys is not None
    width = len(operator.inputs[0].schema)
    for left, right in zip(operator.keys.left, operator.keys.right, strict=True):
        moved = remap(right, {column: column + width for column in columns_of(right)})
        if same_key(plain, left) or same_key(plain, moved):
            return left, right
    return None


def _multiway_keys(operator: Operator, node: MultiwayJoin, plain: Expression) -> tuple[Expression, ...] | None:
    """A key of one input that all inputs are joined on is the key of all of them."""
    for need in zip(*(need.keys for need in operator.needs), strict=True):
        width = 0
        for key, relation in zip(need, node.relations, strict=True):
            if same_key(plain, remap(key, {column: column + width for column in columns_of(key)})):
                return need
            width += len(relation.schema)
    return None


def _join_aggregate_keys(operator: Operator, node: JoinAggregate, plain: Expression) -> tuple[Expression, ...] | None:
    """A column to group by that is a join key of one input is that of all of them."""
    if not isinstance(plain, ColumnRef) or plain.index >= len(node.keys):
        return None
    n = node.same_keys[plain.index]
    if n is None:
        return None
    return tuple(column(child.schema, at[n]) for child, at in zip(operator.inputs, node.join_keys, strict=True))


@lru_cache(maxsize=4096)
def _plain(key: Expression) -> Expression:
    """Without names, and without casts from an integer to a wider one: they change no value."""
    return transform(transform(key, _without_cast), _without_name)


def without_widening(key: Expression) -> Expression:
    """The key without the casts around it that change no value."""
    while (inner := _without_cast(key)) is not key:
        key = inner
    return key


def _without_cast(part: Expression) -> Expression:
    if not isinstance(part, Cast) or not pa.types.is_integer(part.target) or not pa.types.is_integer(part.operand.type):
        return part
    return part.operand if part.target.bit_width >= part.operand.type.bit_width else part


def _without_name(part: Expression) -> Expression:
    return replace(part, name="") if isinstance(part, ColumnRef) else part
