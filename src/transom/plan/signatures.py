"""The named functions: numbers, texts, dates; each with the types that it takes and gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from transom.core.errors import QueryError
from transom.core.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    JSON,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    VARCHAR,
    is_array,
)
from transom.plan.expression import Call, Expression, Literal
from transom.plan.formats import READ, WRITTEN, from_date_format, from_to_char, split_format
from transom.plan.intervals import Interval, moment_type, with_intervals
from transom.plan.nested_functions import array_length
from transom.plan.patterns import objection
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
from transom.plan.zones import instant_of, local_time, zone_of

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
    if type_ == VARCHAR:
        return bool(source == JSON)
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


def _trunc(function: Function, arguments: Arguments) -> Expression:
    """Towards 0; whole numbers stay as they are."""
    value = _number(function, arguments)
    if is_float(value.type):
        return Call("trunc", (value,), value.type)
    if not is_decimal(value.type) or value.type == HUGEINT:
        return value
    return Call("trunc", (value,), pa.decimal128(value.type.precision, 0))


def _pi(function: Function, arguments: Arguments) -> Expression:
    return Literal(math.pi, DOUBLE)


_DOUBLE = _takes((DOUBLE,), DOUBLE)
_OF_FLOAT = _takes((DOUBLE,), BOOLEAN)

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
    Function("trunc", "trunc(x)", "the number without its fraction", 1, 1, _trunc),
    Function("isnan", "isnan(x)", "whether it is NaN", 1, 1, _OF_FLOAT),
    Function("isinf", "isinf(x)", "whether it is infinite", 1, 1, _OF_FLOAT),
    Function("isfinite", "isfinite(x)", "whether it is neither infinite nor NaN", 1, 1, _OF_FLOAT),
    Function("pi", "pi()", "the number pi", 0, 0, _pi),
    Function("sin", "sin(x)", "sine of an angle in radians", 1, 1, _DOUBLE),
    Function("cos", "cos(x)", "cosine", 1, 1, _DOUBLE),
    Function("tan", "tan(x)", "tangent", 1, 1, _DOUBLE),
    Function("asin", "asin(x)", "angle of a sine; NaN outside -1 to 1", 1, 1, _DOUBLE),
    Function("acos", "acos(x)", "angle of a cosine; NaN outside -1 to 1", 1, 1, _DOUBLE),
    Function("atan", "atan(x)", "angle of a tangent", 1, 1, _DOUBLE),
    Function("atan2", "atan2(y, x)", "angle of the point (x, y)", 2, 2, _takes((DOUBLE, DOUBLE), DOUBLE)),
    Function("radians", "radians(x)", "an angle in degrees as one in radians", 1, 1, _DOUBLE),
    Function("degrees", "degrees(x)", "an angle in radians as one in degrees", 1, 1, _DOUBLE),
    Function("greatest", "greatest(a, ..)", "the greatest that is not NULL", 1, None, one_type),
    Function("least", "least(a, ..)", "the least that is not NULL", 1, None, one_type),
)

# --- texts -----------------------------------------------------------------------------------------------------------

_TEXT = _takes((VARCHAR,), VARCHAR)
_TEXTS = _takes((VARCHAR, VARCHAR, VARCHAR), VARCHAR)
_FOUND = _takes((VARCHAR, VARCHAR), BOOLEAN)
_CUT = _takes((VARCHAR, BIGINT, BIGINT), VARCHAR)
_PAD = _takes((VARCHAR, INTEGER, VARCHAR), VARCHAR)


def _concat_ws(function: Function, arguments: Arguments) -> Expression:
    if arguments[0].type not in (VARCHAR, NULL):
        raise misfit(function, arguments, "write the separator first, as in concat_ws(', ', a, b)")
    return texts(function, arguments)


_REGEXP_OPTIONS: Final = {"regexp_replace": "gics"}


def _regexp(function: Function, arguments: Arguments) -> Expression:
    """A text and constants: the pattern, what it is replaced by, which group of it, and options."""
    text, *others = arguments
    if text.type not in (VARCHAR, NULL):
        raise misfit(function, arguments, f"write {function.usage}; cast what is no text to VARCHAR")
    gives = BOOLEAN if function.name in ("regexp_matches", "regexp_full_match") else VARCHAR
    if any(other.type == NULL for other in others) or text.type == NULL:
        return Literal(None, gives)
    names = ["pattern", {"regexp_replace": "replacement", "regexp_extract": "group"}.get(function.name), "options"]
    said: dict[str, Any] = {}
    for name, other in zip([name for name in names if name], others, strict=False):
        if not isinstance(other, Literal) or type(other.value) is not (int if name == "group" else str):
            raise misfit(function, arguments, f"write {function.usage}, with a constant {name}")
        said[name] = other.value
    options = said.get("options", "")
    if unknown := set(options) - set(_REGEXP_OPTIONS.get(function.name, "ics")):
        raise misfit(
            function, arguments, f"there is no option '{min(unknown)}'; write 'i' to match small and capital alike"
        )
    if not 0 <= said.get("group", 0) <= 9:
        raise misfit(function, arguments, "groups are counted from 1 to 9; 0 is the whole match")
    if what := objection(said["pattern"], options, said.get("replacement")):
        raise QueryError(f"'{function.name}' does not take this pattern: {what}", remedy=f"write {function.usage}")
    constants = [Literal(value, INTEGER if name == "group" else VARCHAR) for name, value in said.items()]
    return Call(function.name, (text, *constants), gives)


def _length(function: Function, arguments: Arguments) -> Expression:
    return (array_length if is_array(arguments[0].type) else _LENGTH)(function, arguments)


_LENGTH = _takes((VARCHAR,), BIGINT)

TEXT_FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("upper", "upper(text)", "in capitals", 1, 1, _TEXT, ("ucase",)),
    Function("lower", "lower(text)", "in small letters", 1, 1, _TEXT, ("lcase",)),
    Function("length", "length(text)", "number of characters, or of the elements of an array", 1, 1, _length,
             ("char_length", "len")),
    Function("strlen", "strlen(text)", "number of bytes in UTF-8", 1, 1, _LENGTH, ("octet_length",)),
    Function("translate", "translate(text, letters, others)", "with each of the letters replaced by that at its place "
             "among the others, or left out", 3, 3, _TEXTS),
    Function("ascii", "ascii(text)", "the code of its first character, 0 when it is empty", 1, 1,
             _takes((VARCHAR,), INTEGER)),
    Function("substring", "substring(text, start[, count])", "part of the text; the first character is 1, the last -1",
             2, 3, _CUT, ("substr",)),
    Function("left", "left(text, count)", "the first characters; without the last ones when below 0", 2, 2, _CUT),
    Function("right", "right(text, count)", "the last characters; without the first ones when below 0", 2, 2, _CUT),
    Function("trim", "trim(text[, characters])", "without spaces (or characters) at both ends", 1, 2, _TEXTS,
             ("btrim",)),
    Function("ltrim", "ltrim(text[, characters])", "without them at the start", 1, 2, _TEXTS),
    Function("rtrim", "rtrim(text[, characters])", "without them at the end", 1, 2, _TEXTS),
    Function("replace", "replace(text, from, to)", "with every `from` replaced", 3, 3, _TEXTS),
    Function("concat", "concat(a, ..)", "all as one text; NULL is left out", 1, None, texts),
    Function("concat_ws", "concat_ws(separator, a, ..)", "all as one text with separators; NULL is left out", 2, None,
             _concat_ws),
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
    Function("split_index", "split_index(text, separator, index)", "the part at an index from 0, as in Flink; NULL"
             " where there is none", 3, 3, _takes((VARCHAR, VARCHAR, BIGINT), VARCHAR)),
    Function("regexp_matches", "regexp_matches(text, 'pattern'[, 'i'])", "whether a part of it matches", 2, 3, _regexp,
             ("regexp_like", "regexp", "rlike")),
    Function("regexp_full_match", "regexp_full_match(text, 'pattern'[, 'i'])", "whether all of it matches", 2, 3,
             _regexp),
    Function("regexp_replace", "regexp_replace(text, 'pattern', 'new'[, 'g'])",
             "with the first match replaced, or with all", 3, 4, _regexp),
    Function("regexp_extract", "regexp_extract(text, 'pattern'[, group])", "the first match, or a group of it;"
             " else empty", 2, 3, _regexp),
    Function("md5", "md5(text)", "MD5 as 32 hexadecimal digits", 1, 1, _TEXT),
    Function("sha1", "sha1(text)", "SHA-1 as 40 hexadecimal digits", 1, 1, _TEXT),
    Function("sha256", "sha256(text)", "SHA-256 as 64 hexadecimal digits", 1, 1, _TEXT),
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
    start = Call("date_trunc", (part, _moment(function, arguments, arguments[1])), TIMESTAMP)
    return coerce(start, moment_type(arguments[1]))


def _date_diff(function: Function, arguments: Arguments) -> Expression:
    part = _part_name(function, arguments)
    return Call("date_diff", (part, *(_moment(function, arguments, a) for a in arguments[1:])), BIGINT)


def _of_moment(gives: pa.DataType) -> Rule:
    def rule(function: Function, arguments: Arguments) -> Expression:
        return Call(function.name, (_moment(function, arguments, arguments[0]),), gives)

    return rule


def _epoch_ms(function: Function, arguments: Arguments) -> Expression:
    """Milliseconds of a moment, or the moment of milliseconds."""
    (value,) = arguments
    if value.type == NULL:
        return Literal(None, TIMESTAMP)
    if not is_integer(value.type):
        return Call("epoch_ms", (_moment(function, arguments, value),), BIGINT)
    micros = Call("*", (coerce(value, BIGINT), Literal(1000, BIGINT)), BIGINT)
    return Call("add_interval", (Literal(datetime(1970, 1, 1), TIMESTAMP), micros), TIMESTAMP)


def _make_timestamp(function: Function, arguments: Arguments) -> Expression:
    if not (is_integer(arguments[0].type) or arguments[0].type == NULL):
        raise misfit(function, arguments)
    return Call("add_interval", (Literal(datetime(1970, 1, 1), TIMESTAMP), coerce(arguments[0], BIGINT)), TIMESTAMP)


def _time_bucket(function: Function, arguments: Arguments) -> Expression:
    width, moment, *others = arguments
    amounts = (width.months, width.micros) if isinstance(width, Interval) else ()
    constant = [amount.value for amount in amounts if isinstance(amount, Literal)]
    if len(constant) != 2 or min(constant) < 0 or constant.count(0) != 1:
        raise misfit(function, arguments, "write a constant above 0, of days and hours or of months: INTERVAL '1' HOUR")
    start = _moment(function, arguments, moment)
    offset = others[0] if others else None
    if isinstance(offset, Interval):
        # Moved back before, and forth again behind: DuckDB's own definition.
        back = with_intervals("-", (start, offset))
        assert back is not None
        bucket = with_intervals("+", (Call("time_bucket", (back, *amounts), TIMESTAMP), offset))
        assert bucket is not None
    else:
        origin = [] if offset is None else [_moment(function, arguments, offset)]
        bucket = Call("time_bucket", (start, *amounts, *origin), TIMESTAMP)
    typed = offset if moment.type == NULL and offset is not None else moment
    return coerce(bucket, DATE if typed.type == DATE else moment_type(typed))


def _timezone(function: Function, arguments: Arguments) -> Expression:
    """Of a local time the instant that it means; of an instant the local time."""
    zone, moment = arguments
    if not isinstance(zone, Literal) or not isinstance(zone.value, str):
        raise misfit(function, arguments, "write the name of the zone: AT TIME ZONE 'Europe/Berlin'")
    name = zone_of(zone.value)
    if moment.type == TIMESTAMPTZ:
        return local_time(moment, name)
    return instant_of(_moment(function, arguments, moment), name)


def _format(function: Function, arguments: Arguments, parts_of_language: frozenset[str]) -> Literal:
    """The constant format, with nothing in it that is not known."""
    format_ = arguments[1]
    if not isinstance(format_, Literal) or not isinstance(format_.value, str):
        raise misfit(function, arguments, f"write {function.usage}, with a constant format")
    if not format_.value:
        raise misfit(function, arguments)
    for piece in split_format(format_.value):
        if piece.is_part and piece.text not in parts_of_language:
            parts = " ".join(f"%{part}" for part in sorted(parts_of_language))
            raise misfit(function, arguments, f"'%{piece.text}' is not known; the parts are {parts}")
    return format_


def _strftime(function: Function, arguments: Arguments) -> Expression:
    if arguments[0].type == VARCHAR and arguments[1].type != VARCHAR:
        arguments = arguments[::-1]
    moment, written = arguments
    if not (is_temporal(moment.type) or moment.type == NULL):
        raise misfit(function, arguments)
    if written.type == NULL:
        return Literal(None, VARCHAR)
    return Call("strftime", (coerce(moment, TIMESTAMP), _format(function, arguments, WRITTEN)), VARCHAR)


def _strptime(function: Function, arguments: Arguments) -> Expression:
    text, written = arguments
    if text.type not in (VARCHAR, NULL):
        raise misfit(function, arguments)
    if written.type == NULL:
        return Literal(None, TIMESTAMP)
    format_ = _format(function, arguments, READ)
    parts = [piece.text for piece in split_format(format_.value) if piece.is_part]
    once = [{"Y", "y"}, {"m", "b", "B"}, {"H", "I"}, *({part} for part in "dMSfp")]
    if not parts or any(sum(part in same for part in parts) > 1 for same in once) or ("I" in parts) != ("p" in parts):
        raise misfit(function, arguments, "write each part of the moment once, and %I with %p")
    return Call(function.name, (coerce(text, VARCHAR), format_), TIMESTAMP)


def _foreign_format(function: Function, arguments: Arguments) -> Expression:
    """to_char and date_format: as strftime, by a format in other letters."""
    moment, written = arguments
    if not (is_temporal(moment.type) or moment.type == NULL):
        raise misfit(function, arguments, f"'{function.name}' is for moments; write CAST(value AS VARCHAR)")
    if not isinstance(written, Literal) or not isinstance(written.value, str):
        raise misfit(function, arguments, f"write {function.usage}, with a constant format")
    translate = from_to_char if function.name == "to_char" else from_date_format
    translated = translate(written.value)
    if translated is None:
        raise misfit(
            function, arguments, f"it knows only usual parts; write {function.usage} or strftime(moment, '%Y-%m-%d')"
        )
    return Call("strftime", (coerce(moment, TIMESTAMP), Literal(translated, VARCHAR)), VARCHAR)


def _to_timestamp(function: Function, arguments: Arguments) -> Expression:
    """As strptime, by PostgreSQL's format; to_date gives the day of it. Of seconds since 1970 the instant."""
    if len(arguments) == 1:
        (seconds,) = arguments
        if not (is_integer(seconds.type) or seconds.type == NULL):
            raise misfit(
                function, arguments, f"write {function.usage}, CAST(text AS TIMESTAMP), or to_timestamp(seconds)"
            )
        micros = Call("*", (coerce(seconds, BIGINT), Literal(1_000_000, BIGINT)), BIGINT)
        start = Literal(datetime(1970, 1, 1), TIMESTAMP)
        return coerce(Call("add_interval", (start, micros), TIMESTAMP), TIMESTAMPTZ)
    text, written = arguments
    if not isinstance(written, Literal) or not isinstance(written.value, str):
        raise misfit(function, arguments, f"write {function.usage}, with a constant format")
    translated = from_to_char(written.value)
    if translated is None:
        remedy = f"it knows only usual parts; write {function.usage} or strptime(text, '%Y-%m-%d')"
        raise misfit(function, arguments, remedy)
    reader = replace(function, name="strptime")
    moment = _strptime(reader, (text, Literal(translated, VARCHAR)))
    return coerce(moment, DATE) if function.name == "to_date" else moment


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
    _part_function("millisecond", "milliseconds of the minute, 0 to 59999"),
    _part_function("microsecond", "microseconds of the minute, 0 to 59999999"),
    _part_function("isodow", "1 (Monday) to 7"),
    _part_function("isoyear", "the year of the ISO week"),
    _part_function("decade", "the year divided by ten"),
    _part_function("century", "the century, from 1"),
    _part_function("epoch", "seconds since 1970-01-01, with their fraction"),
    Function("date_trunc", "date_trunc('hour', moment)", "the start of the hour, day, .. around it", 2, 2, _date_trunc,
             ("datetrunc",)),
    Function("date_diff", "date_diff('day', from, to)", "how many boundaries of the part lie between", 3, 3, _date_diff,
             ("datediff",)),
    Function("time_bucket", "time_bucket(INTERVAL '5' MINUTE, moment[, origin])",
             "the start of the interval around it, counted from Monday, 2000-01-03, or from an origin", 2, 3,
             _time_bucket),
    Function("timezone", "moment AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin'",
             "what the clocks of a zone show when those of another show the moment", 2, 2, _timezone),
    Function("epoch_ms", "epoch_ms(moment)", "milliseconds since 1970-01-01; of a whole number, the moment", 1, 1,
             _epoch_ms),
    Function("epoch_us", "epoch_us(moment)", "microseconds since 1970-01-01", 1, 1, _of_moment(BIGINT)),
    Function("make_timestamp", "make_timestamp(microseconds)", "the moment so long after 1970-01-01", 1, 1,
             _make_timestamp),
    Function("make_date", "make_date(year, month, day)", "the day", 3, 3, _takes((BIGINT, BIGINT, BIGINT), DATE)),
    Function("last_day", "last_day(moment)", "the last day of the month", 1, 1, _of_moment(DATE)),
    Function("dayname", "dayname(moment)", "Monday to Sunday", 1, 1, _of_moment(VARCHAR)),
    Function("monthname", "monthname(moment)", "January to December", 1, 1, _of_moment(VARCHAR)),
    Function("strftime", "strftime(moment, '%Y-%m-%d %H:%M:%S')", "the moment written by a format", 2, 2, _strftime),
    Function("strptime", "strptime(text, '%Y-%m-%d %H:%M:%S')", "the moment that is written so;"
             " another text is an error", 2, 2, _strptime),
    Function("try_strptime", "try_strptime(text, '%d.%m.%Y')", "the moment that is written so, or NULL", 2, 2,
             _strptime),
    Function("to_char", "to_char(moment, 'YYYY-MM-DD HH24:MI:SS')", "the moment written by PostgreSQL's format", 2, 2,
             _foreign_format),
    Function("to_timestamp", "to_timestamp(text, 'YYYY-MM-DD HH24:MI:SS')", "the moment that is written so, by"
             " PostgreSQL's format; another text is an error. Of whole seconds since 1970 the instant", 1, 2,
             _to_timestamp),
    Function("to_date", "to_date(text, 'YYYY-MM-DD')", "the day that is written so", 2, 2, _to_timestamp),
    Function("date_format", "date_format(moment, 'yyyy-MM-dd HH:mm:ss')",
             "the moment written by a format of Flink and Spark", 2, 2, _foreign_format),
)  # fmt: skip
