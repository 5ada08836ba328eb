"""What an answer is, apart from how it was cut into lifetimes or batches: the snapshot from each change on, or the rows
of a stream. Answers of two runtimes are compared as histories, by `difference`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from transom.core.time import FOREVER, format_instant

Row = tuple[Any, ...]
Bag = Counter[Row]

# The one NaN of all histories. Tuples and dictionaries look at identity before equality, so that rows with this very
# object are equal to each other and hash alike, though NaN is not equal to itself.
NAN: Final = float("nan")


class _MinusZero(float):
    """-0.0, which for Python equals 0.0; an answer that has the one where the other belongs is another answer."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _MinusZero)

    def __hash__(self) -> int:
        return hash(_MinusZero)


MINUS_ZERO: Final = _MinusZero(-0.0)


def canonical(row: Iterable[Any]) -> Row:
    """The row with values written in one way, so that equal answers compare equal.

    >>> canonical([Decimal("2.00"), float("nan")]) == canonical([2, float("nan")])
    True
    >>> canonical([-0.0]) == canonical([0.0])
    False
    """
    row = tuple(row)
    return row if _AS_IT_IS.issuperset(map(type, row)) else tuple(map(_canonical_value, row))


_AS_IT_IS: Final = frozenset((type(None), bool, int, str, bytes, date, datetime))
"""Types whose values are written in one way only; most rows have no others."""


def _canonical_value(value: Any) -> Any:
    if isinstance(value, float):
        if math.isnan(value):
            return NAN
        return value if value else _zero(value)
    if isinstance(value, list | tuple | dict):
        return tuple(map(_canonical_part, value.values() if isinstance(value, dict) else value))
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    return value


def _canonical_part(value: Any) -> Any:
    """Within arrays and structs, of which a struct is the tuple of its fields, there is one zero."""
    value = _canonical_value(value)
    return 0.0 if value is MINUS_ZERO else value


def _zero(value: float) -> float:
    return MINUS_ZERO if math.copysign(1, value) < 0 else 0.0


def grouped(row: Iterable[Any]) -> Row:
    """The row that stands for all that SQL's grouping calls equal to it: of both zeros 0.0.

    >>> grouped([-0.0, Decimal("2.00"), float("nan")]) == grouped([0.0, 2, float("nan")])
    True
    """
    row = canonical(row)
    return tuple(0.0 if value is MINUS_ZERO else value for value in row) if _MinusZero in map(type, row) else row


def value_order(row: Row) -> tuple[tuple[int, Any], ...]:
    """A sort key for the order of values, column by column: NULL first, strings by their bytes, NaN last.

    >>> sorted([("b",), (None,), ("B",)], key=value_order)
    [(None,), ('B',), ('b',)]
    """
    return tuple(_order_of(value) for value in row)


def _order_of(value: Any) -> tuple[int, Any]:
    if value is None:
        return (0, 0)
    if isinstance(value, float) and math.isnan(value):
        return (2, 0)
    if isinstance(value, tuple):  # within arrays and structs NULL is behind all
        return (1, tuple((3, 0) if part is None else _order_of(part) for part in value))
    return (1, value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value)


@dataclass(frozen=True)
class History(ABC):
    """An answer, with how many rows of each input were late and how many were rejected."""

    late: Mapping[str, int] = field(default_factory=dict, kw_only=True, compare=False)
    rejected: Mapping[str, int] = field(default_factory=dict, kw_only=True, compare=False)

    @property
    @abstractmethod
    def instants(self) -> tuple[int, ...]:
        """The instants at which something happens."""


@dataclass(frozen=True)
class RelationHistory(History):
    """`points[i]` = (instant, the snapshot from there on); neighbours differ, and before the first there is nothing.

    `one_zero`: rows are those of `grouped`, as changes show them.
    """

    points: tuple[tuple[int, Bag], ...] = ()
    one_zero: bool = field(default=False, kw_only=True, compare=False)

    @property
    def instants(self) -> tuple[int, ...]:
        return tuple(instant for instant, _ in self.points)

    def snapshot(self, instant: int) -> Bag:
        points_before = bisect_right(self.points, instant, key=lambda point: point[0])
        return self.points[points_before - 1][1] if points_before else Counter()

    def grouped(self) -> RelationHistory:
        """The history with -0.0 as 0.0: differences of snapshots, which are differences of bags, see no more."""
        if self.one_zero:
            return self
        snapshots = ((instant, map(grouped, bag.elements())) for instant, bag in self.points)
        return replace(RelationHistory.of(snapshots, self.late, self.rejected), one_zero=True)

    @staticmethod
    def of(
        snapshots: Iterable[tuple[int, Iterable[Iterable[Any]]]],
        late: Mapping[str, int] | None = None,
        rejected: Mapping[str, int] | None = None,
    ) -> RelationHistory:
        """The history of the rows alive at each instant, in time order; neighbours that are equal become one."""
        points: list[tuple[int, Bag]] = []
        before: Bag = Counter()
        for instant, rows in snapshots:
            bag = Counter(canonical(row) for row in rows)
            if bag != before:
                points.append((instant, bag))
                before = bag
        return RelationHistory(tuple(points), late=late or {}, rejected=rejected or {})

    @staticmethod
    def of_changes(
        changes: Iterable[tuple[int, int, Iterable[Any]]],
        late: Mapping[str, int] | None = None,
        rejected: Mapping[str, int] | None = None,
    ) -> RelationHistory:
        """The history of (instant, +n or -n, row) in any order. A count below zero is an error of whoever made them.

        And so is -0.0: of rows that are equal to each other changes cannot tell which of them came or went.
        """
        rows = [(instant, n, canonical(row)) for instant, n, row in changes]
        for instant, _, row in rows:
            if _MinusZero in map(type, row):
                raise ValueError(
                    f"a change of {show(row)} at {format_instant(instant)}: of equal rows the one with 0.0"
                )
        return replace(RelationHistory._of_changes(rows, late, rejected), one_zero=True)

    @staticmethod
    def _of_changes(
        changes: Iterable[tuple[int, int, Row]], late: Mapping[str, int] | None, rejected: Mapping[str, int] | None
    ) -> RelationHistory:
        by_instant: dict[int, Bag] = {}
        for instant, n, row in changes:
            by_instant.setdefault(instant, Counter())[row] += n
        points: list[tuple[int, Bag]] = []
        alive: Bag = Counter()
        for instant in sorted(by_instant):
            after = Counter(alive)
            after.update(by_instant[instant])
            for row, n in after.items():
                if n < 0:
                    raise ValueError(f"{n} copies of {show(row)} at {format_instant(instant)}")
            after = +after
            if after != alive:
                points.append((instant, after))
                alive = after
        return RelationHistory(tuple(points), late=late or {}, rejected=rejected or {})

    @staticmethod
    def of_lifetimes(
        lifetimes: Iterable[tuple[Iterable[Any], int, int | None]],
        late: Mapping[str, int] | None = None,
        rejected: Mapping[str, int] | None = None,
    ) -> RelationHistory:
        """The history of (row, ta, te); an open end is None. Open and forever look the same in every snapshot."""
        changes: list[tuple[int, int, Row]] = []
        for values, ta, te in lifetimes:
            row = canonical(values)
            changes.append((ta, 1, row))
            if te is not None and te < FOREVER:
                changes.append((te, -1, row))
        return RelationHistory._of_changes(changes, late, rejected)


@dataclass(frozen=True)
class StreamHistory(History):
    """`points[i]` = (instant, its rows in their order); every instant has a row."""

    points: tuple[tuple[int, tuple[Row, ...]], ...] = ()

    @property
    def instants(self) -> tuple[int, ...]:
        return tuple(instant for instant, _ in self.points)

    def rows(self, instant: int) -> tuple[Row, ...]:
        points_before = bisect_right(self.points, instant, key=lambda point: point[0])
        return (
            self.points[points_before - 1][1] if points_before and self.points[points_before - 1][0] == instant else ()
        )

    @staticmethod
    def of(
        rows: Iterable[tuple[int, Iterable[Any]]],
        late: Mapping[str, int] | None = None,
        rejected: Mapping[str, int] | None = None,
    ) -> StreamHistory:
        """The history of (instant, row) in stream order."""
        points: dict[int, list[Row]] = {}
        for instant, row in rows:
            points.setdefault(instant, []).append(canonical(row))
        ordered = tuple((instant, tuple(points[instant])) for instant in sorted(points))
        return StreamHistory(ordered, late=late or {}, rejected=rejected or {})


def difference(a: History, b: History, until: int | None = None) -> str | None:
    """None when two answers are equal before `until`; otherwise the first instant at which they are not, and how."""
    if isinstance(a, RelationHistory) and isinstance(b, RelationHistory):
        if a.one_zero or b.one_zero:
            a, b = a.grouped(), b.grouped()
        for instant in _instants(a, b, until):
            left, right = a.snapshot(instant), b.snapshot(instant)
            if left != right:
                return "\n".join(
                    [
                        f"the snapshots at {_at(instant)} differ:",
                        *_only("first", left - right),
                        *_only("second", right - left),
                    ]
                )
        return None
    if isinstance(a, StreamHistory) and isinstance(b, StreamHistory):
        for instant in _instants(a, b, until):
            ours, theirs = a.rows(instant), b.rows(instant)
            if ours != theirs:
                first, second = " ".join(map(show, ours)), " ".join(map(show, theirs))
                return f"the rows of {_at(instant)} differ:\n  first:  {first}\n  second: {second}"
        return None
    return f"one answer is a {type(a).__name__}, the other a {type(b).__name__}"


def show(row: Row) -> str:
    """A row as people read it.

    >>> show((1, None, "a"))
    "(1, NULL, 'a')"
    """
    return "(" + ", ".join(_show_value(value) for value in row) + ")"


def _show_value(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, (date, datetime, Decimal)):
        return str(value)
    return repr(value)


def _instants(a: History, b: History, until: int | None) -> list[int]:
    return [t for t in sorted({*a.instants, *b.instants}) if until is None or t < until]


def _at(instant: int) -> str:
    return f"{format_instant(instant)} ({instant})"


def _only(which: str, bag: Bag) -> list[str]:
    rows = sorted(bag.items(), key=lambda item: value_order(item[0]))
    return [f"  only in the {which}: {show(row)}" + (f" x {n}" if n > 1 else "") for row, n in rows]
