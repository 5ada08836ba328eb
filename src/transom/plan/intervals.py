"""INTERVAL values while a query is bound: a number of months and of microseconds, each an expression.

An interval is added to a moment, compared, multiplied or measured by `epoch`, and what comes of that are moments,
conditions and numbers. Without months it can be a column, a DURATION (`settle`), and is an interval again where such a
column is read. As in DuckDB a month is 30 days where intervals are
compared, and a day is 24 hours always.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import add, mul
from typing import Final

import pyarrow as pa

from transom.core.errors import QueryError
from transom.core.schema import BIGINT, BOOLEAN, DOUBLE, DURATION, TIMESTAMP, TIMESTAMPTZ, VARCHAR
from transom.core.time import UNITS
from transom.plan.expression import Call, Cast, Expression, Literal
from transom.plan.typing_rules import INTERVAL, NULL, coerce, is_integer, is_temporal

_DAY: Final = UNITS["day"]
_MONTH: Final = 30 * _DAY
_NOTHING: Final = Literal(0, BIGINT)
_BOUND: Final = 1 << 63

INTERVALS_TAKEN: Final = frozenset(
    ("+", "-", "*", "negate", "=", "<>", "<", "<=", ">", ">=", "is_not_distinct", "is_null", "epoch", "time_bucket")
)
"""Functions that reckon with an interval; all others take it as the value of a column."""


@dataclass(frozen=True)
class Interval(Expression):
    """So many months and microseconds; it never stands in a plan."""

    months: Expression
    micros: Expression

    @property
    def type(self) -> pa.DataType:
        return INTERVAL

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.months, self.micros)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return Interval(*children)

    def __str__(self) -> str:
        parts = [f"{amount} {unit}" for amount, unit in ((self.months, "MONTHS"), (self.micros, "MICROSECONDS"))]
        return f"INTERVAL ({' '.join(parts)})"

    @property
    def total(self) -> Expression:
        """Microseconds, with 30 days a month."""
        return _combined("+", add, _combined("*", mul, self.months, Literal(_MONTH, BIGINT)), self.micros)


def interval(months: int, micros: int) -> Interval:
    if not (abs(months) < 1 << 31 and abs(micros) < _BOUND):
        raise QueryError("the interval is too long", remedy="write a shorter one")
    return Interval(Literal(months, BIGINT), Literal(micros, BIGINT))


def with_intervals(function: str, arguments: tuple[Expression, ...]) -> Expression | None:
    """The call of an operator of which an argument is an interval; None when the two do not fit."""
    if function == "is_null":
        return Call("is_null", (_whole(arguments[0]).total,), BOOLEAN)
    if function == "negate":
        return scaled(_whole(arguments[0]), Literal(-1, BIGINT))
    if function == "epoch":
        return _seconds(_whole(arguments[0]))
    if len(arguments) != 2:
        return None
    left, right = arguments
    if function == "*":
        by, factor = (left, right) if left.type == INTERVAL else (right, left)
        fits = is_integer(factor.type) or factor.type == NULL
        return scaled(_whole(by), coerce(factor, BIGINT)) if fits else None
    if function in ("+", "-"):
        return _moved(function, left, right)
    if left.type == right.type or NULL in (left.type, right.type):
        return Call(function, (_whole(left).total, _whole(right).total), BOOLEAN)
    return None


def between(earlier: Expression, later: Expression) -> Interval:
    """How long it is from one moment to another, which may be below 0."""
    moments = (coerce(earlier, TIMESTAMP), coerce(later, TIMESTAMP))
    return Interval(_NOTHING, Call("date_diff", (Literal("microsecond", VARCHAR), *moments), BIGINT))


def scaled(interval: Interval, factor: Expression) -> Interval:
    if interval.months == interval.micros == _NOTHING:  # times NULL it is NULL
        return Interval(_NOTHING, Call("*", (interval.micros, factor), BIGINT))
    return Interval(_combined("*", mul, interval.months, factor), _combined("*", mul, interval.micros, factor))


def _moved(function: str, left: Expression, right: Expression) -> Expression | None:
    if right.type != INTERVAL and function == "+":
        left, right = right, left
    if right.type != INTERVAL:
        return Literal(None, TIMESTAMP) if NULL in (left.type, right.type) else None
    by = _whole(right)
    by = by if function == "+" else scaled(by, Literal(-1, BIGINT))
    if left.type == INTERVAL:
        interval = _whole(left)
        return Interval(
            _combined("+", add, interval.months, by.months), _combined("+", add, interval.micros, by.micros)
        )
    if not (is_temporal(left.type) or left.type == NULL):
        return None
    type_ = moment_type(left)
    moment = coerce(left, type_)
    if by.months == _NOTHING:
        return Call("add_interval", (moment, by.micros), type_)
    return Call("add_months", (moment, by.months, by.micros), type_)


def moment_type(moment: Expression) -> pa.DataType:
    """What a moment is that is made from another: with a zone if that has one."""
    return TIMESTAMPTZ if moment.type == TIMESTAMPTZ else TIMESTAMP


def as_interval(value: Expression) -> Expression:
    """What a column of intervals holds as one that can be reckoned with; any other value as it is."""
    return Interval(_NOTHING, Cast(value, BIGINT)) if value.type == DURATION else value


def _whole(value: Expression) -> Interval:
    if isinstance(value, Interval):
        return value
    assert value.type == NULL
    return Interval(Literal(None, BIGINT), Literal(None, BIGINT))


def _seconds(interval: Interval) -> Expression | None:
    """Days and the rest of a day apart, as DuckDB adds them up; months are left out."""
    if interval.months != _NOTHING:
        return None
    day = Literal(_DAY, BIGINT)
    days, rest = (coerce(Call(name, (interval.micros, day), BIGINT), DOUBLE) for name in ("//", "%"))
    of_days = Call("*", (days, Literal(86_400.0, DOUBLE)), DOUBLE)
    return Call("+", (of_days, Call("/", (rest, Literal(1e6, DOUBLE)), DOUBLE)), DOUBLE)


def _combined(function: str, compute: Callable[[int, int], int], left: Expression, right: Expression) -> Expression:
    """A sum or product of BIGINTs; constants are computed at once, unless they are too great for one."""
    neutral, absorbing = (0, None) if function == "+" else (1, 0)
    for side, other in ((left, right), (right, left)):
        if isinstance(side, Literal) and side.value == neutral:
            return other
        if isinstance(side, Literal) and absorbing is not None and side.value == absorbing:
            return side
    if isinstance(left, Literal) and isinstance(right, Literal) and None not in (left.value, right.value):
        value = compute(left.value, right.value)
        if abs(value) < _BOUND:
            return Literal(value, BIGINT)
    return Call(function, (left, right), BIGINT)
