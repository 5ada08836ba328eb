"""What an operator does, in a line for people."""

from __future__ import annotations

from collections.abc import Sequence

from transom.core.schema import Schema
from transom.core.time import format_instant
from transom.kernels.joinagg.node import JoinAggregate, MergeAggregate
from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.operator import Operator, column
from transom.kernels.shared_join.node import CountedWindow, Narrow, SharedJoin
from transom.kernels.slide_join.node import SlideJoin, SlideMarks
from transom.plan.algebra import (
    Aggregate,
    AggregateCall,
    Distinct,
    Filter,
    Join,
    Project,
    SetOperation,
    StreamFilter,
    StreamProject,
    StreamScan,
    TableScan,
    ToStream,
    Window,
)
from transom.plan.expression import Expression
from transom.planner.slide_join import windows


def describe(operator: Operator) -> str:
    node = operator.node
    match node:
        case StreamScan():
            return f"stream {node.name}"
        case TableScan():
            return f"table {node.name}"
        case Filter() | StreamFilter():
            return str(node.predicate)
        case Project() | StreamProject():
            return ", ".join(_named(e, name) for e, name in zip(node.expressions, node.names, strict=True))
        case Window():
            return _window(node)
        case Join() | SharedJoin():
            return _join(operator)
        case Narrow():
            return _narrow(operator, node)
        case CountedWindow():
            return "rows and their numbers, as long as a query holds them"
        case MultiwayJoin():
            return _multiway(operator, node)
        case Aggregate():
            return _calls(node.calls, node.names, [str(key) for key in node.keys])
        case JoinAggregate():
            return _join_aggregate(operator, node)
        case MergeAggregate():
            return _calls(node.calls, node.names, node.names[: node.key_count])
        case SlideJoin():
            return _slide_join(operator, node)
        case SlideMarks():
            return f"a marker a slide, {_columns(node.schema)}"
        case ToStream() | Distinct():
            return _columns(node.schema)
        case SetOperation():
            return f"{node.kind}{' all' if node.all else ''} of {_columns(node.schema)}"
        case _:
            return operator.kind


def _calls(calls: Sequence[AggregateCall], names: Sequence[str], keys: Sequence[str]) -> str:
    told = ", ".join(_named(call, name) for call, name in zip(calls, names[len(keys) :], strict=True))
    by = ", ".join(keys)
    return " ".join([told, f"by {by}"] if told and by else [told or f"groups by {by}"])


def _join_aggregate(operator: Operator, node: JoinAggregate) -> str:
    """The calls, and what they are over: `partial` where other buckets have more of the same group."""
    calls = _calls(node.calls, node.names, [str(key) for key in node.keys])
    sides = []
    for child, columns in zip(operator.inputs, node.join_keys, strict=True):
        origin = _origin(child)
        sides.append([_of(column(child.schema, at), origin) for at in columns])
    parts = [" = ".join(equal) for equal in zip(*sides, strict=True)]
    if node.residual is not None:
        parts.append(str(node.residual))
    return f"{'partial ' * node.partial}{calls} over {' AND '.join(parts) or 'all combinations'}"


def _named(value: object, name: str) -> str:
    """
    >>> _named("a + 1", "b"), _named("a", "a")
    ('a + 1 AS b', 'a')
    """
    return name if str(value) == name else f"{value} AS {name}"


def _columns(schema: Schema) -> str:
    return ", ".join(schema.names)


def _window(node: Window) -> str:
    """As it is written; positions of PARTITION BY are told by name."""
    text = str(node.spec)
    for i in sorted(node.spec.partition or (), reverse=True):
        text = text.replace(f"#{i}", node.schema[i].name)
    return text


def _join(operator: Operator) -> str:
    keys = operator.keys
    assert keys is not None
    left, right = (_origin(side) for side in operator.inputs)
    parts = [f"{_of(a, left)} = {_of(b, right)}" for a, b in zip(keys.left, keys.right, strict=True)]
    if keys.residual is not None:
        parts.append(str(keys.residual))
    return " AND ".join(parts) or "all pairs"


def _narrow(operator: Operator, node: Narrow) -> str:
    sides = zip(operator.inputs[0].inputs, node.windows, strict=True)
    told = ", ".join(f"{_origin(child)} {spec}" for child, spec in sides)
    return told if node.begin is None else f"{told} since {format_instant(node.begin)}"


def _multiway(operator: Operator, node: MultiwayJoin) -> str:
    origins = [_origin(child) for child in operator.inputs]
    parts = []
    for members in zip(*node.keys, strict=True):
        equal = [_of(key, origin) for key, origin in zip(members, origins, strict=True) if key is not None]
        parts.append(" = ".join(equal))
    parts += [str(part) for part in node.residual]
    if node.last is not None:
        parts.append(str(node.last))
    return " AND ".join(parts) or "all combinations"


def _slide_join(operator: Operator, node: SlideJoin) -> str:
    """What is joined, over which windows."""
    origins = [_origin(child) for child in operator.inputs]
    keys = zip(*(source.keys for source in node.sources), strict=True)
    parts = [" = ".join(_of(key, origin) for key, origin in zip(same, origins, strict=True)) for same in keys]
    if node.residual is not None:
        parts.append(str(node.residual))
    return f"{' AND '.join(parts)} over {windows(node)}"


def _of(key: Expression, origin: str | None) -> str:
    return str(key) if origin is None else f"{origin}.{key}"


def _origin(operator: Operator) -> str | None:
    """The one stream or table that the rows come from, if it is one."""
    names = {o.node.name for o in operator.walk() if isinstance(o.node, StreamScan | TableScan)}
    return names.pop() if len(names) == 1 else None
