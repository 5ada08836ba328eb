"""SET schedule and SET overload on Spark: the same answers, what is reported, and batches that run again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from time import sleep
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.runtimes.spark.pauses import Pause, PausingHost
from tests.runtimes.spark.processes import kill, wait_for_end, wait_until
from tests.session.test_scheduled_queries import EQUAL, JOIN, NOON, QUERIES, WINDOWS, pairs, rows
from transom import OptionError, OverloadError, Session
from transom.runtimes.spark.group import SparkGroup
from transom.runtimes.spark.run import SparkRun
from transom.session import workspace_of

BY_KEY = ";".join(EQUAL.format(window) for window in WINDOWS)
LITTLE: dict[str, Any] = {"batch_rows": 40, "buffer": 20, "step_budget": "500 MICROSECONDS"}


def session_of(spark: SparkSession | None, **options: Any) -> Session:
    session = Session(spark=spark, **options)
    session.stream("a", rows(1), time="t")
    session.stream("b", rows(2), time="t")
    return session


@pytest.fixture(scope="module")
def at_once() -> list[set[tuple[Any, ...]]]:
    return [pairs(result.to_pylist()) for result in session_of(None).execute(QUERIES)]


def check_shed(session: Session, at_once: list[set[tuple[Any, ...]]]) -> int:
    """How many rows were lost to the queries together, all of which is accounted for."""
    lost = 0
    for result, whole in zip(session.execute(QUERIES), at_once, strict=True):
        assert result.status is not None and result.status.overload is not None
        found, reported = pairs(result.to_pylist()), result.status.overload
        assert found <= whole and reported.loads.num_rows
        assert reported.due == 600 == reported.processed + reported.shed and reported.pending == 0
        shed = reported.shed_rows.to_pylist()
        assert sum(one["rows"] for one in shed) == reported.shed
        assert {pair[0] for pair in whole - found} <= {one["first"] for one in shed}
        lost += reported.shed
    return lost


def test_what_is_shed_is_reported_and_the_rest_is_right(
    spark: SparkSession, at_once: list[set[tuple[Any, ...]]]
) -> None:
    options = {"batch_rows": 150, "buffer": 5, "step_budget": "1 MICROSECOND"}
    assert check_shed(session_of(spark, schedule="mqt", overload="shed", **options), at_once)


@pytest.mark.nightly
@pytest.mark.parametrize("policy", ["fifo", "mqt", "mandf", "admandf", "slack"])
def test_whatever_is_done_first_the_answers_are_the_same(
    spark: SparkSession, policy: str, at_once: list[set[tuple[Any, ...]]]
) -> None:
    results = session_of(spark, schedule=policy, **LITTLE).execute(QUERIES)
    assert [pairs(result.to_pylist()) for result in results] == at_once
    for result in results:
        assert result.status is not None and result.status.finished
        reported = result.status.overload
        assert reported is not None and (reported.policy, reported.on_overload) == (policy, "block")
        assert (reported.due, reported.processed, reported.shed, reported.pending) == (600, 600, 0, 0)


@pytest.mark.nightly
@pytest.mark.parametrize("policy", ["mqt", "slack"])
def test_joins_on_a_key_have_the_same_answers(spark: SparkSession, policy: str) -> None:
    at_once = [pairs(result.to_pylist()) for result in session_of(None).execute(BY_KEY)]
    results = session_of(spark, schedule=policy, **LITTLE).execute(BY_KEY)
    assert [pairs(result.to_pylist()) for result in results] == at_once and all(at_once)
    assert all(result.status is not None and result.status.overload is not None for result in results)


@pytest.mark.nightly
def test_an_overload_that_is_an_error_says_of_what(spark: SparkSession) -> None:
    session = session_of(spark, schedule="fifo", overload="fail", batch_rows=40, buffer=5, step_budget="1 MICROSECOND")
    with pytest.raises(OverloadError, match="query 'query-4' has not come to a row of 2024-05-01 12:00:") as raised:
        session.execute(QUERIES)
    assert raised.value.remedy is not None and "SET overload = 'block'" in raised.value.remedy


def test_explain_says_what_is_scheduled_and_a_step_is_longer_than_in_one_process() -> None:
    session = session_of(None, schedule="admandf", overload="shed")
    on_spark = Session(runtime="spark", schedule="admandf", overload="shed")
    for name in "ab":
        on_spark.stream(name, rows(1), time="t")
    assert "scheduled by admandf, a step of 50 ms; when more" in session.explain(QUERIES)
    assert "scheduled by admandf, a step of 500 ms; when more" in on_spark.explain(QUERIES)
    assert on_spark.explain(BY_KEY).count("side wait: shed; partners of a key in the order of their age") == 4
    with pytest.raises(OptionError, match="schedule"):
        Session(runtime="spark", schedule="first")


# --- batches that run again ------------------------------------------------------------------------------------------


def text_of(folder: Path) -> str:
    return "".join(
        f"CREATE SINK o{i} WITH (connector = 'files', path = '{folder}/o{i}.csv'); INSERT INTO o{i} {query};"
        for i, query in enumerate(QUERIES.split(";"))
    )


def run_of(spark: SparkSession, folder: Path, **options: Any) -> SparkRun:
    session = session_of(spark, schedule="mqt", **{**LITTLE, **options})
    run = workspace_of(session).assemble(
        workspace_of(session).prepare(text_of(folder)), checkpoint=str(folder / "kept"), end=True
    )
    assert isinstance(run, SparkRun)
    return run


def lines(folder: Path) -> list[list[str]]:
    return [sorted((folder / f"o{i}.csv").read_text().splitlines()[1:]) for i in range(len(WINDOWS))]


def failing_in(batch: int) -> AbstractContextManager[Any]:
    """The driver is gone when the sinks have a batch, and Spark does not know of it yet."""
    take: Callable[[SparkGroup, pa.Table, int], None] = SparkGroup._take

    def taken(self: SparkGroup, messages: pa.Table, number: int) -> None:
        take(self, messages, number)
        if number == batch:
            raise InterruptedError("gone")

    return patch.object(SparkGroup, "_take", taken)


@pytest.mark.nightly
@pytest.mark.parametrize("batches", [(1, 3, 4), (2, 5)])
def test_a_batch_that_runs_again_does_the_same_work(
    spark: SparkSession, tmp_path: Path, batches: tuple[int, ...]
) -> None:
    """Else rows would be in the answer twice, or never: what was left for the next batch would be other work."""
    with session_of(None) as whole:
        whole.execute(text_of(tmp_path))
    expected = lines(tmp_path)
    for path in tmp_path.iterdir():
        path.unlink()
    waited = 0
    for batch in batches:
        run = run_of(spark, tmp_path)
        with failing_in(batch), pytest.raises(InterruptedError):
            run.run()
        waited += any(one.overload is not None and one.overload.pending for one in run.status())
    last = run_of(spark, tmp_path)
    last.run()
    assert lines(tmp_path) == expected and waited
    for status in last.status():
        assert status.overload is not None and (status.overload.due, status.overload.processed) == (600, 600)


@pytest.mark.nightly
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_worker_that_is_killed_goes_unnoticed(
    spark: SparkSession, tmp_path: Path, moment: str, at_once: list[set[tuple[Any, ...]]]
) -> None:
    pause = Pause(str(tmp_path / "paused"), moment, batch=3)
    session = session_of(spark, schedule="mqt", **LITTLE)
    run = workspace_of(session).assemble(workspace_of(session).prepare(QUERIES), end=True)
    assert isinstance(run, SparkRun)
    with patch("transom.runtimes.spark.dataframe_stages.Host", type("H", (PausingHost,), {"pause": pause})):
        (group,) = run.units
        group.start()
    wait_until(lambda: pause.pid is not None, lambda: group.active)
    assert pause.pid is not None
    kill([pause.pid])
    wait_for_end([pause.pid])
    assert group.wait(300.0)
    assert [pairs(query.table().to_pylist()) for query in run.queries] == at_once
    for query in run.queries:
        reported = query.status().overload
        assert reported is not None and (reported.due, reported.processed, reported.shed) == (600, 600, 0)
    run.close()


@pytest.mark.nightly
def test_what_is_left_is_done_though_nothing_comes_and_queries_come_and_go(spark: SparkSession) -> None:
    session = session_of(spark, schedule="mqt", **LITTLE)
    alone = session_of(None)
    first = session.add(JOIN.format(9), follow=True)
    assert first.await_progress("2024-05-01 12:00:20", timeout=120)
    second = session.add(JOIN.format(2), name="narrow", follow=True)
    for name in "ab":
        session.append(name, [{"t": NOON + timedelta(hours=1), "k": 90 * (name == "b"), "n": 999}])
        session.append(name, [{"t": NOON + timedelta(hours=2), "k": 0, "n": 1000}])
    for query in (first, second):
        assert query.await_progress(NOON + timedelta(hours=1, seconds=1), timeout=120)
        assert [row["i"] for row in query.result.to_pylist()][-1] == 999
        reported = query.status.overload
        assert reported is not None and reported.due == reported.processed + reported.shed + reported.pending
        assert not reported.shed
    assert second.status.overload is not None and second.status.overload.due < 600
    (expected,) = alone.execute(JOIN.format(9))
    second.stop()
    sleep(0.5)
    assert pairs(expected.to_pylist()) <= pairs(first.result.to_pylist())
    session.close()
