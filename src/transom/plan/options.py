"""The options of SET, each with its default, how its value is read, and what it is for."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from transom.core.errors import OptionError
from transom.core.time import BEGINNING, FOREVER, floor_to_tick, from_datetime, parse_duration
from transom.plan.catalogue import Catalogue


@dataclass(frozen=True)
class Option:
    name: str
    default: Any
    read: Callable[[str], Any]
    expects: str
    purpose: str


def _duration(text: str) -> int | None:
    micros = parse_duration(text)
    return micros if micros and micros < FOREVER else None


def _instant(text: str) -> int | None:
    try:
        instant = from_datetime(datetime.fromisoformat(text))
    except ValueError:
        return None
    return instant if BEGINNING <= instant < FOREVER else None


def _one_of(*words: str) -> Callable[[str], str | None]:
    return lambda text: text.lower() if text.lower() in words else None


def _count(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 19 and int(text) > 0 else None


OPTIONS: Final[dict[str, Option]] = {
    option.name: option
    for option in (
        Option(
            "tick", 1, _duration, "a duration such as '1 SECOND'", "the smallest step of time; instants are floored"
        ),
        Option(
            "origin", None, _instant, "a timestamp such as '2024-01-01 00:00:00'", "the instant at which time begins"
        ),
        Option(
            "join",
            "auto",
            _one_of("auto", "ring_hash", "lazy_hash", "nested_loop"),
            "'auto', 'ring_hash', 'lazy_hash' or 'nested_loop'",
            "the tactic of two-way joins",
        ),
        Option(
            "multiway",
            "auto",
            _one_of("auto", "tree", "mjoin"),
            "'auto', 'tree' or 'mjoin'",
            "the tactic of joins of many inputs",
        ),
        Option(
            "joinagg",
            "auto",
            _one_of("auto", "pc", "ic", "tc", "factorised"),
            "'auto', 'pc', 'ic', 'tc' or 'factorised'",
            "the tactic of aggregates over joins",
        ),
        Option(
            "lifetimes",
            "auto",
            _one_of("auto", "direct", "negative"),
            "'auto', 'direct' or 'negative'",
            "how rows tell when they end: direct, or by negative tuples",
        ),
        Option(
            "batch_rows", 65_536, _count, "a number of rows above 0", "the most rows read from a source in one step"
        ),
        Option("batch_files", None, _count, "a number of files above 0", "on Spark, the most files read in one batch"),
    )
}


def read_option(name: str, value: str) -> Any:
    """The value of SET name = value, checked; raises OptionError with the names or values that would do."""
    option = OPTIONS.get(name.lower())
    if option is None:
        close = difflib.get_close_matches(name.lower(), OPTIONS, n=3, cutoff=0.4) or sorted(OPTIONS)
        raise OptionError(f"there is no option '{name}'", remedy=f"options are: {', '.join(close)}")
    read = option.read(str(value))
    if read is None:
        raise OptionError(
            f"option '{option.name}' cannot be '{value}'", remedy=f"write {option.expects} ({option.purpose})"
        )
    return read


def time_settings(catalogue: Catalogue) -> tuple[int, int | None]:
    """The tick, and the origin where it is set."""
    tick: int = catalogue.options.get("tick", OPTIONS["tick"].default)
    origin: int | None = catalogue.options.get("origin")
    return tick, None if origin is None else floor_to_tick(origin, tick)
