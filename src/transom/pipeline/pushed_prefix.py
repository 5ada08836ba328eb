"""The pushed-down prefix of an exchange: filters and projections that rows of a stream pass before they come in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from transom.core.delta import Int64s, StreamDelta
from transom.kernels import scalar
from transom.kernels.operator import Operator
from transom.kernels.spread import spread
from transom.plan.algebra import StreamFilter, StreamProject
from transom.plan.expression import Expression
from transom.planner.fragments import Exchange

Count = Callable[[Operator, int, int], None]
"""Is called for every operator on the way with how many rows came to it, and how many went on."""


def passed(
    prefix: Sequence[Operator], values: pa.RecordBatch, count: Count | None = None
) -> tuple[pa.RecordBatch, Int64s | None]:
    """The rows as they come in, and the positions of those that do; None: all of them."""
    positions: pa.Array | None = None
    for operator in prefix:
        node, came = operator.node, len(values)
        if isinstance(node, StreamFilter):
            kept = scalar.keep(node.predicate, values)
            if kept is not None:
                values = values.take(kept)
                positions = kept if positions is None else positions.take(kept)
        else:
            assert isinstance(node, StreamProject)
            values = scalar.project(node.expressions, operator.schema.names, values)
        if count is not None:
            count(operator, came, len(values))
    return values, None if positions is None else positions.to_numpy().astype("int64")


def apply_prefix(prefix: Sequence[Operator], rows: StreamDelta, count: Count | None) -> StreamDelta:
    """The rows of a stream behind the way."""
    if not prefix:
        return rows
    values, positions = passed(prefix, rows.values, count)
    return replace(rows, values=values, t=rows.t if positions is None else rows.t[positions])


def rows_by_partition(
    exchange: Exchange, values: pa.RecordBatch, partitions: int, count: Count | None = None
) -> tuple[list[Int64s] | None, Int64s | None]:
    """The positions of the rows that each partition is to get, and of all that come in; None where nothing tells."""
    inner, positions = passed(exchange.prefix, values, count)
    if exchange.partitioning.kind != "keys":
        return None, positions
    by_partition = spread_by(exchange.partitioning.keys, inner, partitions)
    return (by_partition if positions is None else [positions[part] for part in by_partition]), positions


def spread_by(keys: Sequence[Expression], values: pa.RecordBatch, partitions: int) -> list[Int64s]:
    """The positions of the rows that each partition is to get."""
    return spread([scalar.evaluate(key, values) for key in keys], len(values), partitions)
