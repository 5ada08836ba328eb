"""Aggregates over joins as one node, which the planner alone makes, and the merge of its partial results."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from transom.core.schema import BIGINT, Column, Schema
from transom.plan.algebra import AggregateCall, OfRelation, OfSeveral, Relation
from transom.plan.expression import Expression


@dataclass(frozen=True)
class JoinAggregate(OfSeveral, Relation):
    """An aggregate over a join, as one: the join is never made. Not `partial`: the columns of `Aggregate`.

    Column join_keys[i][n] of relation i equals join_keys[j][n] of relation j, for all of them; the residual must hold
    as well. The keys, the arguments of the calls and the residual are over the columns of all relations side by side;
    keys are plain columns, and so are arguments that read one relation alone. Key n is the join key same_keys[n], or
    none (None). Partial rows are those of some of the join rows, for `MergeAggregate`.
    """

    relations: tuple[Relation, ...]
    join_keys: tuple[tuple[int, ...], ...]
    residual: Expression | None
    keys: tuple[Expression, ...]
    calls: tuple[AggregateCall, ...]
    names: tuple[str, ...]
    same_keys: tuple[int | None, ...]
    partial: bool

    def __post_init__(self) -> None:
        assert len(self.relations) == len(self.join_keys) >= 2
        assert len(self.same_keys) == len(self.keys)
        assert len(self.names) == len(self.keys) + len(self.calls)

    @property
    def schema(self) -> Schema:
        types = [key.type for key in self.keys] + [call.result_type for call in self.calls]
        if self.partial:
            return partial_columns(self.names, tuple(types[: len(self.keys)]), self.calls)
        return Schema(tuple(Column(n, t) for n, t in zip(self.names, types, strict=True)))


@dataclass(frozen=True)
class MergeAggregate(OfRelation, Relation):
    """The aggregate out of partial rows: their first `key_count` columns are the keys."""

    input: Relation
    key_count: int
    calls: tuple[AggregateCall, ...]
    names: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        types = [column.type for column in self.input.schema][: self.key_count]
        types += [call.result_type for call in self.calls]
        return Schema(tuple(Column(n, t) for n, t in zip(self.names, types, strict=True)))


def partial_columns(
    names: tuple[str, ...], key_types: tuple[pa.DataType, ...], calls: tuple[AggregateCall, ...]
) -> Schema:
    """The columns of partial rows: keys, join rows, and per call what can be added up exactly.

    COUNT(*) needs nothing more. COUNT has its count, SUM and AVG the count and the sum: of whole numbers three words,
    of floating ones the digits of the exact sum. MIN and MAX have their value.
    """
    columns = [Column(n, t) for n, t in zip(names, key_types, strict=False)]
    columns.append(Column("rows", BIGINT))
    for name, call in zip(names[len(key_types) :], calls, strict=True):
        if call.argument is None:
            continue
        if call.function in ("min", "max"):
            columns.append(Column(name, call.result_type))
            continue
        columns.append(Column(f"{name} count", BIGINT))
        if call.function == "count":
            continue
        if pa.types.is_floating(call.argument.type):
            columns.append(Column(f"{name} digits", pa.binary()))
        else:
            columns += [Column(f"{name} {word}", BIGINT) for word in ("top", "high", "low")]
    return Schema(tuple(columns))
