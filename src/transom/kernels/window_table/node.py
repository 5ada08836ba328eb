"""An aggregate of the rows of each window as one node, which the planner alone makes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from transom.core.schema import Column, Schema
from transom.plan.algebra import AggregateCall, OfStream, Relation, Stream, WindowTableSpec
from transom.plan.expression import Expression


@dataclass(frozen=True)
class WindowAggregate(OfStream, Relation):
    """GROUP BY over a window table, one of the keys being a bound of the window. Columns are those of `Aggregate`.

    Keys and arguments are over the columns of the stream and, behind them, those of the window.
    """

    input: Stream
    spec: WindowTableSpec
    keys: tuple[Expression, ...]
    calls: tuple[AggregateCall, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        assert self.spec.slide is not None
        assert len(self.names) == len(self.keys) + len(self.calls)

    @cached_property
    def schema(self) -> Schema:
        types = [key.type for key in self.keys] + [call.result_type for call in self.calls]
        return Schema(tuple(Column(n, t) for n, t in zip(self.names, types, strict=True)))
