"""Constants as they are written: numbers, dates, durations, types."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final

import pyarrow as pa
from sqlglot import exp

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
    sql_name,
)
from transom.core.time import SECOND, UNITS, months_of, parse_duration, parse_interval, unit_of
from transom.cql import syntax
from transom.cql.foreign import TYPES
from transom.cql.query_text import QueryText
from transom.plan.expression import Literal
from transom.plan.intervals import Interval, interval
from transom.plan.typing_rules import struct_type

MAX_DIGITS: Final = 38
_TYPES: Final[dict[str, pa.DataType]] = {
    name: type_
    for type_, names in (
        (BOOLEAN, "BOOLEAN BOOL LOGICAL"),
        (TINYINT, "TINYINT INT1"),
        (SMALLINT, "SMALLINT INT2 SHORT"),
        (INTEGER, "INTEGER INT INT4 SIGNED"),
        (BIGINT, "BIGINT INT8 LONG"),
        (HUGEINT, "HUGEINT INT128"),
        (REAL, "REAL FLOAT FLOAT4"),
        (DOUBLE, "DOUBLE FLOAT8"),
        (VARCHAR, "VARCHAR TEXT STRING CHAR BPCHAR"),
        (DATE, "DATE"),
        (TIMESTAMP, "TIMESTAMP DATETIME TIMESTAMP_NTZ"),
        (DURATION, "INTERVAL"),
        (JSON, "JSON JSONB"),
        (TIMESTAMPTZ, "TIMESTAMPTZ TIMESTAMP_LTZ TIMESTAMP_TZ"),
    )
    for name in names.split()
}
_MOST_PLACES: Final = 6
_DECIMALS: Final = ("DECIMAL", "NUMERIC", "DEC")
_MOMENT: Final = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?"
    r"(Z|([+-])(\d\d)(?::?(\d\d))?)?)?",
    re.ASCII,
)


def bind_type(node: syntax.TypeName | syntax.NestedType, source: QueryText) -> pa.DataType:
    if isinstance(node, syntax.NestedType):
        return _nested_type(node, source)
    name, numbers = node.name, [int(n.name) for n in node.expressions if n.name.isdigit() and len(n.name) < 9]
    if len(numbers) != len(node.expressions):
        raise source.error(f"{name} takes whole numbers", node, "write DECIMAL(10, 2)")
    if name in _DECIMALS:
        digits, scale = (*numbers, 0)[:2] if numbers else (18, 3)
        if len(numbers) > 2 or not (1 <= digits <= MAX_DIGITS and 0 <= scale <= digits):
            remedy = f"write DECIMAL(digits, places) with up to {MAX_DIGITS} digits, not fewer than places"
            raise source.error("there is no such DECIMAL", node, remedy)
        return pa.decimal128(digits, scale)
    type_ = _TYPES.get(name)
    if type_ is None and name in TYPES:
        raise source.error(f"there is no type '{name}'", node, TYPES[name])
    if type_ is None:
        offered = "BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, DECIMAL(p, s), VARCHAR, DATE, TIMESTAMP"
        offered += ", TIMESTAMPTZ, INTERVAL, JSON"
        offered += ", and of them INTEGER[] and STRUCT(a INTEGER, ..)"
        raise source.error(f"there is no type '{name}'", node, f"the types are {offered}")
    if type_ in (TIMESTAMP, TIMESTAMPTZ) and len(numbers) == 1 and numbers[0] <= _MOST_PLACES:
        return type_  # of how many places is said, and not held to, as with VARCHAR(10)
    if numbers and type_ != VARCHAR:
        raise source.error(f"{name} takes no numbers", node, f"write {name}")
    return type_


def _nested_type(node: syntax.NestedType, source: QueryText) -> pa.DataType:
    types = [bind_type(each, source) for each in node.args["types"]]
    if JSON in types:
        raise source.error("there is no JSON within arrays and structs", node, "declare VARCHAR, or all of it as JSON")
    if DURATION in types:
        raise source.error("there is no INTERVAL within arrays and structs", node, "declare BIGINT, for microseconds")
    if node.this == "ARRAY":
        return pa.list_(types[0])
    names = [each.name for each in node.args["names"]]
    for name, written in zip(names, node.args["names"], strict=True):
        if [other.lower() for other in names].count(name.lower()) > 1:
            raise source.error(f"the field '{name}' is there twice", written, "give the fields different names")
    return struct_type(names, types)


def bind_constant(node: exp.Literal, source: QueryText) -> Literal:
    """A text or a number, typed as DuckDB types it."""
    text = node.name
    if node.is_string:
        return Literal(text, VARCHAR)
    digits = text.replace(".", "")
    if digits.isdigit() and len(digits) <= MAX_DIGITS:
        if "." in text:
            query_text = len(text) - text.index(".") - 1
            return Literal(Decimal(text), pa.decimal128(len(digits), query_text))
        value = int(text)
        if value < 1 << 31:
            return Literal(value, INTEGER)
        return Literal(value, BIGINT) if value < 1 << 63 else Literal(Decimal(value), HUGEINT)
    try:
        number = float(text)
    except ValueError:
        raise source.error(f"'{text}' is no number", node, "write 1, 1.5 or 1e3") from None
    if number == float("inf"):
        raise source.error("the number is too great", node, "write a number below 1.8e308")
    return Literal(number, DOUBLE)


def bind_typed_literal(node: syntax.TypedLiteral, source: QueryText) -> Literal:
    """DATE '..', TIMESTAMP '..' and TIMESTAMPTZ '..'; a text that is none is an error here, not when the query runs."""
    type_ = bind_type(node.args["to"], source)
    text = node.this.name
    match = _MOMENT.fullmatch(text)
    try:
        if match is None or (type_ == DATE and match[4]) or (match[8] and type_ != TIMESTAMPTZ):
            raise ValueError(text)
        year, month, day, hour, minute, second = (int(group or 0) for group in match.groups()[:6])
        micros = int((match[7] or "").ljust(6, "0"))
        if type_ == DATE:
            return Literal(date(year, month, day), DATE)
        ahead = timedelta(hours=int(match[10] or 0), minutes=int(match[11] or 0))
        ahead = -ahead if match[9] == "-" else ahead
        return Literal(datetime(year, month, day, hour, minute, second, micros) - ahead, type_)
    except (ValueError, OverflowError):
        what, remedy = ("date", "2024-05-01") if type_ == DATE else ("timestamp", "2024-05-01 10:00:00")
        remedy = f"write {sql_name(type_)} '{remedy}{'+02' if type_ == TIMESTAMPTZ else ''}'"
        raise source.error(f"'{text}' is no {what}", node, remedy) from None


def bind_duration(node: syntax.Duration, source: QueryText) -> int:
    """Microseconds, never negative; months and years have no fixed length and are not supported."""
    unit = node.args.get("unit")
    text = f"{node.this.name} {unit.name}" if unit is not None else node.this.name
    if any(months_of(word) is not None for word in text.split()):
        remedy = "write it in days or weeks, as in 30 DAYS"
        raise source.error("months and years have no fixed length", node, remedy)
    micros = parse_duration(text) if node.args.get("last") is None else None
    if micros is None:
        remedy = "write a number and a unit, as in 10 SECONDS or INTERVAL '10' SECOND, in whole microseconds"
        raise source.error(f"'{text}' is no duration", node, remedy)
    return micros


_FIELDS: Final = (("YEAR", "MONTH"), ("DAY", "HOUR", "MINUTE", "SECOND"))


def bind_interval(node: syntax.Duration, source: QueryText) -> Interval:
    """INTERVAL '1' DAY, INTERVAL '1 year 2 days', INTERVAL '1-6' YEAR TO MONTH: months and microseconds."""
    text, unit, last = node.this.name, node.args.get("unit"), node.args.get("last")
    if unit is not None and last is not None:
        months_and_micros = _interval_of_fields(text, unit.name, last.name)
    else:
        months_and_micros = parse_interval(f"{text} {unit.name}" if unit is not None else text)
    if months_and_micros is None:
        remedy = "write a number and a unit, as in INTERVAL '10' SECOND or INTERVAL '1 month 2 days'"
        raise source.error(f"'{text}' is no interval", node, remedy)
    try:
        return interval(*months_and_micros)
    except QueryError as error:
        raise source.located(error, node) from None


def unit_interval(word: str) -> Interval:
    """One of a unit."""
    months = months_of(word)
    return interval(months, 0) if months is not None else interval(0, unit_of(word) or 0)


def _interval_of_fields(text: str, first: str, last: str) -> tuple[int, int] | None:
    """'1-6' YEAR TO MONTH, '1 12:30' DAY TO MINUTE: a number for each field from the first to the last."""
    names = [name.upper().removesuffix("S") for name in (first, last)]
    fields: tuple[str, ...] = next((fields for fields in _FIELDS if set(names) <= set(fields)), ())
    begin, end = (fields.index(name) if name in fields else -1 for name in names)
    match = re.fullmatch(r"([+-]?)(\d{1,9}(?:[- :]\d{1,9})*)(?:\.(\d{1,6}))?", text.strip())
    if not begin < end or match is None or (match[3] and names[1] != "SECOND"):
        return None
    amounts = [int(amount) for amount in re.split("[- :]", match[2])]
    if len(amounts) != end - begin + 1:
        return None
    sign = -1 if match[1] == "-" else 1
    if fields[0] == "YEAR":
        return sign * (amounts[0] * 12 + amounts[1]), 0
    sizes = (UNITS[field.lower()] for field in fields[begin : end + 1])
    micros = sum(amount * size for amount, size in zip(amounts, sizes, strict=True))
    return 0, sign * (micros + int((match[3] or "").ljust(6, "0")) * SECOND // 10**6)
