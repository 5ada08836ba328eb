"""Wrong queries: where the error points, what it says, and what it reports to write instead."""

from __future__ import annotations

import pytest

from tests.cql.queries import marked, rejected


@pytest.mark.parametrize(
    ("text", "at", "what", "remedy"),
    [
        # names
        ("SELECT nosuch FROM S", "nosuch", "no column 'nosuch'", "the columns are ts, A, B"),
        ("SELECT pric FROM Events", "pric", "no column 'pric'", "did you mean price?"),
        ("SELECT S.C FROM S, T", "S.C", "no column 'S.C'", "T.C"),
        ("SELECT x.A FROM S", "x.A", "no input 'x'", "the inputs are S"),
        ("SELECT x.* FROM S", "x.*", "no input 'x'", "the inputs are S"),
        ("SELECT A FROM S, T", "A", "'A' is ambiguous", "write S.A or T.A"),
        ("SELECT 1 FROM S WHERE A IN (SELECT A FROM S x, T y)", "A", "'A' is ambiguous", "write x.A or y.A"),
        ("SELECT A FROM Event", "Event", "no stream, table or view 'Event'", "did you mean Events?"),
        ("SELECT A FROM a.S", ".", "one part", "the name alone"),
        ("SELECT 1 FROM S, S", "S", "two inputs 'S'", "S AS S2"),
        ("SELECT 1 FROM S x JOIN T x ON TRUE", "T x", "two inputs 'x'", "x AS x2"),
        ("SELECT 1 FROM S JOIN T USING (B)", "B", "right side of the join has no column 'B'", "ON condition"),
        ("SELECT * FROM S AS x(a)", "a", "1 names for 2 columns", "each column once"),
        ("WITH a AS (SELECT A FROM S), a AS (SELECT A FROM T) SELECT 1 FROM a", "a", "two queries 'a'", "another name"),
        # clauses
        ("SELECT A", "A", "no FROM", "write FROM"),
        ("SELECT A FROM (SELECT A FROM S LIMIT 5)", "5", "LIMIT without ORDER BY", "[ROWS 10]"),
        ("SELECT A FROM S OFFSET 5", "5", "OFFSET without ORDER BY", "ORDER BY .."),
        ("SELECT A FROM S ORDER BY A LIMIT 1 LIMIT 2", "LIMIT", "two LIMITs", "leave one"),
        ("SELECT A FROM S LIMIT 1.5", "1.5", "no number of rows", "whole number"),
        ("SELECT A FROM S ORDER BY A LIMIT 1.5", "1.5", "no number of rows", "whole number"),
        ("SELECT A FROM S ORDER BY A LIMIT A", "A", "a number is expected", "LIMIT 10"),
        ("SELECT A FROM S ORDER BY A FETCH FIRST 3 ROWS WITH TIES", "WITH", "WITH TIES", "RANK()"),
        ("SELECT A FROM S ORDER BY A NULLS END", "END", "not followed by FIRST", "NULLS LAST"),
        ("SELECT A FROM S ORDER BY 3", "3", "no column 3", "1 to 1"),
        (
            "SELECT DISTINCT A FROM S ORDER BY A + 1 LIMIT 1",
            "A + 1",
            "ordered by what is selected",
            "leave DISTINCT out",
        ),
        (
            "SELECT A FROM S UNION SELECT A FROM T ORDER BY A + 1 LIMIT 1",
            "A + 1",
            "a column of the result",
            "SELECT ..",
        ),
        ("ISTREAM(SELECT A FROM S) ORDER BY A LIMIT 1", "1", "this is a stream", "within"),
        ("SELECT A FROM S WHERE RANK() OVER (ORDER BY A) = 1", "RANK() OVER (ORDER BY A)", "WHERE cannot", "QUALIFY"),
        ("SELECT RANK() OVER (ORDER BY A) AS r FROM S GROUP BY r", "RANK() OVER (ORDER BY A)", "GROUP BY", "FROM"),
        ("SELECT ROW_NUMBER() FROM S", "ROW_NUMBER()", "ROW_NUMBER has no OVER", "OVER (ORDER BY ..)"),
        ("SELECT RANK() OVER () FROM S", "RANK() OVER ()", "RANK has no ORDER BY", "ORDER BY .."),
        ("SELECT RANK() OVER w FROM S", "w", "there is no window 'w'", "WINDOW w AS"),
        ("SELECT RANK() OVER (ORDER BY A ROWS 3 PRECEDING) FROM S", "ROWS 3 PRECEDING", "no frame", "leave it out"),
        (
            "SELECT B FROM S NATURAL JOIN (SELECT E FROM R)",
            "NATURAL JOIN (SELECT E FROM R)",
            "no column in common",
            "JOIN .. ON",
        ),
        ("SELECT B FROM S NATURAL JOIN T ON TRUE", "NATURAL", "has its condition", "NATURAL JOIN alone"),
        ("SELECT C FROM S SEMI JOIN T ON TRUE", "C", "no column 'C'", "A, B"),
        ("SELECT A FROM S ASOF JOIN T ON TRUE", "ASOF JOIN T ON TRUE", "ASOF JOIN", "a.ts >= b.ts"),
        ("SELECT 1 FROM S JOIN T", "JOIN", "no condition", "CROSS JOIN"),
        ("SELECT 1 FROM S LEFT T ON TRUE", "T", "JOIN is missing", "write JOIN"),
        ("SELECT 1 FROM S, LATERAL explode(B)", "LATERAL", "LATERAL is for queries", "UNNEST(array)"),
        ("SELECT 1 FROM LATERAL (SELECT 1) x", "LATERAL (SELECT 1) x", "behind the input", "before it"),
        (
            "SELECT 1 FROM S RIGHT JOIN LATERAL (SELECT S.B) x ON TRUE",
            "LATERAL (SELECT S.B) x",
            "cannot be joined",
            "LEFT JOIN LATERAL",
        ),
        ("SELECT 1 FROM S, LATERAL (SELECT B) [NOW] x", "[NOW]", "is a relation", "leave it out"),
        ("SELECT (SELECT x.B FROM T, LATERAL (SELECT S.B) x) FROM S", "(SELECT S.B)", "the query around", "into FROM"),
        (
            "SELECT 1 FROM S, LATERAL (ISTREAM(SELECT B FROM S [NOW])) x",
            "(ISTREAM(SELECT B FROM S [NOW]))",
            "takes a relation",
            "leave ISTREAM",
        ),
        ("SELECT 1 FROM S, LATERAL (SELECT B) S", "LATERAL (SELECT B) S", "two inputs 'S'", "another name"),
        ("SELECT 1 FROM unnest(x)", "x", "no column 'x'", "FROM"),
        ("SELECT 1 FROM S JOIN unnest(x) ON A = 1", "x", "no column 'x'", "columns are"),
        ("SELECT 1 FROM (S JOIN T ON TRUE) AS x", "x", "no common name", "SELECT * FROM"),
        ("SELECT 1 FROM (S JOIN T ON TRUE) [NOW]", "[NOW]", "belongs to one stream", "behind the name"),
        ("WITH RECURSIVE a AS (SELECT 1 FROM S) SELECT 1 FROM a", "RECURSIVE", "recursive", "named queries"),
        ("SELECT A FROM S EXCEPT BY NAME SELECT A FROM T", "BY", "by position", "UNION BY NAME"),
        ("SELECT * AS x FROM S", "x", "cannot be renamed", "one by one"),
        # groups
        ("SELECT A, SUM(B) FROM S", "A", "neither grouped nor aggregated", "GROUP BY with it, or put it"),
        ("SELECT A, B + 1 FROM S GROUP BY A", "B", "'B' is neither grouped", "MIN(B)"),
        ("SELECT * FROM S GROUP BY A", "*", "'B' is neither grouped", "add it to GROUP BY"),
        ("SELECT A FROM S GROUP BY A HAVING B > 1", "B", "'B' is neither grouped", "MIN(B)"),
        ("SELECT A FROM S WHERE SUM(B) > 1", "SUM(B)", "WHERE cannot hold the aggregate SUM", "HAVING"),
        ("SELECT 1 FROM S JOIN T ON COUNT(*) > 1", "COUNT(*)", "ON cannot hold the aggregate", "HAVING"),
        ("SELECT COUNT(*) FROM S GROUP BY SUM(B)", "SUM(B)", "GROUP BY cannot hold the aggregate", "HAVING"),
        ("SELECT COUNT(*) FROM S GROUP BY 1", "1", "GROUP BY cannot hold an aggregate", "HAVING"),
        ("SELECT A FROM S GROUP BY 3", "3", "no column 3", "from 1 to 1"),
        ("SELECT GROUPING(A) FROM S", "GROUPING(A)", "GROUPING needs GROUP BY", "ROLLUP (a, b)"),
        ("SELECT A FROM S WHERE GROUPING(A) = 0", "GROUPING(A)", "WHERE cannot hold GROUPING", "in the SELECT list"),
        ("SELECT GROUPING(A + 1) FROM S GROUP BY ROLLUP(A)", "GROUPING(A + 1)", "is of no key", "name a key"),
        ("SELECT 1 FROM S GROUP BY CUBE(A, 1, 2, 3, 4, 5, 6)", "", "CUBE of more than 6 keys", "GROUPING SETS ("),
        (f"SELECT 1 FROM S GROUP BY ROLLUP(A{', A' * 5_000})", "", "more than 64 groupings", "GROUPING SETS"),
        (f"SELECT 1 FROM S GROUP BY CUBE((A{', A' * 999}), B)", "CUBE", "more than 1,000 keys", "GROUPING SETS"),
        (
            "SELECT 1 FROM S GROUP BY CUBE(A, 1, 2, 3, 4, 5), ROLLUP(A)",
            "CUBE",
            "more than 64 groupings",
            "GROUPING SETS",
        ),
        # conditions
        ("SELECT A FROM S WHERE ts", "ts", "no condition", "compare"),
        ("SELECT 1 FROM S JOIN T ON ts", "ts", "'ts' is ambiguous", "S.ts or T.ts"),
        (
            "SELECT 1 FROM S LEFT JOIN T ON EXISTS (SELECT 1 FROM R)",
            "EXISTS (SELECT 1 FROM R)",
            "ON cannot hold a sub-query",
            "before they are joined",
        ),
        (
            "SELECT A FROM S GROUP BY A HAVING EXISTS (SELECT 1 FROM R WHERE R.A = S.B)",
            "EXISTS (SELECT 1 FROM R WHERE R.A = S.B)",
            "reads 'B', which is not grouped",
            "GROUP BY",
        ),
        (
            "SELECT C FROM T WHERE EXISTS (FROM S GROUP BY A HAVING EXISTS (SELECT 1 FROM R WHERE E = S.A + C))",
            "EXISTS (SELECT 1 FROM R WHERE E = S.A + C)",
            "groups and the rows around them",
            "FROM",
        ),
        (
            "SELECT 1 FROM S, LATERAL (SELECT S.B) x FULL JOIN T ON TRUE",
            "FULL JOIN T ON TRUE",
            "does not go with a LATERAL",
            "before the LATERAL",
        ),
        # set operations and streams
        ("SELECT A FROM S UNION SELECT A, C FROM T", "SELECT A, C FROM T", "1 and 2 columns", "as many columns"),
        ("SELECT A FROM S UNION SELECT name FROM Events", "SELECT name FROM Events", "INTEGER and VARCHAR", "CAST"),
        (
            "ISTREAM(SELECT A FROM S) UNION SELECT A FROM S",
            "ISTREAM(SELECT A FROM S)",
            "UNION takes a relation",
            "FROM",
        ),
        ("ISTREAM(DSTREAM(SELECT A FROM S))", "DSTREAM(SELECT A FROM S)", "ISTREAM takes a relation", "leave one"),
        (
            "SELECT 1 FROM S WHERE EXISTS (ISTREAM(SELECT 1 FROM T))",
            "ISTREAM(SELECT 1 FROM T)",
            "EXISTS takes",
            "window",
        ),
        ("SELECT 1 FROM S WHERE A IN (SELECT A, C FROM T)", "SELECT A, C FROM T", "has 2 columns", "one column"),
        # syntax
        ("SELECT", "", "a value is missing before the end", "column"),
        ("SELECT A FROM", "", "is expected, not the end", "write a name"),
        ("SELECT A, FROM S", "FROM", "a value is missing before 'FROM'", "column"),
        ("SELECT A B C FROM S", "C", "'C' is not expected here", "a comma"),
        ("SELECT (A FROM S", "FROM", ") is missing", "write )"),
        ("SELECT A) FROM S", ")", "')' is not expected here", "write the '('"),
        ("SELECT A FROM S WHERE", "", "a value is missing", "column"),
        ("SELECT A FROM S WHERE A =", "", "ends too early", "complete it"),
        ("SELECT A FROM S WHERE A > AND B", "AND", "a value is missing before 'AND'", "column"),
        ("SELECT A FROM S GROUP A", "A", "BY is missing", "write BY"),
        ("SELECT 'abc FROM S", "'", "a ' is not closed", "closing '"),
        ('SELECT "abc FROM S', '"', 'a " is not closed', 'closing "'),
        ("SELECT A /* FROM S", "/", "a comment is not closed", "*/"),
        ("FROM S A, SELECT A", "SELECT", "stream, table, view", "name"),
        ("VALUES (1), (2, 3)", "2, 3", "1 and 2 columns", "in every row"),
        ("VALUES (1), (born)", "born", "no FROM", "FROM"),
        ("VALUES (1), (DATE '2024-05-01')", "VALUES (1), (DATE '2024-05-01')", "do not mix", "cast"),
        ("SHOW TABELS", "TABELS", "SHOW cannot show", "TABLES"),
        ("DROP VIEW S", "S", "'S' is a stream", "write STREAM"),
        ("DROP TABLE nothing", "nothing", "there is no table 'nothing'", "IF EXISTS"),
        ("DROP INDEX x", "INDEX", "DROP cannot be followed by", "DROP STREAM"),
        ("DROP STREAM S CASCADE", "CASCADE", "CASCADE is not supported", "views"),
        ("DESCRIBE nothing", "nothing", "there is no 'nothing'", "SHOW STREAMS"),
        ("CREATE OR REPLACE TABLE S (a INT)", "S", "'S' is a stream", "write STREAM"),
        ("CREATE OR REPLACE VIEW IF NOT EXISTS x AS SELECT 1", "EXISTS", "exclude each other", "leave one"),
        ("SELECT A FROM S;\n\n  SELECT\n    nosuch FROM T", "nosuch", "no column 'nosuch'", "A, C"),
        ("SELECT A FROM S WHERE A = 'x' 'y'", "'y'", "not expected here", "double quotes"),
        ("SELECT A FROM S é!", "!", "not expected here", "remove it"),
    ],
)
def test_wrong_queries(text: str, at: str, what: str, remedy: str) -> None:
    error = rejected(text)
    assert what in error.what
    assert error.remedy is not None and remedy in error.remedy
    assert marked(error) == at


def test_an_error_is_shown_with_its_place() -> None:
    error = rejected("SELECT A\nFROM S\nWHERE nosuch = 1")
    assert str(error).splitlines() == [
        "line 3, column 7: there is no column 'nosuch'",
        "  WHERE nosuch = 1",
        "        ^^^^^^",
        "  the columns are ts, A, B",
    ]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_lines_are_counted_as_they_are_shown(newline: str) -> None:
    error = rejected(newline.join(["-- first", "SELECT A", "FROM nosuch"]))
    assert error.span is not None
    assert (error.span.line, error.span.column) == (3, 6)
    assert marked(error) == "nosuch"


def test_a_named_query_does_not_see_the_query_around() -> None:
    text = "SELECT 1 FROM S WHERE EXISTS (WITH w AS (SELECT 1 FROM T WHERE T.A = S.A) SELECT 1 FROM w)"
    assert "no input 'S'" in rejected(text).what
