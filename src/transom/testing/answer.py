"""What a query gave, and whether that is what the test expects."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from transom.core.errors import OptionError
from transom.core.schema import Schema
from transom.core.time import from_datetime, to_datetime
from transom.testing.difference import compare_snapshot, difference
from transom.testing.instant_text import EXAMPLES, Times
from transom.testing.written import Row, WrittenRows, WrittenWord, show_row

Bag = Counter[Row]


@dataclass(frozen=True)
class Answer:
    """The rows of a stream, or every change of a relation: (instant, +1 or -1, row), in time order.

    As text it is written as `expect` reads it. `rejected` are the rows of the inputs that were late or rejected.

    >>> from transom.testing import run_query
    >>> answer = run_query('''
    ...     CREATE STREAM s (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory');
    ...     SELECT MAX(a) AS m FROM s [RANGE 3 SECONDS]
    ... ''', {"s": "1 5 \\n 2 7"})
    >>> print(answer)
    1 + 5
    2 - 5
    2 + 7
    5 - 7
    5 + NULL
    >>> answer.at("2.5"), answer.at("0.5")
    ([(7,)], [])
    """

    schema: Schema
    stream: bool
    changes: tuple[tuple[int, int, Row], ...]
    times: Times = field(repr=False, compare=False)
    rejected: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        return self.schema.names

    @cached_property
    def net(self) -> dict[int, Bag]:
        """What every instant adds and takes away, all of it; instants in their order."""
        net: dict[int, Bag] = {}
        for instant, n, row in sorted(self.changes, key=lambda change: change[0]):
            net.setdefault(instant, Counter())[row] += n
        for bag in net.values():
            for row in [row for row, n in bag.items() if n == 0]:
                del bag[row]
        return {instant: bag for instant, bag in net.items() if bag}

    @property
    def instants(self) -> list[datetime]:
        """The instants at which something happens."""
        return [to_datetime(instant) for instant in self.net]

    def at(self, when: str | datetime) -> list[Row]:
        """The snapshot at an instant: the rows alive there, in the order of their values; of a stream, its rows."""
        instant = from_datetime(when) if isinstance(when, datetime) else self.times.read(when)
        if instant is None:
            raise OptionError(f"'{when}' is no time", remedy=EXAMPLES)
        return sorted(self.bag(instant).elements(), key=value_order)

    def snapshots(self) -> Iterator[tuple[datetime, list[Row]]]:
        """Every instant at which something happens, and the rows from there on; of a stream, its rows."""
        alive: Bag = Counter()
        for instant, change in self.net.items():
            alive = Counter(change) if self.stream else _added(alive, change)
            yield to_datetime(instant), sorted(alive.elements(), key=value_order)

    def bag(self, instant: int) -> Bag:
        if self.stream:
            return Counter(self.net.get(instant, Counter()))
        instants = list(self.net)
        alive: Bag = Counter()
        for at in instants[: bisect_right(instants, instant)]:
            alive.update(self.net[at])
        return +alive

    # --- expectations ------------------------------------------------------------------------------------------------

    def expect(self, text: str, *, digits: int | None = None) -> None:
        """Fails unless this is the answer: for a relation `time + row` and `time - row`, for a stream `time row`.

        Relations are compared by their snapshots at every instant: in which order the changes of an instant are
        written, and whether a row that stays is taken away and put back, is all the same. With `digits`, floating
        numbers are compared to so many significant digits.

        >>> from transom.testing import run_query
        >>> table = "CREATE TABLE t (a INTEGER) WITH (connector = 'memory');"
        >>> run_query(table + "SELECT a / 3.0e0 AS third FROM t", {"t": "1"}).expect("0 + 0.333", digits=3)
        >>> run_query(table + "SELECT a + 1 AS b FROM t", {"t": "1"}).expect("0 + 1")
        Traceback (most recent call last):
        AssertionError: the answer is not as expected at 0:
          - 1  (expected, not there)
          + 2  (there, not expected)
        the answer is
          0 + 2
        """
        __tracebackhide__ = True
        differs = difference(self._read(text), self, digits=digits)
        if differs is not None:
            raise AssertionError(differs)

    def expect_at(self, text: str, *, digits: int | None = None) -> None:
        """Fails unless these are the snapshots at some instants: lines of `at time: row; row`, or `at time: nothing`.

        >>> from transom.testing import run_query
        >>> table = "CREATE TABLE t (a INTEGER, b VARCHAR) WITH (connector = 'memory');"
        >>> answer = run_query(table + "SELECT b, a FROM t", {"t": "1 x \\n 2 y"})
        >>> answer.expect_at("at 7: y 2; x 1")
        >>> answer.expect_at("at 7: y 2; x 3")
        Traceback (most recent call last):
        AssertionError: the snapshot is not as expected at 7:
            y 2
          - x 3  (expected, not there)
          + x 1  (there, not expected)
        """
        __tracebackhide__ = True
        written = WrittenRows(text, "the expected snapshots", self.times)
        for line in written.lines():
            instant, expected = self._read_snapshot(written, line)
            differs = compare_snapshot(instant, expected, self.bag(instant), self.times, digits)
            if differs is not None:
                raise AssertionError("the snapshot is not as expected" + differs)

    def __str__(self) -> str:
        signs = {1: "" if self.stream else "+ ", -1: "- "}
        return "\n".join(
            f"{self.times.show(instant)} {signs[n]}{show_row(row, self.times)}".rstrip()
            for instant, n, row in self.changes
        )

    def _read(self, text: str) -> Answer:
        written = WrittenRows(text, "the expected answer", self.times)
        changes = []
        lines: dict[tuple[int, Row], WrittenWord] = {}
        for line in written.lines():
            instant, sign, begin = written.instant(line[0]), 1, 1
            if not self.stream:
                sign, begin = written.sign(line, 1), 2
            row = written.row(line, line[begin:], self.schema)
            changes.append((instant, sign, row))
            if sign < 0:
                lines[instant, row] = line[1]
        expected = Answer(self.schema, self.stream, tuple(changes), self.times)
        alive: Bag = Counter()
        for instant, change in expected.net.items():
            alive.update(change)
            for row in change:
                if alive[row] < 0:
                    raise written.wrong(
                        lines[instant, row], "a row leaves that is not there", "write the '+' with which it entered"
                    )
        return expected

    def _read_snapshot(self, written: WrittenRows, line: list[WrittenWord]) -> tuple[int, Bag]:
        if line[0].text != "at" or len(line) < 3 or not line[1].text.endswith(":"):
            raise written.wrong(line[0], "a snapshot begins with its time", "write: at time: row; row")
        span = line[1].span
        instant = written.instant(WrittenWord(line[1].text.removesuffix(":"), span))
        if [word.text for word in line[2:]] == ["nothing"]:
            return instant, Counter()
        rows: list[list[WrittenWord]] = [[]]
        for word in line[2:]:
            if word.text == ";" and not word.quoted:
                rows.append([])
            else:
                rows[-1].append(word)
        return instant, Counter(written.row(line, words, self.schema) for words in rows)


def value_order(row: Row) -> tuple[tuple[int, Any], ...]:
    """A sort key for rows: NULL first, NaN last.

    >>> sorted([("b",), (None,), ("B",)], key=value_order)
    [(None,), ('B',), ('b',)]
    """
    return tuple(
        (0, 0) if value is None else (2, 0) if isinstance(value, float) and math.isnan(value) else (1, value)
        for value in row
    )


def _added(alive: Bag, change: Bag) -> Bag:
    alive.update(change)
    return +alive
