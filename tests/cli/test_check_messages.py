"""Wrong query files as `transom check` sees them: where the message points, what it says, and what to write instead.

The place is given by marking the text: what stands between « and » is what the message underlines.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.commands import outcome, transom

DECLARED = """
CREATE STREAM readings (ts TIMESTAMP, room VARCHAR, celsius DOUBLE, n INTEGER,
    WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (connector = 'files', path = 'readings.csv');
CREATE TABLE floors (room VARCHAR, floor INTEGER) WITH (connector = 'files', path = 'floors.csv');
CREATE SINK out WITH (connector = 'files', path = 'out.csv');
INSERT INTO out SELECT room FROM readings [NOW];
"""

WRONG = [
    # words that are wrong or missing
    ("«SELEC» room FROM readings", "a statement cannot begin with 'SELEC'", "SELECT"),
    ("SELECT room, «FROM» readings", "a value is missing before 'FROM'", "column"),
    ("SELECT room FROM readings «WHRE» n > 1", "'WHRE' is not expected here", "did you mean WHERE?"),
    ("SELECT room «FORM» readings", "'FORM' is not expected here", "did you mean FROM?"),
    ("SELECT (n «FROM» readings", ") is missing", "write )"),
    ("SELECT «'»room FROM readings", "is not closed", "closing '"),
    ("SELECT room FROM readings GROUP «room»", "BY is missing", "write BY"),
    ("CREATE «STREEM» s (a INTEGER)", "CREATE cannot be followed by 'STREEM'", "STREAM"),
    # names
    ("SELECT «rom» FROM readings", "there is no column 'rom'", "did you mean room?"),
    ("SELECT room FROM «reading»", "'reading'", "did you mean readings?"),
    ("SELECT «r.room» FROM readings", "there is no input 'r'", "the inputs are readings"),
    ("SELECT «room» FROM readings [NOW], floors", "'room' is ambiguous", "write readings.room or floors.room"),
    ("INSERT INTO «nowhere» SELECT n FROM readings", "there is no sink 'nowhere'", "did you mean out?"),
    ("CREATE VIEW «readings» AS SELECT n FROM readings", "'readings'", "name"),
    # types
    ("SELECT «n + room» FROM readings", "VARCHAR", "CAST"),
    ("SELECT room FROM readings WHERE «ts»", "no condition", "compare"),
    ("SELECT «LENGHT(room)» FROM readings", "no function 'lenght'", "did you mean length"),
    ("SELECT n FROM readings UNION «SELECT room FROM readings»", "INTEGER and VARCHAR", "CAST"),
    # groups
    ("SELECT «room», MAX(celsius) FROM readings", "'room' is neither grouped nor aggregated", "GROUP BY"),
    ("SELECT room FROM readings WHERE «MAX(celsius)» > 3 GROUP BY room", "aggregate MAX", "HAVING"),
    # windows and streams
    ("SELECT room FROM readings [RANGE «0 SECONDS»]", "0", "NOW"),
    ("SELECT room FROM readings [ROWS «0»]", "0", "1"),
    ("SELECT room FROM readings [RANGE 5 «PARSECS»]", "PARSECS", "SECOND"),
    ("SELECT floor FROM floors «[ROWS 3]»", "window", "floors"),
    ("ISTREAM(«ISTREAM(SELECT n FROM readings)»)", "ISTREAM takes a relation", "leave one"),
    # clauses that mean nothing over streams, or cannot run yet
    ("SELECT room FROM (SELECT room FROM readings LIMIT «5»)", "LIMIT without ORDER BY", "[ROWS 10]"),
    ("SELECT n FROM readings «POSITIONAL» JOIN floors", "POSITIONAL JOIN is not supported", "JOIN .. ON condition"),
    # declarations
    ("CREATE STREAM «s» (ts TIMESTAMP) WITH (connector = 'memory')", "has no WATERMARK", "WATERMARK FOR ts"),
    ("CREATE STREAM s (ts VARCHAR, WATERMARK FOR «ts» AS ts)", "time column 'ts' is a VARCHAR", "ts TIMESTAMP"),
    ("CREATE TABLE t (a «NUMBR»)", "NUMBR", "type"),
    ("CREATE TABLE t (a INTEGER, «a» INTEGER)", "two columns 'a'", "something else"),
    ("CREATE SINK x WITH (connector = 'memory', emit = «'sometimes'»)", "'emit' cannot be 'sometimes'", "'latest'"),
    ("«CREATE» SINK x WITH (connector = 'pulsar')", "no connector 'pulsar'", "'files'"),
    ("«CREATE» SINK x WITH (connector = 'files', path = 'x.txt')", "format", "format ="),
    ("«CREATE» TABLE t (a INTEGER) WITH (connector = 'files', path = 'a.csv', delimter = ';')", "'delimter'",
     "write delimiter"),
    ("«CREATE» TABLE t (a INTEGER) WITH (connector = 'generator', rows = 9, column.a = 'text 3')", "text is no INTEGER",
     "write sequence"),
    ("«CREATE» TABLE t (a INTEGER) WITH (connector = 'generator')", "cannot be endless", "rows = '1000'"),
    ("«INSERT» INTO out SELECT n FROM readings", "written by two queries", "a path of its own"),
    # options
    ("SET «tock = '1 second'»", "no option 'tock'", "tick"),
    ("SET «tick = 'soon'»", "cannot be 'soon'", "duration"),
]  # fmt: skip


def unmarked(marked: str) -> tuple[str, int, int]:
    """The text without its marks, and from where to where they stood."""
    start, stop = marked.find("«"), marked.find("»") - 1
    return marked.replace("«", "").replace("»", ""), start, stop


def judge(marked: str, what: str, remedy: str, err: str, path: Path) -> None:
    text, start, stop = unmarked(marked)
    first, quoted, carets, *rest = err.splitlines()
    assert first.endswith(f" (in {path})")
    line = DECLARED.count("\n") + 1
    assert first.startswith(f"error: line {line}, column {start + 1}: "), err
    assert quoted[2:] == text[max(0, start - 59) :][:120]
    assert carets == "  " + " " * min(start, 59) + "^" * min(stop - start, 120 - min(start, 59)), err
    assert what in first
    assert remedy in "\n".join(rest)
    # Nothing of the inside: no traceback, no class, no module, no Python value.
    inside = r"Traceback|File \"|\b[A-Z][a-z]+[A-Z]\w*|\w*Error\b|sqlglot|transom\.|pyarrow|<class|object at|None\b"
    reported = "\n".join([first.replace(str(path), ""), *rest])
    assert re.search(inside, reported) is None, err


@pytest.mark.parametrize(("marked", "what", "remedy"), WRONG, ids=[case[0][:40] for case in WRONG])
def test_a_wrong_query_is_pointed_at_with_its_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], marked: str, what: str, remedy: str
) -> None:
    path = tmp_path / "wrong.cql"
    path.write_text(DECLARED + unmarked(marked)[0])
    code, out, err = outcome(capsys, "check", path)
    assert (code, out) == (1, "")
    judge(marked, what, remedy, err, path)
    assert [file.name for file in tmp_path.iterdir()] == ["wrong.cql"]


@pytest.mark.nightly
def test_the_command_itself_says_the_same(tmp_path: Path) -> None:
    marked, what, remedy = WRONG[7]
    path = tmp_path / "wrong.cql"
    path.write_text(DECLARED + unmarked(marked)[0])
    ended = transom("check", path)
    assert (ended.returncode, ended.stdout) == (1, "")
    judge(marked, what, remedy, ended.stderr, path)


def test_what_they_are_wrong_about_is_right_without_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(WRONG) >= 25
    path = tmp_path / "right.cql"
    path.write_text(DECLARED)
    assert outcome(capsys, "check", path)[0] == 0


def test_state_that_grows_is_named_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "query.cql").write_text(DECLARED.strip() + "\n\nSELECT room, COUNT(*) FROM readings GROUP BY room;\n")
    code, out, _ = outcome(capsys, "check", tmp_path / "query.cql")
    assert code == 0
    assert out.splitlines()[1].startswith(
        "note: line 7: state grows while input comes: aggregate running keeps the groups"
    )
    assert outcome(capsys, "explain", tmp_path / "query.cql")[1].count("state grows while input comes") == 2
