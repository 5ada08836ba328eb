from __future__ import annotations

import contextlib
import gc
import itertools
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from transom import OptionError, Progress, QueryError, Session, SourceError, StreamingQuery
from transom.core.time import from_datetime

NOON = datetime(2024, 5, 1, 12)
LONG = 60.0
"""Seconds that no test should ever wait; it is there so that a broken one ends."""


def runs(query: StreamingQuery) -> bool:
    return query.is_active


def endless() -> Iterator[dict[str, Any]]:
    for i in itertools.count():
        yield {"ts": NOON + timedelta(seconds=i), "a": i}


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> Iterator[None]:
    before = set(threading.enumerate())

    def left() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread not in before]

    yield
    if left():
        gc.collect()
    assert left() == []


def test_an_endless_query_runs_until_it_is_stopped() -> None:
    session = Session(batch_rows=10)
    session.stream("s", endless(), time="ts")
    seen: list[int] = []
    query = session.start("ISTREAM(SELECT a FROM s)", on_rows=lambda rows: seen.extend(rows["a"].to_pylist()))
    assert query.await_progress(NOON + timedelta(seconds=55), timeout=LONG)
    assert seen[:56] == list(range(56))
    assert runs(query) and query.exception() is None and not query.status.finished
    status = query.stop()
    assert not runs(query)
    assert seen == list(range(len(seen))) and status.rows_out == len(seen)
    assert status.progress == from_datetime(NOON) + 1_000_000 * status.rows_out
    assert query.stop() == status  # once more does no harm
    assert not query.await_progress(NOON + timedelta(days=1000))


def test_a_bounded_query_ends_by_itself_with_its_answer() -> None:
    session = Session()
    session.table("t", [{"a": 1}, {"a": 2}])
    with session.start("CREATE VIEW v AS SELECT a FROM t; SELECT SUM(a) AS s FROM v", emit="latest") as query:
        assert query.await_termination(timeout=LONG)
        assert not runs(query) and query.status.finished
    assert query.result.to_pylist() == [{"s": 3}]
    assert query.await_progress(NOON)
    assert repr(query) == "<StreamingQuery query-1: ended, 1 rows out>"


def test_rows_that_are_appended_while_it_follows_come_out() -> None:
    with Session() as session:
        session.execute("CREATE STREAM s (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory')")
        query = session.start("SELECT MAX(a) AS m FROM s", emit="latest", follow=True)
        for i in range(3):
            session.append("s", [{"ts": NOON + timedelta(seconds=2 * i + j), "a": i} for j in (0, 1)])
            assert query.await_progress(NOON + timedelta(seconds=2 * i), timeout=LONG)
            assert query.result.to_pylist() == [{"m": i}]
        assert not query.await_progress(NOON + timedelta(seconds=9), timeout=0.01)
        assert runs(query)
    assert not runs(query) and query.exception() is None


def test_what_goes_wrong_is_reported_to_whoever_asks() -> None:
    def breaks() -> Iterator[dict[str, Any]]:
        yield from itertools.islice(endless(), 20)
        raise ValueError("the sensor is on fire")

    session = Session(batch_rows=4)
    session.stream("s", breaks, time="ts")
    with pytest.raises(SourceError, match="the rows of 's' cannot be had: the sensor is on fire"):  # noqa: SIM117
        with session.start("SELECT a FROM s") as query:
            query.await_termination(LONG)
    assert isinstance(failure := query.exception(), SourceError) and isinstance(failure.__cause__, ValueError)
    with pytest.raises(SourceError):
        query.await_progress(NOON + timedelta(days=1))
    assert "failed" in repr(query)
    query = session.start("SELECT a FROM s", on_rows=lambda rows: rows.column("nothing"))
    with pytest.raises(KeyError):
        query.await_termination(LONG)
    with pytest.raises(ZeroDivisionError), session.start("SELECT a FROM s"):
        raise ZeroDivisionError  # the error of the block itself comes first


def test_a_query_that_waits_for_its_iterable_ends_with_the_next_row() -> None:
    door, waits = threading.Event(), threading.Event()

    def slow() -> Iterator[dict[str, Any]]:
        for row in endless():
            yield row
            if row["a"] == 3:
                waits.set()
                door.wait(LONG)

    session = Session()
    session.stream("s", slow(), time="ts", columns=pa.schema([("ts", pa.timestamp("us")), ("a", pa.int64())]))
    query = session.start("ISTREAM(SELECT a FROM s)", follow=True)
    assert waits.wait(LONG)
    with pytest.raises(SourceError, match="waits for its input"):
        query.stop(timeout=0.05)
    door.set()
    assert query.stop(timeout=LONG) is not None
    assert not runs(query)


def test_a_query_is_stopped_when_neither_its_session_nor_anybody_else_holds_it() -> None:
    session = Session(batch_rows=10)
    session.stream("s", endless, time="ts")
    for _ in range(2):
        session.start("SELECT COUNT(*) AS n FROM s", emit="latest")
    gc.collect()
    first, second = session.queries
    assert (first.name, second.name) == ("query-1", "query-2")
    assert second.await_progress(NOON, timeout=LONG)
    del session
    gc.collect()
    assert runs(first)
    del first, second  # the fixture looks for their threads


def test_a_cell_can_be_run_twice() -> None:
    with Session(batch_rows=10) as session:
        session.stream("s", endless, time="ts")
        first = session.start("SELECT COUNT(*) AS n FROM s", name="counts", emit="latest")
        with pytest.raises(QueryError, match="'counts' is active already"):
            session.start("SELECT COUNT(*) AS n FROM s", name="counts")
        again = session.start("SELECT MAX(a) AS n FROM s", name="counts", emit="latest", replace=True)
        assert not runs(first) and session.queries == [again] and again.name == "counts"
        assert "max(a)" in again.explain()
        for name in ("", " ", "a/b", ".."):
            with pytest.raises(OptionError, match="cannot be called"):
                session.start("SELECT a FROM s", name=name)


def test_a_function_that_takes_rows_may_stop_its_query() -> None:
    seen: list[int] = []
    there, stopped = threading.Event(), []
    """Rows may come before whoever starts a query has it."""

    def take(rows: pa.Table) -> None:
        seen.extend(rows["a"].to_pylist())
        if there.is_set() and len(seen) > 50:
            stopped.append(len(seen))
            for query in session.queries:
                query.stop()

    with Session(batch_rows=10) as session:
        session.stream("s", endless, time="ts")
        query = session.start("ISTREAM(SELECT a FROM s)", on_rows=take)
        there.set()
        assert query.await_termination(LONG) and query.exception() is None and 50 < len(seen) < stopped[0] + 30
        seen.clear()
        there.clear()
        first = session.add("ISTREAM(SELECT a FROM s)", name="first", on_rows=take)
        second = session.add("SELECT COUNT(*) AS n FROM s", name="second", emit="latest")
        there.set()
        assert first.await_termination(LONG) and second.await_termination(LONG)
        assert first.exception() is None and session.queries == []


def test_a_function_that_takes_rows_cannot_add_a_query() -> None:
    with Session(batch_rows=10) as session:
        session.stream("s", endless, time="ts")

        def take(rows: pa.Table) -> None:
            session.add("SELECT a FROM s")

        query = session.add("SELECT a FROM s", on_rows=take)
        with pytest.raises(QueryError, match="between two steps"):
            query.await_termination(LONG)


def test_what_it_did_of_late_is_remembered() -> None:
    session = Session(batch_rows=10)
    session.stream("s", list(itertools.islice(endless(), 95)), time="ts")
    seen: list[Progress] = []
    query = session.start("SELECT a FROM s [ROWS 3]")
    assert query.await_termination(LONG)
    assert sum(each.rows_in for each in query.recent_progress) == 95
    assert query.last_progress is not None and query.last_progress.batch == query.status.steps
    assert query.last_progress.operators[-1].state_rows == query.status.operators[-1].state_rows
    session.on_progress(seen.append)
    query = session.start("SELECT a FROM s [ROWS 3]")
    assert query.await_termination(LONG)
    assert len(seen) == query.status.steps >= 10


def test_a_checkpoint_lets_it_go_on(tmp_path: Path) -> None:
    """Stopped in the middle, and started again over the same rows: the files are those of one run."""

    def text(name: str) -> str:
        return f"""CREATE SINK out WITH (connector = 'files', path = '{tmp_path}/{name}.csv', emit = 'lifetimes');
            INSERT INTO out SELECT a FROM s [RANGE 3 SECONDS]"""

    door = threading.Event()

    def rows() -> Iterator[dict[str, Any]]:
        for row in itertools.islice(endless(), 600):
            yield row
            if row["a"] == 60:
                door.wait(LONG)

    def session() -> Session:
        made = Session(batch_rows=7)
        made.stream("s", rows, time="ts")
        return made

    query = session().start(text("parts"), checkpoint=str(tmp_path / "kept"))
    assert query.await_progress(NOON + timedelta(seconds=40), timeout=LONG)
    with contextlib.suppress(SourceError):
        query.stop(timeout=0.01)
    door.set()
    assert not query.stop().finished
    with session().start(text("whole")) as query:
        query.await_termination(LONG)
    with session().start(text("parts"), checkpoint=str(tmp_path / "kept")) as query:
        query.await_termination(LONG)
    assert (tmp_path / "parts.csv").read_text() == (tmp_path / "whole.csv").read_text()
    assert query.result.table is None and query.result.status == query.status


def test_a_source_that_is_over_ends_a_query_that_follows() -> None:
    session = Session(batch_rows=30)
    session.execute("""
        CREATE STREAM made (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts)
            WITH (connector = 'generator', rows = 100, column.a = 'sequence');
    """)
    session.stream("given", itertools.islice(endless(), 50), time="ts")
    text = "SELECT COUNT(*) AS n FROM (SELECT a FROM made UNION ALL SELECT a FROM given) AS both"
    with session.start(text, emit="latest", follow=True) as query:
        assert query.await_termination(LONG)
    assert query.result.to_pylist() == [{"n": 150}]


def test_rows_of_an_insert_are_not_for_a_callback(tmp_path: Path) -> None:
    session = Session()
    session.table("t", [{"a": 1}])
    session.execute(f"CREATE SINK out WITH (connector = 'files', path = '{tmp_path}/out.csv')")
    with pytest.raises(OptionError, match="on_rows would get none"):
        session.start("INSERT INTO out SELECT a FROM t", on_rows=print)
    assert list(tmp_path.iterdir()) == []


def test_start_wants_one_query() -> None:
    session = Session()
    session.table("t", [{"a": 1}])
    for text in ("", "SELECT a FROM t; SELECT a FROM t"):
        with pytest.raises(QueryError, match="one query is expected"):
            session.start(text)
    query = session.start("SELECT a FROM t")
    assert isinstance(query, StreamingQuery)
    with pytest.raises(Exception, match="'soon' is no instant"):
        query.await_progress("soon")
    assert query.await_progress("2024-05-01 12:00:00", timeout=LONG)
    query.stop()
