"""Standard output that is full, closed, or has no letters for what is written; and what others' text does to it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import ROWS, command, environment, outcome, without_notices, write_project
from tests.cli.terminal import terminal
from tests.profile import first_of

BARE = """
CREATE STREAM s (ts TIMESTAMP, k VARCHAR, a INTEGER, WATERMARK FOR ts AS ts)
    WITH (connector = 'files', path = 'data/s.csv');
SELECT k AS "größe", a FROM s;
"""


def ran(arguments: list[str], output: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    with open(output, "wb") as file:
        return subprocess.run(
            arguments, env={**environment(), **variables}, stdout=file, stderr=subprocess.PIPE, check=False
        )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
@pytest.mark.parametrize("arguments", first_of(("run", "--runtime", "local"), ("check",)))
def test_a_full_disk_behind_standard_output_is_reported(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    path = write_project(tmp_path, BARE)
    ended = ran(command(*arguments, path), "/dev/full")
    assert ended.returncode == 1
    reported = "error: standard output cannot be written: No space left on device\n  make room where it goes"
    assert without_notices(ended.stderr.decode()).startswith(reported), ended.stderr
    assert b"Exception" not in ended.stderr and b"bug" not in ended.stderr


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("style", "line"),
    first_of(("csv", b"+,2024-05-01 00:00:01,\\u00e9t\\u00e9,1"), ("jsonl", b'"gr\\u00f6\\u00dfe": "\\u00e9t\\u00e9"')),
)
def test_letters_that_the_output_does_not_have_are_written_out(tmp_path: Path, style: str, line: bytes) -> None:
    path = write_project(tmp_path, BARE)
    (tmp_path / "data" / "s.csv").write_text("ts,k,a\n2024-05-01 00:00:01,été,1\n")
    output = tmp_path / "output"
    ended = ran(command("run", "--runtime", "local", "--format", style, path), str(output), PYTHONIOENCODING="ascii")
    assert (ended.returncode, output.read_bytes().count(line)) == (0, 1), (ended.stderr, output.read_bytes())


@pytest.mark.nightly
def test_a_closed_output_is_nowhere(tmp_path: Path) -> None:
    path = write_project(tmp_path, BARE)
    arguments = command("run", "--runtime", "local", path)
    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *arguments], env=environment(), stderr=subprocess.PIPE, check=False
    )
    assert ended.returncode == 0 and b"to the end of its input" in ended.stderr


ESCAPE = "\x1b]0;owned\x07"

HOSTILE = f"""
CREATE STREAM "s{ESCAPE}" (ts TIMESTAMP, "k{ESCAPE}" VARCHAR, a INTEGER, WATERMARK FOR ts AS ts)
    WITH (connector = 'files', path = 'data/s.csv');
CREATE SINK "[/red]{ESCAPE}" WITH (connector = 'terminal', emit = '%s', format = '%s');
INSERT INTO "[/red]{ESCAPE}" SELECT "k{ESCAPE}", a FROM "s{ESCAPE}";
"""


@pytest.mark.parametrize(("emit", "style"), first_of(("latest", "table"), ("changes", "csv")))
def test_a_terminal_obeys_no_text_of_others(tmp_path: Path, emit: str, style: str) -> None:
    write_project(tmp_path, HOSTILE % (emit, style))
    rows = ROWS.replace("ts,k,", f"ts,k{ESCAPE},").replace(",many", f",{ESCAPE}").replace(",y,", f",y{ESCAPE},")
    (tmp_path / "data" / "s.csv").write_text(rows)
    with terminal("run", "query.cql", "--runtime", "local", folder=tmp_path) as seen:
        assert seen.wait() == 0, seen.text
    assert "y\\x1b]0;owned\\x07" in seen.text
    assert ("[/red]" in seen.text) == (emit == "latest"), "a table has the name of its sink above it"
    assert ESCAPE.encode() not in seen.drawn


def test_messages_show_escapes_and_mark_the_right_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_project(
        tmp_path, f"CREATE SINK o WITH (connector = 'terminal');\n/* {ESCAPE} */\tSELECT a FROM nowhere;"
    )
    code, _, err = outcome(capsys, "check", path)
    assert code == 1 and "\x1b" not in err and "\t" not in err
    _, quoted, marks, *_ = err.splitlines()
    assert quoted[marks.index("^") : marks.rindex("^") + 1] == "nowhere"
    code, _, err = outcome(capsys, "check", tmp_path / f"no{ESCAPE}\nfile")
    assert code == 2 and "\x1b" not in err and "no\\x1b]0;owned\\x07\\nfile" in err
    code, _, err = outcome(capsys, "run", "--every", ESCAPE, path)
    assert code == 2 and "\x1b" not in err
    declared = write_project(tmp_path / "declared", HOSTILE % ("changes", "table"))
    for arguments in (("check",), ("explain",)):
        code, out, _ = outcome(capsys, *arguments, declared)
        assert code == 0 and "owned" in out and "\x1b" not in out
