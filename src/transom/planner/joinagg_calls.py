"""The calls of an aggregate over a join, made of calls that need no join: counts, sums and extremes.

An argument that can fail is computed below the join for rows that may match nothing, and must not fail for those. It
is NULL there where it fails, and the rows for which it does are counted: the query fails at the instant at which one
of them is in the join. A variance of whole numbers is that of their count, their sum and the sum of their squares, all
of which are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from transom.core.schema import BIGINT, BOOLEAN, DOUBLE, HUGEINT
from transom.kernels.joinagg.shape import Shape, may_fail
from transom.plan.algebra import Aggregate, AggregateCall
from transom.plan.expression import Call, Cast, ColumnRef, Expression, Literal

VARIANCES: Final = ("var_pop", "var_samp")


def squares_fit(call: AggregateCall) -> bool:
    """Whether the squares of the argument, and sums of as many as there may be, are exact numbers of 38 digits."""
    type_ = call.argument.type if call.argument is not None else None
    return type_ is not None and pa.types.is_integer(type_) and type_.bit_width <= 32


@dataclass(frozen=True)
class DerivedCalls:
    """`shape` has the calls that are computed; `values` are the columns of the aggregate over keys and those calls."""

    shape: Shape
    names: tuple[str, ...]
    values: tuple[Expression, ...]

    @property
    def changed(self) -> bool:
        return any(not isinstance(value, ColumnRef) for value in self.values)


def derived(shape: Shape, node: Aggregate) -> DerivedCalls:
    """The calls as those are that tactics compute."""
    calls: list[AggregateCall] = []
    names: list[str] = []

    def value_of(call: AggregateCall, name: str) -> Expression:
        """The column of a call; one that is there already is not computed twice."""
        if call not in calls:
            calls.append(call)
            names.append(name)
        at = calls.index(call)
        return ColumnRef(len(shape.keys) + at, call.result_type, names[at])

    keys = node.names[: len(shape.keys)]
    values: list[Expression] = [ColumnRef(i, e.type, keys[i]) for i, e in enumerate(shape.keys)]
    for call, name in zip(shape.calls, node.names[len(keys) :], strict=True):
        argument = call.argument
        failures: tuple[Expression, ...] = ()
        if argument is not None and shape.own(argument) is not None and may_fail(argument):
            failed = Call("fails", (argument,), BOOLEAN)
            text = Literal(str(argument), pa.string())
            failures = (value_of(AggregateCall("count", failed, BIGINT), f"{name} failed"), text)
            argument = Call("attempt", (argument,), argument.type)
        if call.function in VARIANCES:
            assert argument is not None
            value = _variance(call, argument, name, value_of)
        else:
            value = value_of(replace(call, argument=argument), name)
        values.append(Call("unless_failed", (value, *failures), value.type) if failures else value)
    return DerivedCalls(replace(shape, calls=tuple(calls)), (*keys, *names), tuple(values))


def _variance(
    call: AggregateCall, argument: Expression, name: str, value_of: Callable[[AggregateCall, str], Expression]
) -> Expression:
    wide = Cast(argument, BIGINT)
    square = Call("*", (wide, wide), BIGINT)  # of 32 bits it never fails
    parts = (
        value_of(AggregateCall("count", argument, BIGINT), f"{name} count"),
        value_of(AggregateCall("sum", argument, HUGEINT), f"{name} sum"),
        value_of(AggregateCall("sum", square, HUGEINT), f"{name} squares"),
    )
    return Call(f"{call.function}_of_sums", parts, DOUBLE)
