"""Streams and tables that a program declares by handing over their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final
from typing import Literal as OneOf

from transom.core.errors import OptionError, SourceError
from transom.core.schema import TIMESTAMP, TIMESTAMPTZ, Column, Schema
from transom.core.text import lone_surrogate, visible
from transom.core.time import parse_duration
from transom.cql.bind_definition import ARRIVAL_TIME
from transom.plan.catalogue import StreamDefinition, TableDefinition, TimeColumn
from transom.program.arguments import require_text

Late = OneOf["drop", "dead_letter", "fail"]
Bound = str | timedelta
TimeUnit = OneOf["s", "ms", "us"]

_MEMORY: Final = {"connector": "memory"}


@dataclass(frozen=True)
class Timing:
    """How the rows of an input carry their time, and what they have to do with the clock on the wall.

    `column` holds the instant of a row, which may be text, a date, or a whole number that counts `unit`s since 1970.
    The others are what WATERMARK FOR and WITH (late = .., idle = .., heartbeat = .., ahead = ..) say.
    """

    column: str | None = None
    unit: TimeUnit | None = None
    bound: Bound = timedelta(0)
    late: Late = "drop"
    idle: Bound | None = None
    heartbeat: Bound | None = None
    ahead: Bound | None = None

    def __post_init__(self) -> None:
        if self.late not in ("drop", "dead_letter", "fail"):
            raise OptionError(f"'late' cannot be '{self.late}'", remedy="write late = 'drop', 'dead_letter' or 'fail'")
        if self.column is not None:
            require_text(self.column, "the name of the time column")

    def spans(self) -> dict[str, int]:
        """The spans that are said of the rows, in microseconds."""
        said = {"idle": self.idle, "heartbeat": self.heartbeat, "ahead": self.ahead}
        return {what: _micros(span, f"'{what}'", 1) for what, span in said.items() if span is not None}

    def properties(self) -> dict[str, str]:
        """The properties of the connector, which checks them."""
        return _MEMORY if self.unit is None else {**_MEMORY, "time_unit": str(self.unit)}

    def watermark(self, name: str, columns: Schema) -> tuple[Schema, TimeColumn]:
        """The columns of an input with the instant among them as one, and its bound."""
        assert self.column is not None
        at = _index(name, columns, self.column)
        spelled = columns[at].name
        type_ = TIMESTAMPTZ if columns[at].type == TIMESTAMPTZ else TIMESTAMP
        typed = Schema((*columns.columns[:at], Column(spelled, type_), *columns.columns[at + 1 :]))
        return typed, TimeColumn(spelled, _micros(self.bound, "the bound", 0))


STATIC: Final = Timing()


def declared_table(name: str, columns: Schema, timing: Timing = STATIC, key: Sequence[str] = ()) -> TableDefinition:
    """A table that never changes; with a time, one whose rows replace each other by their key."""
    _reject_halves(name)
    names = tuple(columns[_index(name, columns, each)].name for each in key)
    if timing.column is None:
        if timing != STATIC:
            raise OptionError(
                f"the table '{name}' never changes, so there is no bound, late or time_unit to it",
                remedy="name the column with the time of its changes: time=.., and key=..",
            )
        return TableDefinition(name, columns, primary_key=names, properties=_MEMORY)
    typed, time_column = timing.watermark(name, columns)
    if not names:
        raise OptionError(
            f"nothing says which rows of '{name}' replace each other",
            remedy="give the columns that tell them apart as key=.., or declare a stream",
        )
    if time_column.column in names:
        raise OptionError(f"'{time_column.column}' is the time of the rows, not their key", remedy="name other columns")
    return TableDefinition(
        name, typed, time_column, primary_key=names, late=timing.late, properties=timing.properties()
    )


def declared_stream(name: str, columns: Schema, timing: Timing) -> StreamDefinition:
    """The definition of a stream; without a time column its rows are stamped."""
    _reject_halves(name)
    spans, late = timing.spans(), timing.late
    if timing.column is None:
        for what in [*(spans.keys() - {"idle"}), *(["time_unit"] if timing.unit is not None else [])]:
            raise OptionError(
                f"the rows of '{name}' are stamped on arrival, and have no {what}",
                remedy=f"leave {what} out, or name the column with their time",
            )
        stamped = Schema((*columns.columns, Column(ARRIVAL_TIME, TIMESTAMP)))
        invisible = frozenset({ARRIVAL_TIME})
        time_column = TimeColumn(ARRIVAL_TIME, 0)
        return StreamDefinition(name, stamped, time_column, late, spans.get("idle"), True, invisible, _MEMORY)
    typed, time_column = timing.watermark(name, columns)
    definition = StreamDefinition(name, typed, time_column, late, spans.get("idle"), properties=timing.properties())
    return replace(definition, heartbeat=spans.get("heartbeat"), ahead=spans.get("ahead"))


def _index(name: str, columns: Schema, wanted: str) -> int:
    require_text(wanted, "the name of a column")
    for i, column in enumerate(columns):
        if column.name.lower() == wanted.lower():
            return i
    raise SourceError(f"'{name}' has no column '{wanted}'", remedy=f"name one of {', '.join(columns.names)}")


def _reject_halves(name: str) -> None:
    if lone_surrogate(name) is not None:
        raise SourceError(
            f"the name '{visible(name)}' has half a character (a lone surrogate)", remedy="write whole characters"
        )


def _micros(given: Bound, what: str, least: int) -> int:
    micros = given // timedelta(microseconds=1) if isinstance(given, timedelta) else parse_duration(str(given))
    if micros is None or not least <= micros < 1 << 62:
        raise OptionError(f"{what} cannot be '{given}'", remedy="write a duration such as '2 seconds'")
    return micros
