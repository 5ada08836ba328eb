"""Dates and timestamps: their parts, truncation, distance, and moving them. Results stay within the years 1 to 9999."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.schema import BIGINT, DATE, DOUBLE, INTEGER, TIMESTAMP
from transom.core.time import BEGINNING, FOREVER, UNITS
from transom.kernels.scalar.decimals import halves_away
from transom.kernels.scalar.values import Kernel, Value, as_arrays, failure, reject_rows, valid_like, whole
from transom.plan.expression import Call, Expression, Literal

DAY: Final = UNITS["day"]
FIRST_DAY: Final = BEGINNING // DAY
LAST_DAY: Final = FOREVER // DAY

DAY_NAMES: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTH_NAMES: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip

_PARTS: Final = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "dayofyear": pc.day_of_year,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
    "millisecond": lambda moment: pc.add(pc.multiply(pc.second(moment), whole(1000)), pc.millisecond(moment)),
    "microsecond": lambda moment: pc.subtract(
        moment.cast(BIGINT), pc.floor_temporal(moment, unit="minute").cast(BIGINT)
    ),
    "isodow": lambda moment: pc.day_of_week(moment, count_from_zero=False),
    "isoyear": pc.iso_year,
    "decade": lambda moment: pc.divide(pc.year(moment), whole(10)),
    "century": lambda moment: pc.divide(pc.add(pc.year(moment), whole(99)), whole(100)),
    "epoch_ms": lambda moment: halves_away(moment.cast(BIGINT), 1000),
    "epoch_us": lambda moment: moment.cast(BIGINT),
}


def part(call: Call) -> Kernel:
    """year(ts), hour(ts), ..: a number."""
    if call.function == "epoch":
        million = pa.scalar(1e6)
        return lambda moment: pc.divide(moment.cast(BIGINT).cast(DOUBLE, safe=False), million)
    if call.function == "dayofweek":
        return lambda moment: pc.day_of_week(moment, week_start=7).cast(BIGINT)
    kernel = _PARTS[call.function]
    return lambda moment: kernel(moment).cast(BIGINT)


def _literal_part(call: Call) -> str:
    name = call.arguments[0]
    assert isinstance(name, Literal)
    return str(name.value)


def date_trunc(call: Call) -> Kernel:
    unit = _literal_part(call)
    return lambda _, moment: pc.floor_temporal(moment, unit=unit)


def date_diff(call: Call) -> Kernel:
    """How many boundaries of a part lie between; of weeks, how many times seven days' boundaries."""
    unit = _literal_part(call)

    def position(moment: Value) -> Value:
        if unit == "year":
            return pc.year(moment)
        if unit == "quarter":
            return pc.add(pc.multiply(pc.year(moment), whole(4)), pc.quarter(moment))
        if unit == "month":
            return pc.add(pc.multiply(pc.year(moment), whole(12)), pc.month(moment))
        size = UNITS["day" if unit == "week" else unit]
        return moment.cast(BIGINT) if size == 1 else floor_divide(moment.cast(BIGINT), size)

    def run(_: Value, start: Value, end: Value) -> Value:
        distance = pc.subtract(position(end), position(start))
        return pc.divide(distance, whole(7)) if unit == "week" else distance

    return run


def floor_divide(numbers: Value, size: int) -> Value:
    """Division that rounds down, also before 1970."""
    quotient = pc.divide(numbers, whole(size))
    below = pc.less(numbers, pc.multiply(quotient, whole(size)))
    return pc.subtract(quotient, below.cast(BIGINT))


def days_moved(date: Value, days: Value, sign: int) -> Value:
    """Days since 1970 as BIGINT, `days` later (or earlier)."""
    move = pc.add if sign > 0 else pc.subtract
    return move(date.cast(INTEGER).cast(BIGINT), days.cast(BIGINT))


def beyond_time(numbers: Value, type_: pa.DataType) -> pa.Array:
    """Which counts of days (DATE) or microseconds (TIMESTAMP) are outside the years 1 to 9999."""
    first, last = (FIRST_DAY, LAST_DAY) if type_ == DATE else (BEGINNING, FOREVER)
    return pc.or_(pc.less(numbers, whole(first)), pc.greater(numbers, whole(last)))


def reject_beyond_time(expression: Expression, values: Sequence[Value], numbers: Value, type_: pa.DataType) -> None:
    reject_rows(expression, "the result is outside the years 1 to 9999", values, beyond_time(numbers, type_))


def add_interval(call: Call) -> Kernel:
    def run(moment: Value, micros: Value) -> Value:
        try:
            moved = pc.add_checked(moment.cast(BIGINT), micros)
        except pa.ArrowInvalid:  # beyond 64 bits: far outside the time domain, whichever row it was
            raise failure(call, "the result is outside the years 1 to 9999", (micros,), 0) from None
        reject_beyond_time(call, (moment, micros), moved, TIMESTAMP)
        return moved.cast(TIMESTAMP)

    return run


_MOST_MONTHS: Final = 12 * 10_000


def add_months(call: Call) -> Kernel:
    """Months first, where a day that the month does not have becomes its last one; then the microseconds."""

    def run(moment: Value, months: Value, micros: Value) -> Value:
        moments, by, rest = as_arrays((moment, months, micros))
        there = pc.and_(pc.and_(moments.is_valid(), by.is_valid()), rest.is_valid())
        reason = "the result is outside the years 1 to 9999"
        reject_rows(call, reason, (moment, months), pc.and_(pc.greater(pc.abs(by), whole(_MOST_MONTHS)), there))
        moved = pa.array(_later_by_months(_numbers(moments), _numbers(by)))
        try:
            moved = pc.add_checked(valid_like(moved, moments, by), rest)
        except pa.ArrowInvalid:
            raise failure(call, reason, (micros,), 0) from None
        reject_beyond_time(call, (moment, months, micros), moved, TIMESTAMP)
        return moved.cast(TIMESTAMP)

    return run


def _numbers(column: pa.Array) -> npt.NDArray[np.int64]:
    """The numbers of a column, 0 for NULL."""
    return np.asarray(pc.fill_null(column.cast(BIGINT), whole(0)).to_numpy(zero_copy_only=False), np.int64)


def _later_by_months(micros: npt.NDArray[np.int64], months: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    days = micros // DAY
    month = days.astype("M8[D]").astype("M8[M]")
    first = month.astype("M8[D]").astype(np.int64)
    later = month + months
    start = later.astype("M8[D]").astype(np.int64)
    length = (later + 1).astype("M8[D]").astype(np.int64) - start
    moved: npt.NDArray[np.int64] = (start + np.minimum(days - first, length - 1)) * DAY + micros % DAY
    return moved


def last_day(moment: Value) -> Value:
    (moments,) = as_arrays((moment,))
    month = (_numbers(moments) // DAY).astype("M8[D]").astype("M8[M]")
    days = (month + 1).astype("M8[D]").astype(np.int64) - 1
    return valid_like(pa.array(days.astype(np.int32)).cast(DATE), moments)


def make_date(call: Call) -> Kernel:
    def run(*values: Value) -> Value:
        columns = as_arrays(values)
        there = pc.and_(pc.and_(columns[0].is_valid(), columns[1].is_valid()), columns[2].is_valid())
        year, month, day = (_numbers(column) for column in columns)
        fits = (year >= 1) & (year <= 9999) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
        months = np.where(fits, (year - 1970) * 12 + month - 1, 0)
        first = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
        fits &= day <= (months + 1).astype("M8[M]").astype("M8[D]").astype(np.int64) - first
        beyond = pc.and_(there, pa.array((year < 1) | (year > 9999)))
        reject_rows(call, "the result is outside the years 1 to 9999", values, beyond)
        reject_rows(call, "there is no such day", values, pc.and_(there, pa.array(~fits)))
        days = np.where(fits, first + day - 1, 0).astype(np.int32)
        return valid_like(pa.array(days).cast(DATE), *columns)

    return run


def named(names: Sequence[str], positions: Value) -> Value:
    """The name at each position."""
    (column,) = as_arrays((positions,))
    return pa.array(names).take(column)


def name_of(call: Call) -> Kernel:
    """dayname(moment), monthname(moment)."""
    if call.function == "dayname":
        return lambda moment: named(DAY_NAMES, pc.day_of_week(moment))
    return lambda moment: named(MONTH_NAMES, pc.subtract(pc.month(moment), whole(1)))


_MONDAY: Final = 10_959 * DAY  # 2000-01-03
_JANUARY: Final = 30 * 12  # 2000-01, from 1970-01


def time_bucket(call: Call) -> Kernel:
    """The start of the interval around a moment, counted from an origin: of months from the month of it."""
    months, micros = (argument.value for argument in call.arguments[1:3] if isinstance(argument, Literal))

    def run(moment: Value, _: Value, __: Value, origin: Value | None = None) -> Value:
        columns = as_arrays((moment,) if origin is None else (moment, origin))
        moments, *origins = columns
        if months:
            starts = _month_starts(moments, months, origins[0] if origins else None)
        else:
            first = origins[0].cast(BIGINT) if origins else whole(_MONDAY)
            passed = pc.subtract(moments.cast(BIGINT), first)
            starts = pc.add(pc.multiply(floor_divide(passed, micros), whole(micros)), first)
        starts = valid_like(starts, *columns)
        reject_beyond_time(call, (moment,), starts, TIMESTAMP)
        return starts.cast(TIMESTAMP)

    return run


def _month_starts(moments: pa.Array, months: int, origin: pa.Array | None) -> pa.Array:
    def month_of(column: pa.Array) -> npt.NDArray[np.int64]:
        return (_numbers(column) // DAY).astype("M8[D]").astype("M8[M]").astype(np.int64)

    first = month_of(origin) if origin is not None else np.int64(_JANUARY)
    passed = (month_of(moments) - first) // months * months + first
    return pa.array(passed.astype("M8[M]").astype("M8[D]").astype(np.int64) * DAY)
