from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.commands import (
    ANSWER,
    QUERY_FILE,
    ROWS,
    command,
    environment,
    outcome,
    transom,
    without_notices,
    write_project,
)
from tests.profile import first_of

LEDGER = """out: 4 rows out, to the end of its input
  s  6 rows in = 4 used + 1 late + 1 rejected + 0 waiting
       1 rejected: column 'a' is INTEGER and cannot hold the value
       1 late: came after the watermark
"""
BARE = QUERY_FILE.partition("CREATE SINK")[0] + "ISTREAM(SELECT k, a FROM s [RANGE 2 SECONDS]);"

TO_THE_TERMINAL = QUERY_FILE.replace("connector = 'files', path = 'answers/out.csv', ", "connector = 'terminal', ")


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Until it holds, or the process has ended; pytest's own limits end what takes forever."""
    while not condition() and process.poll() is None:
        time.sleep(0.02)
    assert process.poll() is None, process.communicate()[1]


def test_paths_in_the_file_begin_at_its_folder_and_those_of_options_at_the_current_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path / "project")
    monkeypatch.chdir(tmp_path)
    code_out_err = outcome(capsys, "run", "project/query.cql", "--dead-letters", "refused", "--set", "batch_rows=2")
    assert code_out_err == (0, "", LEDGER)
    assert (tmp_path / "project" / "answers" / "out.csv").read_text() == ANSWER
    (dead_letters,) = (tmp_path / "refused" / "out").glob("[!.]*")
    rows = [json.loads(line) for line in dead_letters.read_text().splitlines()]
    assert [(row["stream"], row["position"]) for row in rows] == [("s", "data/s.csv, line 4"), ("s", None)]
    assert rows[0]["row"] == "2024-05-01 00:00:05,x,many"
    assert json.loads(rows[1]["row"]) == {"ts": "2024-05-01 00:00:02", "k": "x", "a": 5}


def test_rows_of_bare_queries_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_project(tmp_path, BARE)
    code, out, err = outcome(capsys, "run", path)
    assert code == 0
    assert out.splitlines()[:2] == ["at,k,a", "2024-05-01 00:00:01,x,1"]
    assert err.startswith("query-1: 4 rows out")
    _, out, _ = outcome(capsys, "run", path, "--format", "table", "--set", "batch_rows=1")
    assert out.splitlines() == [
        "at                   k  a",
        "-------------------  -  -",
        "2024-05-01 00:00:01  x  1",
        "2024-05-01 00:00:02  y  2",
        "2024-05-01 00:00:03  x  3",
        "2024-05-01 00:00:07  x  4",
    ]


def test_several_statements_print_in_turn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = BARE + "SELECT COUNT(*) AS n FROM s; EXPLAIN SELECT a FROM s; SELECT k FROM s WHERE a > 9;"
    code, out, _ = outcome(capsys, "run", write_project(tmp_path, text), "--emit", "latest", "--format", "jsonl")
    assert code == 0
    explained, _, printed = out.partition("-- ")
    assert explained.startswith("#4 project: a\n")
    sections = ("-- " + printed).split("\n\n")
    assert [section.splitlines()[0] for section in sections] == ["-- query-1", "-- query-2", "-- query-3"]
    assert sections[0].splitlines()[1] == '{"at": "2024-05-01 00:00:01", "k": "x", "a": 1}'
    assert sections[1].splitlines()[1:] == ['{"n": 4}']
    assert sections[2].splitlines()[1:] == []


def test_nothing_but_the_answer_is_drawn_when_nobody_watches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code_out_err = outcome(capsys, "run", write_project(tmp_path, TO_THE_TERMINAL), "--set", "batch_rows=1")
    assert code_out_err == (0, ANSWER, LEDGER)


def test_the_latest_snapshot_of_a_terminal_sink_is_printed_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = TO_THE_TERMINAL.replace("'lifetimes'", "'latest', format = 'jsonl'").replace("RANGE 2 SECONDS", "ROWS 9")
    code, out, _ = outcome(capsys, "run", write_project(tmp_path, text), "--set", "batch_rows=1", "--every", "1")
    assert (code, sorted(out.splitlines())) == (0, ['{"k": "x", "total": "8"}', '{"k": "y", "total": "2"}'])


def test_data_that_cannot_be_read_at_all_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_project(tmp_path)
    (tmp_path / "data" / "s.csv").write_text("ts,k\n2024-05-01,x\n")
    code, out, err = outcome(capsys, "run", path)
    assert (code, out) == (1, "")
    assert err.startswith("error: file 'data/s.csv' has no column 'a'\n")


def test_explain_as_text_as_json_and_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_project(tmp_path)
    code, text, _ = outcome(capsys, "explain", path)
    assert code == 0 and text.splitlines()[-3] == "fragment 1, by (k): s by (k) through #2 into #3"
    (measured,) = json.loads(outcome(capsys, "explain", path, "--json", "--analyze")[1])["queries"]
    assert measured["statement"].startswith("INSERT INTO out")
    assert measured["operators"][0].pop("measured")["rows_out"] == 4
    assert not (tmp_path / "answers").exists()
    (tmp_path / "data" / "s.csv").unlink()
    (planned,) = json.loads(outcome(capsys, "explain", path, "--json")[1])["queries"]
    assert planned["operators"][0] == measured["operators"][0]


def test_explain_of_several_queries_says_what_they_share_and_what_is_put_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pairs.cql"
    streams = "".join(
        f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, WATERMARK FOR ts AS ts) WITH (connector = 'generator');"
        for name in "ab"
    )
    join = "SELECT a.k FROM a [RANGE {0} SECONDS], b [RANGE {0} SECONDS] WHERE a.k < b.k;"
    file.write_text(f"{streams} SET schedule = 'mqt'; {join.format(1)} {join.format(9)}")
    here = outcome(capsys, "explain", str(file), "--runtime", "local")[1]
    assert here.count(" shared with query ") == 2 and here.count(" scheduled by mqt") == 2
    spark = outcome(capsys, "explain", str(file), "--runtime", "spark")[1]
    assert spark.count(" shared with query ") == spark.count(" scheduled by mqt") == 2
    plans = json.loads(outcome(capsys, "explain", str(file), "--json")[1])["queries"]
    assert [plan["shared with"] for plan in plans] == [[2], [1]]


@pytest.mark.nightly
def test_a_run_killed_in_the_middle_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    """kill -9 while it follows a growing file; the rest of the file comes later, and the answer is that of one run."""
    path = write_project(tmp_path)
    data, kept = tmp_path / "data" / "s.csv", tmp_path / "kept"
    lines = ROWS.splitlines(keepends=True)
    data.write_text("".join(lines[:4]) + lines[4][:9])
    arguments = (
        "run",
        path,
        "--checkpoint",
        kept,
        "--every",
        "1",
        "--set",
        "batch_rows=1",
        "--dead-letters",
        tmp_path / "side",
    )
    running = subprocess.Popen(
        command(*arguments, "--follow"), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    # Two rows and the one that cannot be read are settled one by one; then the run waits for the line to be finished.
    dead_letters = tmp_path / "side" / "out" / "part-000000.jsonl"
    wait_for(lambda: dead_letters.exists() and (kept / "checkpoint.arrow").exists(), running)
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    running.communicate()
    assert not (tmp_path / "answers" / "out.csv").exists()
    data.write_text(ROWS)
    finished = transom(*arguments, "--end")
    assert (finished.returncode, finished.stderr) == (0, LEDGER)
    assert (tmp_path / "answers" / "out.csv").read_text() == ANSWER
    assert sorted(os.listdir(dead_letters.parent)) == [".transom", "part-000000.jsonl", "part-000001.jsonl"]


def test_ctrl_c_stops_a_followed_run_with_what_it_has(tmp_path: Path) -> None:
    path = write_project(tmp_path, BARE)
    running = subprocess.Popen(
        command("run", path, "--follow"), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "at,k,a\n"
    running.send_signal(signal.SIGINT)
    assert running.stderr is not None
    out, err = running.stdout.read(), without_notices(running.stderr.read())
    running.stdout.close()
    running.stderr.close()
    assert running.wait() == 130
    assert out.splitlines() == [f"2024-05-01 00:00:0{row}" for row in ("1,x,1", "2,y,2", "3,x,3")]
    assert re.match(r"note: line \d+: while no rows of s come, time stands still", err)
    assert err.splitlines()[1] == "query-1: 3 rows out, up to 2024-05-01 00:00:06"
    assert err.splitlines()[2] == "  s  6 rows in = 3 used + 1 late + 1 rejected + 1 waiting"
    assert err.splitlines()[-1] == "interrupted"


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    path = write_project(tmp_path, BARE)
    running = subprocess.Popen(
        command("run", path, "--set", "batch_rows=1"), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert running.stdout is not None and running.stderr is not None
    running.stdout.close()
    err = running.stderr.read()
    running.stderr.close()
    assert (running.wait(), without_notices(err.decode())) == (0, "")


@pytest.mark.parametrize("seed", first_of("7", "23"))
def test_the_demo_tells_what_burned(tmp_path: Path, seed: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "building"
    code, out, err = outcome(capsys, "demo", "--seed", seed, "--keep", folder)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    rooms = [line.rpartition(" room ")[2].partition(":")[0] for line in lines if line.endswith(": FIRE")]
    assert len(rooms) == 5 and len(set(rooms)) == 5
    assert sum(": over, after" in line for line in lines) == 5
    charted = [line[:4] for line in lines if "#" in line[6:66]]
    assert charted == sorted(rooms)
    assert "  temperature  172,800 rows in = " in out and "12 rejected: column 'celsius' is DOUBLE" in out
    assert (folder / "burning.csv").read_text().startswith("floor,rooms,ta,te\n1,1,2024-05-01 08:")
    example = Path(__file__).parents[2] / "examples" / "building" / "building.cql"
    assert (folder / "building.cql").read_text() == example.read_text()
    checked = outcome(capsys, "check", folder / "building.cql")
    assert checked[1].startswith("ok: 2 streams (temperature, smoke), 1 view (fires)")


def test_a_run_begins_by_naming_state_that_grows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = write_project(tmp_path)
    query.write_text(BARE.replace("SELECT k", "SELECT DISTINCT k").replace("[RANGE 2 SECONDS]", ""))
    code, out, reported = outcome(capsys, "run", "--runtime", "local", "--plain", query)
    assert code == 0 and "state grows" not in out
    assert (
        reported.startswith("note: line ")
        and "istream keeps the rows of s, which never end; write s [RANGE 1 HOUR]" in reported
    )
