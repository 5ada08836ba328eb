"""Local times of zones, as Python's database has them; what is skipped or comes twice is as DuckDB has it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from transom import EvaluationError, QueryError, Session
from transom.core.schema import TIMESTAMP, VARCHAR
from transom.kernels.scalar import evaluate
from transom.plan.expression import ColumnRef, Literal
from transom.plan.functions import resolve

ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Asia/Kolkata",
    "Pacific/Apia",
]


def changed(moments: list[datetime | None], source: str, target: str) -> list[datetime | None]:
    column = ColumnRef(0, TIMESTAMP, "ts")
    instant = resolve("timezone", (Literal(source, VARCHAR), column))
    shown = resolve("timezone", (Literal(target, VARCHAR), instant))
    found: list[datetime | None] = evaluate(shown, pa.record_batch({"ts": pa.array(moments, TIMESTAMP)})).to_pylist()
    return found


@pytest.mark.parametrize("zone", ZONES)
def test_hours_of_some_years_are_shown_as_python_does(zone: str) -> None:
    for year in (1799, 1800, 1893, 1945, 2011, 2024, 2037, 2499, 2500, 9998):
        instants = [datetime(year, 1, 1) + timedelta(minutes=30 * n) for n in range(0, 2 * 24 * 365, 13)]
        known = ZoneInfo(zone)
        expected = [at.replace(tzinfo=UTC).astimezone(known).replace(tzinfo=None) for at in instants]
        assert changed([*instants], "UTC", zone) == expected
        later = [at.replace(tzinfo=known, fold=1).astimezone(UTC).replace(tzinfo=None) for at in expected]
        assert changed([*expected], zone, "UTC") == later


def test_what_is_skipped_is_later_and_of_what_comes_twice_the_later_is_meant() -> None:
    berlin = [datetime(2024, 3, 31, 2, 30), datetime(2024, 10, 27, 2, 30), datetime(2024, 10, 27, 1, 59), None]
    utc = [datetime(2024, 3, 31, 1, 30), datetime(2024, 10, 27, 1, 30), datetime(2024, 10, 26, 23, 59), None]
    assert changed([*berlin], "Europe/Berlin", "UTC") == utc
    tokyo = [None if at is None else at + timedelta(hours=9) for at in utc]
    assert changed([*berlin], "Europe/Berlin", "asia/tokyo") == tokyo
    assert changed([berlin[0]], "Europe/Berlin", "Europe/Berlin") == [datetime(2024, 3, 31, 3, 30)]


def test_the_ends_of_time() -> None:
    first, last = datetime(1, 1, 1), datetime(9999, 12, 31, 23)
    assert changed([first], "America/New_York", "UTC") == [first + timedelta(hours=4, minutes=56, seconds=2)]
    with pytest.raises(EvaluationError, match="outside the years 1 to 9999"):
        changed([last], "UTC", "Asia/Tokyo")
    assert changed([], "UTC", "Asia/Tokyo") == []


def test_what_can_be_written() -> None:
    session = Session()
    session.table("t", [{"ts": datetime(2024, 5, 1, 22, 30), "name": "UTC"}])
    local = "ts AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin'"
    (row,) = session.run(
        f"SELECT {local} AS a, date_trunc('day', {local}) AS b, timezone('UTC', timezone('Europe/Berlin', ts)) AS c, "
        "ts AT TIME ZONE 'UTC' = DATE '2024-05-02' AT TIME ZONE 'Asia/Kolkata' AS d, "
        "NULL AT TIME ZONE 'UTC' IS NULL AS e FROM t", emit="latest",
    ).to_pylist()  # fmt: skip
    assert list(row.values()) == [
        datetime(2024, 5, 2, 0, 30), datetime(2024, 5, 2), datetime(2024, 5, 1, 20, 30), False, True
    ]  # fmt: skip
    for written, said in (
        ("ts AT TIME ZONE 'Europe/Berln'", "there is no time zone 'Europe/Berln'"),
        ("ts AT TIME ZONE name", r"'timezone' does not take \(VARCHAR, TIMESTAMP\)"),
        ("COUNT(*) FILTER (WHERE ts AT TIME ZONE 'UTC')", "a TIMESTAMP WITH TIME ZONE is no condition"),
    ):
        with pytest.raises(QueryError, match=said):
            session.run(f"SELECT {written} FROM t")
    grouped = session.run("SELECT COUNT(*) AS n FROM t GROUP BY ts AT TIME ZONE 'UTC'", emit="latest")
    assert grouped.to_pylist() == [{"n": 1}]
