from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import QUERY_FILE, outcome, write_project
from transom.cli import bench_command, main
from transom.core.errors import SinkError
from transom.program.interrupt import Terminated


@pytest.mark.parametrize("arguments", [[], ["fly"], ["run"], ["check", "a", "b"], ["run", "a", "--every", "0"]])
def test_wrong_usage_ends_with_2(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    code, out, err = outcome(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("usage: transom")


def test_help_tells_the_commands_where_paths_begin_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = outcome(capsys, "--help")
    assert code == 0
    text = " ".join(out.split())
    assert all(f" {name} " in text for name in ("run", "check", "explain", "bench", "demo"))
    assert "Paths in the query file are relative to the folder of the file" in text
    assert "130 interrupted" in text
    assert outcome(capsys, "--version") == (0, "transom 0.1.0\n", "")


def test_check_says_what_a_file_declares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_project(
        tmp_path, QUERY_FILE + "SET tick = '1 second'; CREATE VIEW v AS SELECT a FROM s [NOW]; SELECT a FROM v"
    )
    assert outcome(capsys, "check", path) == (
        0,
        "ok: 1 stream (s), 1 sink (out), 2 queries (into out), 1 option, 1 view (v)\n",
        "",
    )
    empty = write_project(tmp_path / "empty", "-- nothing")
    assert outcome(capsys, "check", empty) == (0, "ok: nothing is declared\n", "")
    assert not (tmp_path / "answers").exists()


@pytest.mark.parametrize(
    ("query", "span", "what"),
    [
        ("SELEC a FROM s", "line 7, column 1", "SELEC"),
        ("SELECT b FROM s", "line 7, column 8", "'b'"),
        ("SELECT a FROM nowhere", "line 7, column 15", "nowhere"),
        ("SELECT a FROM s [RANGE 0 SECONDS]", "line 7", "NOW"),
        ("SELECT a + k FROM s", "line 7", "VARCHAR"),
        (
            "SELECT s.a FROM s WHERE EXISTS (SELECT 1 FROM s AS t RIGHT JOIN s AS u ON t.a = u.a AND t.a = s.a)",
            "line 7, column 1",
            "reads the row around it",
        ),
        ("CREATE SINK x WITH (connector = 'files', path = 'x', fromat = 'csv')", "line 7, column 1", "write format"),
        ("INSERT INTO out SELECT a FROM s", "line 7, column 1", "by two queries"),
        ("SET speed = 'high'", "line 7", "no option 'speed'"),
    ],
)
def test_check_says_what_is_wrong_and_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], query: str, span: str, what: str
) -> None:
    path = write_project(tmp_path, QUERY_FILE + "\n" + query)
    code, out, err = outcome(capsys, "check", path)
    assert (code, out) == (1, "")
    assert err.startswith(f"error: {span}")
    assert what in err
    assert query in err.splitlines()[1] and "^" in err.splitlines()[2]
    assert f"(in {path})" in err
    assert not any(name in err for name in ("Error", "sqlglot", "transom."))


def test_a_query_file_that_cannot_be_read_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "latin.cql").write_bytes(b"-- caf\xe9")
    for name, what in (("none.cql", "No such file"), ("", "Is a directory"), ("latin.cql", "not UTF-8")):
        code, out, err = outcome(capsys, "check", tmp_path / name)
        assert (code, out) == (2, "") and what in err
    path = write_project(tmp_path)
    for setting, what in (
        ("tick", "says no value"),
        ("speed=1", "no option 'speed'"),
        ("tick=soon", "cannot be 'soon'"),
    ):
        code, out, err = outcome(capsys, "run", path, "--set", setting)
        assert (code, out) == (2, "") and what in err


def test_benchmarks_are_listed_and_dispatched(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = outcome(capsys, "bench")
    assert code == 0 and "\njoin  " in f"\n{out}"
    code, out, _ = outcome(capsys, "bench", "--json")
    assert code == 0 and '"join": ' in out
    code, _, err = outcome(capsys, "bench", "jion")
    assert code == 2 and "there is join" in err
    code, _, err = outcome(capsys, "bench", "join", "--soak", "3")
    assert code == 2 and "unrecognized arguments: --soak 3" in err
    code, _, err = outcome(capsys, "check", "--soak")
    assert code == 2


def test_an_installed_package_says_where_benchmarks_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bench_command, "CHECKOUT", tmp_path)
    code, out, err = outcome(capsys, "bench", "join")
    assert (code, out) == (2, "")
    assert err.startswith("error: benchmarks live in a checkout of Transom") and "make bench" in err


@pytest.mark.parametrize(
    ("error", "code", "reported"),
    [
        (SinkError("the disk is full", remedy="make room"), 1, "error: the disk is full\n  make room\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (Terminated(signal.SIGTERM), 143, "ended by SIGTERM\n"),
        (MemoryError(), 1, "error: there is no memory left\n"),
        (ZeroDivisionError("division by zero"), 1, "error: something went wrong inside Transom: division by zero\n"),
    ],
)
def test_errors_end_with_a_code_and_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, reported: str
) -> None:
    def fail(options: Any) -> int:
        raise error

    monkeypatch.setattr("transom.cli.bench_command.main", fail)
    monkeypatch.delenv("TRANSOM_DEBUG", raising=False)
    code_out_err = outcome(capsys, "bench")
    assert code_out_err[0] == code
    assert code_out_err[2].startswith(reported) and "Traceback" not in code_out_err[2]


def test_the_debug_variable_shows_where_a_bug_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(options: Any) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr("transom.cli.bench_command.main", fail)
    monkeypatch.setenv("TRANSOM_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main.main(["bench"])
