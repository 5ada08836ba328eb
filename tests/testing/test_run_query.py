from __future__ import annotations

import random
import subprocess
import sys
from datetime import datetime

import pytest

from transom import OptionError, SourceError
from transom.testing import Answer, difference, run_query

STREAM = "CREATE STREAM s (ts TIMESTAMP, k VARCHAR, a DOUBLE, WATERMARK FOR ts AS ts) WITH (connector = 'memory');"
ROWS = {"s": "1 x 1 \n 2 y 2.5 \n 2 x NULL \n 4 'x y' nan"}


def plain(query: str, inputs: dict[str, str] | None = None) -> Answer:
    return run_query(STREAM + query, ROWS if inputs is None else inputs)


def failure(answer: Answer, text: str, **options: int) -> str:
    with pytest.raises(AssertionError) as reported:
        answer.expect(text, **options)
    return str(reported.value)


def test_relations_are_compared_by_snapshots() -> None:
    answer = plain("SELECT k, a FROM s [RANGE 2 SECONDS]")
    answer.expect("1 + x 1\n2 + y 2.5\n2 + x NULL\n3 - x 1\n4 - y 2.5\n4 - x NULL\n4 + 'x y' nan\n6 - 'x y' nan")
    answer.expect(  # in another order, and with a row that leaves and enters at once
        "6 - 'x y' nan\n4 + 'x y' nan\n4 - x NULL\n4 - y 2.5\n3 - x 1\n2 - x 1\n2 + x 1\n2 + x NULL\n2 + y 2.5\n1 + x 1"
    )


def test_a_difference_can_be_read() -> None:
    answer = plain("SELECT k FROM s [RANGE 2 SECONDS]")
    assert str(answer).splitlines() == ["1 + x", "2 + x", "2 + y", "3 - x", "4 - x", "4 - y", "4 + 'x y'", "6 - 'x y'"]
    reported = failure(answer, "1 + x\n2 + x\n2 + z\n3 - x\n4 - x\n4 - z\n4 + 'x y'\n7 - 'x y'")
    assert reported.splitlines()[:6] == [
        "the answer is not as expected at 2:",
        "    x",
        "    x",
        "  - z  (expected, not there)",
        "  + y  (there, not expected)",
        "and at 2 later instants: 3, 6",
    ]
    assert reported.splitlines()[6:9] == ["the answer is", "  1 + x", "  2 + x"]


def test_a_row_too_many_and_a_row_too_few() -> None:
    answer = plain("SELECT k FROM s [RANGE 2 SECONDS] WHERE k = 'x'")
    assert "  + x  (there, not expected)" in failure(answer, "1 + x\n3 - x")
    assert "  - x  (expected, not there)" in failure(answer, "1 + x\n2 + x\n2 + x\n3 - x\n4 - x\n4 - x")
    assert "the answer is empty" in failure(plain("SELECT k FROM s [NOW] WHERE k = 'nobody'"), "1 + x")
    assert "the answer begins with" in failure(plain("SELECT k FROM s", {"s": "1 x 1 \n" * 60}), "")


def test_streams_are_compared_by_rows() -> None:
    answer = plain("ISTREAM(SELECT k FROM s [NOW])")
    answer.expect("1 x \n 2 y \n 2 x \n 4 'x y'")
    assert "not as expected at 2:" in failure(answer, "1 x \n 2 y \n 4 'x y'")
    assert answer.at("2") == [("x",), ("y",)]
    assert answer.at(datetime(1970, 1, 1)) == []
    assert [rows for _, rows in answer.snapshots()] == [[("x",)], [("x",), ("y",)], [("x y",)]]


def test_snapshots_at_some_instants() -> None:
    answer = plain("SELECT k, a FROM s [RANGE 2 SECONDS]")
    answer.expect_at("at 0: nothing\nat 2.5: x 1; y 2.5; x NULL\nat 3: x NULL; y 2.5")
    assert answer.at("3") == [("x", None), ("y", 2.5)]
    assert [len(rows) for _, rows in answer.snapshots()] == [1, 3, 2, 1, 0]
    assert answer.instants[1] == datetime(1970, 1, 1, 0, 0, 2)
    with pytest.raises(AssertionError, match=r"the snapshot is not as expected at 3:\n    x NULL\n  \+ y 2\.5"):
        answer.expect_at("at 3: x NULL")
    for wrong in ("3: x NULL", "at 3 x NULL", "at 3:"):
        with pytest.raises(SourceError, match="a snapshot begins with its time"):
            answer.expect_at(wrong)
    with pytest.raises(OptionError, match="'noon' is no time"):
        answer.at("noon")


def test_floating_numbers_to_some_digits() -> None:
    answer = plain("SELECT AVG(a) AS m FROM s [RANGE UNBOUNDED] WHERE k <> 'x y'", {"s": "1 x 1 \n 2 x 1 \n 3 x 2"})
    answer.expect("1 + 1 \n 3 - 1 \n 3 + 1.33", digits=3)
    answer.expect_at("at 3: 1.333", digits=4)
    assert "at 3" in failure(answer, "1 + 1 \n 3 - 1 \n 3 + 1.33", digits=4)
    assert "- 1.33 " in failure(answer, "1 + 1 \n 3 - 1 \n 3 + 1.33")


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("1 + x\n 2 - y", "line 2, column 4: a row leaves that is not there, in the expected answer"),
        ("1 x", "line 1, column 3: a change has a '+' or a '-' behind its time"),
        ("1 + x x", "line 1, column 7: 2 values where 1 should be"),
        ("soon + x", "line 1, column 1: soon is no time"),
        ("1 + it's", "line 1, column 7: this quote has no partner"),
        ("25:00 + x", "25:00 is no time"),
        ("'1' + x", "'1' is no time"),
        ("99999999999999 + x", "99999999999999 is no time"),
    ],
)
def test_mistakes_in_what_is_expected(text: str, reported: str) -> None:
    with pytest.raises(SourceError) as error:
        plain("SELECT k FROM s [NOW]").expect(text)
    assert str(error.value).startswith(reported) or reported in str(error.value)
    assert error.value.text == text


TYPES = """
CREATE STREAM s (b BOOLEAN, t TINYINT, r REAL, c DECIMAL(5, 2), v VARCHAR, d DATE, w TIMESTAMP, ts TIMESTAMP,
WATERMARK FOR ts AS ts) WITH (connector = 'memory');
ISTREAM(SELECT * FROM s [NOW]);
"""
GOOD = "10:00 true -7 0.1 1.50 'it''s; # so' 2024-05-01 10:00:00.5"


def test_every_type_is_read_and_shown() -> None:
    answer = run_query(
        TYPES, {"s": GOOD + "  # a remark\n\n10:01 NULL NULL NULL NULL NULL NULL NULL"}, day="2024-05-01"
    )
    assert answer.columns == ["b", "t", "r", "c", "v", "d", "w", "ts"]
    shown = str(answer).splitlines()
    assert shown[0].startswith("10:00:00 true -7 0.1000000")
    assert shown[0].endswith(" 1.50 'it''s; # so' 2024-05-01 10:00:00.500000 10:00:00")
    assert shown[1] == "10:01:00 NULL NULL NULL NULL NULL NULL NULL 10:01:00"
    answer.expect(str(answer))
    answer.expect("10:00 true -7 0.1 1.50 'it''s; # so' 2024-05-01 10:00:00.5 10:00 \n" + shown[1])


@pytest.mark.parametrize(
    ("good", "wrong", "reported"),
    [
        ("true", "yes", "yes is no BOOLEAN for 'b'"),
        ("-7", "200", "200 is no TINYINT for 't'"),
        ("-7", "7.5", "7.5 is no TINYINT for 't'"),
        ("0.1", "'0.1'", "'0.1' is no REAL for 'r'"),
        ("1.50", "1.505", "1.505 is no DECIMAL(5, 2) for 'c'"),
        ("2024-05-01", "2024-05-32", "2024-05-32 is no DATE for 'd'"),
        ("10:00:00.5", "10:61", "10:61 is no TIMESTAMP for 'w'"),
        ("'it''s; # so'", "'it's", "this quote has no partner"),
        ("-7", "", "6 values where 7 should be"),
        ("10:00 ", "NULL; ", "8 values where 7 should be"),
    ],
)
def test_mistakes_in_rows_are_reported_with_their_place(good: str, wrong: str, reported: str) -> None:
    text = f"# first a remark\n{GOOD.replace(good, wrong, 1)}"
    with pytest.raises(SourceError) as error:
        run_query(TYPES, {"s": text})
    assert str(error.value).startswith("line 2, column ")
    assert f"{reported}, in the rows of 's'" in str(error.value)


def test_texts_that_need_quotes_are_shown_with_them() -> None:
    texts = ["", "NULL", "#1", "a;b", "it's", "two\nlines", "é", "+", "C#"]
    quoted = ["'" + text.replace("'", "''") + "'" for text in texts]
    answer = plain("ISTREAM(SELECT k FROM s [NOW])", {"s": "\n".join(f"{i} {text} 1" for i, text in enumerate(quoted))})
    assert [row[0] for _, _, row in answer.changes] == texts
    answer.expect(str(answer))


def test_every_input_must_be_given() -> None:
    with pytest.raises(SourceError, match="the rows of 's' are not given"):
        plain("SELECT k FROM s", {})
    with pytest.raises(SourceError, match="no stream or table 't'"):
        plain("SELECT k FROM s", {"s": "", "t": ""})
    plain("SELECT k FROM s", {"S": "1 x 1"}).expect("1 + x")
    plain("SELECT k FROM s", {"s": ""}).expect("")


TWO = """
CREATE STREAM a (ts TIMESTAMP, k INTEGER, WATERMARK FOR ts AS ts - INTERVAL '3' SECOND) WITH (connector = 'memory');
CREATE STREAM b (ts TIMESTAMP, k INTEGER, WATERMARK FOR ts AS ts - INTERVAL '3' SECOND) WITH (connector = 'memory');
CREATE TABLE t (k INTEGER, n VARCHAR) WITH (connector = 'memory');
SELECT a.k, n, COUNT(*) AS c FROM a [ROWS 4], b [RANGE 5 SECONDS], t WHERE a.k = b.k AND a.k = t.k GROUP BY a.k, n;
"""


@pytest.mark.nightly
def test_cuts_and_restarts_do_not_change_the_answer() -> None:
    chance = random.Random(5)
    inputs = {
        name: "\n".join(f"{i + chance.randint(-5, 0)} {chance.randint(1, 3)}" for i in range(30)) for name in ("a", "b")
    }
    inputs["t"] = "1 one \n 2 two"
    once = run_query(TWO, inputs)
    assert len(once.instants) > 10 and any("(late" in row for row in once.rejected)
    for seed in range(4):
        for restart in (False, True):
            other = run_query(TWO, inputs, seed=seed, restart=restart)
            assert difference(once, other) is None
            assert sorted(other.rejected) == sorted(once.rejected)
    assert difference(once, run_query(TWO, inputs, restart=True)) is None


def test_rows_that_the_clock_stamps_come_in_their_order() -> None:
    query = """
    CREATE STREAM a (x VARCHAR) WITH (connector = 'memory', time = 'arrival');
    CREATE STREAM b (x VARCHAR) WITH (connector = 'memory', time = 'arrival');
    ISTREAM(SELECT x FROM a [NOW] UNION ALL SELECT x FROM b [NOW]);
    """
    answer = run_query(query, {"a": "1 a1 \n 3 a3", "b": "2 b2 \n 3.5 b3"}, seed=1, restart=True)
    answer.expect("1 a1 \n 2 b2 \n 3 a3 \n 3.5 b3")


def test_answers_of_different_shape() -> None:
    relation = plain("SELECT k FROM s [NOW]")
    assert difference(relation, plain("ISTREAM(SELECT k FROM s [NOW])")) == (
        "the answer is a stream, and a relation is expected"
    )
    reported = difference(relation, plain("SELECT k, a FROM s [NOW]"))
    assert reported == "the answer has the columns k, a, and k are expected"


def test_neither_duckdb_nor_the_reference_is_needed() -> None:
    program = "import sys, transom.testing; print([n for n in sys.modules if 'duckdb' in n or 'reference' in n])"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
