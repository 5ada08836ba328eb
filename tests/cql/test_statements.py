"""Texts of several statements, and what each becomes."""

from __future__ import annotations

import pytest

from tests.cql.queries import catalogue, rejected
from transom.core.errors import QueryError, Span
from transom.core.time import SECOND
from transom.cql.statements import bind_query, parse_statements
from transom.plan.algebra import Relation, Stream
from transom.plan.catalogue import (
    Catalogue,
    CreateStatement,
    DropStatement,
    ExplainStatement,
    InsertStatement,
    KeptStatement,
    QueryStatement,
    SetStatement,
    ShowStatement,
)

TEXT = """
-- what comes in
CREATE STREAM s (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts);  /* and what
goes out; */
CREATE SINK Copies WITH (connector = 'memory', note = 'a; b');;
SET tick = '1 SECOND';
INSERT INTO copies SELECT a FROM s [NOW];
  SELECT ISTREAM a FROM s [RANGE 2 SECONDS];
EXPLAIN ANALYZE JSON SELECT a FROM s;
explain (select a from s)
"""


def test_a_whole_text() -> None:
    catalogue = Catalogue()
    stream, sink, tick, insert, query, explain, plain = parse_statements(TEXT, catalogue)
    assert isinstance(stream, CreateStatement) and stream.definition is catalogue.relations["s"]
    assert isinstance(sink, CreateStatement) and sink.definition is catalogue.sinks["copies"]
    assert catalogue.sinks["copies"].properties == {"connector": "memory", "note": "a; b"}
    assert isinstance(tick, SetStatement) and (tick.option, tick.value) == ("tick", SECOND)
    assert catalogue.options == {"tick": SECOND}
    assert isinstance(insert, InsertStatement) and insert.sink == "copies" and isinstance(insert.query, Relation)
    assert isinstance(query, QueryStatement) and isinstance(query.query, Stream)
    assert query.text == "SELECT ISTREAM a FROM s [RANGE 2 SECONDS]"
    assert query.span == Span(8, 3, len(query.text))
    assert isinstance(explain, ExplainStatement) and explain.analyze and explain.json
    assert isinstance(plain, ExplainStatement) and not plain.analyze and not plain.json


@pytest.mark.parametrize("text", ["", "  ", ";", ";;\n;", "-- nothing", "/* nothing */ ;"])
def test_a_text_of_nothing(text: str) -> None:
    assert parse_statements(text, Catalogue()) == []


def test_statements_see_those_before_them_only() -> None:
    error = rejected("CREATE VIEW a AS SELECT A FROM b; CREATE VIEW b AS SELECT A FROM S")
    assert "'b'" in error.what
    later = catalogue("CREATE VIEW b AS SELECT A FROM S; CREATE VIEW a AS SELECT A FROM b;")
    assert "a" in later.relations


def test_the_whole_text_is_parsed_before_anything_is_bound() -> None:
    error = rejected("SELECT nosuch FROM S;\nSELECT A FROM")
    assert error.span is not None and error.span.line == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("SET batch_rows = 100", 100),
        ("set BATCH_ROWS to '100'", 100),
        ("SET join = ring_hash", "ring_hash"),
        ('SET join = "ring_hash"', "ring_hash"),
        ("SET tick = '10 ms'", 10_000),
    ],
)
def test_set(text: str, value: object) -> None:
    (statement,) = parse_statements(text, Catalogue())
    assert isinstance(statement, SetStatement) and statement.value == value


@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        ("SET ticks = '1 SECOND'", "no option 'ticks'", "tick"),
        ("SET batch_rows = -5", "cannot be '-5'", "above 0"),
        ("SET batch_rows = '²'", "cannot be", "above 0"),
        ("SET tick = '" + "9" * 5000 + " DAYS'", "cannot be", "duration"),
        ("SET tick", "= is missing", "write ="),
        ("SET tick =", "a value is expected", "a number"),
        ("INSERT INTO nosuch SELECT A FROM S", "no sink 'nosuch'", "out"),
        ("INSERT INTO s SELECT A FROM S", "'S' is read, and a sink is what is written to", "CREATE SINK S WITH (..)"),
        ("CREATE SINK o (a INTEGER) WITH (connector = 'terminal')", "a sink declares no columns", "CREATE SINK o"),
        ("INSERT INTO out (a) SELECT A FROM S", "takes a query", "INSERT INTO out SELECT"),
        ("INSERT out SELECT A FROM S", "INTO is missing", "write INTO"),
        ("EXPLAIN INSERT INTO out SELECT A FROM S", "EXPLAIN takes a query", "EXPLAIN"),
        ("V EXCEPT V", "cannot begin with 'V'", "SELECT"),
        ("SELECT A FROM out", "is a sink", "read what"),
    ],
)
def test_wrong_statements(text: str, what: str, remedy: str) -> None:
    error = rejected(text)
    assert what in error.what
    assert error.remedy is not None and remedy in error.remedy


@pytest.mark.parametrize(
    "text", ["", "SELECT A FROM S; SELECT A FROM S", "SET tick = '1 s'", "EXPLAIN SELECT A FROM S"]
)
def test_bind_query_takes_one_query(text: str) -> None:
    with pytest.raises(QueryError, match="one query"):
        bind_query(text, catalogue())


def test_bind_query_takes_a_semicolon() -> None:
    assert bind_query("SELECT A FROM S;", catalogue()).schema.names == ["A"]


@pytest.mark.parametrize(
    "query", ["SELECT (SELECT MAX(a) FROM t) AS m", "SELECT 1 AS a WHERE EXISTS (SELECT a FROM t)"]
)
def test_what_a_sub_query_of_a_view_reads_stays(query: str) -> None:
    known = Catalogue()
    parse_statements(f"CREATE TABLE t (a INTEGER); CREATE VIEW v AS {query}", known)
    with pytest.raises(QueryError, match="'v'"):
        parse_statements("DROP TABLE t", known)


def test_names_come_and_go() -> None:
    catalogue = Catalogue()
    texts = """
        CREATE TABLE t (a INTEGER);
        CREATE TABLE IF NOT EXISTS T (b INTEGER);
        CREATE OR REPLACE TABLE t (c INTEGER);
        DESCRIBE t;
        SHOW COLUMNS FROM t;
        SHOW functions;
        DROP TABLE t;
        DROP TABLE IF EXISTS t;
        CREATE OR REPLACE MATERIALIZED VIEW v AS VALUES (1, 'a')
    """
    statements = parse_statements(texts, catalogue)
    kinds = [type(statement) for statement in statements]
    assert kinds == [CreateStatement, KeptStatement, CreateStatement, *[ShowStatement] * 3, *[DropStatement] * 2,
                     CreateStatement]  # fmt: skip
    kept, shown, dropped, nothing = statements[1], statements[4], statements[6], statements[7]
    assert isinstance(kept, KeptStatement) and isinstance(statements[0], CreateStatement)
    assert kept.definition == statements[0].definition
    assert isinstance(shown, ShowStatement) and (shown.what, shown.name) == ("COLUMNS", "t")
    assert isinstance(dropped, DropStatement) and isinstance(statements[2], CreateStatement)
    assert dropped.definition == statements[2].definition
    assert isinstance(nothing, DropStatement) and nothing.definition is None
    assert "t" not in catalogue.relations and "v" in catalogue.relations


def test_what_a_view_reads_stays() -> None:
    with_s = catalogue()
    parse_statements("CREATE VIEW over_s AS SELECT A FROM S WHERE EXISTS (SELECT 1 FROM names)", with_s)
    for text in ("DROP TABLE names", "CREATE OR REPLACE TABLE names (other INTEGER)"):
        with pytest.raises(QueryError, match="the view 'over_s' reads"):
            parse_statements(text, with_s)
    parse_statements("DROP VIEW over_s; DROP TABLE names", with_s)


def test_names_that_may_be_words_of_statements() -> None:
    catalogue = Catalogue()
    parse_statements("CREATE TABLE show (describe INTEGER, drop INTEGER); SELECT describe, drop FROM show", catalogue)
