"""What a partition reports of work that is put in order, from batch to batch."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from transom.pipeline.scheduled_state import Shed
from transom.planner.scheduling import Schedule
from transom.program.overload import OverloadStatus, overload_of_query

MOST_LOADS: Final = 7_200
"""Measurements are kept for an hour."""

_LEAST_SECONDS: Final = 0.001


def with_earlier(reported: dict[str, Any], earlier: dict[str, Any] | None) -> dict[str, Any]:
    """The report together with what was measured before, which is not repeated.

    >>> with_earlier({"loads": {"time": [1.5]}}, {"loads": {"time": [1.0]}})
    {'loads': {'time': [1.0, 1.5]}}
    """
    if earlier is None:
        return reported
    loads = {
        name: (earlier["loads"].get(name, []) + column)[-MOST_LOADS:] for name, column in reported["loads"].items()
    }
    return {**reported, "loads": loads}


def speed_after(speed: float | None, reported: dict[str, Any]) -> float | None:
    """The effort of a second, by what a batch has taken, and by those before it.

    >>> speed_after(None, {"effort": 100, "seconds": 0.5}), speed_after(100.0, {"effort": 100, "seconds": 0.5})
    (200.0, 150.0)
    """
    if reported["seconds"] < _LEAST_SECONDS:
        return speed
    seen: float = max(1.0, reported["effort"] / reported["seconds"])
    return seen if speed is None else (speed + seen) / 2


def overload_status(reported: dict[str, Any], key: str, schedule: Schedule) -> OverloadStatus:
    query = reported["queries"][key]
    shed = Shed(*(np.array(column, dtype=np.int64) for column in query["shed"]))
    return overload_of_query(
        policy=schedule.policy,
        method=reported["method"],
        on_overload=schedule.overload,
        ledger=query["ledger"],
        shed=(shed.first, shed.last, shed.rows),
        longest=max(query["windows"]),
        loads=reported["loads"],
    )
