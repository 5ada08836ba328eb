"""The closed list of aggregates: how each is typed, and which calls of the few that are computed it is made of.

`resolve_aggregate` is the only way in. FILTER becomes an argument that is NULL where the condition does not hold, since
aggregates leave NULL out; so whatever computes a call need not know of it.
"""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final
from typing import Literal as OneOf

import pyarrow as pa

from transom.core.errors import QueryError
from transom.core.schema import BIGINT, BOOLEAN, DOUBLE, DURATION, HUGEINT, INTEGER, VARCHAR
from transom.plan.algebra import AggregateCall, AggregateName, OrderedBy
from transom.plan.expression import Call, Case, Cast, Expression, Literal
from transom.plan.nested_functions import part_type
from transom.plan.scalar_operators import truth
from transom.plan.typing_rules import NULL, cast, coerce, is_decimal, is_float, is_integer, is_number, settle, type_name

Refer = Callable[[AggregateCall], Expression]
"""The value of a call, in the expression around it."""


@dataclass(frozen=True)
class WrittenAggregate:
    """What stands in the text: no arguments at all for `*`."""

    arguments: tuple[Expression, ...]
    distinct: bool = False
    condition: Expression | None = None
    order: tuple[OrderedBy, ...] = ()

    def argument(self, value: Expression | None = None) -> Expression:
        """The first argument (or another value), where the condition of FILTER holds."""
        value = settle(self.arguments[0] if value is None else value)
        return value if self.condition is None else Case((self.condition,), (value,), Literal(None, value.type))


_FINEST: Final = 10**9
_DIGITS_OF_A_DOUBLE: Final = 15
_EXACT: Final[dict[str, Callable[..., Fraction]]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}

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
    optional: int = 0


def _computed(name: AggregateName) -> Rule:
    """A call that is computed as it is written."""

    def rule(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
        return refer(_call(name, written.argument(), written.distinct))

    return rule


def _sum(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
    """Of intervals that of their microseconds."""
    value = written.argument()
    if value.type != DURATION:
        return refer(_call("sum", value, written.distinct))
    total = refer(_call("sum", Cast(value, BIGINT), written.distinct))
    return Cast(Cast(total, BIGINT), DURATION)


def _call(name: AggregateName, argument: Expression, distinct: bool = False) -> AggregateCall:
    return AggregateCall(name, argument, _type(name, argument.type), distinct)


def _type(name: AggregateName, type_: pa.DataType) -> pa.DataType:
    if name == "count":
        return BIGINT
    if name in ("min", "max"):
        return type_
    if not is_number(type_):
        number = "epoch(value)" if type_ == DURATION else "CAST(value AS DOUBLE)"
        raise QueryError(f"{name} takes numbers, not {type_name(type_)}", remedy=f"write {name}({number})")
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


def _first(last: bool) -> Rule:
    """FIRST, and LAST, which is the first from the other end."""

    def rule(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
        name = function.name.upper()
        if not written.order:
            remedy = f"write {name}(a ORDER BY ts): what comes first must not depend on how rows arrive"
            raise QueryError(f"{name} has no order", remedy=remedy)
        value = settle(written.arguments[0])
        order = (*written.order, OrderedBy(value))
        if last:
            order = tuple(OrderedBy(e.expression, not e.descending, not e.nulls_first) for e in order)
        return refer(AggregateCall("first", value, value.type, order=order, condition=written.condition))

    return rule


def _at_extreme(greatest: bool) -> Rule:
    """ARG_MIN and ARG_MAX leave rows out in which either value is NULL."""

    def rule(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
        value, by = map(settle, written.arguments)
        not_null = tuple(Call("not", (Call("is_null", (each,), BOOLEAN),), BOOLEAN) for each in (value, by))
        met = not_null if written.condition is None else (written.condition, *not_null)
        order = (OrderedBy(by, greatest), OrderedBy(value))
        return refer(AggregateCall("first", value, value.type, order=order, condition=Call("and", met, BOOLEAN)))

    return rule


def _quantile(name: OneOf["quantile_cont", "quantile_disc"], within: bool = False) -> Rule:
    """A value and a fraction; `within`: the fraction alone, the value is what WITHIN GROUP orders by."""

    def rule(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
        if within:
            _one_ordered(function, written)
            value = written.order[0].expression
            if _is_unknown(written.arguments[0]):
                nothing = Literal(None, DOUBLE if name == "quantile_cont" else settle(value).type)
                return refer(_call("max", nothing))
            fraction = _fraction(function, written.arguments[0])
        else:
            value, many = written.arguments[:2]
            if isinstance(many, Call) and many.function == "list_value" and many.arguments:
                fractions = [_fraction(function, each) for each in many.arguments]
                return _all_or_null([_valued(name, written, value, each, refer) for each in fractions])
            fraction = _fraction(function, many)
        return _valued(name, written, value, fraction, refer)

    return rule


def _all_or_null(values: list[Expression]) -> Expression:
    """The array of several quantiles; as of one, over nothing it is NULL."""
    type_ = part_type(values[0].type)
    values_array = Call("list_value", tuple(cast(value, type_) for value in values), pa.list_(type_))
    return Case((Call("is_null", (values[0],), BOOLEAN),), (Literal(None, values_array.type),), values_array)


def _one_ordered(function: AggregateFunction, written: WrittenAggregate) -> None:
    """WITHIN GROUP has one value, in ascending order."""
    if not written.order:
        what = f"{function.name.upper()} needs its value in WITHIN GROUP (ORDER BY ..)"
        raise QueryError(what, remedy=f"write {function.usage}, or QUANTILE_CONT(a, 0.95)")
    if len(written.order) != 1 or written.order[0].descending:
        raise QueryError(f"{function.name.upper()} takes one value, in ascending order", remedy=function.usage)


def _approx_percentile(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
    """The second argument is how far it may be off: here it never is."""
    _one_ordered(function, written)
    value = written.order[0].expression
    if not is_number(value.type) and value.type != NULL:
        remedy = "write PERCENTILE_DISC(0.95) WITHIN GROUP (ORDER BY value)"
        raise QueryError(f"{function.name.upper()} takes numbers, not {type_name(value.type)}", remedy=remedy)
    fraction = _fraction(function, written.arguments[0])
    return refer(_at_fraction("quantile_disc", written, coerce(value, DOUBLE), fraction))


def _median(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
    return _valued("quantile_cont", written, written.arguments[0], Fraction(1, 2), refer)


def _valued(
    name: OneOf["quantile_cont", "quantile_disc"],
    written: WrittenAggregate,
    value: Expression,
    fraction: Fraction,
    refer: Refer,
) -> Expression:
    """A quantile in its type: what lies between two DECIMALs is one of theirs, cut to their places as DuckDB has it.

    Only where a DOUBLE holds all their digits, as it is computed with those.
    """
    type_ = value.type
    if name == "quantile_disc" or not is_decimal(type_) or type_.precision > _DIGITS_OF_A_DOUBLE:
        return refer(_at_fraction(name, written, value, fraction))
    unit = Literal(10.0**type_.scale, DOUBLE)
    whole = Call("round", (Call("*", (coerce(value, DOUBLE), unit), DOUBLE), Literal(0, INTEGER)), DOUBLE)
    value_at = Call("trunc", (refer(_at_fraction(name, written, whole, fraction)),), DOUBLE)
    return Cast(Call("/", (value_at, unit), DOUBLE), type_)


def _at_fraction(
    name: OneOf["quantile_cont", "quantile_disc"], written: WrittenAggregate, value: Expression, fraction: Fraction
) -> AggregateCall:
    if name == "quantile_cont":
        if not is_number(value.type) and value.type != NULL:
            remedy = f"write QUANTILE_DISC(value, {float(fraction)}), which is one of the values"
            raise QueryError(f"there is nothing between values of type {type_name(value.type)}", remedy=remedy)
        value = coerce(value, DOUBLE)
    value = written.argument(value)
    return AggregateCall(name, value, value.type, written.distinct, fraction=fraction)


def _string_agg(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
    separator = written.arguments[1] if len(written.arguments) > 1 else Literal(",", VARCHAR)
    if not isinstance(separator, Literal) or not isinstance(separator.value, str):
        raise QueryError("what stands between the texts is a constant text", remedy=f"write {function.usage}")
    value = cast(settle(written.arguments[0]), VARCHAR)
    by = written.order
    if written.distinct and any(each.expression not in (value, settle(written.arguments[0])) for each in by):
        remedy = "order by the value itself, or leave DISTINCT out"
        raise QueryError("DISTINCT texts can be ordered by nothing but themselves", remedy=remedy)
    if written.distinct:  # a number and its text are not ordered alike, and equal texts are one
        by = tuple(OrderedBy(value, each.descending) for each in by[:1])
    not_null = Call("not", (Call("is_null", (value,), BOOLEAN),), BOOLEAN)
    met = not_null if written.condition is None else Call("and", (written.condition, not_null), BOOLEAN)
    order = by if written.distinct and by else (*by, OrderedBy(value))
    call = AggregateCall("string_agg", value, VARCHAR, written.distinct, order, met, separator=separator.value)
    return refer(call)


def _array_agg(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
    value = settle(written.arguments[0])
    by = written.order
    if written.distinct and any(each.expression != value for each in by):
        remedy = "order by the value itself, or leave DISTINCT out"
        raise QueryError("DISTINCT values can be ordered by nothing but themselves", remedy=remedy)
    order = by[:1] if written.distinct and by else (*by, OrderedBy(value))
    value = cast(value, part_type(value.type))
    type_ = pa.list_(value.type)
    return refer(AggregateCall("array_agg", value, type_, written.distinct, order, written.condition))


def _is_unknown(value: Expression) -> bool:
    """Whether it is NULL in whatever is computed with it."""
    if isinstance(value, Call) and value.function in _EXACT:
        return any(map(_is_unknown, value.arguments))
    return isinstance(value, Literal) and value.value is None


def _collected(once: bool) -> Rule:
    """COLLECT_LIST and COLLECT_SET of Spark: without NULLs, and over nothing an empty array."""

    def rule(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
        value = settle(written.arguments[0])
        element = cast(value, part_type(value.type))
        not_null = Call("not", (Call("is_null", (value,), BOOLEAN),), BOOLEAN)
        met = not_null if written.condition is None else Call("and", (written.condition, not_null), BOOLEAN)
        type_, once_each = pa.list_(element.type), once or written.distinct
        listed = refer(AggregateCall("array_agg", element, type_, once_each, (OrderedBy(element),), met))
        return Call("coalesce", (listed, Call("list_value", (), type_)), type_)

    return rule


def _fraction(function: AggregateFunction, value: Expression) -> Fraction:
    """A constant from 0 to 1, exactly as it is written."""
    fraction = constant_number(value)
    if fraction is not None and 0 <= fraction <= 1 and fraction.denominator <= _FINEST:
        return fraction
    remedy = f"write {function.usage} with a constant such as 0.95, of 9 digits at most"
    raise QueryError("a quantile is at a constant from 0 to 1", remedy=remedy)


def constant_number(value: Expression) -> Fraction | None:
    """The number that sums, differences and products of numbers come to."""
    if isinstance(value, Literal):
        is_known = isinstance(value.value, int | float | Decimal) and math.isfinite(value.value)
        return Fraction(str(value.value)) if is_known else None
    if isinstance(value, Cast) and is_number(value.type) and not pa.types.is_integer(value.type):
        return constant_number(value.operand)
    if isinstance(value, Call) and value.function in _EXACT:
        parts = [constant_number(each) for each in value.arguments]
        if None not in parts:
            return _EXACT[value.function](*(each for each in parts if each is not None))
    return None


def _count_distinct(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
    return refer(_call("count", written.argument(), True))


def _bits(name: OneOf["bit_and", "bit_or", "bit_xor"]) -> Rule:
    def rule(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
        value = written.argument()
        if value.type == NULL:
            value = coerce(value, INTEGER)
        if not is_integer(value.type):
            remedy = f"write {function.name}(CAST(value AS BIGINT))"
            raise QueryError(f"{function.name} takes whole numbers, not {type_name(value.type)}", remedy=remedy)
        return refer(AggregateCall(name, value, value.type, written.distinct))

    return rule


def _mode(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
    """Among all values in order, which is how it is the least of several; as PostgreSQL has it, it may be said in
    WITHIN GROUP."""
    values = [*written.arguments, *(each.expression for each in written.order)]
    if len(values) != 1:
        raise QueryError("MODE takes one value", remedy=f"write {function.usage}")
    value = settle(values[0])
    element = cast(value, part_type(value.type))
    not_null = Call("not", (Call("is_null", (value,), BOOLEAN),), BOOLEAN)
    met = not_null if written.condition is None else Call("and", (written.condition, not_null), BOOLEAN)
    order = (OrderedBy(element, any(each.descending for each in written.order)),)
    listed = refer(AggregateCall("array_agg", element, pa.list_(element.type), written.distinct, order, met))
    return cast(Call("list_mode", (listed,), element.type), value.type)


@dataclass(frozen=True)
class _NumberPairs:
    """What two values come to over the rows in which neither is NULL, as the standard has it: y first.

    All of it is made of covariances, variances, averages and counts, which depend on the values alone.
    """

    function: AggregateFunction
    written: WrittenAggregate
    refer: Refer

    @property
    def y(self) -> Expression:
        return self._both(self._numbers[0])

    @property
    def x(self) -> Expression:
        return self._both(self._numbers[1])

    @property
    def _numbers(self) -> tuple[Expression, Expression]:
        y, x = (coerce(each, DOUBLE) if each.type == NULL else settle(each) for each in self.written.arguments)
        name = self.function.name.upper()
        for each in (y, x):
            if not is_number(each.type):
                remedy = f"write {name}(CAST(a AS DOUBLE), CAST(b AS DOUBLE))"
                raise QueryError(f"{name} takes numbers, not {type_name(each.type)}", remedy=remedy)
        if self.written.distinct:
            raise QueryError(f"{name} is not DISTINCT", remedy="leave DISTINCT out")
        if any(is_float(each.type) for each in (y, x)):
            y, x = coerce(y, DOUBLE), coerce(x, DOUBLE)
        return y, x

    def _both(self, value: Expression) -> Expression:
        there = tuple(
            Call("not", (Call("is_null", (each,), BOOLEAN),), BOOLEAN) for each in map(settle, self.written.arguments)
        )
        met = there if self.written.condition is None else (self.written.condition, *there)
        return Case((Call("and", met, BOOLEAN),), (value,), Literal(None, value.type))

    def count(self) -> Expression:
        return self.refer(_call("count", self.x))

    def average(self, value: Expression) -> Expression:
        return self.refer(_call("avg", value))

    def variance(self, value: Expression, name: OneOf["var_pop", "var_samp"] = "var_pop") -> Expression:
        return self.refer(_call(name, value))

    def covariance(self, name: OneOf["covar_pop", "covar_samp"] = "covar_pop") -> Expression:
        return self.refer(AggregateCall(name, self.y, DOUBLE, other=self.x))


def _doubles(function: str, left: Expression, right: Expression) -> Expression:
    return Call(function, (coerce(left, DOUBLE), coerce(right, DOUBLE)), DOUBLE)


def _is_zero(value: Expression) -> Expression:
    return Call("=", (value, Literal(0.0, DOUBLE)), BOOLEAN)


def _correlation(pairs: _NumberPairs) -> Expression:
    spread = _doubles("*", pairs.variance(pairs.y), pairs.variance(pairs.x))
    return _doubles("/", pairs.covariance(), Call("sqrt", (spread,), DOUBLE))


def _slope(pairs: _NumberPairs) -> Expression:
    return _doubles("/", pairs.covariance(), pairs.variance(pairs.x))


def _intercept(pairs: _NumberPairs) -> Expression:
    on_line = _doubles("*", _slope(pairs), pairs.average(pairs.x))
    nothing = Literal(None, DOUBLE)
    return Case((_is_zero(pairs.variance(pairs.x)),), (nothing,), _doubles("-", pairs.average(pairs.y), on_line))


def _explained(pairs: _NumberPairs) -> Expression:
    squared = _doubles("*", _correlation(pairs), _correlation(pairs))
    flat = tuple(_is_zero(pairs.variance(each)) for each in (pairs.x, pairs.y))
    return Case(flat, (Literal(None, DOUBLE), Literal(1.0, DOUBLE)), squared)


def _of_pairs(value: Callable[[_NumberPairs], Expression]) -> Rule:
    return lambda function, written, refer: value(_NumberPairs(function, written, refer))


def _deviation(name: OneOf["var_pop", "var_samp"]) -> Rule:
    def rule(function: AggregateFunction, written: WrittenAggregate, refer: Refer) -> Expression:
        return Call("sqrt", (refer(_call(name, written.argument(), written.distinct)),), DOUBLE)

    return rule


AGGREGATE_FUNCTIONS: Final[tuple[AggregateFunction, ...]] = (
    AggregateFunction("count", "COUNT(*), COUNT(a)", "rows; rows in which `a` is not NULL. Over nothing 0", _count),
    AggregateFunction("count_if", "COUNT_IF(condition)", "rows for which the condition is true. Over nothing 0",
                      _count_if, ("countif",)),
    AggregateFunction("sum", "SUM(a)", "total: exact and without overflow for whole numbers, correctly rounded for "
                      "floating ones; of intervals an interval", _sum),
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
    AggregateFunction("arg_min", "ARG_MIN(a, b)", "`a` where `b` is least; of several the least. Rows in which either "
                      "is NULL are left out", _at_extreme(False), ("argmin", "min_by"), 2),
    AggregateFunction("arg_max", "ARG_MAX(a, b)", "`a` where `b` is greatest; of several the least",
                      _at_extreme(True), ("argmax", "max_by"), 2),
    AggregateFunction("first", "FIRST(a ORDER BY b)", "`a`, NULL or not, of the first row in that order; of several "
                      "the least", _first(False), ("first_value",)),
    AggregateFunction("last", "LAST(a ORDER BY b)", "`a`, NULL or not, of the last row in that order; of several the "
                      "greatest, NULL after all", _first(True), ("last_value",)),
    AggregateFunction("string_agg", "STRING_AGG(a, ', ' ORDER BY b)", "all texts as one, in that order, and where it "
                      "leaves a choice in that of the texts; between them a comma if nothing is said", _string_agg,
                      ("listagg", "group_concat"), 1, 1),
    AggregateFunction("array_agg", "ARRAY_AGG(a ORDER BY b)", "the array of all values, NULL or not, in that order, "
                      "and where it leaves a choice in that of the values", _array_agg, ("list",)),
    AggregateFunction("collect_list", "COLLECT_LIST(a)", "the array of all values that are not NULL, in their order; "
                      "over nothing it is empty", _collected(False)),
    AggregateFunction("collect_set", "COLLECT_SET(a)", "the same with each value once", _collected(True)),
    AggregateFunction("median", "MEDIAN(a)", "QUANTILE_CONT(a, 0.5)", _median),
    AggregateFunction("quantile_cont", "QUANTILE_CONT(a, 0.95)", "with the numbers in order, what lies at that "
                      "fraction of the way from the first to the last, between two of them in proportion; a DOUBLE, of "
                      "DECIMALs of up to 15 digits one of those, cut to its places",
                      _quantile("quantile_cont"), ("percentile", "approx_quantile"), 2),
    AggregateFunction("quantile_disc", "QUANTILE_DISC(a, 0.95)", "the first value of any type, in order, up to which "
                      "that fraction of the values lies; a third argument, how far it may be off, changes nothing: it "
                      "is exact", _quantile("quantile_disc"), ("quantile", "percentile_approx"), 2, 1),
    AggregateFunction("percentile_cont", "PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY a)", "QUANTILE_CONT(a, 0.95)",
                      _quantile("quantile_cont", within=True)),
    AggregateFunction("percentile_disc", "PERCENTILE_DISC(0.95) WITHIN GROUP (ORDER BY a)", "QUANTILE_DISC(a, 0.95)",
                      _quantile("quantile_disc", within=True)),
    AggregateFunction("approx_percentile", "APPROX_PERCENTILE(0.95, 0.01) WITHIN GROUP (ORDER BY a)", "QUANTILE_DISC "
                      "of DOUBLEs, exactly: a sketch cannot forget what has left", _approx_percentile, optional=1),
    AggregateFunction("var_samp", "VAR_SAMP(a)", "variance of a sample (divided by n - 1), a DOUBLE; of one value "
                      "NULL. From the exact sums, rounded once", _computed("var_samp"), ("variance",)),
    AggregateFunction("var_pop", "VAR_POP(a)", "variance of all (divided by n), the same way", _computed("var_pop")),
    AggregateFunction("stddev_samp", "STDDEV_SAMP(a)", "square root of VAR_SAMP", _deviation("var_samp"), ("stddev",)),
    AggregateFunction("stddev_pop", "STDDEV_POP(a)", "square root of VAR_POP", _deviation("var_pop")),
    AggregateFunction("mode", "MODE(a)", "the value that is there most often; of several the least. Also MODE() WITHIN "
                      "GROUP (ORDER BY a)", _mode, (), 0, 1),
    AggregateFunction("bit_and", "BIT_AND(a)", "of whole numbers the bits that all of them have", _bits("bit_and")),
    AggregateFunction("bit_or", "BIT_OR(a)", "the bits that one of them has", _bits("bit_or")),
    AggregateFunction("bit_xor", "BIT_XOR(a)", "the bits that an odd number of them has", _bits("bit_xor")),
    AggregateFunction("covar_pop", "COVAR_POP(a, b)", "covariance of all rows in which neither is NULL, a DOUBLE. "
                      "From the exact sums, rounded once", _of_pairs(_NumberPairs.covariance), (), 2),
    AggregateFunction("covar_samp", "COVAR_SAMP(a, b)", "that of a sample; of one row NULL",
                      _of_pairs(lambda pairs: pairs.covariance("covar_samp")), (), 2),
    AggregateFunction("corr", "CORR(a, b)", "correlation: COVAR_POP divided by both standard deviations; NaN where one "
                      "of these is 0", _of_pairs(_correlation), (), 2),
    AggregateFunction("regr_count", "REGR_COUNT(b, a)", "rows in which neither is NULL. Over nothing 0",
                      _of_pairs(_NumberPairs.count), (), 2),
    AggregateFunction("regr_avgx", "REGR_AVGX(b, a)", "average of `a` over these",
                      _of_pairs(lambda pairs: pairs.average(pairs.x)), (), 2),
    AggregateFunction("regr_avgy", "REGR_AVGY(b, a)", "average of `b` over these",
                      _of_pairs(lambda pairs: pairs.average(pairs.y)), (), 2),
    AggregateFunction("regr_sxx", "REGR_SXX(b, a)", "VAR_POP(a) times their number",
                      _of_pairs(lambda pairs: _doubles("*", pairs.variance(pairs.x), pairs.count())), (), 2),
    AggregateFunction("regr_syy", "REGR_SYY(b, a)", "VAR_POP(b) times their number",
                      _of_pairs(lambda pairs: _doubles("*", pairs.variance(pairs.y), pairs.count())), (), 2),
    AggregateFunction("regr_sxy", "REGR_SXY(b, a)", "COVAR_POP(b, a) times their number",
                      _of_pairs(lambda pairs: _doubles("*", pairs.covariance(), pairs.count())), (), 2),
    AggregateFunction("regr_slope", "REGR_SLOPE(b, a)", "slope of the line that fits `b` best where `a` is known",
                      _of_pairs(_slope), (), 2),
    AggregateFunction("regr_intercept", "REGR_INTERCEPT(b, a)", "`b` on that line where `a` is 0",
                      _of_pairs(_intercept), (), 2),
    AggregateFunction("regr_r2", "REGR_R2(b, a)", "how much of the variance of `b` the line explains: CORR squared",
                      _of_pairs(_explained), (), 2),
)  # fmt: skip

_ORDERED: Final = (
    *("first", "last", "string_agg", "array_agg"),
    *("percentile_cont", "percentile_disc", "approx_percentile", "mode"),
)
_BY_NAME: Final = {name: each for each in AGGREGATE_FUNCTIONS for name in (each.name, *each.aliases)}
AGGREGATES: Final = tuple(_BY_NAME)
AGGREGATES_OF_NULLS: Final = tuple(n for n, each in _BY_NAME.items() if each.name in ("first", "last", "array_agg"))
"""Those that take NULL for a value unless they are told to IGNORE NULLS."""


def resolve_aggregate(function: str, written: WrittenAggregate, refer: Refer) -> Expression:
    """The value of an aggregate, made of calls; raises QueryError when it does not fit."""
    definition = _BY_NAME.get(function.lower())
    if definition is None:
        close = difflib.get_close_matches(function.lower(), _BY_NAME, n=2, cutoff=0.3) or ["count", "sum", "avg"]
        raise QueryError(f"there is no aggregate '{function}'", remedy=f"did you mean {' or '.join(close)}?")
    if not written.arguments and definition.arguments and (definition.name != "count" or written.distinct):
        raise QueryError(f"{definition.name}(*) has no meaning", remedy=f"write {definition.name}(column)")
    if written.arguments and not 0 <= len(written.arguments) - definition.arguments <= definition.optional:
        count = "one argument" if definition.arguments == 1 else f"{definition.arguments} arguments"
        usage = "COUNT(DISTINCT (a, b))" if definition.name == "count" else definition.usage
        raise QueryError(f"{definition.name.upper()} takes {count}", remedy=f"write {usage}")
    if written.order and definition.name not in _ORDERED:
        raise QueryError(f"{definition.name.upper()} does not depend on an order", remedy="leave ORDER BY out")
    return definition.rule(definition, written, refer)


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
