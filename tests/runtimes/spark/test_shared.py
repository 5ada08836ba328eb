"""Who starts and who stops the Spark session of a process."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from transom.core.errors import SparkError
from transom.runtimes.spark import shared
from transom.runtimes.spark.shared import Lease


class Session:
    """As much of a SparkSession as is looked at here."""

    def __init__(self) -> None:
        self.sparkContext = self
        self._jsc: object | None = object()

    def stop(self) -> None:
        self._jsc = None


class Launch:
    def __init__(self) -> None:
        self.started: list[tuple[object, bool, Session]] = []
        self.resume = threading.Event()
        self.resume.set()

    def start(self, cores: object, *, lasting: bool) -> Session:
        self.resume.wait(60)
        if cores == 13:
            raise SparkError("there is no Java")
        session = Session()
        self.started.append((cores, lasting, session))
        return session

    def warm(self, session: Session) -> None: ...


@pytest.fixture
def launch(monkeypatch: pytest.MonkeyPatch) -> Launch:
    fake = Launch()
    monkeypatch.setattr(shared, "launch", fake)
    monkeypatch.setattr(shared, "_SHARED", shared._SharedSession())
    return fake


def test_it_is_started_once_and_stopped_with_the_last_lease(launch: Launch) -> None:
    one, other, idle = Lease(2), Lease(None), Lease(None)
    session: Any = one.spark
    assert other.spark is session and one.spark is session
    assert [(cores, lasting) for cores, lasting, _ in launch.started] == [(2, True)]
    idle.release()
    one.release()
    one.release()
    assert session._jsc is not None
    other.release()
    assert session._jsc is None
    again: Any = one.spark
    assert again is not session and len(launch.started) == 2


def test_one_that_somebody_stopped_is_started_anew(launch: Launch) -> None:
    lease = Lease(None)
    session: Any = lease.spark
    session.stop()
    other: Any = Lease(None).spark
    assert other is not session and other._jsc is not None


def test_a_start_that_nobody_waits_for_is_undone_when_it_is_there(launch: Launch) -> None:
    lease = Lease(None)
    launch.resume.clear()
    lease.begin(brief=True)
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "transom-spark"]
    lease.release()
    launch.resume.set()
    thread.join(60)
    ((_, lasting, session),) = launch.started
    assert not lasting and session._jsc is None


def test_what_goes_wrong_is_raised_where_the_session_is_wanted(launch: Launch) -> None:
    lease = Lease(13)
    lease.begin()
    for _ in range(2):
        with pytest.raises(SparkError, match="no Java"):
            _ = lease.spark
