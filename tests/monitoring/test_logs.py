from __future__ import annotations

import io
import json
import logging
from typing import Any

import pytest

from tests.monitoring.test_snapshot import NOW, made
from transom import Session
from transom.core.time import SECOND
from transom.monitoring.logs import FIELDS, LogFormat, QueryLog, Thresholds, logging_to
from transom.monitoring.silence import Silence
from transom.monitoring.snapshot import status_json
from transom.program.progress import progress_of
from transom.program.status import InputStatus, OperatorStatus


class Writing:
    """What a log makes of looks at a query, a second apart."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, form: LogFormat = "json", **given: Any) -> None:
        self.now = 0.0
        monkeypatch.setattr("transom.monitoring.logs.time.monotonic", lambda: self.now)
        self._log, self._form = QueryLog(**given), form
        self._silence = Silence()
        self.text = ""

    def look(self, batch: bool = False, seconds: float = 1.0, state: Any = "running", **changed: object) -> list[Any]:
        status, stream = made(**changed), io.StringIO()
        self.now += seconds
        with logging_to(stream, self._form):
            snapshot = status_json(status, now=NOW, state=state)
            self._silence.mark(snapshot, self.now)
            self._log([(snapshot, [progress_of(status, 7, 0, 0.25)] if batch else [])])
        self.text = stream.getvalue()
        return [json.loads(line) for line in self.text.splitlines()] if self._form == "json" else []


def test_a_batch_is_a_line_with_all_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = Writing(monkeypatch).look(batch=True)
    assert set(line) == {"time", "level", "message", *FIELDS}
    assert (line["query"], line["event"], line["batch"], line["batch_rows"]) == ("alarms", "batch", 7, 20)
    assert (line["late"], line["rejected"], line["waiting"], line["state_bytes"]) == (2, 1, 2, 4096)


def test_a_name_does_not_begin_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    writing = Writing(monkeypatch, "text")
    writing.look(batch=True, name="a\n2024 ERROR b\x1b[31m")
    assert len(writing.text.splitlines()) == 1 and "\x1b" not in writing.text


def test_without_a_terminal_there_is_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    writing = Writing(monkeypatch, batches=False, every=30)
    events = [len(writing.look(batch=True, seconds=10)) for _ in range(7)]
    assert events == [0, 0, 0, 1, 0, 0, 1]


def test_falling_behind_is_warned_of_when_it_is_twice_as_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    writing = Writing(monkeypatch, batches=False)
    lags = (500, 505, 559, 561, 600, 630, 500, 561)
    looks = [writing.look(progress=NOW - lag * SECOND) for lag in lags]
    assert [[line["event"] for line in lines] for lines in looks] == [[], [], [], ["lag"], [], ["lag"], [], ["lag"]]
    assert "smoke" in looks[3][0]["message"] and looks[3][0]["level"] == "WARNING"


def test_an_input_that_time_waits_for_is_said_to_be_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is the only one, and so behind no other: nothing else says why an alarm does not come."""
    writing = Writing(monkeypatch, batches=False, every=30)

    def beats(rows: int, watermark: int = NOW) -> dict[str, Any]:
        return {"inputs": (InputStatus("beats", rows, rows, 0, 0, 0, watermark, False, {}),), "held_back_by": "beats"}

    writing.look(**beats(1))
    (said,) = writing.look(seconds=30, **beats(1))
    assert said["message"].endswith("time waits for beats, which has been silent for 30 s, keeps 4.1 kB")
    (said,) = writing.look(seconds=30, **beats(2))
    assert "silent" not in said["message"]
    (said,) = writing.look(seconds=30, **beats(2, NOW + SECOND))
    assert "silent" not in said["message"], "a heartbeat has taken its time on"


def test_a_replay_of_old_rows_is_not_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    writing = Writing(monkeypatch, batches=False)
    assert [writing.look(progress=NOW - lag * SECOND) for lag in (90_000_000, 80_000_000, 70_000_000)] == [[], [], []]


def test_growing_state_is_warned_of_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    writing = Writing(monkeypatch, batches=False, thresholds=Thresholds(state_bytes=1000))
    messages = []
    for size in (900, 1000, 1900, 2000):
        operators = (OperatorStatus(3, "Join", "ring_hash", 1, 1, 0, size, 0.0, 5),)
        messages.append([line["message"] for line in writing.look(operators=operators)])
    assert [len(lines) for lines in messages] == [0, 1, 0, 1] and "#3" in messages[1][0]


def test_many_dead_letters_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    writing = Writing(monkeypatch, batches=False)
    events = []
    for rows, lost in ((1000, 500), (2000, 590), (3000, 800), (3001, 801)):
        inputs = (InputStatus("s", rows, rows - lost, lost, 0, 0, NOW, False, {}),)
        events.append([line["event"] for line in writing.look(inputs=inputs)])
    assert events == [[], [], ["dead letters"], []], "what earlier runs lost is not counted"


def test_the_end_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [line["event"] for line in Writing(monkeypatch).look(state="finished")] == ["finished"]


def test_python_has_them_in_its_logger(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "transom")
    with Session() as session:
        session.log_queries()
        session.stream("s", [{"t": "2024-05-01", "k": 1}], time="t")
        session.start("SELECT k FROM s", name="q").await_termination(60)
    events = [getattr(record, "transom")["event"] for record in caplog.records]  # noqa: B009
    assert events[-1] == "finished" and "batch" in events
