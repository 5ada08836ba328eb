"""Nesting without end is an error like any other, and quick to come; chains of a hundred terms are fine."""

from __future__ import annotations

import pytest

from tests.cql.queries import bind, rejected

NESTED = {
    "parentheses": "SELECT {} FROM S".format("(" * 20_000 + "A" + ")" * 20_000),
    "only opened": "SELECT " + "(" * 20_000,
    "brackets": "SELECT A FROM S " + "[" * 20_000,
    "not": "SELECT A FROM S WHERE " + "NOT " * 20_000 + "A = 1",
    "minus": "SELECT " + "- " * 20_000 + "A FROM S",
    "case": "SELECT " + "CASE WHEN TRUE THEN " * 1_000 + "A" + " END" * 1_000 + " FROM S",
    "sub-queries": "SELECT A FROM (" * 1_000 + "SELECT A FROM S" + ")" * 1_000,
    "exists": "SELECT A FROM S WHERE EXISTS (" * 1_000 + "SELECT 1 FROM S" + ")" * 1_000,
    "istream": "ISTREAM(SELECT A FROM " * 1_000 + "S" + ")" * 1_000,
    "sum": "SELECT " + "A + " * 10_000 + "A FROM S",
    "casts": "SELECT A" + "::INT" * 10_000 + " FROM S",
    "dots": "SELECT A" + ".A" * 10_000 + " FROM S",
    "union": "SELECT A FROM S UNION " * 3_000 + "SELECT A FROM S",
    "joins": "SELECT 1 FROM S" + " LEFT JOIN T ON TRUE" * 1_000,
    "inputs": "SELECT 1 FROM " + ", ".join(f"S s{i}" for i in range(1_000)),
    "between": "SELECT 1 FROM S WHERE A" + " BETWEEN 1 AND 2" * 1_000,
    "between twice": "SELECT 1 FROM S WHERE A" + " BETWEEN 1 AND 2" * 40,
    "time zones": "SELECT ts" + " AT TIME ZONE 'x'" * 3_000 + " FROM S",
    "doubling": "WITH w0 AS (SELECT A FROM S)"
    + "".join(f", w{i + 1} AS (SELECT x.A FROM w{i} x, w{i} y)" for i in range(60))
    + " SELECT A FROM w60",
    "doubling columns": "WITH w0 AS (SELECT * FROM S)"
    + "".join(f", w{i + 1} AS (SELECT * FROM w{i} x, w{i} y)" for i in range(60))
    + " SELECT * FROM w60",
    "a long line of views": "".join(
        f"CREATE VIEW w{i + 1} AS SELECT DISTINCT A FROM {f'w{i}' if i else 'S'};" for i in range(200)
    ),
}


@pytest.mark.parametrize("name", NESTED)
def test_too_deep(name: str) -> None:
    error = rejected(NESTED[name])
    assert any(words in error.what for words in ("nested too deeply", "more than"))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT {} FROM S".format("(" * 25 + "A" + ")" * 25),
        "SELECT A FROM S WHERE " + "NOT (" * 12 + "A = 1" + ")" * 12,
        "SELECT A FROM (" * 25 + "SELECT A FROM S" + ") x" * 25,
        "SELECT " + "CASE WHEN TRUE THEN " * 25 + "A" + " END" * 25 + " FROM S",
        "SELECT " + "A + " * 99 + "A FROM S",
        "SELECT A FROM S WHERE " + "A = 1 AND " * 500 + "A = 1",
        "SELECT A FROM S WHERE " + "A = 1 OR " * 500 + "A = 1",
        "SELECT A FROM S UNION ALL " * 50 + "SELECT A FROM S",
        "SELECT A FROM S WHERE A IN (" + ", ".join(map(str, range(3_000))) + ")",
        "SELECT " + ", ".join(["A"] * 500) + " FROM S",
    ],
)
def test_deep_enough(text: str) -> None:
    bind(text)
