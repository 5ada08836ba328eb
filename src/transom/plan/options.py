"""The options of SET, each with its default, how its value is read, and what it is for."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from transom.core.errors import OptionError
from transom.core.location import local_path
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


def _bytes(text: str) -> int | None:
    """
    >>> _bytes("64 MB"), _bytes("1.5 kB"), _bytes("much")
    (67108864, 1536, None)
    """
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,3})?)\s*([KMGT]?)(?:i?B)?\s*", text, flags=re.IGNORECASE)
    if match is None:
        return None
    return int(float(match[1]) * (1 << (10 * " KMGT".index(match[2].upper() or " ")))) or None


def _folder(text: str) -> str | None:
    """The whole path: who spills may be in another folder than who read this."""
    return os.path.abspath(local_path(text)) if text else None


def _count(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 19 and int(text) > 0 else None


MOST_PARTITIONS: Final = 1_024


def _partitions(text: str) -> int | None:
    count = _count(text)
    return count if count is not None and count <= MOST_PARTITIONS else None


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
            _one_of("auto", "tree", "parallel_tree", "mjoin", "parallel_mjoin", "adaptive"),
            "'auto', 'tree', 'parallel_tree', 'mjoin', 'parallel_mjoin' or 'adaptive'",
            "the tactic of joins of many inputs",
        ),
        Option(
            "joinagg",
            "auto",
            _one_of("auto", "pc", "ic", "tc", "factorised", "adaptive"),
            "'auto', 'pc', 'ic', 'tc', 'factorised' or 'adaptive'",
            "the tactic of aggregates over joins",
        ),
        Option(
            "adapt",
            "on",
            _one_of("on", "off", "shuffle"),
            "'on', 'off' or 'shuffle'",
            "whether tactics of joins of many and of aggregates over joins may change as they run; shuffle: at random",
        ),
        Option(
            "lifetimes",
            "auto",
            _one_of("auto", "direct", "negative"),
            "'auto', 'direct' or 'negative'",
            "how rows say when they end: direct, or by negative tuples",
        ),
        Option(
            "sharing",
            "auto",
            _one_of("auto", "on", "off"),
            "'auto', 'on' or 'off'",
            "whether queries of a run that have the same join or view share it",
        ),
        Option(
            "schedule",
            "off",
            _one_of("off", "auto", "fifo", "mqt", "mandf", "admandf", "slack"),
            "'off', 'auto', 'fifo', 'mqt', 'mandf', 'admandf' or 'slack'",
            "which work of a shared join without an equality is done first; off: all of it at once",
        ),
        Option(
            "overload",
            "block",
            _one_of("block", "shed", "fail"),
            "'block', 'shed' or 'fail'",
            "what happens when too many rows wait for it: their source waits, the oldest are lost, or an error",
        ),
        Option("buffer", 5_000, _count, "a number of rows above 0", "how many rows of each side may wait for it"),
        Option(
            "step_budget", 50_000, _duration, "a duration such as '50 MILLISECONDS'", "the time of a step for such work"
        ),
        Option(
            "slide_join",
            "auto",
            _one_of("auto", "off", "incremental", "full", "hybrid"),
            "'auto', 'off', 'incremental', 'full' or 'hybrid'",
            "the tactic of joins of windows that slide, emitted by RSTREAM",
        ),
        Option(
            "memory",
            None,
            _bytes,
            "a size such as '64 MB'",
            "what such joins of a run keep to; the rest is on disk",
        ),
        Option(
            "put_off",
            None,
            _duration,
            "a duration such as '500 MILLISECONDS'",
            "how long a step works on slides of such a join; what is left is made when nothing comes in",
        ),
        Option("spill", None, _folder, "a folder", "where on disk; by default a folder for temporary files"),
        Option("disk_speed", None, _bytes, "a size such as '100 MB'", "bytes a second that the disk is slowed down to"),
        Option(
            "batch_rows", 65_536, _count, "a number of rows above 0", "the most rows read from a source in one step"
        ),
        Option(
            "partitions",
            1,
            _partitions,
            f"a number from 1 to {MOST_PARTITIONS}",
            "in one process or task, in how many partitions a query runs side by side",
        ),
        Option(
            "latency",
            None,
            _duration,
            "a duration such as '500 MILLISECONDS'",
            "on Spark, how long a batch of a query that is behind is to take; 5 seconds if nothing is said",
        ),
        Option(
            "tasks",
            None,
            _partitions,
            f"a number from 1 to {MOST_PARTITIONS}",
            "on Spark, how many tasks keep what a query remembers; with one, that one runs all of the plan",
        ),
        Option(
            "history",
            None,
            _duration,
            "a duration such as '10 MINUTES'",
            "how far back answers can be asked for AS OF an instant, over Flight SQL; by default only as they are now",
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


class TickSettings(NamedTuple):
    tick: int
    origin: int | None
    """None where it is not set: it is the first instant that comes."""


def time_settings(catalogue: Catalogue) -> TickSettings:
    """The tick, and the origin where it is set."""
    tick: int = catalogue.options.get("tick", OPTIONS["tick"].default)
    origin: int | None = catalogue.options.get("origin")
    return TickSettings(tick, None if origin is None else floor_to_tick(origin, tick))


def partitions_of(catalogue: Catalogue) -> int:
    """In how many partitions a query of this process is to run."""
    wanted: int = catalogue.options.get("partitions", OPTIONS["partitions"].default)
    return wanted


def check_spill(catalogue: Catalogue) -> None:
    """Rejects a folder of SET spill outside of the one that everything is to stay within."""
    folder = catalogue.options.get("spill")
    if folder is not None and catalogue.within is not None:
        catalogue.within.check(folder)
