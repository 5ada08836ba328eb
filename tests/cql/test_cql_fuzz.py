"""Whatever the text, nothing but our own errors comes out, each with a place and a remedy that can be shown."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.cql.queries import DECLARATIONS, KNOWN
from transom.core.errors import TransomError
from transom.cql.statements import parse_statements
from transom.plan.catalogue import Catalogue

VALID = [
    *DECLARATIONS.split(";")[:-1],
    "ISTREAM(SELECT A, SUM(B) / COUNT(*) + 1 AS q FROM S [PARTITION BY A ROWS 3 RANGE 5 SECONDS] GROUP BY A "
    "HAVING MAX(B) > 3 AND COUNT(DISTINCT B) < 2.5)",
    "SELECT X.A, Y.B FROM S [Range 10 Seconds] as X, S [Rows 2 Slide 2] as Y where X.A = Y.A and not X.B in (1, 2)",
    "WITH w(x) AS (SELECT A FROM S UNION ALL SELECT C FROM T EXCEPT SELECT E FROM R) SELECT DISTINCT x FROM w",
    "SELECT * FROM S LEFT OUTER JOIN T USING (A) FULL JOIN (R CROSS JOIN names) ON R.A = S.A, News [NOW] n",
    "SELECT CASE name WHEN 'a' THEN price ELSE rate::DECIMAL(10, 3) END, name LIKE 'a%' ESCAPE '!', "
    "ts - INTERVAL '90' SECOND, DATE '2024-01-01' < born, EXTRACT(year FROM ts), TRIM(BOTH 'x' FROM name), "
    "big BETWEEN -1 AND 1e3, ok IS NOT TRUE, name || 'x' IS DISTINCT FROM NULL FROM Events [RANGE 1.5 MIN, SLIDE 30 s]",
    "SELECT A FROM S WHERE EXISTS (SELECT 1 FROM T WHERE T.A = S.A AND B IN (SELECT E FROM R WHERE R.A = S.A))",
    "INSERT INTO out SELECT RSTREAM A FROM ISTREAM(SELECT * FROM V) [ROWS 10] AS x; -- done",
    "EXPLAIN ANALYZE JSON (SELECT A FROM names INTERSECT SELECT A FROM V)",
    "SET tick = '1 SECOND'; SET batch_rows TO 100",
]
TOKENS = """
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT UNION ALL EXCEPT INTERSECT DISTINCT AS ON USING JOIN LEFT FULL
CROSS NATURAL ( ) [ ] , ; . * + - / // % || :: = <> < <= > >= ! ? $ : @ # { } \\ ~ | & ^ ' " ` -- /* */ AND OR
NOT IN IS NULL TRUE FALSE LIKE BETWEEN CASE WHEN THEN ELSE END CAST EXISTS INTERVAL DATE TIMESTAMP EXTRACT
TRIM POSITION SUBSTRING ISTREAM DSTREAM RSTREAM RANGE ROWS SLIDE NOW UNBOUNDED PARTITION SECONDS MONTHS CREATE
STREAM TABLE VIEW SINK INSERT INTO EXPLAIN ANALYZE JSON SET WITH WATERMARK FOR PRIMARY KEY INVISIBLE OVER
FILTER LATERAL VALUES RECURSIVE ESCAPE COUNT SUM upper coalesce now S T R V News names Events A B C ts name
price x 0 1 10 1.5 .5 1e3 1e 'a' '1' "A" 10s 0x1 é 9999999999999999999
""".split()


def must_be_ours(text: str) -> None:
    fresh = Catalogue(dict(KNOWN.relations), dict(KNOWN.sinks), dict(KNOWN.options))
    try:
        parse_statements(text, fresh)
    except TransomError as error:
        assert str(error)
        assert error.remedy, error.what
        assert error.span is not None, error.what
        assert error.text == text
        assert fresh == KNOWN


@settings(deadline=None)
@given(st.text(max_size=60))
@example("\x00")
@example("SELECT \u2028 A FROM S")
@example("\ufeffSELECT A FROM S")
@example("{# {{ {%")
@example("/*+ x */ SELECT /*+ y */ A FROM S")
def test_any_text(text: str) -> None:
    must_be_ours(text)


@settings(deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=30).map(" ".join))
def test_any_words(text: str) -> None:
    must_be_ours(text)


@settings(deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=12).map(" ".join))
def test_any_words_behind_from(text: str) -> None:
    must_be_ours("SELECT A FROM S " + text)


@settings(deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=12).map(" ".join))
def test_any_words_as_a_value(text: str) -> None:
    must_be_ours(f"SELECT A, {text} FROM S")


@settings(deadline=None)
@given(st.data())
def test_damaged_queries(data: st.DataObject) -> None:
    """A valid text with a part cut out, doubled, or replaced by a word or a piece of another text."""
    text = data.draw(st.sampled_from(VALID))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        stop = data.draw(st.integers(start, min(len(text), start + 20)))
        other = data.draw(st.sampled_from(VALID))
        at = data.draw(st.integers(0, len(other)))
        piece = data.draw(st.sampled_from(["", text[start:stop] * 2, other[at : at + 15], *TOKENS]))
        text = text[:start] + piece + text[stop:]
    must_be_ours(text)


@settings(deadline=None)
@given(st.data())
def test_cut_queries(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(VALID))
    start = data.draw(st.integers(0, len(text)))
    must_be_ours(text[start : data.draw(st.integers(start, len(text)))])
