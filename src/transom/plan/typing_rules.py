"""How types meet: the type that holds several others, and the casts that get there. DuckDB's rules.

Literals are softer than columns, as in DuckDB: a text literal takes the type of what it meets, and an integer literal
the type of an integer that it meets if it fits (`small + 1` is a TINYINT). NULL takes any type.
`decimal128(38, 0)` is HUGEINT: beside another decimal it keeps 38 digits and takes over the scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from transom.core.errors import QueryError
from transom.core.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    DURATION,
    HUGEINT,
    INTEGER,
    JSON,
    REAL,
    SMALLINT,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    VARCHAR,
    is_array,
    is_nested,
    is_struct,
    sql_name,
)
from transom.plan.expression import Cast, Expression, Literal

NULL: Final = pa.null()
INTERVAL: Final = pa.month_day_nano_interval()
"""The type of `plan/intervals.py`: known while a query is bound. What a column has of it is a DURATION."""

MAX_DIGITS: Final = 38

_INTEGERS: Final = (TINYINT, SMALLINT, INTEGER, BIGINT)
_DIGITS: Final = {TINYINT: 3, SMALLINT: 5, INTEGER: 10, BIGINT: 19}


def is_integer(type_: pa.DataType) -> bool:
    return type_ in _INTEGERS


def is_float(type_: pa.DataType) -> bool:
    return type_ in (REAL, DOUBLE)


def is_decimal(type_: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(type_))


def is_number(type_: pa.DataType) -> bool:
    return is_integer(type_) or is_float(type_) or is_decimal(type_)


def is_temporal(type_: pa.DataType) -> bool:
    return type_ in (DATE, TIMESTAMP, TIMESTAMPTZ)


_BOUND_ONLY: Final = {NULL: "NULL", INTERVAL: "INTERVAL"}


def type_name(type_: pa.DataType) -> str:
    return _BOUND_ONLY.get(type_) or sql_name(settled(type_))


def settled(type_: pa.DataType) -> pa.DataType:
    """The type of a value in the end: where nothing is known of it but NULL, an INTEGER.

    >>> settled(pa.list_(NULL))
    ListType(list<item: int32>)
    """
    if is_array(type_):
        return pa.list_(settled(type_.value_type))
    if is_struct(type_):
        return struct_type(type_.names, [settled(field.type) for field in type_])
    return INTEGER if type_ == NULL else type_


def struct_type(names: Sequence[str], types: Sequence[pa.DataType]) -> pa.DataType:
    return pa.struct(list(zip(names, types, strict=True)))


def digits_of(type_: pa.DataType) -> tuple[int, int]:
    """Digits and scale of the decimal that holds every value of an integer or decimal type.

    >>> digits_of(INTEGER)
    (10, 0)
    """
    return (type_.precision, type_.scale) if is_decimal(type_) else (_DIGITS[type_], 0)


def common_type(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """The type that CASE, COALESCE and set operations give to values of these types; None when they do not mix.

    >>> common_type([INTEGER, pa.decimal128(4, 1)])
    Decimal128Type(decimal128(11, 1))
    """
    common = NULL
    for type_ in types:
        wider = _wider(common, type_)
        if wider is None:
            return None
        common = wider
    return common


def comparison_type(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """The type in which values of these types are compared: as `common_type`, but texts are read as the others.

    And no decimal loses a place, or what differs would be equal: one that has too many digits then is an error.
    """
    others = [type_ for type_ in types if type_ not in (VARCHAR, NULL)]
    if not others:
        return VARCHAR if VARCHAR in types else NULL
    if any(is_float(t) or is_decimal(t) for t in others):
        others = [t for t in others if t != BOOLEAN] or others
    common = common_type(others)
    if common is None or not is_decimal(common):
        return common
    scale = max(digits_of(t)[1] for t in others if t != BOOLEAN)
    return pa.decimal128(max(common.precision, scale), scale)


def _wider(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    if a == b or b == NULL:
        return a
    if a == NULL:
        return b
    if is_nested(a) or is_nested(b):
        return _wider_nested(a, b)
    if JSON in (a, b):
        return JSON if VARCHAR in (a, b) else None
    if is_temporal(a) and is_temporal(b):
        return TIMESTAMPTZ if TIMESTAMPTZ in (a, b) else TIMESTAMP
    if BOOLEAN in (a, b):
        other = b if a == BOOLEAN else a
        return other if is_integer(other) or other == HUGEINT else None
    if not (is_number(a) and is_number(b)):
        return None
    if is_float(a) or is_float(b):
        return DOUBLE if DOUBLE in (a, b) else REAL
    if is_integer(a) and is_integer(b):
        return max(a, b, key=_INTEGERS.index)
    (a_digits, a_scale), (b_digits, b_scale) = digits_of(a), digits_of(b)
    whole, scale = max(a_digits - a_scale, b_digits - b_scale), max(a_scale, b_scale)
    if HUGEINT in (a, b) or is_integer(a) or is_integer(b):
        return pa.decimal128(min(whole + scale, MAX_DIGITS), scale)
    # Of two decimals what does not fit into 38 digits loses places behind the point, never before it.
    return pa.decimal128(min(whole + scale, MAX_DIGITS), min(scale, MAX_DIGITS - whole))


def _wider_nested(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """Arrays meet in that of what their elements meet in; structs if they have the same fields in the same order."""
    if is_array(a) and is_array(b):
        element = _wider(a.value_type, b.value_type)
        return None if element is None else pa.list_(element)
    if not (is_struct(a) and is_struct(b)) or _field_names(a) != _field_names(b):
        return None
    fields = [_wider(field.type, other.type) for field, other in zip(a, b, strict=True)]
    return None if None in fields else struct_type(a.names, fields)


def _field_names(type_: pa.DataType) -> list[str]:
    return [name.lower() for name in type_.names]


def meeting_type(expressions: Sequence[Expression], comparing: bool = False) -> pa.DataType | None:
    """`common_type` (or `comparison_type`) of expressions, with literals as soft as DuckDB has them."""
    firm = [e.type for e in expressions if not (_is_text_literal(e) or _is_integer_literal(e))]
    rule = comparison_type if comparing else common_type
    common = rule(firm)
    if common is None:
        return None
    if common == VARCHAR and comparing and any(_is_integer_literal(e) for e in expressions):
        common = NULL
    for expression in expressions:
        if _is_integer_literal(expression):
            if is_integer(common) and fits(expression, common):
                continue
            wider = _wider(common, expression.type)
            if wider is None:
                return None
            common = wider
    if common == NULL and any(_is_text_literal(e) for e in expressions):
        return VARCHAR
    return common


def _is_text_literal(expression: Expression) -> bool:
    return isinstance(expression, Literal) and isinstance(expression.value, str)


def _is_integer_literal(expression: Expression) -> bool:
    return isinstance(expression, Literal) and is_integer(expression.type) and expression.value is not None


def fits(expression: Expression, type_: pa.DataType) -> bool:
    """Whether an integer literal is within the range of an integer type."""
    bound = 1 << type_.bit_width - 1
    return isinstance(expression, Literal) and -bound <= expression.value < bound


def coerce(expression: Expression, type_: pa.DataType) -> Expression:
    """The expression as a value of the type: itself, a retyped literal, or an implicit cast.

    >>> str(coerce(Literal(1, INTEGER), BIGINT)), coerce(Literal(None, NULL), DATE).type
    ('1', DataType(date32[day]))
    """
    if expression.type == type_:
        return expression
    if isinstance(expression, Literal):
        if expression.value is None:
            return Literal(None, type_)
        if is_integer(expression.type) and is_integer(type_) and fits(expression, type_):
            return Literal(expression.value, type_)
    return cast(expression, type_)


def cast(expression: Expression, target: pa.DataType, safe: bool = False) -> Expression:
    """CAST or TRY_CAST; raises QueryError for a pair of types between which there is no cast."""
    source = expression.type
    if source == NULL:
        return Literal(None, target)
    if source == target:
        return expression
    if not is_castable(source, target):
        remedy = "cast between numbers, between DATE, TIMESTAMP and TIMESTAMPTZ, or from and to VARCHAR"
        if source in (INTERVAL, DURATION):
            remedy = "make a number of it: epoch(interval), date_diff('second', earlier, later)"
        elif target == DURATION:
            remedy = "write n * INTERVAL '1' SECOND"
        if is_nested(source) or is_nested(target):
            remedy = "cast arrays to arrays, and structs to structs with the same fields in the same order"
        raise QueryError(
            f"{_article(source)} {type_name(source)} cannot be cast to {type_name(target)}",
            remedy="cast it to DOUBLE or to a DECIMAL first" if source == REAL else remedy,
        )
    return Cast(expression, target, safe)


def _article(type_: pa.DataType) -> str:
    return "an" if type_name(type_)[0] in "AEIO" else "a"


def is_castable(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether CAST knows a way from one type to the other (a value may still fail).

    A REAL is not written as a text: how many digits DuckDB shows of one follows no rule that could be followed.
    """
    if (source, target) == (REAL, VARCHAR) or source == INTERVAL:
        return False
    if source in (target, NULL):
        return True
    if DURATION in (source, target):
        return False
    if is_nested(source) or is_nested(target):
        return _is_castable_nested(source, target)
    if VARCHAR in (source, target):
        return True
    if JSON in (source, target):
        return bool(source == JSON)
    if is_temporal(source) or is_temporal(target):
        return is_temporal(source) and is_temporal(target)
    # A decimal without a digit before the point has no 1.
    return not (source == BOOLEAN and is_decimal(target) and target.precision == target.scale)


def _is_castable_nested(source: pa.DataType, target: pa.DataType) -> bool:
    if is_array(source) and is_array(target):
        return is_castable(source.value_type, target.value_type)
    if not (is_struct(source) and is_struct(target)) or _field_names(source) != _field_names(target):
        return False
    return all(is_castable(field.type, other.type) for field, other in zip(source, target, strict=True))


def settle(expression: Expression) -> Expression:
    """A value as a column has it: a bare NULL is an INTEGER, an interval has no months."""
    if expression.type == INTERVAL:
        return _interval_column(expression)
    return coerce(expression, settled(expression.type))


def _interval_column(interval: Expression) -> Expression:
    if isinstance(interval, Literal):
        return Literal(None, DURATION)
    months, micros = interval.children
    if months != Literal(0, BIGINT):
        remedy = "add it to a moment, or write days: a month has no fixed length"
        raise QueryError("an INTERVAL of months cannot be a column", remedy=remedy)
    if isinstance(micros, Cast) and micros.operand.type == DURATION:
        return micros.operand
    return Cast(micros, DURATION)


def cannot_mix(what: str, expressions: Sequence[Expression]) -> QueryError:
    names = [type_name(e.type) for e in expressions]
    return QueryError(
        f"{what} cannot mix {', '.join(names[:-1])} and {names[-1]}",
        remedy="cast them to one type with CAST(value AS type)",
    )
