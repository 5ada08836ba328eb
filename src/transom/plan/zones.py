"""Time zones: instants, which are TIMESTAMPs WITH TIME ZONE, and what the clocks of a zone show.

`ts AT TIME ZONE 'Europe/Berlin'` of a TIMESTAMP is the instant at which clocks there show it, and of an instant what
they show then, as in PostgreSQL and DuckDB. Everywhere else an instant is read and written as by the clocks of UTC.
"""

from __future__ import annotations

import difflib
from functools import cache
from typing import Final
from zoneinfo import available_timezones

from transom.core.errors import QueryError
from transom.core.schema import TIMESTAMP, TIMESTAMPTZ, VARCHAR
from transom.plan.expression import Call, Cast, Expression, Literal
from transom.plan.typing_rules import cast

UTC: Final = "UTC"


def local_time(instant: Expression, zone: str) -> Expression:
    """What the clocks of a zone show at an instant."""
    made = isinstance(instant, Cast) and instant.operand.type == TIMESTAMP  # from what those of UTC show
    local = instant.operand if made else cast(instant, TIMESTAMP)  # type: ignore[attr-defined]
    if zone == UTC:
        return local
    if isinstance(local, Call) and local.function == "change_zone" and local.arguments[2] == Literal(UTC, VARCHAR):
        before, earlier, _ = local.arguments
        return _shown(before, earlier, zone)
    return _shown(local, Literal(UTC, VARCHAR), zone)


def instant_of(local: Expression, zone: str) -> Expression:
    """The instant at which the clocks of a zone show a local time."""
    return cast(local if zone == UTC else _shown(local, Literal(zone, VARCHAR), UTC), TIMESTAMPTZ)


def _shown(local: Expression, zone: Expression, other: str) -> Expression:
    """What the clocks of another zone show when those of a zone show it."""
    return Call("change_zone", (local, zone, Literal(other, VARCHAR)), TIMESTAMP)


def zone_of(text: str) -> str:
    """The name of a time zone as it is written in the database of zones, whatever its case."""
    name = _zone_names().get(text.lower())
    if name is None:
        close = difflib.get_close_matches(text.lower(), _zone_names(), n=3, cutoff=0.6)
        remedy = " or ".join(f"'{_zone_names()[each]}'" for each in close) or "'UTC' or 'Europe/Berlin'"
        raise QueryError(f"there is no time zone '{text}'", remedy=f"write {remedy}")
    return name


@cache
def _zone_names() -> dict[str, str]:
    """The names of zones by their lower case, but for those by which a machine has a zone of its own."""
    names = available_timezones() - {"localtime", "Factory", "posixrules"}
    return {name.lower(): name for name in names | {UTC}}
