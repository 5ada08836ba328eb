"""FOR SYSTEM_TIME AS OF: what it stands for, and what errors say."""

from __future__ import annotations

import pytest

from transom.core.errors import QueryError
from transom.cql.statements import parse_statements
from transom.plan.algebra import Join, Node, Project, ToStream, Window, WindowSpec
from transom.plan.catalogue import Catalogue, QueryStatement

INPUTS = """CREATE STREAM o (ts TIMESTAMP, k INTEGER, paid TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE TABLE r (ts TIMESTAMP, k INTEGER PRIMARY KEY, v INTEGER, WATERMARK FOR ts AS ts);
"""


def bound(query: str) -> Node:
    statement = parse_statements(f"{INPUTS} {query};", Catalogue())[-1]
    assert isinstance(statement, QueryStatement)
    return statement.query


def test_it_is_the_join_of_an_instant_and_the_window_again() -> None:
    query = bound("SELECT o.k, r.v FROM o [RANGE 9 SECONDS] JOIN r FOR SYSTEM_TIME AS OF o.ts ON o.k = r.k")
    assert isinstance(query, Project) and isinstance(query.input, Window)
    assert query.input.spec == WindowSpec(range=9_000_000)
    pairs = query.input.input
    assert isinstance(pairs, ToStream) and isinstance(pairs.input, Join)
    now = pairs.input.relations[0]
    assert isinstance(now, Window) and now.spec.now


def test_the_time_of_rows_that_are_stamped_on_arrival_is_proctime() -> None:
    stamped = "CREATE STREAM c (k INTEGER) WITH (connector = 'memory', time = 'arrival');"
    query = "SELECT c.k, r.v FROM c {window} LEFT JOIN r FOR SYSTEM_TIME AS OF {time} ON c.k = r.k"
    for window in ("", "[RANGE 9 SECONDS]"):
        texts = (query.format(window=window, time=time) for time in ("PROCTIME()", "c.arrival_time"))
        by_clock, by_column = (bound(f"{stamped} {text}") for text in texts)
        assert by_clock == by_column


def test_proctime_is_the_time_of_the_row() -> None:
    query = "SELECT o.k, r.v FROM {stream} JOIN r FOR SYSTEM_TIME AS OF {time} ON o.k = r.k"
    by_column = bound(query.format(stream="o", time="o.ts"))
    assert bound(query.format(stream="o", time="PROCTIME()")) == by_column
    named = bound("SELECT o.k, r.v FROM (SELECT *, PROCTIME() AS p FROM o) AS o JOIN r FOR SYSTEM_TIME AS OF o.p "
                  "ON o.k = r.k")  # fmt: skip
    assert named.schema == by_column.schema


def test_whoever_writes_proctime_is_told_what_it_is() -> None:
    (*_, statement) = parse_statements(f"{INPUTS} SELECT k, PROCTIME() AS p FROM o WHERE k > 1;", Catalogue())
    assert isinstance(statement, QueryStatement)
    assert isinstance(statement.query, Project) and str(statement.query.expressions[1]) == "ts"
    assert any("PROCTIME() is the time of the row" in note for note in statement.notes)


@pytest.mark.parametrize(
    ("joined", "words"),
    [
        ("o JOIN r FOR SYSTEM_TIME AS OF LOCALTIME() ON o.k = r.k", "takes the time column of the stream"),
        ("o JOIN r FOR SYSTEM_TIME AS OF o.paid ON o.k = r.k", "'paid' is not the time column of 'o'"),
        ("o JOIN r FOR SYSTEM_TIME AS OF r.ts ON o.k = r.k", "no input 'r'"),
        ("o [ROWS 3] JOIN r FOR SYSTEM_TIME AS OF o.ts ON o.k = r.k", "does not go with the window [ROWS 3]"),
        ("o RIGHT JOIN r FOR SYSTEM_TIME AS OF o.ts ON o.k = r.k", "does not go with a RIGHT JOIN"),
        ("r JOIN o FOR SYSTEM_TIME AS OF r.ts ON o.k = r.k", "is for the rows of a stream"),
        ("o JOIN r AS q ON o.k = q.k JOIN r FOR SYSTEM_TIME AS OF o.ts ON o.k = r.k", "not behind several inputs"),
        ("o JOIN r AS q FOR SYSTEM_TIME AS OF o.ts ON o.k = q.k", "write r FOR SYSTEM_TIME AS OF .. AS q"),
        ("r FOR SYSTEM_TIME AS OF o.ts", "stands behind the table of a JOIN"),
    ],
)
def test_errors_say_what_to_write(joined: str, words: str) -> None:
    with pytest.raises(QueryError) as raised:
        bound(f"SELECT 1 FROM {joined}")
    assert words in str(raised.value)
