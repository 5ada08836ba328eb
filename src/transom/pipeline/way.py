"""The way of an exchange: filters and projections that the rows of a stream pass before they come in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from transom.core.delta import Int64s, StreamDelta
from transom.kernels import scalar
from transom.kernels.spread import spread
from transom.plan.algebra import StreamFilter, StreamProject
from transom.planner.fragments import Exchange
from transom.planner.operator import Operator


def passed(way: Sequence[Operator], values: pa.RecordBatch) -> tuple[pa.RecordBatch, Int64s | None]:
    """The rows as they come in, and the positions of those that do; None: all of them."""
    positions: pa.Array | None = None
    for operator in way:
        node = operator.node
        if isinstance(node, StreamFilter):
            kept = scalar.keep(node.predicate, values)
            if kept is not None:
                values = values.take(kept)
                positions = kept if positions is None else positions.take(kept)
        else:
            assert isinstance(node, StreamProject)
            values = scalar.project(node.expressions, operator.schema.names, values)
    return values, None if positions is None else positions.to_numpy().astype("int64")


def pass_way(way: Sequence[Operator], rows: StreamDelta, count: Callable[[Operator, int, int], None]) -> StreamDelta:
    """The rows of a stream behind the way; `count` is told how many came to every operator, and how many went on."""
    for operator in way:
        values, positions = passed([operator], rows.values)
        count(operator, len(rows), len(values))
        rows = replace(rows, values=values, t=rows.t if positions is None else rows.t[positions])
    return rows


def places(exchange: Exchange, values: pa.RecordBatch, buckets: int) -> tuple[list[Int64s] | None, Int64s | None]:
    """The positions of the rows that each bucket is to get, and of all that come in; None where nothing tells."""
    inner, positions = passed(exchange.way, values)
    if exchange.partitioning.kind != "keys":
        return None, positions
    keys = [scalar.evaluate(key, inner) for key in exchange.partitioning.keys]
    found = spread(keys, len(inner), buckets)
    return (found if positions is None else [positions[part] for part in found]), positions
