"""Texts read as numbers, truth values, dates and timestamps.

What is read here is read as DuckDB reads it. DuckDB takes a little more, which is rejected on purpose: digits in groups
(1_000), hexadecimal and binary numbers, exponents for DECIMAL, years outside 1 to 9999, 24 o'clock, time zones by
their names, and in a TIMESTAMP zones beside Z, which it would drop without a word.

Columns in the plain form that files have go through Arrow; every other distinct text goes through a regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from transom.core.schema import BIGINT, BOOLEAN, DATE, HUGEINT, TIMESTAMP, TIMESTAMPTZ
from transom.kernels.scalar import decimals
from transom.kernels.scalar.values import UNKNOWN, nulled, whole
from transom.plan.typing_rules import is_decimal, is_float, is_integer

Converted = tuple[pa.Array, pa.Array | None]
Reader = Callable[[pa.Array], Converted]

_BLANK: Final = " \t\n\v\f\r"
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_FLOAT: Final = rf"\A[{_BLANK}]*[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:inf|infinity|nan))[{_BLANK}]*\z"
_DAY: Final = r"(\d{1,4})([-/])(\d{1,2})\2(\d{1,2})"
_CLOCK: Final = r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?"
_TIME: Final = rf"{_CLOCK}(?: ?Z)?"
_OFFSET: Final = r"(?:Z|([+-])(\d\d)(?::?(\d\d))?)?"
_DATE: Final = re.compile(rf"[{_BLANK}]*{_DAY}(?:(?:T|[ \t]+){_TIME})?[{_BLANK}]*", re.ASCII)
_TIMESTAMP: Final = re.compile(rf"[{_BLANK}]*{_DAY}(?:(?:T|[ \t]+){_TIME}[{_BLANK}]*)?", re.ASCII)
_INSTANT: Final = re.compile(rf"[{_BLANK}]*{_DAY}(?:(?:T|[ \t]+){_CLOCK}{_OFFSET}[{_BLANK}]*)?", re.ASCII)

_TRUE: Final = pa.array(["true", "t", "yes", "y", "1"])
_FALSE: Final = pa.array(["false", "f", "no", "n", "0"])


def reader(target: pa.DataType) -> Reader:
    if is_integer(target):
        return _integers(target)
    if is_float(target):
        return lambda column: _floats(column, target)
    if target == HUGEINT:
        return _by_text(_read_hugeint, lambda items: decimals.scaled_exact(items, target))
    if is_decimal(target):
        return _by_text(lambda text: _read_decimal(text, target), lambda items: decimals.scaled_exact(items, target))
    if target == BOOLEAN:
        return _booleans
    plain, read = _TEMPORAL[target]
    return _temporal(plain, target, read)


def _by_text(read: Callable[[str], Any], build: Callable[[list[Any]], pa.Array]) -> Reader:
    """A reader of single texts, once for each distinct one; what it gives None for is bad."""

    def convert(column: pa.Array) -> Converted:
        encoded = column.dictionary_encode()
        items = [read(text) for text in encoded.dictionary.to_pylist()]
        result = build(items).take(encoded.indices)
        return result, pc.and_(column.is_valid(), pc.is_null(result))

    return convert


# --- numbers ---------------------------------------------------------------------------------------------------------


def _read_integer(text: str) -> int | None:
    stripped = text.strip(_BLANK)
    if not _NUMBER.fullmatch(stripped):
        return None
    number = Decimal(stripped)
    if number and number.adjusted() > 40:
        return None
    numerator, denominator = number.as_integer_ratio() if number.adjusted() > -40 else (0, 1)
    return decimals.divide_half_away(numerator, denominator)


def _integers(target: pa.DataType) -> Reader:
    bound = 1 << target.bit_width - 1

    def read(text: str) -> int | None:
        number = _read_integer(text)
        return number if number is not None and -bound <= number < bound else None

    slow = _by_text(read, lambda items: pa.array(items, target))

    def convert(column: pa.Array) -> Converted:
        if pc.all(pc.match_substring_regex(column, r"\A-?\d{1,18}\z")).as_py() is False:
            return slow(column)
        numbers = column.cast(BIGINT)
        bad = pc.or_(pc.less(numbers, whole(-bound)), pc.greater(numbers, whole(bound - 1)))
        return nulled(numbers, bad).cast(target), bad

    return convert


def _read_hugeint(text: str) -> int | None:
    number = _read_integer(text)
    return number if number is not None and -(10**38) < number < 10**38 else None


def _floats(column: pa.Array, target: pa.DataType) -> Converted:
    good = pc.match_substring_regex(column, _FLOAT)
    bad = pc.invert(good)
    return nulled(pc.ascii_trim(column, _BLANK), bad).cast(target), bad


def _read_decimal(text: str, target: pa.DataType) -> int | None:
    match = _NUMBER.fullmatch(text.strip(_BLANK))
    if match is None or match[2]:
        return None
    sign = -1 if match[0].startswith("-") else 1
    whole, _, indexes = match[1].partition(".")
    number = decimals.divide_half_away(int(whole + indexes) * 10**target.scale, 10 ** len(indexes))
    return sign * number if number < 10**target.precision else None


def _booleans(column: pa.Array) -> Converted:
    words = pc.ascii_lower(column)
    true, false = pc.is_in(words, value_set=_TRUE), pc.is_in(words, value_set=_FALSE)
    readable = pc.or_(true, false)
    result = pc.if_else(readable, true, UNKNOWN)
    return result, pc.and_not(column.is_valid(), readable)


# --- dates -----------------------------------------------------------------------------------------------------------


def _temporal(plain: str, target: pa.DataType, read: Callable[[str], Any]) -> Reader:
    slow = _by_text(read, lambda items: pa.array(items, target))

    def convert(column: pa.Array) -> Converted:
        if pc.all(pc.match_substring_regex(column, plain)).as_py() is False:
            return slow(column)
        try:
            result = column.cast(target)
        except pa.ArrowInvalid:  # a day that does not exist: find out which
            return slow(column)
        zero = pc.equal(pc.year(result), whole(0))
        return slow(column) if zero.true_count else (result, None)

    return convert


def _read_date(text: str) -> date | None:
    match = _DATE.fullmatch(text)
    moment = _moment(match) if match else None
    return moment.date() if moment else None


def _read_timestamp(text: str) -> datetime | None:
    match = _TIMESTAMP.fullmatch(text)
    return _moment(match) if match else None


def _read_instant(text: str) -> datetime | None:
    match = _INSTANT.fullmatch(text)
    local = _moment(match) if match else None
    if match is None or local is None or match[9] is None:
        return local
    ahead = timedelta(hours=int(match[10]), minutes=int(match[11] or 0))
    try:
        return local - ahead if match[9] == "+" else local + ahead
    except OverflowError:
        return None


def _moment(match: re.Match[str]) -> datetime | None:
    year, _, month, day, hour, minute, second, fraction = match.groups()[:8]
    micros = int(((fraction or "") + "000000")[:6])
    try:
        return datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), micros)
    except ValueError:
        return None


_PLAIN_TIME: Final = r"\A\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{6})?"
_TEMPORAL: Final[dict[pa.DataType, tuple[str, Callable[[str], Any]]]] = {
    DATE: (r"\A\d{4}-\d\d-\d\d\z", _read_date),
    TIMESTAMP: (_PLAIN_TIME + r"\z", _read_timestamp),
    TIMESTAMPTZ: (_PLAIN_TIME + r"(Z|[+-]\d\d(:?\d\d)?)\z", _read_instant),
}
"""How texts look that Arrow reads, and what reads the others."""
