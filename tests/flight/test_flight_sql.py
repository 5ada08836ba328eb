"""Answers asked by a client of Arrow Flight SQL that is not ours, while their queries run and after."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import adbc_driver_flightsql.dbapi
import pyarrow as pa
import pytest

from transom import Session
from transom.core.errors import OptionError

ROWS: list[dict[str, object]] = [
    {"t": "2024-05-01 10:00:00", "room": "hall", "floor": 1, "celsius": 20.5},
    {"t": "2024-05-01 10:00:10", "room": None, "floor": 1, "celsius": None},
    {"t": "2024-05-01 10:00:20", "room": "lab", "floor": 2, "celsius": 31.0},
    {"t": "2024-05-01 10:00:20", "room": "lab", "floor": 2, "celsius": 31.0},
    {"t": "2024-05-01 10:00:50", "room": "hall", "floor": 1, "celsius": 22.0},
]
HOT = "SELECT room, floor, celsius FROM readings [RANGE 30 SECONDS]"


@contextmanager
def client(session: Session) -> Iterator[Any]:
    server = session.serve_sql("127.0.0.1:0")
    with adbc_driver_flightsql.dbapi.connect(server.url, autocommit=True) as connection:
        yield connection


def asked(connection: Any, sql: str) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetch_arrow_table().to_pylist())


def start(session: Session, query: str = HOT, name: str = "hot", **given: Any) -> None:
    session.stream("readings", ROWS, time="t", replace=True)
    session.start(query, name=name, follow=True, **given).await_progress("2024-05-01 10:00:49", timeout=60)


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(history="1 HOUR") as made:
        yield made


def test_the_answer_now_and_at_every_instant_is_that_of_the_reference(session: Session) -> None:
    """Rows that are there twice, with NULLs, at instants at which they come and go, and between."""
    with client(session) as connection:
        start(session)
        for second, rooms in (
            ("09:59:59", []),
            ("10:00:00", ["hall"]),
            ("10:00:10", [None, "hall"]),
            ("10:00:19.999999", [None, "hall"]),
            ("10:00:20", [None, "hall", "lab", "lab"]),
            ("10:00:29", [None, "hall", "lab", "lab"]),
            ("10:00:30", [None, "lab", "lab"]),
            ("10:00:40", ["lab", "lab"]),
        ):
            sql = f"SELECT room FROM hot AS OF TIMESTAMP '2024-05-01 {second}' ORDER BY room NULLS FIRST"
            assert [row["room"] for row in asked(connection, sql)] == rooms, second


def test_it_is_sql_over_all_answers(session: Session) -> None:
    with client(session) as connection:
        start(session)
        start(session, "SELECT floor, COUNT(*) AS n FROM readings [RANGE 30 SECONDS] GROUP BY floor", "floors")
        sql = """
            SELECT h.room, f.n, COUNT(*) AS times FROM hot AS OF '2024-05-01 10:00:25' h
            JOIN floors FOR SYSTEM_TIME AS OF TIMESTAMP '2024-05-01 10:00:25' AS f USING (floor)
            GROUP BY ALL ORDER BY 1 NULLS LAST
        """
        rows = [tuple(row.values()) for row in asked(connection, sql)]
        assert rows == [("hall", 2, 1), ("lab", 2, 2), (None, 2, 1)]


def test_it_renews_itself_while_the_query_goes_on(session: Session) -> None:
    with client(session) as connection:
        session.stream("readings", ROWS, time="t")
        query = session.start(HOT, name="hot", follow=True)
        assert query.await_progress("2024-05-01 10:00:49", timeout=60)
        session.append("readings", [{"t": "2024-05-01 10:01:00", "room": "roof", "floor": 9, "celsius": 1.0}])
        session.append("readings", [{"t": "2024-05-01 10:02:00", "room": "end", "floor": 9, "celsius": 1.0}])
        assert query.await_progress("2024-05-01 10:01:10", timeout=60)
        at = "AS OF '2024-05-01 10:01:05'"
        assert asked(connection, f"SELECT room FROM hot {at} WHERE floor = 9") == [{"room": "roof"}]


@pytest.mark.parametrize("emit", ["net", "latest"])
def test_other_forms_have_the_answer_as_it_is_now(session: Session, emit: Any) -> None:
    with client(session) as connection:
        start(session, emit=emit)
        assert asked(connection, "SELECT room FROM hot") == [{"room": "lab"}, {"room": "lab"}]
        with pytest.raises(Exception, match="only the answer as it is now"):
            asked(connection, "SELECT room FROM hot AS OF '2024-05-01 10:00:25'")


def test_a_stream_is_the_rows_that_came(session: Session) -> None:
    with client(session) as connection:
        start(session, "ISTREAM(SELECT room, floor FROM readings [RANGE 30 SECONDS])")
        sql = 'SELECT COUNT(*) AS n, MAX("at") AS last FROM hot WHERE floor = 2'
        assert asked(connection, sql) == [{"n": 2, "last": datetime(2024, 5, 1, 10, 0, 20)}]


def test_what_was_not_to_be_kept_is_not_known() -> None:
    with Session() as session, client(session) as connection:
        start(session)
        assert len(asked(connection, "SELECT room FROM hot")) == 2
        with pytest.raises(Exception, match="SET history"):
            asked(connection, "SELECT room FROM hot AS OF '2024-05-01 10:00:25'")


def test_the_status_says_what_is_kept(session: Session) -> None:
    with client(session):
        start(session)
        session.monitor.look()
        (of_query,) = session.monitor.snapshots()
        kept = of_query["history"]
        assert isinstance(kept, dict) and kept["seconds"] == 3600 and kept["bytes"] > 0 and kept["rows"] >= 5


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "COPY (SELECT 1) TO '/tmp/transom_flight_written'",
        "ATTACH '/tmp/transom_flight_written' AS x",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "PRAGMA memory_limit='100GB'",
        "CREATE TABLE x AS SELECT 1",
        "DROP VIEW hot",
        "SELECT 1; SELECT 2",
        "SELECT getenv('HOME')",
        "SELECT * FROM session",
        "SELECT * FROM ROWS",
        "",
        "SELECT room FROM hot AS OF 'never'",
        "SELECT * FROM nowhere",
        "SELECT " + "(" * 10_000,
        "SELECT " + "'(' || (" * 41,
        "SELECT " + "1 + " * 6_000,
    ],
)
def test_hostile_queries_do_nothing(session: Session, sql: str) -> None:
    with client(session) as connection:
        start(session)
        with pytest.raises(Exception) as error:
            asked(connection, sql)
        assert "root:" not in str(error.value)
        assert len(asked(connection, "SELECT room FROM hot")) == 2


def test_tools_find_the_answers_and_their_columns(session: Session) -> None:
    with client(session) as connection:
        start(session, name="my answer")
        catalogs = connection.adbc_get_objects(depth="tables").read_all().to_pylist()
        tables = [
            each
            for catalog in catalogs
            for schema in catalog["catalog_db_schemas"]
            for each in schema["db_schema_tables"]
        ]
        assert [each["table_name"] for each in tables] == ["my answer"]
        schema = connection.adbc_get_table_schema("my answer")
        assert schema.names == ["room", "floor", "celsius"] and schema.field("celsius").type == pa.float64()


def test_a_port_that_is_taken_is_a_kind_error(session: Session) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(OptionError, match="cannot listen on"):
            session.serve_sql(f"127.0.0.1:{other.getsockname()[1]}")
