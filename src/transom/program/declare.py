"""Streams and tables that a program declares by handing over their rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class ByClock:
    """What a stream has to do with the clock on the wall, as `WITH (idle = .., heartbeat = .., ahead = ..)` says it."""

    idle: Bound | None = None
    heartbeat: Bound | None = None
    ahead: Bound | None = None

    def micros(self) -> dict[str, int]:
        return {what: _micros(said, f"'{what}'", 1) for what, said in vars(self).items() if said is not None}


NO_CLOCK: Final = ByClock()


def declared_table(name: str, columns: Schema) -> TableDefinition:
    _refuse_halves(name)
    return TableDefinition(name, columns, properties=_MEMORY)


def declared_stream(
    name: str, columns: Schema, time: str | None, bound: Bound, late: Late, by_clock: ByClock = NO_CLOCK
) -> StreamDefinition:
    """`time` names the column with the instant of a row, which may be text or a date; None: rows are stamped."""
    if late not in ("drop", "side", "fail"):
        raise OptionError(f"'late' cannot be '{late}'", remedy="write late = 'drop', 'side' or 'fail'")
    _refuse_halves(name)
    spans = by_clock.micros()
    if time is None:
        for what in spans.keys() - {"idle"}:
            raise OptionError(
                f"the rows of '{name}' are stamped on arrival, and have no {what}",
                remedy=f"leave {what} out, or name the column with their time",
            )
        stamped = Schema((*columns.columns, Column(ARRIVAL_TIME, TIMESTAMP)))
        invisible = frozenset({ARRIVAL_TIME})
        time_column = TimeColumn(ARRIVAL_TIME, 0)
        return StreamDefinition(name, stamped, time_column, late, spans.get("idle"), True, invisible, _MEMORY)
    require_text(time, "the name of the time column")
    for i, column in enumerate(columns):
        if column.name.lower() == time.lower():
            typed = Schema((*columns.columns[:i], Column(column.name, TIMESTAMP), *columns.columns[i + 1 :]))
            time_column = TimeColumn(column.name, _micros(bound, "the bound", 0))
            definition = StreamDefinition(name, typed, time_column, late, spans.get("idle"), properties=_MEMORY)
            return replace(definition, heartbeat=spans.get("heartbeat"), ahead=spans.get("ahead"))
    raise SourceError(f"'{name}' has no column '{time}'", remedy=f"name one of {', '.join(columns.names)}")


def _refuse_halves(name: str) -> None:
    if lone_surrogate(name) is not None:
        raise SourceError(
            f"the name '{visible(name)}' has half a character (a lone surrogate)", remedy="write whole characters"
        )


def _micros(given: Bound, what: str, least: int) -> int:
    micros = given // timedelta(microseconds=1) if isinstance(given, timedelta) else parse_duration(str(given))
    if micros is None or not least <= micros < 1 << 62:
        raise OptionError(f"{what} cannot be '{given}'", remedy="write a duration such as '2 seconds'")
    return micros
