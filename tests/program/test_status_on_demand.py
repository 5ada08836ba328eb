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
from transom.program.streaming_query import glance
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


def test_sizes_are_those_of_now_for_whoever_asks_for_the_status_itself() -> None:
    """Whoever looks again and again may be told what they were a while ago; of the rest nothing is old."""
    turns = [(threading.Event(), threading.Event()) for _ in range(2)]

    def rows() -> Iterator[dict[str, Any]]:
        for i in range(90):
            if i in (30, 60):
                waits, goes_on = turns[i // 30 - 1]
                waits.set()
                assert goes_on.wait(LONG)
            yield {"ts": NOON + timedelta(seconds=i), "a": i}

    session = Session(batch_rows=1)
    session.stream("s", rows(), time="ts")
    with session.start("SELECT a, COUNT(*) AS n FROM s [RANGE 1 HOUR] GROUP BY a") as query:
        looks = []
        for waits, goes_on in turns:
            assert waits.wait(LONG)
            glanced, status = glance(query, LONG), query.status
            looks.append((glanced, status))
            assert glanced.inputs == status.inputs and glanced.steps == status.steps
            goes_on.set()
        assert query.await_termination(timeout=LONG)
    kept = [sum(each.state_rows for each in status.operators) for _, status in looks]
    assert kept[0] > 0 and kept[1] == kept[0] + 30
    assert sum(each.state_rows for each in looks[1][0].operators) <= kept[1]
    assert glance(query, LONG).operators == query.status.operators
