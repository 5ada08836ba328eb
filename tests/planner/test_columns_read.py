from __future__ import annotations

import pytest

from transom.cql.statements import bind_query, parse_statements
from transom.kernels.operator import Operator
from transom.plan.catalogue import Catalogue
from transom.planner.columns_read import columns_read, selections
from transom.planner.plan import plan

KNOWN = Catalogue()
parse_statements(
    """
    CREATE STREAM S (ts TIMESTAMP, k INTEGER, a INTEGER, b INTEGER, WATERMARK FOR ts AS ts);
    CREATE STREAM T (ts TIMESTAMP, k INTEGER, c INTEGER, WATERMARK FOR ts AS ts);
    CREATE TABLE Names (id INTEGER, label VARCHAR, more VARCHAR);
    """,
    KNOWN,
)


def planned(text: str) -> Operator:
    return plan(bind_query(text, KNOWN), KNOWN)


def read(text: str, source: str = "S") -> list[str]:
    root = planned(text)
    declared = KNOWN.relations[source.lower()]
    return [declared.columns[i].name for i in columns_read(root, source)]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM S [NOW]", ["ts", "k", "a", "b"]),
        ("SELECT b FROM S [RANGE 1 MINUTE]", ["b"]),
        ("SELECT b FROM S [RANGE 1 MINUTE] WHERE a > 1", ["a", "b"]),
        ("SELECT b FROM S [ROWS 3] WHERE a > 1", ["a", "b"]),
        ("SELECT b FROM S [PARTITION BY k ROWS 3]", ["k", "b"]),
        ("SELECT k, SUM(a) AS n FROM S [NOW] GROUP BY k", ["k", "a"]),
        ("SELECT S.a FROM S [NOW] JOIN T [NOW] ON S.k = T.k", ["k", "a"]),
        ("SELECT x.a FROM S [NOW] AS x JOIN S [RANGE 1 MINUTE] AS y ON x.k = y.b", ["k", "a", "b"]),
        ("SELECT DISTINCT a FROM S [NOW]", ["a"]),
        ("SELECT a FROM S [NOW] WHERE k = 1 UNION ALL SELECT c FROM T [NOW]", ["k", "a"]),
        ("ISTREAM(SELECT a FROM S [NOW])", ["a"]),
        ("SELECT year(ts) AS y FROM S [NOW]", ["ts"]),
    ],
)
def test_what_is_read_of_a_stream(text: str, expected: list[str]) -> None:
    assert read(text) == expected


def test_a_row_that_counts_for_its_existence_alone_keeps_a_column() -> None:
    assert len(read("SELECT COUNT(*) AS n FROM S [NOW]")) == 1


def test_static_tables_and_the_case_of_names() -> None:
    text = "SELECT S.a, Names.label FROM S [NOW], Names WHERE S.k = Names.id"
    assert read(text, "NAMES") == ["id", "label"]
    assert read("SELECT COUNT(label) AS n FROM Names WHERE more > ''", "Names") == ["label", "more"]


def test_a_stream_that_is_not_in_the_query() -> None:
    assert read("SELECT a FROM S [NOW]", "T") == []
    assert selections(planned("SELECT a FROM S [NOW]"), "T") == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a FROM S [NOW]", []),
        ("SELECT * FROM S [RANGE 1 MINUTE] WHERE a > 1 AND b = 2", ["((a > 1) AND (b = 2))"]),
        ("SELECT a FROM S [ROWS 3] WHERE a > 1", []),
        ("SELECT a FROM S [RANGE 1 MINUTE SLIDE 10 SECOND] WHERE a > 1", []),
        ("SELECT a FROM S [NOW] WHERE a > 1 UNION ALL SELECT a FROM S [NOW] WHERE b > 2", ["(a > 1)", "(b > 2)"]),
        ("SELECT a FROM S [NOW] WHERE a > 1 UNION ALL SELECT a FROM S [NOW]", []),
        ("SELECT S.a FROM S [NOW], T [NOW] WHERE S.k = T.k AND S.a < 3", ["(a < 3)"]),
    ],
)
def test_what_a_row_has_to_pass(text: str, expected: list[str]) -> None:
    assert [str(predicate) for predicate in selections(planned(text), "S")] == expected


def test_static_tables_have_selections_too() -> None:
    assert [str(p) for p in selections(planned("SELECT id FROM Names WHERE id > 1"), "Names")] == ["(id > 1)"]
    assert selections(planned("SELECT * FROM Names"), "Names") == ()
