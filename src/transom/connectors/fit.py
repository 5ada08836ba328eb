"""Values of a file made to fit their declared types: whole columns at once, and what does not fit is found by halving.

`fit` never changes a value to make it fit: no fraction is cut off, no number wraps round, no text is guessed at. Two
exceptions are everyday: the nearest floating number is taken, and instants and intervals are floored to microseconds.

| declared | taken |
| --- | --- |
| BOOLEAN | booleans, the texts true, false, 1, 0 |
| TINYINT .. BIGINT | integers in range, floats and decimals without a fraction, text of digits |
| REAL, DOUBLE | any number, text of one (nan and inf too); a finite number that would become infinite does not fit |
| DECIMAL(p, s) | any number or text of one that has such a decimal |
| VARCHAR | text (valid UTF-8); numbers, booleans, dates, timestamps as their text |
| DATE | dates, timestamps at midnight, the text 2024-05-01; years 1 to 9999 |
| TIMESTAMP | timestamps of any unit and zone, dates, ISO text with or without a zone; years 1 to 9999;
with a time_unit whole numbers too |
| TIMESTAMPTZ | the same |
| INTERVAL | durations of any unit, intervals of databases without months, text such as 1 day 02:30:00 |
| JSON | text that is JSON; numbers, booleans, lists and structs as their JSON |
| T[], STRUCT(..) | lists and structs whose parts fit, or the JSON text of one |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.connectors.decimal_text import read_decimals
from transom.connectors.fit_nested import NoNesting, fit_nested, lists_of_texts
from transom.connectors.row_text import value_text
from transom.core.json_text import is_json
from transom.core.schema import (
    BOOLEAN,
    DATE,
    DOUBLE,
    DURATION,
    HUGEINT,
    JSON,
    REAL,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    arrow_type,
    is_nested,
)
from transom.core.time import BEGINNING, FOREVER, UNITS, parse_interval

_FIRST_DAY: Final = BEGINNING // 86_400_000_000
_LAST_DAY: Final = FOREVER // 86_400_000_000
_MICROSECONDS: Final[dict[str, tuple[int, int]]] = {
    "s": (1_000_000, 1),
    "ms": (1_000, 1),
    "us": (1, 1),
    "ns": (1, 1_000),
}

_ZONED: Final = r"^.{11,}(Z|[+-]\d\d(:?\d\d)?)$"
_LONG_FRACTION: Final = r"(\.\d{6})\d+"
_SPACED_ZONE: Final = r"\s+([Z+-])"
_WHOLE_NUMBER: Final = r"^[+-]?\d+$"
_INFINITY: Final = r"(?i)^\s*[+-]?inf"


class CannotFit(Exception):
    """No value of this Arrow type fits the declared type: the column is of another kind."""


@dataclass(frozen=True)
class Fitted:
    """The column in its declared type, and the rows whose value does not fit (NULL in `values`), ascending."""

    values: pa.Array
    bad: tuple[int, ...] = ()


def fit(values: pa.Array, type_: pa.DataType, time_unit: int | None = None) -> Fitted:
    """The values as `type_`. Raises CannotFit when the two types have nothing to do with each other.

    >>> fitted = fit(pa.array(["1", "x", None, " 4"]), pa.int32())
    >>> fitted.values.to_pylist(), fitted.bad
    ([1, None, None, 4], (1,))
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    given = values.type
    if isinstance(given, pa.BaseExtensionType):
        return fit(values.storage, type_, time_unit)
    if pa.types.is_null(given):
        return Fitted(pa.nulls(len(values), arrow_type(type_)))
    if type_ == JSON:
        return _fit_json(values)
    if is_nested(type_):
        return _fit_nested(values, type_, time_unit)
    if type_ == VARCHAR:
        return _fit_text(values)
    if type_ == TIMESTAMPTZ:
        fitted = fit(values, TIMESTAMP, time_unit)
        return Fitted(fitted.values.view(TIMESTAMPTZ), fitted.bad)
    if type_ == DURATION:
        return _fit_interval(values)
    if _is_text(given):
        return _fit_from_text(values, type_, time_unit)
    if type_ == TIMESTAMP:
        return _fit_timestamp(values, time_unit)
    if type_ == DATE:
        return _fit_date(values)
    if type_ == BOOLEAN or not _is_number(given):
        if given == type_:
            return Fitted(values)
        raise CannotFit
    if pa.types.is_floating(type_):
        return _fit_float(values, type_)
    if pa.types.is_decimal(type_):
        return _fit_decimal(values, type_)
    if pa.types.is_decimal(given) and given.scale < 0:  # Arrow adds the zeros and does not notice an overflow
        wide = _fit_decimal(values, HUGEINT)
        narrow = fit(wide.values, type_)
        return Fitted(narrow.values, tuple(sorted({*wide.bad, *narrow.bad})))
    return _cast_each(values, lambda part: pc.cast(part, type_), type_)


def _fit_json(values: pa.Array) -> Fitted:
    if pa.types.is_nested(values.type):
        return Fitted(value_text(values).cast(VARCHAR))
    text = _fit_text(values)
    encoded = text.values.dictionary_encode()
    are_json = pa.array([is_json(each) for each in encoded.dictionary.to_pylist()], BOOLEAN).take(encoded.indices)
    return _without(text, pc.invert(are_json).fill_null(False))


def _fit_interval(values: pa.Array) -> Fitted:
    if pa.types.is_duration(values.type):
        if values.type.unit == "ns":
            micros = values.view(pa.int64()).fill_null(0).to_numpy() // 1_000
            return Fitted(pa.array(micros, mask=values.is_null().to_numpy(zero_copy_only=False)).view(DURATION))
        return _cast_each(values, lambda part: pc.cast(part, DURATION), DURATION)
    if values.type == _CALENDAR:
        return _fit_calendar(values)
    if not _is_text(values.type):
        raise CannotFit
    text = _fit_text(values)
    encoded = text.values.dictionary_encode()
    parsed = [parse_interval(each) for each in encoded.dictionary.to_pylist()]
    micros = [
        interval[1] if interval and not interval[0] and abs(interval[1]) < 1 << 63 else None for interval in parsed
    ]
    durations = pa.array(micros, pa.int64()).view(DURATION).take(encoded.indices)
    return _without(Fitted(durations, text.bad), pc.and_(text.values.is_valid(), durations.is_null()))


_CALENDAR: Final = pa.month_day_nano_interval()
_DAYS: Final = 1 << 26
"""Up to so many days, 180,000 years, an interval has room for what else there is of it."""


def _fit_calendar(values: pa.Array) -> Fitted:
    """As databases give intervals: those of months are none, as their length is not known."""
    parts = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanos", "<i8")])
    _, data = values.buffers()
    given = np.frombuffer(data or b"", parts, len(values) if data else 0, values.offset * parts.itemsize)
    micros = given["days"].astype(np.int64) * UNITS["day"] + given["nanos"] // 1_000
    bad = (given["months"] != 0) | (np.abs(given["days"].astype(np.int64)) >= _DAYS)
    nulls = values.is_null().to_numpy(zero_copy_only=False)
    return _without(Fitted(pa.array(micros, mask=nulls).view(DURATION)), pa.array(bad & ~nulls))


def _fit_nested(values: pa.Array, type_: pa.DataType, time_unit: int | None) -> Fitted:
    def part(parts: pa.Array, wanted: pa.DataType) -> tuple[pa.Array, tuple[int, ...]]:
        fitted = fit(parts, wanted, time_unit)
        return fitted.values, fitted.bad

    unread: tuple[int, ...] = ()
    if _is_text(values.type):
        values, unread = lists_of_texts(values, type_)
    try:
        nested, bad = fit_nested(values, type_, part)
    except NoNesting:
        raise CannotFit from None
    bad = tuple(sorted({*bad, *unread}))
    if not bad:
        return Fitted(nested)
    nobody = np.isin(np.arange(len(nested)), bad)
    return Fitted(nested.take(pa.array(np.where(nobody, 0, np.arange(len(nested))), mask=nobody)), bad)


def always_fits(given: pa.DataType, type_: pa.DataType) -> bool:
    """Whether a value of a Parquet column cannot but fit, so that nobody need look at it.

    >>> always_fits(pa.int64(), pa.int64()), always_fits(pa.int64(), pa.int32())
    (True, False)
    """
    if type_ == VARCHAR:  # what Parquet calls a string is valid UTF-8
        return bool(pa.types.is_string(given) or pa.types.is_large_string(given))
    return bool(given == type_ and (type_ == BOOLEAN or _is_number(type_)))


def written(values: pa.Array, row: int) -> str | None:
    """One value as text for people to read, even if it is bytes that are no text or of a type that has none."""
    value = values[row]
    if not value.is_valid:
        return None
    if is_nested(values.type):
        return str(value_text(values.slice(row, 1))[0].as_py())
    try:
        text = value.as_py() if _is_text(values.type) else pc.cast(value, VARCHAR).as_py()
    except (ValueError, pa.ArrowException):  # UnicodeDecodeError is a ValueError
        text = value.as_buffer().to_pybytes() if _is_text(values.type) else f"a {values.type}"
    return text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else str(text)


def shown(values: pa.Array, row: int) -> str:
    """One value as it is quoted in a reason, cut short.

    >>> shown(pa.array(["x" * 100]), 0)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..'"
    """
    text = written(values, row)
    if text is None:
        return "NULL"
    return "'" + (text[:60] + ".." if len(text) > 60 else text) + "'"


def outside_time(values: pa.Array) -> tuple[int, ...]:
    """Rows of a TIMESTAMP column that cannot be the instant of a row: NULL, or the end of time itself."""
    instants = values.cast(pa.int64()).fill_null(FOREVER).to_numpy()
    return tuple(np.flatnonzero((instants < BEGINNING) | (instants >= FOREVER)).tolist())


def _is_text(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_string_view(type_)
        or pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
        or pa.types.is_binary_view(type_)
        or pa.types.is_fixed_size_binary(type_)
    )


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def _cast_each(values: pa.Array, cast: Callable[[pa.Array], pa.Array], type_: pa.DataType) -> Fitted:
    """Cast all at once; where that fails, halve until the culprits stand alone. Good rows are never visited singly."""
    parts: list[pa.Array] = []
    bad: list[int] = []
    pending = [(0, len(values))]
    while pending:
        start, stop = pending.pop()
        try:
            parts.append(cast(values.slice(start, stop - start)))
        except pa.ArrowInvalid:
            if stop - start == 1:
                parts.append(pa.nulls(1, type_))
                bad.append(start)
            else:
                middle = (start + stop) // 2
                pending += [(middle, stop), (start, middle)]
    return Fitted(parts[0] if len(parts) == 1 else pa.concat_arrays(parts), tuple(bad))


def _without(fitted: Fitted, unfit: Any) -> Fitted:
    """The same with the rows of the mask `unfit` (numpy, or an Arrow array without NULLs) marked as bad as well."""
    mask = np.asarray(unfit)
    if not mask.any():
        return fitted
    bad = sorted({*fitted.bad, *np.flatnonzero(mask).tolist()})
    return Fitted(pc.if_else(pa.array(mask), pa.scalar(None, fitted.values.type), fitted.values), tuple(bad))


def _fit_text(values: pa.Array) -> Fitted:
    given = values.type
    if _is_text(given):
        # Arrow believes a file that calls its bytes a string; going through bytes makes it look.
        return _cast_each(values, lambda part: pc.cast(pc.cast(part, pa.binary()), VARCHAR), VARCHAR)
    if _is_number(given) or pa.types.is_boolean(given) or pa.types.is_temporal(given):
        return _cast_each(values, lambda part: pc.cast(part, VARCHAR), VARCHAR)
    raise CannotFit


def _fit_from_text(values: pa.Array, type_: pa.DataType, time_unit: int | None) -> Fitted:
    text = _fit_text(values)
    if type_ == TIMESTAMP:
        fitted = _fit_timestamp_text(text.values, time_unit)
    elif pa.types.is_floating(type_):
        fitted = _numbers(text.values, DOUBLE)
        infinite = pc.is_inf(fitted.values).fill_null(False)
        if infinite.true_count:  # written so, or a number too great?
            written = pc.match_substring_regex(text.values, _INFINITY).fill_null(False)
            fitted = _without(fitted, pc.and_not(infinite, written))
        narrow = _fit_float(fitted.values, type_)
        fitted = Fitted(narrow.values, tuple(sorted({*fitted.bad, *narrow.bad})))
    elif pa.types.is_decimal(type_):
        fitted = _decimals(text.values, type_)
    else:
        fitted = _numbers(text.values, type_)
        if type_ == DATE:
            fitted = _within_days(fitted)
    return Fitted(fitted.values, tuple(sorted({*text.bad, *fitted.bad})))


def _numbers(text: pa.Array, type_: pa.DataType) -> Fitted:
    """Text cast as it stands if all of it can be; otherwise with blanks around it and a leading plus taken off."""
    try:
        return Fitted(pc.cast(text, type_))
    except pa.ArrowInvalid:
        plain = pc.replace_substring_regex(pc.utf8_trim_whitespace(text), r"^\+(\d)", r"\1")
        return _cast_each(plain, lambda part: pc.cast(part, type_), type_)


def _decimals(text: pa.Array, type_: pa.DataType) -> Fitted:
    values = read_decimals(text, type_)
    return Fitted(values, tuple(np.flatnonzero(pc.and_(text.is_valid(), values.is_null())).tolist()))


def _fit_decimal(values: pa.Array, type_: pa.DataType) -> Fitted:
    """Decimals of the same scale as they are, if the digits suffice; of any other number its text, which is exact."""

    def checked(part: pa.Array) -> pa.Array:
        same = pc.cast(part, type_)
        same.validate(full=True)  # a file may say a precision and not keep to it
        return same

    if pa.types.is_decimal(values.type) and values.type.scale == type_.scale:
        return _cast_each(values, checked, type_)
    return _decimals(pc.cast(values, VARCHAR), type_)


def _fit_float(values: pa.Array, type_: pa.DataType) -> Fitted:
    """The nearest floating number; a finite value that is beyond the greatest one does not fit."""
    wide = values if values.type == DOUBLE else pc.cast(values, DOUBLE, safe=False)
    if type_ != REAL:
        return Fitted(wide)
    narrow = pc.cast(wide, REAL)
    return _without(Fitted(narrow), pc.and_(pc.is_inf(narrow), pc.is_finite(wide)).fill_null(False))


def _fit_date(values: pa.Array) -> Fitted:
    given = values.type
    if pa.types.is_timestamp(given):
        instants = _fit_timestamp(values, None)
        micros = instants.values.cast(pa.int64()).fill_null(0).to_numpy()
        fitted = Fitted(pc.cast(instants.values, DATE), instants.bad)
        return _without(fitted, micros % 86_400_000_000 != 0)
    if pa.types.is_date(given):
        return _within_days(_cast_each(values, lambda part: pc.cast(part, DATE), DATE))
    raise CannotFit


def _within_days(fitted: Fitted) -> Fitted:
    days = fitted.values.cast(pa.int32()).fill_null(0).to_numpy()
    return _without(fitted, (days < _FIRST_DAY) | (days > _LAST_DAY))


def _fit_timestamp(values: pa.Array, time_unit: int | None) -> Fitted:
    given = values.type
    if pa.types.is_timestamp(given):
        return _instants(values.cast(pa.int64()), *_MICROSECONDS[given.unit])
    if pa.types.is_date(given):
        days = _fit_date(values)
        whole = _instants(days.values.cast(pa.int32()).cast(pa.int64()), 86_400_000_000, 1)
        return Fitted(whole.values, days.bad)
    if _is_number(given) and time_unit is not None:
        counts = fit(values, pa.int64())
        whole = _instants(counts.values, time_unit, 1)
        return Fitted(whole.values, tuple(sorted({*counts.bad, *whole.bad})))
    raise CannotFit


def _instants(counts: pa.Array, times: int, per: int) -> Fitted:
    """Instants from counts of a unit of `times` microseconds, or of which `per` make one; NULL stays NULL."""
    numbers = counts.fill_null(0).to_numpy() // per
    outside = (numbers < BEGINNING // times) | (numbers > FOREVER // times)
    micros = np.where(outside, 0, numbers) * times
    values = pa.array(micros, pa.int64(), mask=counts.is_null().to_numpy(zero_copy_only=False)).cast(TIMESTAMP)
    return _without(Fitted(values), outside)


def _fit_timestamp_text(text: pa.Array, time_unit: int | None) -> Fitted:
    utc = pa.timestamp("us", "UTC")
    for usual in (TIMESTAMP, utc):
        try:
            return _within_time(Fitted(pc.cast(text, usual).cast(TIMESTAMP)))
        except pa.ArrowInvalid:
            continue
    plain = pc.utf8_upper(pc.utf8_trim_whitespace(text))
    plain = pc.replace_substring_regex(plain, _LONG_FRACTION, r"\1")
    plain = pc.replace_substring_regex(plain, _SPACED_ZONE, r"\1")
    zoned = pc.match_substring_regex(plain, _ZONED)
    nothing = pa.scalar(None, pa.string())
    counted = pc.match_substring_regex(plain, _WHOLE_NUMBER) if time_unit is not None else pc.and_(zoned, False)
    local = _cast_each(
        pc.if_else(pc.or_(zoned, counted), nothing, plain), lambda part: pc.cast(part, TIMESTAMP), TIMESTAMP
    )
    absolute = _cast_each(pc.if_else(zoned, plain, nothing), lambda part: pc.cast(part, utc), utc)
    number = _numbers(pc.if_else(counted, plain, nothing), pa.int64())
    from_numbers = _instants(number.values, time_unit or 1, 1)
    whole = pc.coalesce(local.values, absolute.values.cast(TIMESTAMP), from_numbers.values)
    bad = {*local.bad, *absolute.bad, *number.bad, *from_numbers.bad}
    return _within_time(Fitted(whole, tuple(sorted(bad))))


def _within_time(fitted: Fitted) -> Fitted:
    instants = fitted.values.cast(pa.int64()).fill_null(0).to_numpy()
    return _without(fitted, (instants < BEGINNING) | (instants > FOREVER))
