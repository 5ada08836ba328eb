"""Operators and how they are typed: arithmetic, comparison, logic, and the conditional forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
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
    REAL,
    SMALLINT,
    TINYINT,
    VARCHAR,
)
from transom.plan.expression import Call, Case, Expression, Literal
from transom.plan.intervals import between, moment_type
from transom.plan.typing_rules import (
    INTERVAL,
    MAX_DIGITS,
    NULL,
    cannot_mix,
    coerce,
    digits_of,
    is_decimal,
    is_float,
    is_integer,
    is_number,
    is_temporal,
    meeting_type,
    settle,
    settled,
    type_name,
)

Arguments = tuple[Expression, ...]

INT64_DIGITS: Final = 18
"""The product of decimals of up to 18 digits stays within 18, as in DuckDB: what needs more is an overflow."""


@dataclass(frozen=True)
class Function:
    """An entry of the closed list: its name, how it is written, what it gives, and the rule that types it."""

    name: str
    usage: str
    gives: str
    least: int
    most: int | None
    rule: Callable[[Function, Arguments], Expression]
    aliases: tuple[str, ...] = ()


def misfit(function: Function, arguments: Arguments, remedy: str | None = None) -> QueryError:
    types = ", ".join(type_name(argument.type) for argument in arguments)
    return QueryError(f"'{function.name}' does not take ({types})", remedy=remedy or f"write {function.usage}")


# --- arithmetic ------------------------------------------------------------------------------------------------------


def _arithmetic(function: Function, arguments: Arguments) -> Expression:
    """+, - and *: dates move by days; otherwise both sides meet in one type of number."""
    name = function.name
    left, right = arguments
    if name != "*" and (is_temporal(left.type) or is_temporal(right.type)):
        return _date_arithmetic(function, left, right)
    if left.type == right.type == NULL:
        return Literal(None, BIGINT)
    _need_numbers(function, arguments)
    type_ = meeting_type(arguments)
    if type_ is None or not is_decimal(type_) or type_ == HUGEINT:
        return _both(function, arguments, type_)
    if NULL in (left.type, right.type):
        return Literal(None, NULL)
    return _decimal_arithmetic(name, left, right)


def _both(function: Function, arguments: Arguments, type_: pa.DataType | None) -> Expression:
    if type_ is None:
        raise misfit(function, arguments)
    return Call(function.name, tuple(coerce(a, type_) for a in arguments), type_)


def _need_numbers(function: Function, arguments: Arguments) -> None:
    if not all(is_number(a.type) or a.type == NULL for a in arguments):
        raise misfit(function, arguments, f"'{function.name}' is for numbers; write CAST(value AS DOUBLE)")


def _decimal_arithmetic(name: str, left: Expression, right: Expression) -> Expression:
    (a_digits, a_scale), (b_digits, b_scale) = digits_of(left.type), digits_of(right.type)
    if name == "*":
        digits, scale = a_digits + b_digits, a_scale + b_scale
        if scale > MAX_DIGITS:
            raise QueryError(
                f"the product of {type_name(left.type)} and {type_name(right.type)} has more than {MAX_DIGITS} places",
                remedy="cast one of them to DOUBLE, or to a DECIMAL with fewer places",
            )
        if max(a_digits, b_digits) <= INT64_DIGITS and scale < INT64_DIGITS:
            digits = min(digits, INT64_DIGITS)
    else:
        scale = max(a_scale, b_scale)
        digits = max(a_digits - a_scale, b_digits - b_scale) + scale + 1
    # Both sides keep their own scale: DuckDB types the same call in the same way, casts to the result would widen it.
    sides = tuple(coerce(side, pa.decimal128(*digits_of(side.type))) for side in (left, right))
    return Call(name, sides, pa.decimal128(min(digits, MAX_DIGITS), scale))


def _date_arithmetic(function: Function, left: Expression, right: Expression) -> Expression:
    if left.type == right.type == DATE and function.name == "-":
        return Call("-", (left, right), BIGINT)
    if function.name == "+" and right.type == DATE:
        left, right = right, left
    days = right.type == NULL or (is_integer(right.type) and right.type != BIGINT)
    if left.type == DATE and days:
        return Call(function.name, (left, coerce(right, INTEGER)), DATE)
    if is_temporal(left.type) and is_temporal(right.type) and function.name == "-":
        return between(right, left)
    raise misfit(function, (left, right), "write value + INTERVAL '1' DAY, or date + 1")


def _division(function: Function, arguments: Arguments) -> Expression:
    """/ is a division of floats, whatever it is given: by zero it is an infinity or NaN."""
    _need_numbers(function, arguments)
    types = [a.type for a in arguments]
    type_ = REAL if REAL in types and DOUBLE not in types else DOUBLE
    return _both(function, arguments, type_)


def _whole_division(function: Function, arguments: Arguments) -> Expression:
    _need_numbers(function, arguments)
    if any(is_float(a.type) or (is_decimal(a.type) and a.type != HUGEINT) for a in arguments):
        raise misfit(function, arguments, "'//' divides integers; write floor(a / b)")
    if all(a.type == NULL for a in arguments):
        return Literal(None, BIGINT)
    return _both(function, arguments, meeting_type(arguments))


def _remainder(function: Function, arguments: Arguments) -> Expression:
    _need_numbers(function, arguments)
    if all(a.type == NULL for a in arguments):
        return Literal(None, BIGINT)
    type_ = meeting_type(arguments)
    if type_ is not None and is_decimal(type_) and type_ != HUGEINT:
        if any(a.type == NULL for a in arguments):
            return Literal(None, NULL)
        sizes = [digits_of(a.type) for a in arguments]
        if max(digits - scale for digits, scale in sizes) + max(scale for _, scale in sizes) > MAX_DIGITS:
            # No decimal holds both sides. They stay what they are: as floats they could be divided by 0.
            return Call("%", arguments, DOUBLE)
    return _both(function, arguments, type_)


def _bits(function: Function, arguments: Arguments) -> Expression:
    """Operators on the bits of whole numbers."""
    if not all(is_integer(a.type) or a.type == NULL for a in arguments):
        raise misfit(function, arguments, f"'{function.name}' is for whole numbers of up to 8 bytes: CAST(a AS BIGINT)")
    type_ = meeting_type(arguments)
    if any(a.type == NULL for a in arguments):
        return Literal(None, INTEGER if type_ == NULL else type_)
    return Call(function.name, tuple(coerce(a, type_) for a in arguments), type_)


def _negate(function: Function, arguments: Arguments) -> Expression:
    _need_numbers(function, arguments)
    (argument,) = arguments
    if argument.type == NULL:
        return Literal(None, BIGINT)
    # -0.0 stays a call: as a literal it would equal 0.0, and one may not stand for the other.
    if isinstance(argument, Literal) and argument.value:
        # A Decimal with a minus before it would be rounded to the digits of Python's context.
        value = argument.value.copy_negate() if isinstance(argument.value, Decimal) else -argument.value
        return Literal(value, _negated_type(argument))
    return Call("negate", arguments, argument.type)


def _negated_type(literal: Literal) -> pa.DataType:
    """-9223372036854775808 is a BIGINT though its digits alone are not; 128 is no TINYINT though -128 is one."""
    narrow = {HUGEINT: BIGINT, BIGINT: INTEGER}.get(literal.type)
    if narrow is not None and literal.value == 1 << narrow.bit_width - 1:
        return narrow
    wide = {TINYINT: SMALLINT, SMALLINT: INTEGER, INTEGER: BIGINT, BIGINT: HUGEINT}.get(literal.type)
    return wide if wide is not None and literal.value == -(1 << literal.type.bit_width - 1) else literal.type


# --- comparison and logic --------------------------------------------------------------------------------------------


def _comparison(function: Function, arguments: Arguments) -> Expression:
    type_ = meeting_type(arguments, comparing=True)
    if type_ is None:
        raise cannot_mix(f"'{function.name}'", arguments)
    type_ = settled(type_)
    return Call(function.name, tuple(coerce(a, type_) for a in arguments), BOOLEAN)


def truth(expression: Expression) -> Expression:
    """The expression as a condition; numbers are true unless they are 0."""
    if is_temporal(expression.type) or expression.type in (INTERVAL, DURATION):
        raise QueryError(
            f"{'an' if expression.type in (INTERVAL, DURATION) else 'a'} {type_name(expression.type)} is no condition",
            remedy="compare it with something, as in value > other",
        )
    return coerce(expression, BOOLEAN)


def _logic(function: Function, arguments: Arguments) -> Expression:
    return Call(function.name, tuple(truth(a) for a in arguments), BOOLEAN)


def _is_null(function: Function, arguments: Arguments) -> Expression:
    return Call("is_null", (settle(arguments[0]),), BOOLEAN)


def _like(function: Function, arguments: Arguments) -> Expression:
    if not all(a.type in (VARCHAR, NULL) for a in arguments):
        raise misfit(function, arguments)
    if len(arguments) == 3:
        _check_escape(function, arguments)
    return Call(function.name, tuple(coerce(a, VARCHAR) for a in arguments), BOOLEAN)


def _check_escape(function: Function, arguments: Arguments) -> None:
    """ESCAPE needs a constant pattern that is whole: DuckDB fails on a broken one for some rows and not for others."""
    _, pattern, escape = arguments
    if not (isinstance(escape, Literal) and isinstance(escape.value, str) and len(escape.value) == 1):
        raise misfit(function, arguments, "write ESCAPE with one character, as in ESCAPE '!'")
    if function.name == "ilike" and escape.value.isalpha():
        raise misfit(function, arguments, "write ESCAPE with a character that is no letter, as in ESCAPE '!'")
    if not isinstance(pattern, Literal):
        raise misfit(function, arguments, "write a constant pattern where there is an ESCAPE")
    text = pattern.value or ""
    if (len(text) - len(text.rstrip(escape.value))) % 2:
        raise misfit(function, arguments, f"write something behind the last {escape.value} of the pattern")


# --- choice ----------------------------------------------------------------------------------------------------------


def case(conditions: Arguments, results: Arguments, otherwise: Expression | None = None) -> Expression:
    """CASE WHEN .. THEN .. ELSE .. END with all results in one type."""
    values = (*results, otherwise if otherwise is not None else Literal(None, NULL))
    values = tuple(settle(value) if value.type == INTERVAL else value for value in values)
    type_ = meeting_type(values)
    if type_ is None:
        raise cannot_mix("CASE", values)
    type_ = settled(type_)
    cast_values = tuple(coerce(value, type_) for value in values)
    return Case(tuple(truth(c) for c in conditions), cast_values[:-1], cast_values[-1])


def _if(function: Function, arguments: Arguments) -> Expression:
    return case(arguments[:1], arguments[1:2], arguments[2] if len(arguments) > 2 else None)


def _nullif(function: Function, arguments: Arguments) -> Expression:
    value, equal = arguments[0], _comparison(EQUAL, arguments)
    return value if value.type == NULL else Case((equal,), (Literal(None, value.type),), value)


def one_type(function: Function, arguments: Arguments) -> Expression:
    """Any values, all in one type, which is the type of the result."""
    type_ = meeting_type(arguments)
    if type_ is None:
        raise cannot_mix(function.name, arguments)
    type_ = settled(type_)
    return Call(function.name, tuple(coerce(a, type_) for a in arguments), type_)


def _joined_texts(function: Function, arguments: Arguments) -> Expression:
    return Literal(None, NULL) if any(a.type == NULL for a in arguments) else texts(function, arguments)


def texts(function: Function, arguments: Arguments) -> Expression:
    """Any values, each as a text."""
    return Call(function.name, tuple(coerce(a, VARCHAR) for a in arguments), VARCHAR)


def _add_interval(function: Function, arguments: Arguments) -> Expression:
    moment, micros = arguments
    if not (is_temporal(moment.type) or moment.type == NULL) or not (is_integer(micros.type) or micros.type == NULL):
        raise misfit(function, arguments, "write timestamp + INTERVAL '10' MINUTE")
    type_ = moment_type(moment)
    return Call("add_interval", (coerce(moment, type_), coerce(micros, BIGINT)), type_)


def _add_months(function: Function, arguments: Arguments) -> Expression:
    moment, *amounts = arguments
    whole = all(is_integer(amount.type) or amount.type == NULL for amount in amounts)
    if not (is_temporal(moment.type) or moment.type == NULL) or not whole:
        raise misfit(function, arguments)
    months, micros = (coerce(amount, BIGINT) for amount in (*amounts, Literal(0, BIGINT))[:2])
    type_ = moment_type(moment)
    return Call("add_months", (coerce(moment, type_), months, micros), type_)


EQUAL: Final = Function("=", "a = b", "whether they are equal; NaN equals NaN", 2, 2, _comparison)

OPERATORS: Final[tuple[Function, ...]] = (
    Function("+", "a + b", "sum; an overflow is an error; DATE + days is a DATE", 2, 2, _arithmetic),
    Function("-", "a - b", "difference; DATE - DATE is a number of days, of TIMESTAMPs it is an INTERVAL", 2, 2,
             _arithmetic),
    Function("*", "a * b", "product", 2, 2, _arithmetic),
    Function("/", "a / b", "quotient as DOUBLE (REAL beside REAL)", 2, 2, _division),
    Function("//", "a // b", "quotient of integers without its fraction; by 0 an error", 2, 2, _whole_division),
    Function("%", "a % b", "remainder, with the sign of a; by 0 an error (NaN of floats)", 2, 2, _remainder, ("mod",)),
    Function("&", "a & b", "of whole numbers the bits that both have", 2, 2, _bits),
    Function("|", "a | b", "the bits that either has", 2, 2, _bits),
    Function("xor", "xor(a, b)", "the bits that one has and the other has not", 2, 2, _bits),
    Function("~", "~a", "the bits that it has not", 1, 1, _bits),
    Function("<<", "a << b", "the bits so many further to the left; an overflow or a number below 0 is an error", 2, 2,
             _bits),
    Function(">>", "a >> b", "the bits so many further to the right", 2, 2, _bits),
    Function("negate", "-a", "the number with the other sign", 1, 1, _negate),
    EQUAL,
    Function("<>", "a <> b", "whether they differ", 2, 2, _comparison, ("!=",)),
    Function("<", "a < b", "whether a is less; NaN is the greatest number", 2, 2, _comparison),
    Function("<=", "a <= b", "whether a is less or equal", 2, 2, _comparison),
    Function(">", "a > b", "whether a is greater", 2, 2, _comparison),
    Function(">=", "a >= b", "whether a is greater or equal", 2, 2, _comparison),
    Function("is_not_distinct", "a IS NOT DISTINCT FROM b", "equality in which NULL equals NULL", 2, 2, _comparison),
    Function("in", "a IN (b, ..)", "whether a equals one of them", 2, None, _comparison),
    Function("and", "a AND b", "both; b is evaluated only where a does not settle it", 2, None, _logic),
    Function("or", "a OR b", "either; b is evaluated only where a does not settle it", 2, None, _logic),
    Function("not", "NOT a", "the opposite", 1, 1, _logic),
    Function("is_null", "a IS NULL", "whether a is NULL", 1, 1, _is_null),
    Function("like", "text LIKE pattern [ESCAPE 'c']", "match with % and _", 2, 3, _like),
    Function("ilike", "text ILIKE pattern [ESCAPE 'c']", "match with % and _, small and capital alike", 2, 3, _like),
    Function("||", "a || b", "both as one text; NULL when one is", 2, 2, _joined_texts),
    Function("coalesce", "coalesce(a, ..)", "the first that is not NULL", 1, None, one_type, ("ifnull", "nvl")),
    Function("nullif", "nullif(a, b)", "NULL where they are equal, else a", 2, 2, _nullif),
    Function("if", "if(condition, a[, b])", "a where the condition is true, else b", 2, 3, _if, ("iif",)),
    Function("add_interval", "moment + INTERVAL '1' DAY", "the moment later by a duration", 2, 2, _add_interval),
    Function("add_months", "moment + INTERVAL '1' MONTH", "the moment later by months, at most at the end of one", 2, 3,
             _add_months),
)  # fmt: skip
