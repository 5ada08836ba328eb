from __future__ import annotations

import json
import time

from transom import Session
from transom.core.errors import SourceError
from transom.core.time import FOREVER, SECOND, UNITS
from transom.monitoring.snapshot import status_json
from transom.program.status import InputStatus, OperatorStatus, Status

NOW = 1_700_000_000 * SECOND


def made(**changed: object) -> Status:
    smoke = InputStatus("smoke", 10, 5, 2, 1, 2, NOW - 300 * SECOND, False, {"late": 2})
    heat = InputStatus("heat", 7, 7, 0, 0, 0, NOW - 60 * SECOND, False, {})
    rooms = InputStatus("rooms", 3, 3, 0, 0, 0, None, True, {})
    join = OperatorStatus(3, "Join", "ring_hash", 12, 4, 1, 4096, 0.5, 9)
    usual: dict[str, object] = {
        "name": "alarms",
        "inputs": (smoke, heat, rooms),
        "operators": (join,),
        "progress": NOW - 300 * SECOND,
        "held_back_by": "smoke",
        "rows_out": 4,
        "steps": 6,
        "finished": False,
    }
    return Status(**(usual | changed))  # type: ignore[arg-type]


def test_what_holds_time_back_is_measured_against_the_furthest_input() -> None:
    snapshot = status_json(made(), now=NOW)
    assert snapshot["held_back_by"] == {"input": "smoke", "seconds": 240.0, "silent_seconds": 0.0}
    assert (snapshot["lag_seconds"], snapshot["rows_in"], snapshot["state"]) == (300.0, 20, "running")
    assert [of_input["lag_seconds"] for of_input in snapshot["inputs"]] == [300.0, 60.0, None]


def test_every_row_of_an_input_is_accounted_for() -> None:
    for of_input in status_json(made(), now=NOW)["inputs"]:
        assert of_input["rows_in"] == of_input["used"] + of_input["late"] + of_input["rejected"] + of_input["waiting"]


def test_it_is_json_without_numbers_that_json_has_not() -> None:
    for status in (made(), made(progress=FOREVER, held_back_by=None, finished=True), made(inputs=(), operators=())):
        text = json.dumps(status_json(status, now=NOW), allow_nan=False)
        assert json.loads(text)["name"] == "alarms"


def test_what_has_no_progress_has_no_lag() -> None:
    ended = status_json(made(progress=FOREVER, finished=True), now=NOW)
    assert (ended["progress"], ended["lag_seconds"], ended["state"]) == (None, None, "finished")


def test_an_error_is_shown_and_what_was_taken_from_the_environment_is_not() -> None:
    snapshot = status_json(made(), error=SourceError("the file is gone", remedy="bring it back"))
    assert (
        snapshot["state"] == "failed"
        and "the file is gone" in snapshot["error"]
        and "bring it back" in snapshot["error"]
    )


def test_the_handle_of_a_query_says_the_same() -> None:
    before = time.time_ns() // 1000
    with Session() as session:
        session.stream("s", [{"t": "2024-05-01", "k": None}, {"t": "2024-05-02", "k": "x"}], time="t")
        query = session.start("SELECT k, COUNT(*) AS n FROM s [RANGE 1 HOUR] GROUP BY k", name="counts")
        query.await_termination(60)
        snapshot = status_json(query.status, now=before + UNITS["day"])
    assert (snapshot["name"], snapshot["rows_in"], snapshot["rows_out"]) == ("counts", 2, 4)
    assert {operator["title"] for operator in snapshot["operators"]} >= {"scan", "window range"}
