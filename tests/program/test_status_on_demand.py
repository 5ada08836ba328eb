"""How a running query is doing is reported when somebody asks, not after every step; and it is always of the last
step."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from transom import Session
from transom.runtimes.local.query import LocalQuery

NOON = datetime(2024, 5, 1, 12)
LONG = 60.0


def test_nobody_is_reported_of_steps_that_nobody_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    reported = 0
    whole = LocalQuery.status

    def counted(query: LocalQuery) -> Any:
        nonlocal reported
        reported += 1
        return whole(query)

    monkeypatch.setattr(LocalQuery, "status", counted)
    session = Session(batch_rows=1)
    session.stream("s", [{"ts": NOON + timedelta(seconds=i), "a": i} for i in range(200)], time="ts")
    with session.start("SELECT a FROM s [RANGE 1 SECOND]") as query:
        assert query.await_termination(timeout=LONG)
    assert query.status.steps >= 200 and query.status.finished and query.status.inputs[0].used == 200
    assert reported <= 3 + len(query.recent_progress)  # one a second is remembered


def test_a_query_that_waits_for_its_source_tells_of_its_last_step() -> None:
    """The source is asked outside of the step: whoever requests the status does not wait for it."""
    goes_on, waits = threading.Event(), threading.Event()

    def rows() -> Iterator[dict[str, Any]]:
        for i in itertools.count():
            if i == 7:
                waits.set()
                assert goes_on.wait(LONG)
            if i == 9:
                return
            yield {"ts": NOON + timedelta(seconds=i), "a": i}

    session = Session(batch_rows=1)
    session.stream("s", rows(), time="ts")
    with session.start("SELECT a FROM s [RANGE 1 SECOND]") as query:
        assert waits.wait(LONG)
        status = query.status
        assert status.inputs[0].rows_in in (6, 7) and status.inputs[0].used >= 5 and not status.finished
        goes_on.set()
        assert query.await_termination(timeout=LONG)
    assert query.status.inputs[0].used == 9
