"""The streams, tables and sinks that the tests of this room query, and short ways to bind."""

from __future__ import annotations

import pytest

from transom.core.errors import TransomError
from transom.cql.statements import bind_query, parse_statements
from transom.plan.algebra import Node, Relation, Window, WindowSpec
from transom.plan.catalogue import Catalogue

DECLARATIONS = """
CREATE STREAM S (ts TIMESTAMP INVISIBLE, A INTEGER, B INTEGER, WATERMARK FOR ts AS ts);
CREATE STREAM T (ts TIMESTAMP INVISIBLE, A INTEGER, C INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE STREAM Events (ts TIMESTAMP, name VARCHAR, price DECIMAL(10, 2), rate DOUBLE, ok BOOLEAN, born DATE, big BIGINT,
                      WATERMARK FOR ts AS ts);
CREATE TABLE R (ts TIMESTAMP INVISIBLE, op VARCHAR, A INTEGER, E INTEGER, WATERMARK FOR ts AS ts) WITH (changes = 'op');
CREATE TABLE names (A INTEGER, label VARCHAR);
CREATE VIEW V AS SELECT A, B FROM S [RANGE 10 SECONDS];
CREATE VIEW News AS ISTREAM(SELECT A, B FROM S [RANGE 10 SECONDS] WHERE B > 5);
CREATE SINK out WITH (connector = 'memory');
"""


def catalogue(more: str = "") -> Catalogue:
    declared = Catalogue()
    parse_statements(DECLARATIONS + more, declared)
    return declared


KNOWN = catalogue()


def bind(text: str) -> Node:
    return bind_query(text, KNOWN)


def relation(text: str) -> Relation:
    bound = bind(text)
    assert isinstance(bound, Relation)
    return bound


def window(text: str, catalogue: Catalogue = KNOWN) -> WindowSpec:
    """The window behind the one stream of SELECT * FROM text."""
    at = bind_query(f"SELECT * FROM {text}", catalogue)
    while not isinstance(at, Window):
        (at,) = at.inputs
    return at.spec


def rejected(text: str, catalogue: Catalogue = KNOWN) -> TransomError:
    """The error of a wrong text; every one of them has a place within it, a remedy and the text."""
    fresh = Catalogue(dict(catalogue.relations), dict(catalogue.sinks), dict(catalogue.options))
    with pytest.raises(TransomError) as caught:
        parse_statements(text, fresh)
    error = caught.value
    assert error.text == text
    assert error.remedy
    assert error.span is not None
    lines = text.splitlines() or [""]
    assert 1 <= error.span.line <= len(lines)
    assert 1 <= error.span.column <= len(lines[error.span.line - 1]) + 1
    assert "sqlglot" not in str(error) and "class" not in str(error)
    assert fresh == catalogue, "a wrong text must leave the catalogue as it was"
    return error


def marked(error: TransomError) -> str:
    """What the error points at."""
    assert error.span is not None and error.text is not None
    line = error.text.splitlines()[error.span.line - 1]
    return line[error.span.column - 1 : error.span.column - 1 + error.span.length]
