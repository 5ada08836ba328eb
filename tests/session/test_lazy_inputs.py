from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from tests.stepped import stepped
from transom import Session, SourceError

NOON = datetime(2024, 5, 1, 12)
SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("a", pa.int64())])


class Counted:
    """Rows without end, and how many were requested."""

    def __init__(self) -> None:
        self.requested = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for i in itertools.count():
            self.requested = max(self.requested, i + 1)
            yield {"ts": NOON + timedelta(seconds=i), "a": i}


def batch(*values: int | None) -> pa.RecordBatch:
    times = [NOON + timedelta(seconds=value or 0) for value in values]
    return pa.record_batch([pa.array(times, pa.timestamp("us")), pa.array(values, pa.int64())], schema=SCHEMA)


def answers(session: Session) -> list[Any]:
    values: list[Any] = session.run("ISTREAM(SELECT a FROM s)").to_arrow()["a"].to_pylist()
    return values


def test_nothing_is_read_before_it_is_wanted() -> None:
    rows = Counted()
    session = Session(batch_rows=5)
    session.stream("s", rows, time="ts", columns=SCHEMA)
    assert rows.requested == 0
    query = stepped(session, "ISTREAM(SELECT a FROM s)")
    assert rows.requested == 0
    query.step()
    assert rows.requested <= 5
    query.step()
    assert query.table()["a"].to_pylist() == list(range(rows.requested - 1))
    assert not query.finished


def test_an_iterable_can_be_gone_through_by_every_query_but_an_iterator_once() -> None:
    session = Session()
    session.stream("s", lambda: iter(list(itertools.islice(Counted(), 4))), time="ts")
    assert answers(session) == answers(session) == [0, 1, 2, 3]
    once = Session()
    once.stream("s", itertools.islice(Counted(), 4), time="ts")
    assert answers(once) == [0, 1, 2, 3]
    with pytest.raises(SourceError, match="read already") as error:
        answers(once)
    assert "a function that makes the iterable" in str(error.value)


def test_an_arrow_reader_is_read_batch_by_batch() -> None:
    given: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for i in range(4):
            given.append(i)
            yield batch(3 * i, 3 * i + 1, 3 * i + 2)

    session = Session(batch_rows=2)
    session.stream("s", pa.RecordBatchReader.from_batches(SCHEMA, batches()), time="ts")
    query = stepped(session, "ISTREAM(SELECT a FROM s)")
    assert given == []
    query.step()
    assert given == [0]
    query.run()
    assert query.table()["a"].to_pylist() == list(range(12))


def test_batches_tables_and_dictionaries_may_be_mixed() -> None:
    rows = [{"ts": NOON, "a": 0}, batch(1, 2), batch(), pa.Table.from_batches([batch(3), batch(4, 5)])]
    more = [{"ts": NOON + timedelta(seconds=6), "a": 6}, {"a": 7, "ts": "2024-05-01 12:00:07", "b": "extra"}]
    for size in (1, 2, 100):
        session = Session(batch_rows=size)
        session.stream("s", iter([*rows, *more]), time="ts")
        assert answers(session) == list(range(8))


def test_rows_that_do_not_fit_are_rejected_and_the_others_used() -> None:
    good = {"ts": NOON, "a": 1}
    bad: list[dict[str, object]] = [
        {"ts": None, "a": 2},
        {"a": 3},
        {"ts": NOON, "a": "many"},
        {"ts": NOON, "a": [4]},
        {"ts": "noon", "a": 5},
    ]
    session = Session()
    given: list[dict[str, object]] = [good, *bad, {"ts": NOON, "a": "6"}, {"ts": NOON}]
    session.stream("s", iter(given), time="ts")
    assert sorted(map(str, answers(session))) == ["1", "6", "None"]
    text = "SELECT position, reason FROM transom_dead_letters WHERE stream = 's'"
    rejected = {row["position"]: row["reason"] for row in session.run(text, emit="latest").to_arrow().to_pylist()}
    assert sorted(rejected) == [f"s, row {i}" for i in range(2, 7)]
    assert rejected["s, row 2"] == rejected["s, row 3"] == "the time column 'ts' is NULL"
    assert "cannot hold 'many'" in rejected["s, row 4"] and "cannot hold '[4]'" in rejected["s, row 5"]
    assert "cannot hold 'noon'" in rejected["s, row 6"]


def test_a_stream_without_a_time_column_is_stamped() -> None:
    session = Session()
    session.stream("s", ({"a": i} for i in range(3)))
    assert answers(session) == [0, 1, 2]


def test_a_restored_query_goes_past_what_it_has_read() -> None:
    def session() -> Session:
        made = Session(batch_rows=3)
        made.stream("s", lambda: itertools.islice(Counted(), 20), time="ts")
        return made

    text = "SELECT SUM(a) AS s FROM s [ROWS 4]"
    whole = session().run(text).to_pylist()
    query = stepped(session(), text)
    for _ in range(3):
        query.step()
    so_far, saved = query.table().to_pylist(), query.snapshot()
    again = stepped(session(), text)
    again.restore(saved)
    again.run()
    assert so_far + again.table().to_pylist() == whole
    shorter = Session(batch_rows=3)
    shorter.stream("s", lambda: itertools.islice(Counted(), 4), time="ts")
    lost = stepped(shorter, text)
    lost.restore(saved)
    with pytest.raises(SourceError, match="has 4 rows, and 9 had been read"):
        lost.run()


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (iter([]), "has no rows that show its columns"),
        (iter([{"ts": NOON, "a": None}]), "has no value in 'a'"),
        (iter([3]), "an element of 's' is no row"),
        (iter([{1: 2}]), "an element of 's' is no row"),
        (lambda: 3, "cannot be had"),
        (lambda: [][0], "cannot be had: list index out of range"),
    ],
)
def test_what_tells_no_columns_is_rejected(data: Any, what: str) -> None:
    session = Session()
    with pytest.raises(SourceError) as error:
        session.stream("s", data, time="ts")
    assert what in str(error.value) and error.value.remedy
    session.stream("s", iter([{"ts": NOON, "a": 1}]), time="ts")  # the name is still free


def test_an_element_that_is_no_row_fails_the_query() -> None:
    for wrong in (3, None, ("ts", "a")):
        session = Session()
        session.stream("s", iter([{"ts": NOON, "a": 1}, wrong]), time="ts")  # type: ignore[arg-type]
        with pytest.raises(SourceError, match="an element of 's' is no row"):
            answers(session)


def test_lists_take_the_columns_that_are_reported() -> None:
    session = Session()
    session.stream("s", [{"ts": NOON, "a": 1, "b": 2}], time="ts", columns=SCHEMA)
    assert session.run("ISTREAM(SELECT * FROM s)").to_arrow().column_names == ["at", "ts", "a"]


def test_the_dead_letter_table_is_a_table_like_others() -> None:
    session = Session()
    session.stream("s", [{"ts": NOON, "a": 1}, {"ts": NOON - timedelta(days=1), "a": 2}], time="ts", late="dead_letter")
    assert len(session.run("SELECT * FROM transom_dead_letters", emit="latest")) == 0
    assert answers(session) == [1]
    counted = "SELECT reason, COUNT(*) AS n FROM transom_dead_letters GROUP BY reason"
    assert session.run(counted, emit="latest").to_pylist() == [{"reason": "late: came after the watermark", "n": 1}]
    answers(session)
    assert session.run(counted, emit="latest").to_pylist()[0]["n"] == 2
    with pytest.raises(Exception, match="declared already"):
        session.table("Transom_Dead_Letters", [{"a": 1}])


def test_a_generated_stream_in_a_session() -> None:
    session = Session(batch_rows=50)
    session.execute("""
        CREATE STREAM s (ts TIMESTAMP, room VARCHAR, a INTEGER, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
        WITH (connector = 'generator', rows = 500, rate = 10, seed = 3, disorder = '5 seconds', late = 'fail',
              column.room = 'choice hall lab', column.a = 'sequence')
    """)
    rows = (
        session.run("SELECT room, COUNT(*) AS n, MAX(a) AS a FROM s GROUP BY room", emit="latest")
        .to_arrow()
        .to_pylist()
    )
    assert {row["room"] for row in rows} == {"hall", "lab"}
    assert sum(row["n"] for row in rows) == 500 and max(row["a"] for row in rows) == 499
    with pytest.raises(Exception, match="no column 'rom' to fill"):
        session.execute("CREATE TABLE t (a INTEGER) WITH (connector = 'generator', rows = 5, column.rom = 'text 3')")
