"""The named functions: numbers, texts, dates; each with the types that it takes and gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from transom.core.schema import BIGINT, BOOLEAN, DOUBLE, HUGEINT, INTEGER, TIMESTAMP, TINYINT, VARCHAR
from transom.plan.expression import Call, Expression, Literal
from transom.plan.scalar_operators import Arguments, Function, misfit, one_type, texts
from transom.plan.typing_rules import (
    MAX_DIGITS,
    NULL,
    coerce,
    is_decimal,
    is_float,
    is_integer,
    is_number,
    is_temporal,
)

_MOST_DIGITS: Final = 1000

Rule = Callable[[Function, Arguments], Expression]

TRUNCATED_PARTS: Final = (
    "microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year",
)  # fmt: skip


def _implicit(argument: Expression, type_: pa.DataType) -> bool:
    """Whether an argument becomes a parameter's type without being asked to."""
    source = argument.type
    if source in (type_, NULL):
        return True
    if type_ == DOUBLE:
        return is_number(source)
    if is_integer(type_) and is_integer(source):
        return source.bit_width <= type_.bit_width or isinstance(argument, Literal)
    return False


def _takes(parameters: tuple[pa.DataType, ...], gives: pa.DataType) -> Rule:
    """Fixed parameters, of which the last ones may be missing."""

    def rule(function: Function, arguments: Arguments) -> Expression:
        pairs = list(zip(arguments, parameters, strict=False))
        if not all(_implicit(argument, type_) for argument, type_ in pairs):
            raise misfit(function, arguments)
        return Call(function.name, tuple(coerce(argument, type_) for argument, type_ in pairs), gives)

    return rule


# --- numbers ---------------------------------------------------------------------------------------------------------


def _number(function: Function, arguments: Arguments) -> Expression:
    return arguments[0] if is_number(arguments[0].type) else _null_or_misfit(function, arguments)


def _null_or_misfit(function: Function, arguments: Arguments) -> Expression:
    if arguments[0].type != NULL:
        raise misfit(function, arguments)
    return coerce(arguments[0], BIGINT)


def _abs(function: Function, arguments: Arguments) -> Expression:
    value = _number(function, arguments)
    return Call("abs", (value,), value.type)


def _sign(function: Function, arguments: Arguments) -> Expression:
    return Call("sign", (_number(function, arguments),), TINYINT)


def _floor(function: Function, arguments: Arguments) -> Expression:
    """Decimals stay decimals without places, floats stay, integers become DOUBLE."""
    value = _number(function, arguments)
    if is_decimal(value.type) and value.type != HUGEINT:
        return Call(function.name, (value,), pa.decimal128(value.type.precision, 0))
    value = value if is_float(value.type) else coerce(value, DOUBLE)
    return Call(function.name, (value,), value.type)


def _round(function: Function, arguments: Arguments) -> Expression:
    value = _number(function, arguments)
    indexes = arguments[1] if len(arguments) > 1 else Literal(0, INTEGER)
    if not (isinstance(indexes, Literal) and (indexes.type == NULL or is_integer(indexes.type))):
        raise misfit(function, arguments, "write the number of places as a constant, as in round(x, 2)")
    if indexes.value is None:
        return Literal(None, NULL if is_decimal(value.type) and value.type != HUGEINT else value.type)
    type_ = value.type
    whole = type_.precision - type_.scale if is_decimal(type_) else _MOST_DIGITS
    if not -whole <= indexes.value <= _MOST_DIGITS:
        raise misfit(function, arguments, f"write a number of places from {-whole} to {_MOST_DIGITS}")
    if is_decimal(type_):
        carry = indexes.value < 0 and type_.scale == 0  # 99 becomes 100
        digits = min(type_.precision + carry, MAX_DIGITS)
        type_ = pa.decimal128(digits, min(type_.scale, max(indexes.value, 0)))
    return Call("round", (value, Literal(indexes.value, INTEGER)), type_)


_DOUBLE = _takes((DOUBLE,), DOUBLE)

NUMBER_FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("abs", "abs(x)", "the number without its sign", 1, 1, _abs),
    Function("sign", "sign(x)", "-1, 0 or 1", 1, 1, _sign),
    Function("round", "round(x[, places])", "rounded, halves away from zero", 1, 2, _round),
    Function("floor", "floor(x)", "the next whole number below", 1, 1, _floor),
    Function("ceil", "ceil(x)", "the next whole number above", 1, 1, _floor, ("ceiling",)),
    Function("sqrt", "sqrt(x)", "square root; NaN below 0", 1, 1, _DOUBLE),
    Function("exp", "exp(x)", "e to the power of x", 1, 1, _DOUBLE),
    Function("ln", "ln(x)", "natural logarithm", 1, 1, _DOUBLE),
    Function("log10", "log10(x)", "decimal logarithm", 1, 1, _DOUBLE, ("log",)),
    Function("log2", "log2(x)", "binary logarithm", 1, 1, _DOUBLE),
    Function("power", "power(x, y)", "x to the power of y", 2, 2, _takes((DOUBLE, DOUBLE), DOUBLE), ("pow",)),
    Function("greatest", "greatest(a, ..)", "the greatest that is not NULL", 1, None, one_type),
    Function("least", "least(a, ..)", "the least that is not NULL", 1, None, one_type),
)

# --- texts -----------------------------------------------------------------------------------------------------------

_TEXT = _takes((VARCHAR,), VARCHAR)
_TEXTS = _takes((VARCHAR, VARCHAR, VARCHAR), VARCHAR)
_FOUND = _takes((VARCHAR, VARCHAR), BOOLEAN)
_CUT = _takes((VARCHAR, BIGINT, BIGINT), VARCHAR)
_PAD = _takes((VARCHAR, INTEGER, VARCHAR), VARCHAR)

TEXT_FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("upper", "upper(text)", "in capitals", 1, 1, _TEXT, ("ucase",)),
    Function("lower", "lower(text)", "in small letters", 1, 1, _TEXT, ("lcase",)),
    Function("length", "length(text)", "number of characters", 1, 1, _takes((VARCHAR,), BIGINT),
             ("char_length", "len")),
    Function("substring", "substring(text, start[, count])", "part of the text; the first character is 1, the last -1",
             2, 3, _CUT, ("substr",)),
    Function("left", "left(text, count)", "the first characters; without the last ones when below 0", 2, 2, _CUT),
    Function("right", "right(text, count)", "the last characters; without the first ones when below 0", 2, 2, _CUT),
    Function("trim", "trim(text[, characters])", "without spaces (or characters) at both ends", 1, 2, _TEXTS),
    Function("ltrim", "ltrim(text[, characters])", "without them at the start", 1, 2, _TEXTS),
    Function("rtrim", "rtrim(text[, characters])", "without them at the end", 1, 2, _TEXTS),
    Function("replace", "replace(text, from, to)", "with every `from` replaced", 3, 3, _TEXTS),
    Function("concat", "concat(a, ..)", "all as one text; NULL is left out", 1, None, texts),
    Function("starts_with", "starts_with(text, part)", "whether it begins so", 2, 2, _FOUND, ("prefix",)),
    Function("ends_with", "ends_with(text, part)", "whether it ends so", 2, 2, _FOUND, ("suffix",)),
    Function("contains", "contains(text, part)", "whether it is in it", 2, 2, _FOUND),
    Function("position", "position(part IN text)", "where the part begins, 0 when nowhere; called with the text first",
             2, 2, _takes((VARCHAR, VARCHAR), BIGINT), ("strpos", "instr")),
    Function("lpad", "lpad(text, length, fill)", "filled or cut to a length, at the start", 3, 3, _PAD),
    Function("rpad", "rpad(text, length, fill)", "filled or cut to a length, at the end", 3, 3, _PAD),
    Function("repeat", "repeat(text, count)", "again and again", 2, 2, _takes((VARCHAR, BIGINT), VARCHAR)),
    Function("split_part", "split_part(text, separator, index)", "the part at an index; the last is -1", 3, 3,
             _takes((VARCHAR, VARCHAR, BIGINT), VARCHAR)),
)  # fmt: skip

# --- dates -----------------------------------------------------------------------------------------------------------


def _part(function: Function, arguments: Arguments) -> Expression:
    (moment,) = arguments
    if not (is_temporal(moment.type) or moment.type == NULL):
        raise misfit(function, arguments, f"write {function.name}(CAST(value AS TIMESTAMP))")
    gives = DOUBLE if function.name == "epoch" else BIGINT
    return Call(function.name, (coerce(moment, TIMESTAMP),), gives)


def _part_name(function: Function, arguments: Arguments) -> Literal:
    name = arguments[0]
    if isinstance(name, Literal) and isinstance(name.value, str):
        word = name.value.lower()
        for candidate in (word, word.removesuffix("s")):
            if candidate in TRUNCATED_PARTS:
                return Literal(candidate, VARCHAR)
    raise misfit(function, arguments, f"write one of {', '.join(repr(p) for p in TRUNCATED_PARTS)} first")


def _moment(function: Function, arguments: Arguments, moment: Expression) -> Expression:
    text = isinstance(moment, Literal) and isinstance(moment.value, str)
    if not (is_temporal(moment.type) or moment.type == NULL or text):
        raise misfit(function, arguments)
    return coerce(moment, TIMESTAMP)


def _date_trunc(function: Function, arguments: Arguments) -> Expression:
    part = _part_name(function, arguments)
    return Call("date_trunc", (part, _moment(function, arguments, arguments[1])), TIMESTAMP)


def _date_diff(function: Function, arguments: Arguments) -> Expression:
    part = _part_name(function, arguments)
    return Call("date_diff", (part, *(_moment(function, arguments, a) for a in arguments[1:])), BIGINT)


def _part_function(name: str, gives: str, *aliases: str) -> Function:
    return Function(name, f"{name}(moment)", gives, 1, 1, _part, aliases)


DATE_FUNCTIONS: Final[tuple[Function, ...]] = (
    _part_function("year", "the year"),
    _part_function("quarter", "1 to 4"),
    _part_function("month", "1 to 12"),
    _part_function("week", "number of the ISO week", "weekofyear"),
    _part_function("day", "day of the month", "dayofmonth"),
    _part_function("dayofweek", "0 (Sunday) to 6", "dow", "weekday"),
    _part_function("dayofyear", "1 to 366", "doy"),
    _part_function("hour", "0 to 23"),
    _part_function("minute", "0 to 59"),
    _part_function("second", "0 to 59"),
    _part_function("epoch", "seconds since 1970-01-01, with their fraction"),
    Function("date_trunc", "date_trunc('hour', moment)", "the start of the hour, day, .. around it", 2, 2, _date_trunc,
             ("datetrunc",)),
    Function("date_diff", "date_diff('day', from, to)", "how many boundaries of the part lie between", 3, 3, _date_diff,
             ("datediff",)),
)  # fmt: skip
