"""Rows that are made up: seeded, so that the same declaration gives the same rows whenever and wherever it is read.

| property | meaning |
| --- | --- |
| rows | how many; without it the source never ends |
| rate | rows for each second of their own time, by default 1; `0.1` is one every ten seconds |
| seed | a whole number, by default 0: another seed, other rows |
| start | the instant of the first row, by default `2024-01-01 00:00:00` |
| disorder | a duration: a row may carry a time that is up to so much before its turn, by default `0 seconds` |
| live | `true`: rows come at their rate by the wall clock, not as fast as they are wanted |
| column.NAME | how the column NAME is filled: see `column_rules.py` |

The time column of a stream or of a changing table is filled by `start`, `rate` and `disorder` alone. Disorder of no
more than the bound of the WATERMARK makes no row late; a longer one makes some late.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa

from transom.connectors.column_rules import ColumnRule, random_below, read_rule
from transom.connectors.conform import column_index, fold
from transom.connectors.connector import Limits, Plan, Source, Split, SplitRows
from transom.connectors.fit import fit
from transom.connectors.properties import reject_unknown
from transom.connectors.source import Growing, Position
from transom.connectors.splits import SPLIT_RECORDS
from transom.core.delta import Int64s
from transom.core.errors import OptionError
from transom.core.schema import TIMESTAMP, VARCHAR, Schema
from transom.core.time import FOREVER, SECOND, parse_duration

_COLUMN: Final = "column."
_KNOWN: Final = ("connector", "rows", "rate", "seed", "start", "disorder", "live")
_MOST_ROWS: Final = 1 << 40
_SOME_ROWS: Final = 1 << 20
_WAIT: Final = 0.2
_DISORDER: Final = 0x5DEECE66D
"""Keeps the draws of disorder apart from those of the columns."""


class GeneratorSource(Source):
    """Rows by their numbers; its position is how many have been made.

    `time_column` is filled with instants; `stamped` comes from no source and stays NULL. `endless_allowed` is False for
    a static table, of which all rows are read before anything is answered.
    """

    distributed = True

    def __init__(
        self,
        columns: Schema,
        properties: dict[str, str],
        *,
        time_column: str | None,
        stamped: str | None = None,
        endless_allowed: bool = True,
    ) -> None:
        rules = {name: text for name, text in properties.items() if name.startswith(_COLUMN)}
        reject_unknown({name: "" for name in properties if name not in rules}, _KNOWN, "connector 'generator'")
        self._columns = columns
        self._time = None if time_column is None else column_index(columns, time_column)
        self._rate = _rate(properties.get("rate", "1"))
        self._seed = _whole("seed", properties.get("seed", "0"), -(1 << 63), (1 << 63) - 1)
        self._start = _start(properties.get("start", "2024-01-01 00:00:00"))
        self._disorder = _disorder(properties.get("disorder", "0 seconds"))
        self._live = _live(properties.get("live", "false"))
        if "rows" not in properties and not endless_allowed:
            raise OptionError("a table that never changes cannot be endless", remedy="write rows = '1000'")
        # The last instant there is ends the endless, too.
        room = int((FOREVER - 1 - self._start) * self._rate / SECOND)
        self._rows = min(_whole("rows", properties.get("rows", str(_MOST_ROWS)), 0, _MOST_ROWS), room)
        self._bounded = "rows" in properties
        self._rules = _rules(columns, rules, (self._time, None if stamped is None else column_index(columns, stamped)))

    @property
    def sampled(self) -> bool:
        return not self._live

    @property
    def schema(self) -> pa.Schema:
        return self._columns.arrow()

    def plan(self, position: Position, limits: Limits, *, growing: Growing = False) -> Plan:
        """Of endless rows, some are as many as there are."""
        some = _SOME_ROWS if self._rows > _SOME_ROWS and not self._bounded else self._rows
        at, after = self._next(position, limits.rows or some, bool(growing))
        count = after["rows"] - at
        splits = (Split("generator", at, count, True),) if count > 0 else ()
        return Plan(after, splits, *self._ends(at, after["rows"], bool(growing)))

    def version(self, split: Split) -> Any:
        """A row is made of its number, unless there is a clock to wait for."""
        return None if self._live else self._seed

    def read_split(self, split: Split) -> Iterator[SplitRows]:
        for start in range(split.at, split.at + split.rows, SPLIT_RECORDS):
            stop = min(start + SPLIT_RECORDS, split.at + split.rows)
            yield SplitRows(self._make(np.arange(start, stop, dtype=np.int64)))

    def _next(self, position: Position, max_rows: int, growing: bool) -> tuple[int, Position]:
        """The number of the next row, and the position behind the next rows."""
        at = int(position.get("rows", 0))
        after: Position = {}
        stop = min(at + max_rows, self._rows)
        if self._live and at < self._rows:
            began = int(position.get("began", time.time_ns() // 1_000))
            after["began"] = began
            stop = min(stop, self._due(began))
            if stop <= at and not growing:  # nobody will look again later, so the waiting is done here
                time.sleep(min(_WAIT, float(SECOND / self._rate) / SECOND))
                stop = min(max(at, self._due(began)), at + max_rows, self._rows)
            stop = max(stop, at)
        return at, {"rows": stop, **after}

    def _ends(self, at: int, stop: int, growing: bool) -> tuple[bool, bool]:
        over = stop >= self._rows
        return over or (growing and stop == at), over

    def _due(self, began: int) -> int:
        """How many rows are there by the wall clock; the first one at once."""
        return int((time.time_ns() // 1_000 - began) * self._rate / SECOND) + 1

    def _make(self, rows: Int64s) -> pa.RecordBatch:
        instants = self._start + rows * (SECOND * self._rate.denominator) // self._rate.numerator
        arrays = []
        for at, (column, rule) in enumerate(zip(self._columns, self._rules, strict=True)):
            if at == self._time:
                arrays.append(pa.array(self._disordered(rows, instants), pa.int64()).cast(column.type))
            elif rule is None:
                arrays.append(pa.nulls(len(rows), column.type))
            else:
                arrays.append(rule.values(rows, instants, self._seed))
        return pa.RecordBatch.from_arrays(arrays, schema=self._columns.arrow())

    def _disordered(self, rows: Int64s, instants: Int64s) -> Int64s:
        if not self._disorder:
            return instants
        earlier = random_below(rows, (self._seed ^ _DISORDER) & ((1 << 64) - 1), self._disorder + 1)
        disordered: Int64s = np.maximum(instants - earlier, self._start)
        return disordered


def _rules(columns: Schema, given: dict[str, str], filled: tuple[int | None, ...]) -> list[ColumnRule | None]:
    """The rule of each column, None for those that are filled otherwise."""
    names = [fold(column.name) for column in columns]
    rules: dict[int, str] = {}
    for key, text in given.items():
        name = fold(key.removeprefix(_COLUMN))
        if name not in names:
            raise OptionError(f"there is no column '{name}' to fill", remedy=f"the columns are {', '.join(names)}")
        if names.index(name) in filled:
            raise OptionError(
                f"the time column '{name}' has no rule of its own", remedy="write start, rate and disorder instead"
            )
        rules[names.index(name)] = text
    return [None if at in filled else read_rule(column, rules.get(at)) for at, column in enumerate(columns)]


def _whole(name: str, text: str, least: int, most: int) -> int:
    digits = text.strip().removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and least <= int(text) <= most):
        raise OptionError(f"{name} cannot be '{text}'", remedy=f"write a whole number: {name} = '1000'")
    return int(text)


def _rate(text: str) -> Fraction:
    try:
        rate = Decimal(text.strip())
    except InvalidOperation:
        rate = Decimal(0)
    if not (rate.is_finite() and Decimal("0.000001") <= rate <= 1_000_000):
        raise OptionError(f"rate cannot be '{text}'", remedy="write rows for each second, up to a million: rate = '10'")
    return Fraction(rate).limit_denominator(1_000_000)


def _start(text: str) -> int:
    fitted = fit(pa.array([text], VARCHAR), TIMESTAMP, None)
    if fitted.bad or fitted.values[0].value >= FOREVER:
        raise OptionError(f"start cannot be '{text}'", remedy="write start = '2024-05-01 00:00:00'")
    return int(fitted.values[0].value)


def _disorder(text: str) -> int:
    micros = parse_duration(text)
    if micros is None or micros >= 1 << 62:
        raise OptionError(f"disorder cannot be '{text}'", remedy="write a duration: disorder = '5 seconds'")
    return micros


def _live(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise OptionError(f"live cannot be '{text}'", remedy="write live = 'true' or leave it out")
    return text.lower() == "true"
