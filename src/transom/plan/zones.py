"""Moments in time zones while a query is bound: a local time and the zone that it is meant in.

`ts AT TIME ZONE 'UTC'` says which instant a TIMESTAMP without a zone means, and a second AT TIME ZONE what the clocks
show there at that instant, as in PostgreSQL and DuckDB. Like an INTERVAL, an instant is known to no column.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cache
from typing import Final
from zoneinfo import available_timezones

import pyarrow as pa

from transom.core.errors import QueryError
from transom.core.schema import TIMESTAMP, VARCHAR
from transom.plan.expression import Call, Expression, Literal
from transom.plan.typing_rules import INSTANT

UTC: Final = "UTC"


@dataclass(frozen=True)
class Instant(Expression):
    """The instant at which the clocks of a zone show a local time."""

    local: Expression
    zone: str

    @property
    def type(self) -> pa.DataType:
        return INSTANT

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.local,)

    def __str__(self) -> str:
        return f"{self.local} AT TIME ZONE '{self.zone}'"

    def shown_in(self, zone: str) -> Expression:
        """What the clocks of a zone show at this instant."""
        return Call("change_zone", (self.local, Literal(self.zone, VARCHAR), Literal(zone, VARCHAR)), TIMESTAMP)


def zone_of(text: str) -> str:
    """The name of a time zone as it is written in the database of zones, whatever its case."""
    known = _known().get(text.lower())
    if known is None:
        close = difflib.get_close_matches(text.lower(), _known(), n=3, cutoff=0.6)
        remedy = " or ".join(f"'{_known()[each]}'" for each in close) or "'UTC' or 'Europe/Berlin'"
        raise QueryError(f"there is no time zone '{text}'", remedy=f"write {remedy}")
    return known


@cache
def _known() -> dict[str, str]:
    """But for the names by which a machine has a zone of its own."""
    names = available_timezones() - {"localtime", "Factory", "posixrules"}
    return {name.lower(): name for name in names | {UTC}}


def no_instant(what: str) -> QueryError:
    remedy = (
        "write AT TIME ZONE once more: ts AT TIME ZONE 'UTC' AT TIME ZONE 'Asia/Tokyo' is what the clocks show there"
    )
    return QueryError(f"{what} does not take a TIMESTAMP WITH TIME ZONE", remedy=remedy)
