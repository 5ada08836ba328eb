"""What a console shows of a session, of a run and of a checkpoint, on both runtimes."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from transom import Session
from transom.connectors.tapped import AnswerTap
from transom.console.board import RunBoard, SessionBoard, ShownQuery
from transom.console.feed import Feed
from transom.console.finished import HISTORY, CheckpointBoard, remember
from transom.core.errors import CheckpointError
from transom.program.status import Status
from transom.session import workspace_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = """
    CREATE SINK out WITH (connector = 'files', path = '{folder}/out.csv');
    INSERT INTO out SELECT a.k, COUNT(*) AS n FROM a [RANGE 5 SECONDS] JOIN b [RANGE 5 SECONDS] ON a.k = b.k
        GROUP BY a.k;
    SELECT a.k, b.v FROM a [RANGE 2 SECONDS] JOIN b [RANGE 2 SECONDS] ON a.k = b.k;
    SELECT v FROM a [RANGE 1 SECOND] WHERE k IS NULL
"""
READ = {"rows_in": 9, "used": 7, "late": 1, "rejected": 1, "waiting": 0}


def fill(session: Session) -> Session:
    rows: list[dict[str, Any]] = [
        {"t": f"2024-05-01 10:00:0{i}", "k": None if i == 3 else i % 2, "v": i} for i in range(7)
    ]
    rows += [{"t": None, "k": 1, "v": 8}, {"t": "2024-05-01 10:00:00", "k": 1, "v": 9}]
    for name in ("a", "b"):
        session.stream(name, rows, time="t", late="dead_letter")
    return session


def run_board(session: Session, folder: Path, **options: Any) -> RunBoard:
    workspace_of(session).taps.watch()
    planned = [one for one in workspace_of(session).prepare(TEXT.format(folder=folder)) if one.standing]
    run = workspace_of(session).assemble(planned, keep_dead_letters=False, **options)
    board = RunBoard(
        run,
        planned,
        workspace_of(session).taps,
        lambda: workspace_of(session).explain_together(planned),
        session.runtime,
        session.kept_of,
    )
    run.run()
    return board


def check_run(board: RunBoard) -> None:
    out, joined, single = board.queries()
    for query in (out, joined, single):
        status, plan = query.status(), operators(query)
        assert [each["number"] for each in status["operators"]] == [each["number"] for each in plan], query.name
        assert [each["tactic"] for each in status["operators"]] == [each["tactic"] for each in plan], query.name
        stages = {one["stage"] for one in status["partitions"]}
        assert stages == ({1} if board.about.endswith("on Spark") else set()), query.name
        (first, *_) = status["inputs"]
        assert {name: first[name] for name in READ} == READ and status["state"] == "finished"
    assert joined.view is not None and single.view is not None and out.view is not None
    found = single.view.look(0)
    assert [bar.label for bar in found.bars] == ["3"] and (found.form, found.partial) == ("changes", False)
    assert {bar.label for bar in joined.view.look(0).bars} >= {"0, 0", "1, 1"}
    written = out.view.look(0)
    assert written.bars and written.rows and written.by_tasks == board.about.endswith("on Spark")
    letters = board.dead_letters().newest()
    assert {row["reason"] for batch in letters.rows for row in batch.to_pylist()} == {
        "the time column 't' is NULL",
        "late: came after the watermark",
    }


def operators(query: ShownQuery) -> list[dict[str, Any]]:
    explained = query.explained()
    assert explained is not None
    found: Any = explained.plans[0]["operators"]
    return list(found)


def test_a_run_in_this_process(tmp_path: Path) -> None:
    with Session() as session:
        check_run(run_board(fill(session), tmp_path))


@pytest.mark.nightly
def test_a_run_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    with Session(spark=spark) as session:
        check_run(run_board(fill(session), tmp_path))


def check_checkpoint(folder: Path, runtime: str) -> None:
    board = CheckpointBoard(str(folder))
    assert runtime in board.about and board.over
    assert [query.name for query in board.queries()] == ["out", "query-2", "query-3"]
    for query in board.queries():
        status = query.status()
        assert status["inputs"] and status["state"] in ("finished", "stopped")
        for each in status["inputs"]:
            assert {name: each[name] for name in READ} == READ, (query.name, each)
    assert board.queries()[2].text == "SELECT v FROM a [RANGE 1 SECOND] WHERE k IS NULL"


def test_a_checkpoint_of_this_process(tmp_path: Path) -> None:
    with Session() as session:
        run_board(fill(session), tmp_path, checkpoint=str(tmp_path / "kept"), end=True)
    check_checkpoint(tmp_path / "kept", "local")


@pytest.mark.nightly
def test_skew_on_spark_is_told(spark: SparkSession) -> None:
    """Nearly all rows have one key: the partition that it is in has them all, and the page is sent that."""
    with Session(spark=spark, tasks=3) as session:
        start = datetime(2024, 5, 1)
        rows = [{"t": start + timedelta(seconds=i), "k": i % 50 if i % 10 == 0 else 7} for i in range(900)]
        session.stream("s", rows, time="t")
        board = SessionBoard(session, workspace_of(session))
        query = session.start("SELECT k, COUNT(*) AS n FROM s [RANGE 1 HOUR] GROUP BY k")
        board.show(query)
        assert query.await_termination(timeout=120)
        partitions = query_of(board)["partitions"]
    assert len(partitions) == 3 and {one["stage"] for one in partitions} == {1}
    mean = sum(one["rows_in"] for one in partitions) / 3
    assert [one["of_mean"] for one in partitions] == [one["rows_in"] / mean for one in partitions]
    (skewed,) = [one for one in partitions if one["of_mean"] >= 2]
    assert skewed["rows_in"] > 0.85 * 3 * mean


def query_of(board: SessionBoard) -> Any:
    """What the page is sent of its one query."""
    (shown,) = board.queries()
    feed = Feed(board)
    feed._count(shown.name, frozenset(), 1)
    feed.tick()
    return json.loads(feed._details[shown.name])


@pytest.mark.nightly
def test_a_checkpoint_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    with Session(spark=spark) as session:
        run_board(fill(session), tmp_path, checkpoint=str(tmp_path / "kept"), end=True)
    check_checkpoint(tmp_path / "kept", "spark")


def test_what_a_console_knew_of_a_run_is_in_its_checkpoint(tmp_path: Path) -> None:
    """Its plan with what every operator did, and its series; a damaged file is as none."""
    with Session() as session:
        board = run_board(fill(session), tmp_path, checkpoint=str(tmp_path / "kept"), end=True)
        remember(str(tmp_path / "kept"), Feed(board, clock=lambda: 1000.0))
        (out, *_) = board.queries()
        expected = out.status()["operators"]
    (found, *_) = CheckpointBoard(str(tmp_path / "kept")).queries()
    explained = found.explained()
    assert explained is not None and "out" not in explained
    assert [one["number"] for one in operators(found)] == [one["number"] for one in expected]
    shown = [{name: one[name] for name in one.keys() & expected[0].keys()} for one in found.status()["operators"]]
    assert shown == expected
    series = Feed(CheckpointBoard(str(tmp_path / "kept"))).history("out", 600)
    assert series["time"] == [1000] and series["rows_rejected"] == [2.0]
    (tmp_path / "kept" / HISTORY).write_text("[1, {")
    (found, *_) = CheckpointBoard(str(tmp_path / "kept")).queries()
    assert found.explained() is None and found.status()["operators"] == []


def test_the_latest_of_a_checkpoint_is_shown(tmp_path: Path) -> None:
    with fill(Session()) as session:
        session.start("SELECT v FROM a WHERE v > 4", emit="latest", checkpoint=str(tmp_path)).await_termination(60)
    (query,) = CheckpointBoard(str(tmp_path)).queries()
    assert query.view is not None
    assert query.view.look(0).table == (("5",),)  # whether 6 is followed by more of its instant, the next run knows


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        CheckpointBoard(str(tmp_path))


def test_queries_that_are_over_stay_for_a_while() -> None:
    with fill(Session()) as session:
        board = SessionBoard(session, workspace_of(session))
        query = session.start("SELECT v FROM a", name="one", follow=True)
        (shown,) = board.queries()
        assert shown.status()["state"] == "running" and not shown.over
        query.stop()
        (shown,) = board.queries()
        assert shown.status()["state"] == "stopped" and shown.over
        again = session.start("SELECT k FROM a", name="one", follow=True)  # of one name the one that runs is shown
        board.queries()
        assert [each.text for each in board.queries()] == ["SELECT k FROM a"]
        again.stop()


def test_what_is_kept_for_questions_about_the_past_is_shown() -> None:
    with Session(history="1 MINUTE") as session:
        fill(session).serve_sql("127.0.0.1:0")
        session.start("SELECT v FROM a [RANGE 1 SECOND]", name="q", follow=False).await_termination(60)
        query = session.start("SELECT v FROM a [RANGE 1 SECOND]", name="later", follow=True)
        query.await_progress("2024-05-01 10:00:05", timeout=60)
        shown = next(one for one in SessionBoard(session, workspace_of(session)).queries() if one.name == "later")
        kept = shown.status()["history"]
        assert kept["seconds"] == 60 and kept["rows"] > 5 and kept["bytes"] > 50


class Over:
    """A query that is over as soon as it is looked at."""

    statement = "SELECT"
    status = Status("", (), (), 0, None, 0, 0, True)
    is_active = False

    def __init__(self, name: str) -> None:
        self.name = name

    def exception(self) -> None:
        return None

    def explain(self) -> None:
        return None

    def stop(self, timeout: float) -> None:
        return None


def test_of_many_queries_that_are_over_the_newest_are_shown() -> None:
    """Of those that are not shown any more no rows are kept either."""
    with Session() as session:
        board = SessionBoard(session, workspace_of(session))
        for number in range(130):
            name = f"q{number}"
            workspace_of(session).taps.answers[name] = AnswerTap()
            board.show(Over(name))  # type: ignore[arg-type]
            for shown in board.queries():
                shown.status()
        newest = [f"q{number}" for number in range(29, 130)]
        assert [shown.name for shown in board.queries()] == newest[1:]
        assert set(workspace_of(session).taps.answers) == set(newest[1:])
