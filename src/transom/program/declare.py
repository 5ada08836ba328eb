"""Streams and tables that a program declares by handing over their rows."""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from typing import Literal as OneOf

from transom.core.errors import OptionError, SourceError
from transom.core.schema import TIMESTAMP, Column, Schema
from transom.core.text import lone_surrogate, visible
from transom.core.time import parse_duration
from transom.cql.bind_definition import ARRIVAL_TIME
from transom.plan.catalogue import StreamDefinition, TableDefinition, TimeColumn
from transom.program.arguments import require_text

Late = OneOf["drop", "side", "fail"]
Bound = str | timedelta

_MEMORY: Final = {"connector": "memory"}


def declared_table(name: str, columns: Schema) -> TableDefinition:
    _refuse_halves(name)
    return TableDefinition(name, columns, properties=_MEMORY)


def declared_stream(name: str, columns: Schema, time: str | None, bound: Bound, late: Late) -> StreamDefinition:
    """`time` names the column with the instant of a row, which may be text or a date; None: rows are stamped."""
    if late not in ("drop", "side", "fail"):
        raise OptionError(f"'late' cannot be '{late}'", remedy="write late = 'drop', 'side' or 'fail'")
    _refuse_halves(name)
    if time is None:
        stamped = Schema((*columns.columns, Column(ARRIVAL_TIME, TIMESTAMP)))
        invisible = frozenset({ARRIVAL_TIME})
        return StreamDefinition(name, stamped, TimeColumn(ARRIVAL_TIME, 0), late, None, True, invisible, _MEMORY)
    require_text(time, "the name of the time column")
    for i, column in enumerate(columns):
        if column.name.lower() == time.lower():
            typed = Schema((*columns.columns[:i], Column(column.name, TIMESTAMP), *columns.columns[i + 1 :]))
            return StreamDefinition(name, typed, TimeColumn(column.name, _micros(bound)), late, properties=_MEMORY)
    raise SourceError(f"'{name}' has no column '{time}'", remedy=f"name one of {', '.join(columns.names)}")


def _refuse_halves(name: str) -> None:
    if lone_surrogate(name) is not None:
        raise SourceError(
            f"the name '{visible(name)}' has half a character (a lone surrogate)", remedy="write whole characters"
        )


def _micros(bound: Bound) -> int:
    micros = bound // timedelta(microseconds=1) if isinstance(bound, timedelta) else parse_duration(str(bound))
    if micros is None or not 0 <= micros < 1 << 62:
        raise OptionError(f"the bound cannot be '{bound}'", remedy="write a duration such as '2 seconds'")
    return micros
