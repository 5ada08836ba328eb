from __future__ import annotations

import pytest

from transom.core.errors import OptionError, QueryError, TransomError, UnsupportedError
from transom.kernels.operator import Operator
from transom.plan.catalogue import Catalogue
from transom.program.planned import read_program

DECLARED = """
CREATE STREAM s (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'files', path = 'data/s.csv');
CREATE STREAM t (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory');
CREATE SINK one WITH (connector = 'files', path = 'out/one.csv');
CREATE SINK two WITH (connector = 'files', path = 'out/../out/one.csv');
CREATE SINK back WITH (connector = 'files', path = './data/s.csv');
CREATE SINK beside WITH (connector = 'files', path = 'folder/x.csv');
CREATE STREAM f (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'files', path = 'folder');
CREATE SINK kept WITH (connector = 'memory');
"""


def rejected(text: str) -> TransomError:
    catalogue = Catalogue()
    with pytest.raises(TransomError) as caught:
        read_program(DECLARED + text, catalogue)
    assert catalogue == Catalogue(), "nothing of a wrong text may be remembered"
    assert caught.value.span is not None and caught.value.remedy
    return caught.value


def tactics(root: Operator | None) -> list[str]:
    assert root is not None
    return [operator.tactic.name for operator in root.walk()]


def test_statements_are_planned_in_order_with_the_options_at_their_place() -> None:
    join = "SELECT s.a FROM s [NOW], t [NOW] WHERE s.a = t.a;"
    catalogue = Catalogue()
    planned = read_program(f"{DECLARED} {join} SET join = 'nested_loop'; {join} EXPLAIN {join}", catalogue)
    first, _, second, explained = planned[-4:]
    assert "ring_hash" in tactics(first.root) and "nested_loop" in tactics(second.root)
    assert [each.standing for each in planned[-4:]] == [True, False, True, False]
    assert explained.root is not None
    assert catalogue.options == {"join": "nested_loop"} and "s" in catalogue.relations
    fixed = read_program(f"SET join = 'nested_loop'; {join}", catalogue, {"join": "lazy_hash"})
    assert "lazy_hash" in tactics(fixed[-1].root)


@pytest.mark.parametrize(
    ("text", "kind", "what", "line"),
    [
        ("SELECT b FROM s", QueryError, "'b'", 10),
        (
            "\nSELECT a FROM s [NOW] WHERE EXISTS (SELECT 1 FROM t FULL JOIN t AS u ON t.a = u.a AND u.a = s.a)",
            UnsupportedError,
            "reads the row around it",
            11,
        ),
        (
            "CREATE SINK x WITH (connector = 'files', path = 'x', format = 'xml')",
            OptionError,
            "no file format 'xml'",
            10,
        ),
        ("CREATE SINK x WITH (connector = 'memory', path = 'x')", OptionError, "no property 'path'", 10),
        ("CREATE SINK x WITH (connector = 'files', path = 'x')", OptionError, "does not tell the format", 10),
        ("CREATE TABLE x (a INTEGER)", OptionError, "does not say where it is", 10),
        ("CREATE TABLE x (a INTEGER) WITH (connector = 'pulsar')", OptionError, "no connector 'pulsar'", 10),
        ("INSERT INTO one SELECT a FROM s; INSERT INTO one SELECT a FROM s", QueryError, "by two queries", 10),
        ("INSERT INTO one SELECT a FROM s;\nINSERT INTO two SELECT a FROM s", QueryError, "by two queries", 11),
        ("INSERT INTO kept SELECT a FROM s; INSERT INTO kept SELECT a FROM s", QueryError, "by two queries", 10),
        ("INSERT INTO back SELECT a FROM s", QueryError, "where 's' is read", 10),
        ("INSERT INTO beside SELECT a FROM s", QueryError, "where 'f' is read", 10),
        ("SET join = 'ring_hash'; SELECT s.a FROM s [NOW], t [NOW]", UnsupportedError, "no equality", 10),
    ],
)
def test_what_is_wrong_is_found_before_anything_starts(
    text: str, kind: type[TransomError], what: str, line: int
) -> None:
    error = rejected(text)
    assert isinstance(error, kind)
    assert what in error.what
    assert error.span is not None and error.span.line == line
    assert error.text == DECLARED + text
