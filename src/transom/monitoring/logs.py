"""Queries in the log: a line a batch, and warnings. They go to the logger "transom" of Python, with their fields.

On Spark a batch is one, in one process the steps of about a second. The fields are those of `/status`, where a batch
has its own: `batch`, `batch_rows`, `batch_seconds`.
"""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TextIO
from typing import Literal as OneOf

from transom.core.text import size_text, visible
from transom.monitoring.monitor import Sight
from transom.monitoring.snapshot import iso
from transom.program.progress import Progress

LOGGER: Final = logging.getLogger("transom")

_SECONDS_OF_SILENCE: Final = 10.0
"""From then on it is worth a word that nothing comes of an input that time waits for."""

LogFormat = OneOf["text", "json"]
FIELDS: Final = (
    "query",
    "event",
    "state",
    "batch",
    "batch_rows",
    "batch_seconds",
    "rows_per_second",
    "progress",
    "lag_seconds",
    "held_back_by",
    "rows_in",
    "rows_out",
    "used",
    "late",
    "rejected",
    "waiting",
    "state_rows",
    "state_bytes",
)
"""What a line has as JSON, after its time, level and message."""


@dataclass(frozen=True)
class Thresholds:
    """When something is worth a warning; the next one comes when it is twice as bad."""

    lag_seconds: float = 60.0
    """The answer fell so much further behind the clock than it was."""
    state_bytes: int = 256_000_000
    lost_share: float = 0.1
    """Of the rows of the last minute, those that were late or rejected; at least so many:"""
    lost_rows: int = 100


class QueryLog:
    """Writes what a monitor saw: put it into `Monitor.after`.

    With `batches` every batch has a line; with `every`, a query has one after so many seconds without.
    """

    def __init__(
        self, *, batches: bool = True, every: float | None = None, thresholds: Thresholds | None = None
    ) -> None:
        self._batches = batches
        self._every = every
        self._thresholds = thresholds or Thresholds()
        self._queries: dict[str, _Reported] = {}

    def __call__(self, sights: list[Sight]) -> None:
        now = time.monotonic()
        for snapshot, batches in sights:
            name = snapshot["name"]
            reported = self._queries.get(name)
            if reported is None:
                reported = self._queries[name] = _Reported(now, self._thresholds)
            if self._batches:
                for batch in batches:
                    _write(logging.INFO, "batch", _batch_text(snapshot, batch), snapshot, batch)
                    reported.said = now
            if self._every is not None and now - reported.said >= self._every and snapshot["state"] == "running":
                _write(logging.INFO, "progress", _text(snapshot), snapshot)
                reported.said = now
            for event, text in reported.warnings(snapshot, now):
                _write(logging.WARNING, event, text, snapshot)
            if snapshot["state"] != "running":
                if self._batches:
                    level = logging.ERROR if snapshot["state"] == "failed" else logging.INFO
                    _write(level, snapshot["state"], _end_text(snapshot), snapshot)
                del self._queries[name]


class _Reported:
    """What is known of a query, to tell what has become worse."""

    def __init__(self, now: float, thresholds: Thresholds) -> None:
        self.said = now
        self._limits = thresholds
        self._least_lag: float | None = None
        self._lag_warned = thresholds.lag_seconds
        self._state_warned = thresholds.state_bytes
        self._counts: deque[tuple[float, int, int]] = deque()

    def warnings(self, snapshot: dict[str, Any], now: float) -> list[tuple[str, str]]:
        warned = [self._lag(snapshot), self._state(snapshot), self._lost(snapshot, now)]
        return [each for each in warned if each is not None]

    def _lag(self, snapshot: dict[str, Any]) -> tuple[str, str] | None:
        lag = snapshot["lag_seconds"]
        if lag is None or snapshot["state"] != "running":
            return None
        self._least_lag = lag if self._least_lag is None else min(self._least_lag, lag)
        behind = lag - self._least_lag
        if behind < self._limits.lag_seconds / 2:
            self._lag_warned = self._limits.lag_seconds
        if behind < self._lag_warned:
            return None
        self._lag_warned = 2 * behind
        held = snapshot["held_back_by"]
        why = "" if held is None else f"; time waits for {held['input']}{_silent(held)}"
        return "lag", f"falls behind: {lag:,.0f} s behind the clock, {behind:,.0f} s more than it was{why}"

    def _state(self, snapshot: dict[str, Any]) -> tuple[str, str] | None:
        kept = sum(each["state_bytes"] for each in snapshot["operators"])
        if kept < self._state_warned:
            return None
        self._state_warned = 2 * kept
        most = max(snapshot["operators"], key=lambda each: int(each["state_bytes"]))
        return "state", (
            f"keeps {size_text(kept)}; most of it #{most['number']} {most['title']}: "
            f"{most['state_rows']:,} rows in {size_text(most['state_bytes'])}"
        )

    def _lost(self, snapshot: dict[str, Any], now: float) -> tuple[str, str] | None:
        lost = sum(each["late"] + each["rejected"] for each in snapshot["inputs"])
        self._counts.append((now, snapshot["rows_in"], lost))
        while now - self._counts[0][0] > 60:
            self._counts.popleft()
        rows, gone = snapshot["rows_in"] - self._counts[0][1], lost - self._counts[0][2]
        if gone < self._limits.lost_rows or gone < self._limits.lost_share * rows:
            return None
        self._counts = deque([self._counts[-1]])
        worst = max(snapshot["inputs"], key=lambda each: int(each["late"] + each["rejected"]))
        return "dead letters", f"{gone:,} of {rows:,} rows were late or rejected of late; most are of {worst['name']}"


def _write(level: int, event: str, text: str, snapshot: dict[str, Any], batch: Progress | None = None) -> None:
    if not LOGGER.isEnabledFor(level):
        return
    inputs, operators = snapshot["inputs"], snapshot["operators"]
    fields = {
        **{name: snapshot[name] for name in FIELDS if name in snapshot},
        **{name: sum(each[name] for each in inputs) for name in ("used", "late", "rejected", "waiting")},
        **{name: sum(each[name] for each in operators) for name in ("state_rows", "state_bytes")},
        "query": snapshot["name"],
        "event": event,
        "batch": snapshot["batches"] if batch is None else batch.batch,
        "batch_rows": None if batch is None else batch.rows_in,
    }
    if batch is not None:
        fields |= {
            "batch_seconds": batch.seconds,
            "rows_per_second": round(batch.rows_per_second, 1),
            "progress": iso(batch.progress),
        }
    fields = {name: fields[name] for name in FIELDS}
    LOGGER.log(level, "%s: %s", visible(snapshot["name"]), visible(text), extra={"transom": fields})


def _batch_text(snapshot: dict[str, Any], batch: Progress) -> str:
    counts = f"batch {batch.batch}: {batch.rows_in:,} rows in {batch.seconds:.2f} s"
    return f"{counts}, {snapshot['rows_out']:,} rows out so far{_tail(snapshot, batch.progress)}"


def _text(snapshot: dict[str, Any]) -> str:
    counts = (
        f"{snapshot['rows_in']:,} rows in, {snapshot['rows_out']:,} rows out, {snapshot['rows_per_second']:,.0f} rows/s"
    )
    return counts + _tail(snapshot, None)


def _end_text(snapshot: dict[str, Any]) -> str:
    counts = f"{snapshot['rows_in']:,} rows in, {snapshot['rows_out']:,} rows out"
    return f"{snapshot['state']}: {counts}" + ("" if snapshot["error"] is None else f": {snapshot['error']}")


def _tail(snapshot: dict[str, Any], progress: int | None) -> str:
    """How far it is, and what is not as it should be."""
    reached = snapshot["progress"] if progress is None else iso(progress)
    parts = ["" if reached is None else f"up to {reached}"]
    held = snapshot["held_back_by"]
    if held is not None and held["seconds"]:
        parts.append(f"held back by {held['input']}, {held['seconds']:,.0f} s{_silent(held)}")
    elif held is not None and _silent(held):
        parts.append(f"time waits for {held['input']}{_silent(held)}")
    for name in ("waiting", "late", "rejected"):
        count = sum(each[name] for each in snapshot["inputs"])
        parts.append(f"{count:,} {name}" if count else "")
    kept = sum(each["state_bytes"] for each in snapshot["operators"])
    parts.append(f"keeps {size_text(kept)}" if kept else "")
    return "".join(f", {part}" for part in parts if part)


def _silent(held: dict[str, Any]) -> str:
    seconds = held["silent_seconds"]
    return f", which has been silent for {seconds:,.0f} s" if seconds >= _SECONDS_OF_SILENCE else ""


class LineFormatter(logging.Formatter):
    """A record is a line, as text or as JSON."""

    def __init__(self, form: LogFormat) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
        text = record.getMessage()
        if self._form == "text":
            return f"{at} {record.levelname} {visible(text)}"
        fields = getattr(record, "transom", {})
        return json.dumps({"time": at, "level": record.levelname, "message": text, **fields})


@contextmanager
def logging_to(stream: TextIO, form: LogFormat) -> Iterator[None]:
    """Within it what is logged goes there, and nowhere else."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter(form))
    level, propagate = LOGGER.level, LOGGER.propagate
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)
        LOGGER.propagate = propagate
