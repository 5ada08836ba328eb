"""The words that descriptions of operators share."""

from __future__ import annotations

from collections.abc import Sequence

from transom.core.schema import Schema
from transom.kernels.operator import Operator
from transom.plan.algebra import AggregateCall, StreamScan, TableScan
from transom.plan.expression import Expression


def columns(schema: Schema) -> str:
    return ", ".join(schema.names)


def named(value: object, name: str) -> str:
    """
    >>> named("a + 1", "b"), named("a", "a")
    ('a + 1 AS b', 'a')
    """
    return name if str(value) == name else f"{value} AS {name}"


def calls_by(calls: Sequence[AggregateCall], names: Sequence[str], keys: Sequence[str]) -> str:
    """Calls under the names behind those of the keys, and what they are grouped by."""
    shown = ", ".join(named(call, name) for call, name in zip(calls, names[len(keys) :], strict=True))
    by = ", ".join(keys)
    return " ".join([shown, f"by {by}"] if shown and by else [shown or f"groups by {by}"])


def origin(operator: Operator) -> str | None:
    """The one stream or table that the rows come from, if it is one."""
    names = {o.node.name for o in operator.walk() if isinstance(o.node, StreamScan | TableScan)}
    return names.pop() if len(names) == 1 else None


def of_origin(key: Expression, source: str | None) -> str:
    return str(key) if source is None else f"{source}.{key}"
