"""The shell, with statements from standard input and through a pseudo-terminal."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.cli.commands import ANSWER, QUERY_FILE, outcome, write_project
from tests.cli.terminal import CTRL_C, CTRL_D, ENTER, terminal
from transom.cli.shell_completion import completions
from transom.cli.shell_text import is_whole, split
from transom.session import Session, workspace_of

STREAM, SINK, INSERT = (statement.strip() + ";" for statement in QUERY_FILE.strip().split(";")[:3])

PASTE = "\x1b[200~{}\x1b[201~"
"""What a terminal makes of a text that is pasted."""


def shell(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, given: str, *options: str
) -> tuple[int, str, str]:
    """A shell in this process whose statements come from standard input."""
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    return outcome(capsys, "shell", *options)


def test_statements_come_from_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    given = f"{STREAM} {SINK}\n-- not; yet\n{INSERT}\nISTREAM(SELECT k,\n a FROM s WHERE a > 2);\nshow queries"
    code, out, err = shell(capsys, monkeypatch, given)
    assert (code, "error" in err) == (0, False)
    assert out.splitlines()[:3] == ["at,k,a", "2024-05-01 00:00:03,x,3", "2024-05-01 00:00:07,x,4"]
    queries = out.splitlines()[3:]
    assert queries[0].split() == "query state rows in rows out up to held back by statement".split()
    assert queries[3].split()[:4] == ["2", "finished", "6", "2"]
    assert queries[3].endswith("ISTREAM(SELECT k, a FROM s WHERE a > 2)")
    assert "query 1 into out: 4 rows out, to the end of its input\n" in err
    assert (tmp_path / "answers" / "out.csv").read_text() == ANSWER


def test_a_wrong_statement_is_reported_with_its_place_and_the_others_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = (
        "CREATE TABLE t (a INTEGER) WITH (connector = 'memory');\n\nSELECT b\n  FROM t; SHOW nothing;\n"
        "STOP 7;\nCREATE SINK x WITH (connector = 'terminal', colour = 'red');\nSELECT a FROM t;"
    )
    code, out, err = shell(capsys, monkeypatch, given, "--format", "csv", "--emit", "latest")
    assert (code, out) == (1, "a\n")
    assert "error: line 3, column 8: there is no column 'b'\n  SELECT b\n         ^\n" in err
    assert "error: SHOW cannot show 'nothing'\n  write SHOW and one of STREAMS, " in err
    assert "error: no query 7 runs\n  SHOW QUERIES says which ones run\n" in err
    assert "line 6, column 1: connector 'terminal' has no property 'colour'" in err


def test_a_sink_is_written_by_one_query_at_a_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_project(tmp_path, STREAM + SINK + INSERT)
    code, _, err = shell(capsys, monkeypatch, f"{INSERT} STOP 1", str(path), "--follow")
    assert code == 1
    assert "error: query 1 writes to the sink 'out'\n  STOP 1 first, or wait for its end\n" in err
    assert "query 1 into out: " in err


def test_what_is_declared_can_be_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    given = (
        "show streams; SET tick = '1 SECOND';"
        "CREATE STREAM s (a INTEGER) WITH (connector = 'memory', time = 'arrival');"
        "CREATE TABLE t (a INTEGER PRIMARY KEY, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'memory');"
        "CREATE VIEW v AS SELECT a + 1 AS b FROM s;"
        "CREATE SINK o WITH (connector = 'files', path = 'o.csv', emit = 'latest');"
        "show streams; show tables; show views; show sinks; show options; quit; show streams"
    )
    code, out, err = shell(capsys, monkeypatch, given)
    assert (code, err) == (0, "")
    shown = [line.split("  ") for line in out.splitlines() if not line.startswith("--")]
    assert [[cell.strip() for cell in row if cell.strip()] for row in shown] == [
        ["there are no streams"],
        ["stream", "columns", "time", "connector"],
        ["s", "a INTEGER", "arrival", "memory"],
        ["table", "columns", "changes", "connector"],
        ["transom_dead_letters", "stream VARCHAR, reason VARCHAR, position VARCHAR, row VARCHAR", "never", "memory"],
        ["t", "a INTEGER, ts TIMESTAMP", "by a", "memory"],
        ["view", "columns"],
        ["v", "b INTEGER"],
        ["sink", "emit", "connector"],
        ["o", "latest", "files o.csv"],
        ["option", "value", "what it is"],
        ["tick", "1 SECOND", "the smallest step of time; instants are floored"],
        ["origin", "none", "the instant at which time begins"],
        ["join", "auto", "the tactic of two-way joins"],
        ["multiway", "auto", "the tactic of joins of many inputs"],
        ["joinagg", "auto", "the tactic of aggregates over joins"],
        [
            "adapt",
            "on",
            "whether tactics of joins of many and of aggregates over joins may change as they run; shuffle: at random",
        ],
        ["lifetimes", "auto", "how rows say when they end: direct, or by negative tuples"],
        ["sharing", "auto", "whether queries of a run that have the same join or view share it"],
        ["schedule", "off", "which work of a shared join without an equality is done first; off: all of it at once"],
        [
            "overload",
            "block",
            "what happens when too many rows wait for it: their source waits, the oldest are lost, or an error",
        ],
        ["buffer", "5000", "how many rows of each side may wait for it"],
        ["step_budget", "50 MILLISECOND", "the time of a step for such work"],
        ["slide_join", "auto", "the tactic of joins of windows that slide, emitted by RSTREAM"],
        ["memory", "none", "what such joins of a run keep to; the rest is on disk"],
        [
            "put_off",
            "none",
            "how long a step works on slides of such a join; what is left is made when nothing comes in",
        ],
        ["spill", "none", "where on disk; by default a folder for temporary files"],
        ["disk_speed", "none", "bytes a second that the disk is slowed down to"],
        ["batch_rows", "65536", "the most rows read from a source in one step"],
        ["partitions", "1", "in one process or task, in how many partitions a query runs side by side"],
        [
            "latency",
            "none",
            "on Spark, how long a batch of a query that is behind is to take; 5 seconds if nothing is said",
        ],
        [
            "tasks",
            "none",
            "on Spark, how many tasks keep what a query remembers; with one, that one runs all of the plan",
        ],
        [
            "history",
            "none",
            "how far back answers can be asked for AS OF an instant, over Flight SQL; by default only as they are now",
        ],
        ["batch_files", "none", "on Spark, the most files read in one batch"],
    ]


def test_statements_end_where_they_seem_to() -> None:
    assert split("SELECT ';--' /* ; */ FROM \"a;b\" ; rest")[0] == ["SELECT ';--' /* ; */ FROM \"a;b\" "]
    assert split("/* begun; 'and' not ended")[1] != ""
    assert not is_whole("SELECT 'it''s; ") and not is_whole("SELECT a -- ;") and is_whole("SELECT a; -- done")


def test_names_are_completed() -> None:
    session = Session()
    session.stream("sales", [{"ts": "2024-05-01", "seller": "a"}], time="ts")
    assert completions("SELECT s.sel", workspace_of(session).catalogue) == ["seller", "select"]
    assert completions("SELECT sa", workspace_of(session).catalogue) == ["sales"]


@pytest.mark.nightly
def test_a_session_at_the_keyboard(tmp_path: Path) -> None:
    """Completion, a query that is followed and stopped by Ctrl-C, one in the background, an error, and history."""
    path = write_project(tmp_path)
    with terminal("shell", "--follow", folder=tmp_path) as seen:
        seen.expect("transom>")
        screen = "CREATE SINK screen WITH (connector = 'terminal');"
        seen.type(PASTE.format(f"{STREAM}\r{screen}") + ENTER)
        seen.expect("stream s is declared")
        seen.expect("sink screen is declared")
        seen.expect("transom>")
        seen.type("SELECT nothing" + ENTER + "FROM s;" + ENTER)
        seen.expect("line 1, column 8: there is no column 'nothing'")
        seen.expect("transom>")
        seen.type("SHOW STR\t")
        seen.expect("EAMS")  # the rest of the word alone is drawn
        seen.type(ENTER)
        seen.expect("ts - 1 SECOND")
        seen.expect("transom>")
        seen.type("ISTREAM(SELECT k, a FROM s);" + ENTER)
        seen.expect("2024-05-01 00:00:03  x  3")
        with path.with_name("data").joinpath("s.csv").open("a") as file:
            file.write("2024-05-01 00:00:09,z,77\n")
        seen.expect("2024-05-01 00:00:07  x  4")
        seen.expect("nothing comes out: time is held back by s")
        seen.type(CTRL_C)
        seen.expect("query 1: 4 rows out, up to 2024-05-01 00:00:08")
        seen.expect("transom>")
        seen.type("INSERT INTO screen ISTREAM(SELECT a AS found FROM s);" + ENTER)
        seen.expect("query 2 runs in the background")
        seen.expect("2024-05-01 00:00:07      4")
        seen.type("STOP 2" + ENTER)
        seen.expect("query 2 into screen: 4 rows out")
        seen.expect("transom>")
        seen.type(CTRL_D)
        assert seen.wait() == 0
    history = tmp_path / ".local" / "state" / "transom" / "history"
    assert "+SHOW STREAMS" in history.read_text().splitlines()
