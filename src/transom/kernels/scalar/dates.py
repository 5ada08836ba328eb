"""Dates and timestamps: their parts, truncation, distance, and moving them. Results stay within the years 1 to 9999."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from transom.core.schema import BIGINT, DATE, DOUBLE, INTEGER, TIMESTAMP
from transom.core.time import BEGINNING, FOREVER, UNITS
from transom.kernels.scalar.values import Kernel, Value, failure, reject_rows, whole
from transom.plan.expression import Call, Expression, Literal

DAY: Final = UNITS["day"]
FIRST_DAY: Final = BEGINNING // DAY
LAST_DAY: Final = FOREVER // DAY

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
