"""Inputs as notebooks have them: cells that are run twice, times that are numbers, tables that change, odd columns."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any

import pyarrow as pa
import pytest

from transom import OptionError, QueryError, Session, SourceError

NOON = datetime(2024, 5, 1, 12)
SECONDS = int((NOON - datetime(1970, 1, 1)).total_seconds())


def rows(*values: int) -> list[dict[str, Any]]:
    return [{"ts": NOON + timedelta(seconds=i), "a": a} for i, a in enumerate(values)]


def values(session: Session, text: str = "ISTREAM(SELECT a FROM s)") -> list[int]:
    numbers: list[int] = session.run(text).to_arrow()["a"].to_pylist()
    return numbers


def test_a_cell_that_declares_can_be_run_twice() -> None:
    session = Session()
    for last in (2, 3):
        session.stream("s", rows(1, last), time="ts", replace=True)
        session.table("t", [{"a": last}], replace=True)
        assert values(session) == [1, last]
        assert session.run("SELECT a FROM t", emit="latest").to_pylist() == [{"a": last}]
    session.stream("s", iter(rows(7)), time="ts", replace=True)
    assert values(session) == [7]
    session.stream("S", rows(8), time="ts", replace=True)
    assert values(session) == [8], "not what was handed over before"
    session.append("s", rows(0, 9)[1:])
    assert values(session) == [8, 9]
    with pytest.raises(QueryError, match="'s' is declared already"):
        session.table("s", [{"a": 1}])


def test_what_cannot_be_replaced() -> None:
    session = Session()
    session.stream("s", rows(1), time="ts")
    session.execute("CREATE SINK k WITH (connector = 'memory'); CREATE VIEW v AS SELECT a FROM s [ROWS 2]")
    with pytest.raises(QueryError, match="'k' is declared already"):
        session.stream("k", rows(1), time="ts", replace=True)
    with pytest.raises(QueryError, match="'transom_dead_letters' is declared already"):
        session.table("transom_dead_letters", rows(1), replace=True)
    session.stream("s", rows(1, 2), time="ts", replace=True)
    assert session.run("SELECT SUM(a) AS a FROM v", emit="changes").to_arrow()["a"].to_pylist()[-1] == 3
    with pytest.raises(QueryError, match="the view 'v' reads 's', whose columns would be others"):
        session.stream("s", [{"ts": NOON, "b": 1}], time="ts", replace=True)
    assert values(session) == [1, 2], "it is as it was"


@pytest.mark.parametrize(("unit", "per_second"), [("s", 1), ("ms", 1000), ("us", 1_000_000)])
@pytest.mark.parametrize("lazy", [False, True])
def test_times_that_are_whole_numbers(unit: Any, per_second: int, lazy: bool) -> None:
    counted = [{"ts": (SECONDS + i) * per_second, "a": i} for i in range(3)]
    session = Session()
    session.stream("s", iter(counted) if lazy else counted, time="ts", time_unit=unit)
    rows = session.run("ISTREAM(SELECT ts, a FROM s)").to_pylist()
    assert [(row["ts"], row["a"]) for row in rows] == [(NOON + timedelta(seconds=i), i) for i in range(3)]


def test_times_that_are_numbers_of_nothing() -> None:
    session = Session()
    session.stream("s", [{"ts": SECONDS, "a": 1}], time="ts")
    with pytest.raises(SourceError, match="which cannot be read as TIMESTAMP") as raised:
        values(session)
    assert raised.value.remedy is not None and "time_unit" in raised.value.remedy
    with pytest.raises(OptionError, match="time_unit cannot be 'weeks'"):
        session.stream("weekly", [{"ts": 1, "a": 1}], time="ts", time_unit="weeks")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="stamped on arrival, and have no time_unit"):
        session.stream("stamped", [{"ts": 1, "a": 1}], time_unit="s")
    session.execute("""CREATE STREAM m (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts)
        WITH (connector = 'memory', time_unit = 's')""")
    session.append("m", [{"ts": SECONDS, "a": 4}])
    assert values(session, "ISTREAM(SELECT a FROM m)") == [4]


@pytest.mark.parametrize("lazy", [False, True])
def test_a_table_that_changes_by_key(lazy: bool) -> None:
    session = Session()
    limits = [
        {"ts": SECONDS, "room": "hall", "most": 20},
        {"ts": SECONDS + 2, "room": "hall", "most": 30},
        {"ts": SECONDS + 3, "room": "lab", "most": 10},
        {"ts": SECONDS + 9, "room": "lab", "most": 11},
    ]
    session.table("limits", iter(limits) if lazy else limits, time="ts", key="room", time_unit="s")
    session.stream("s", [{"ts": NOON + timedelta(seconds=i), "room": "hall", "a": i} for i in range(5)], time="ts")
    text = "ISTREAM(SELECT a, most FROM s [NOW] JOIN limits USING (room))"
    assert [row["most"] for row in session.run(text).to_pylist()] == [20, 20, 30, 30, 30]


def test_what_is_wrong_with_a_table() -> None:
    session = Session()
    with pytest.raises(OptionError, match="nothing says which rows of 't' replace each other"):
        session.table("t", rows(1), time="ts")
    with pytest.raises(SourceError, match="'t' has no column 'room'"):
        session.table("t", rows(1), time="ts", key=["a", "room"])
    with pytest.raises(OptionError, match="'ts' is the time of the rows"):
        session.table("t", rows(1), time="ts", key="TS")
    with pytest.raises(OptionError, match="'t' never changes"):
        session.table("t", rows(1), bound="2 seconds")
    session.table("t", rows(1), key="a")
    assert session.run("SELECT a FROM t", emit="latest").to_pylist() == [{"a": 1}]


class LazyFrame:
    """As Polars has it: there are no rows until it is collected."""

    def collect(self) -> pa.Table:
        return pa.Table.from_pylist(rows(4, 5))


def test_a_lazy_frame_is_collected() -> None:
    session = Session()
    frame: Any = LazyFrame()
    session.stream("s", frame, time="ts")
    session.table("t", frame)
    assert values(session) == [4, 5] and len(session.run("SELECT a FROM t", emit="latest")) == 2


def test_columns_that_no_type_can_hold_are_left_out() -> None:
    session = Session()
    odd = pa.table({"ts": [NOON], "a": [1], "noon": [time(12)], "bytes": [b"\x00"]})
    session.stream("s", odd, time="ts")
    session.stream("later", iter(odd.to_pylist()), time="ts")
    for name in ("s", "later"):
        assert session.run(f"ISTREAM(SELECT * FROM {name})").to_arrow().column_names == ["at", "ts", "a"]
        with pytest.raises(QueryError, match="there is no column 'noon'"):
            session.run(f"SELECT noon FROM {name}")
    with pytest.raises(SourceError, match="column 'noon' of 't' is time64"):
        session.table("t", odd.select(["noon"]))
    with pytest.raises(SourceError, match="column 'noon' of 't' is time64"):
        session.stream("t", odd, time="noon")
    with pytest.raises(SourceError, match="column 'noon' of 't' is time64"):
        session.table("t", odd, columns=odd.schema)
