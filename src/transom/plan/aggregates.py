"""The closed list of aggregates: how each is typed, and which calls of the few that are computed it is made of.

`resolve_aggregate` is the only door. FILTER becomes an argument that is NULL where the condition does not hold, since
aggregates leave NULL out; so whatever computes a call need not know of it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from typing import Literal as OneOf

import pyarrow as pa

from transom.core.errors import QueryError
from transom.core.schema import BIGINT, BOOLEAN, DOUBLE, HUGEINT, INTEGER
from transom.plan.algebra import AggregateCall, AggregateName
from transom.plan.expression import Call, Case, Expression, Literal
from transom.plan.scalar_operators import truth
from transom.plan.typing_rules import is_decimal, is_float, is_number, settle, type_name

Refer = Callable[[AggregateCall], Expression]
"""The value of a call, in the expression around it."""


@dataclass(frozen=True)
class WrittenAggregate:
    """What stands in the text: no arguments at all for `*`."""

    arguments: tuple[Expression, ...]
    distinct: bool = False
    condition: Expression | None = None

    def argument(self, value: Expression | None = None) -> Expression:
        """The first argument (or another value), where the condition of FILTER holds."""
        value = settle(self.arguments[0] if value is None else value)
        return value if self.condition is None else Case((self.condition,), (value,), Literal(None, value.type))


Rule = Callable[["AggregateFunction", WrittenAggregate, Refer], Expression]


@dataclass(frozen=True)
class AggregateFunction:
    """`usage` and `gives` are for the documentation."""

    name: str
    usage: str
    gives: str
    rule: Rule
    aliases: tuple[str, ...] = ()
    arguments: int = 1


def _computed(name: AggregateName) -> Rule:
    """A call that is computed as it is written."""

    def rule(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
        return refer(_call(name, written.argument(), written.distinct))

    return rule


def _call(name: AggregateName, argument: Expression, distinct: bool = False) -> AggregateCall:
    return AggregateCall(name, argument, _type(name, argument.type), distinct)


def _type(name: AggregateName, type_: pa.DataType) -> pa.DataType:
    if name == "count":
        return BIGINT
    if name in ("min", "max"):
        return type_
    if not is_number(type_):
        raise QueryError(f"{name} takes numbers, not {type_name(type_)}", remedy=f"write {name}(CAST(value AS DOUBLE))")
    if name in ("avg", "var_pop", "var_samp") or is_float(type_):
        return DOUBLE
    return pa.decimal128(38, type_.scale) if is_decimal(type_) else HUGEINT


def _count(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
    if written.arguments:
        return refer(_call("count", written.argument(), written.distinct))
    if written.condition is None:
        return refer(AggregateCall("count", None, BIGINT))
    return refer(_call("count", written.argument(Literal(1, INTEGER))))


def _count_if(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
    met = Case((truth(written.arguments[0]),), (Literal(True, BOOLEAN),), Literal(None, BOOLEAN))
    return refer(_call("count", written.argument(met), written.distinct))


def _of_truth(name: OneOf["min", "max"]) -> Rule:
    """BOOL_AND is the least of truth values, FALSE before TRUE; BOOL_OR the greatest."""

    def rule(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
        return refer(_call(name, written.argument(truth(written.arguments[0]))))

    return rule


def _count_distinct(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
    return refer(_call("count", written.argument(), True))


def _deviation(name: OneOf["var_pop", "var_samp"]) -> Rule:
    def rule(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
        return Call("sqrt", (refer(_call(name, written.argument(), written.distinct)),), DOUBLE)

    return rule


AGGREGATE_FUNCTIONS: Final[tuple[AggregateFunction, ...]] = (
    AggregateFunction("count", "COUNT(*), COUNT(a)", "rows; rows in which `a` is not NULL. Over nothing 0", _count),
    AggregateFunction("count_if", "COUNT_IF(condition)", "rows for which the condition is true. Over nothing 0",
                      _count_if, ("countif",)),
    AggregateFunction("sum", "SUM(a)", "total: exact and without overflow for whole numbers, correctly rounded for "
                      "floating ones", _computed("sum")),
    AggregateFunction("avg", "AVG(a)", "that total divided by the count, a DOUBLE", _computed("avg"), ("mean",)),
    AggregateFunction("min", "MIN(a)", "least value of any type", _computed("min")),
    AggregateFunction("max", "MAX(a)", "greatest value of any type; NaN is the greatest number", _computed("max")),
    AggregateFunction("bool_and", "BOOL_AND(condition)", "whether it is true of all", _of_truth("min"),
                      ("logical_and", "every")),
    AggregateFunction("bool_or", "BOOL_OR(condition)", "whether it is true of one", _of_truth("max"), ("logical_or",)),
    AggregateFunction("any_value", "ANY_VALUE(a)", "any value that is not NULL: the least, so that it does not depend "
                      "on arrival", _computed("min"), ("arbitrary",)),
    AggregateFunction("approx_count_distinct", "APPROX_COUNT_DISTINCT(a)", "COUNT(DISTINCT a), exactly: a sketch "
                      "cannot forget what has left", _count_distinct),
    AggregateFunction("var_samp", "VAR_SAMP(a)", "variance of a sample (divided by n - 1), a DOUBLE; of one value "
                      "NULL. From the exact sums, rounded once", _computed("var_samp"), ("variance",)),
    AggregateFunction("var_pop", "VAR_POP(a)", "variance of all (divided by n), the same way", _computed("var_pop")),
    AggregateFunction("stddev_samp", "STDDEV_SAMP(a)", "square root of VAR_SAMP", _deviation("var_samp"), ("stddev",)),
    AggregateFunction("stddev_pop", "STDDEV_POP(a)", "square root of VAR_POP", _deviation("var_pop")),
)  # fmt: skip

_BY_NAME: Final = {name: each for each in AGGREGATE_FUNCTIONS for name in (each.name, *each.aliases)}
AGGREGATES: Final = tuple(_BY_NAME)


def resolve_aggregate(function: str, written: WrittenAggregate, refer: Refer) -> Expression:
    """The value of an aggregate, made of calls; raises QueryError when it does not fit."""
    found = _BY_NAME.get(function.lower())
    if found is None:
        close = difflib.get_close_matches(function.lower(), _BY_NAME, n=2, cutoff=0.3) or ["count", "sum", "avg"]
        raise QueryError(f"there is no aggregate '{function}'", remedy=f"did you mean {' or '.join(close)}?")
    if not written.arguments and (found.name != "count" or written.distinct):
        raise QueryError(f"{found.name}(*) has no meaning", remedy=f"write {found.name}(column)")
    if written.arguments and len(written.arguments) != found.arguments:
        count = "one argument" if found.arguments == 1 else f"{found.arguments} arguments"
        raise QueryError(f"{found.name.upper()} takes {count}", remedy=f"write {found.usage.split(', COUNT')[-1]}")
    return found.rule(found, written, refer)


def aggregate_call(function: str, argument: Expression | None, distinct: bool = False) -> AggregateCall:
    """The one call of an aggregate that is computed as it is written; no argument is COUNT(*).

    >>> from transom.plan.expression import ColumnRef
    >>> aggregate_call("sum", ColumnRef(0, BIGINT, "a")).result_type
    Decimal128Type(decimal128(38, 0))
    """
    calls: list[AggregateCall] = []

    def refer(call: AggregateCall) -> Expression:
        calls.append(call)
        return Literal(None, call.result_type)

    resolve_aggregate(function, WrittenAggregate(() if argument is None else (argument,), distinct), refer)
    (call,) = calls
    return call
