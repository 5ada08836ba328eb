"""How a query is doing as JSON can hold it: what `/status` answers, and what metrics, logs and pages are made of.

It is the same of every runtime. Instants are ISO 8601 in UTC, durations are
seconds, but for the latency of rows, which is microseconds.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any, Final
from typing import Literal as OneOf

from transom.core.errors import TransomError
from transom.core.secrets import hidden
from transom.core.text import visible
from transom.core.time import BEGINNING, FOREVER, SECOND, to_datetime
from transom.planner.explain import title
from transom.program.status import InputStatus, OperatorStatus, Status

State = OneOf["running", "finished", "failed", "stopped"]
STATES: Final[tuple[State, ...]] = ("running", "finished", "failed", "stopped")


def state_of(active: bool, finished: bool, error: BaseException | None) -> State:
    """
    >>> state_of(True, False, None), state_of(False, True, None), state_of(False, False, None)
    ('running', 'finished', 'stopped')
    """
    if error is not None:
        return "failed"
    if active:
        return "running"
    return "finished" if finished else "stopped"


def status_json(
    status: Status,
    *,
    runtime: str = "local",
    state: State | None = None,
    now: int | None = None,
    rows_per_second: float = 0.0,
    rows_out_per_second: float = 0.0,
    batch_seconds: float | None = None,
    history: dict[str, Any] | None = None,
    error: BaseException | None = None,
) -> dict[str, Any]:
    """`now` is the clock in microseconds since 1970, from which the lag is counted. Rates and silence are measured
    by whoever looks more than once (`Monitor`).

    >>> from transom import Session
    >>> session = Session()
    >>> session.stream("s", [{"t": "2024-05-01", "a": 1}, {"t": None, "a": 2}], time="t")
    >>> found = status_json(session.execute("SELECT a FROM s")[0].status)
    >>> found["state"], found["rows_in"], found["rows_out"], found["inputs"][0]["used"], found["inputs"][0]["reasons"]
    ('finished', 2, 1, 1, {"the time column 't' is NULL": 1})
    """
    now = time.time_ns() // 1_000 if now is None else now
    return {
        "name": status.name,
        "runtime": runtime,
        "state": state or state_of(not status.finished, status.finished, error),
        "progress": iso(status.progress),
        "progress_seconds": None if iso(status.progress) is None else status.progress / SECOND,
        "lag_seconds": lag(status.progress, now),
        "held_back_by": _held_back_by(status),
        "rows_in": sum(each.rows_in for each in status.inputs),
        "rows_out": status.rows_out,
        "rows_per_second": round(rows_per_second, 1),
        "rows_out_per_second": round(rows_out_per_second, 1),
        "batches": status.steps,
        "batch_seconds": batch_seconds,
        "inputs": [_input(each, now) for each in status.inputs],
        "operators": [_operator(each) for each in status.operators],
        "partitions": _partitions(status),
        "latency": None if status.latency is None else asdict(status.latency),
        "overload": None if status.overload is None else _overload(status),
        "history": history,
        "error": None if error is None else error_text(error),
    }


def iso(instant: int | None) -> str | None:
    """An instant as text; None of what has not begun, and of what is over.

    >>> iso(0), iso(FOREVER), iso(None)
    ('1970-01-01T00:00:00Z', None, None)
    """
    if instant is None or not BEGINNING < instant < FOREVER:
        return None
    return to_datetime(instant).isoformat() + "Z"


def lag(instant: int | None, now: int) -> float | None:
    """How many seconds an instant is behind the clock; negative where it is ahead.

    >>> lag(1_000_000, 3_500_000), lag(BEGINNING, 0)
    (2.5, None)
    """
    return None if iso(instant) is None or instant is None else (now - instant) / SECOND


def error_text(error: BaseException) -> str:
    """What went wrong; what was taken from the environment is hidden."""
    return str(error) if isinstance(error, TransomError) else visible(hidden(f"{type(error).__name__}: {error}"))


def _held_back_by(status: Status) -> dict[str, Any] | None:
    """The input that time waits for, and how far it is behind the one that is furthest."""
    if status.held_back_by is None:
        return None
    marks = {each.name: each.watermark for each in status.inputs if iso(each.watermark) is not None}
    held_at = marks.get(status.held_back_by)
    others = [mark for mark in marks.values() if mark is not None]
    seconds = None if held_at is None else (max(others) - held_at) / SECOND
    return {"input": status.held_back_by, "seconds": seconds, "silent_seconds": 0.0}


def _input(status: InputStatus, now: int) -> dict[str, Any]:
    return {
        "name": status.name,
        "rows_in": status.rows_in,
        "used": status.used,
        "late": status.late,
        "rejected": status.rejected,
        "waiting": status.waiting,
        "watermark": iso(status.watermark),
        "lag_seconds": lag(status.watermark, now),
        "silent_seconds": 0.0,
        "ended": status.ended,
        "reasons": dict(status.reasons),
        "leap": None if status.leap is None else str(status.leap),
    }


def _operator(status: OperatorStatus) -> dict[str, Any]:
    return {
        "number": status.number,
        "operator": status.operator,
        "tactic": status.tactic,
        "title": title(status.operator, status.tactic),
        "rows_in": status.rows_in,
        "rows_out": status.rows_out,
        "ends": status.ends,
        "state_rows": status.state_rows,
        "state_bytes": status.state_bytes,
        "seconds": status.seconds,
        "slides": None if status.slides is None else _slides(status),
        "changes": list(status.changes),
    }


def _partitions(status: Status) -> list[dict[str, Any]]:
    """With the rows of each against the mean of its stage: where keys are skewed, one has several times as many."""
    rows_of: dict[int, list[int]] = {}
    for each in status.partitions:
        rows_of.setdefault(each.stage, []).append(each.rows_in)
    means = {stage: sum(rows) / len(rows) for stage, rows in rows_of.items() if len(rows) > 1}
    return [
        {**asdict(each), "of_mean": each.rows_in / means[each.stage] if means.get(each.stage) else None}
        for each in status.partitions
    ]


def _slides(status: OperatorStatus) -> dict[str, Any]:
    assert status.slides is not None
    return {"waiting": [iso(at) for at in status.slides.waiting], "lines": list(status.slides.lines())}


def _overload(status: Status) -> dict[str, Any]:
    overload = status.overload
    assert overload is not None
    return {
        "policy": overload.policy,
        "method": overload.method,
        "on_overload": overload.on_overload,
        "due": overload.due,
        "processed": overload.processed,
        "shed": overload.shed,
        "pending": overload.pending,
        "partial": None if overload.partial is None else [iso(at) for at in overload.partial],
    }
