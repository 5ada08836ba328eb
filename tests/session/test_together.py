"""Queries of `add` that begin together, are kept in a checkpoint, and come and go while the run goes on."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from transom import CheckpointError, OptionError, QueryError, Session, StreamingQuery
from transom.core.time import from_datetime

NOON = datetime(2024, 5, 1, 12)
LONG = 120.0
JOIN = "ISTREAM(SELECT a.k, b.x FROM a [RANGE {0} SECONDS], b [RANGE {0} SECONDS] WHERE a.k = b.k)"
ALONE = "SELECT k, COUNT(*) AS n FROM a [RANGE 4 SECONDS] GROUP BY k"


def rows(first: int, last: int) -> list[dict[str, Any]]:
    return [{"t": NOON + timedelta(seconds=i), "k": i % 3, "x": i} for i in range(first, last)]


def session_of(last: int, **options: Any) -> Session:
    session = Session(batch_rows=3, **options)
    for name in "ab":
        session.stream(name, rows(0, last), time="t")
    return session


def sink(session: Session, folder: Path, name: str) -> str:
    session.execute(f"CREATE SINK {name} WITH (connector = 'files', path = '{folder}/{name}.csv', emit = 'changes')")
    return f"INSERT INTO {name} "


def lines(folder: Path, name: str) -> list[str]:
    return sorted((folder / f"{name}.csv").read_text().splitlines())


def ended(*queries: StreamingQuery) -> None:
    for query in queries:
        assert query.await_termination(timeout=LONG)


def test_runs_that_follow_each_other_have_the_answers_of_one(tmp_path: Path) -> None:
    texts = {"near": JOIN.format(2), "far": JOIN.format(9), "counted": ALONE}
    for last in (8, 9, 25):
        with session_of(last) as session:
            with session.together(checkpoint=str(tmp_path / "kept")):
                queries = [session.add(sink(session, tmp_path, n) + text, name=n) for n, text in texts.items()]
                texts = dict(reversed(texts.items()))
            ended(*queries)
            assert [query.name for query in queries] == list(reversed(texts))
    for name, text in texts.items():
        with session_of(25) as session:
            session.execute(sink(session, tmp_path, "whole") + text, end=False, checkpoint=str(tmp_path / name))
        assert lines(tmp_path, name) == lines(tmp_path, "whole") and len(lines(tmp_path, name)) > 20


def test_whoever_comes_or_goes_is_in_the_checkpoint_at_once(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept")
    with session_of(10) as session:
        with session.together(checkpoint=kept, follow=True):
            first = session.add(JOIN.format(3), name="first")
        assert first.await_progress(NOON + timedelta(seconds=8), timeout=LONG)
        second = session.add(JOIN.format(9), name="second")
        since = second.status.progress
        first.stop()
    with session_of(20) as session:
        with session.together(checkpoint=kept):
            again = session.add(JOIN.format(3), name="first")
            stayed = session.add(JOIN.format(9), name="second")
        ended(again, stayed)
        assert [one.rows_in for one in stayed.status.inputs] == [one.rows_in for one in again.status.inputs]
        times = stayed.result.to_arrow()["at"].cast("int64").to_pylist()
        assert min(times) >= since == from_datetime(NOON + timedelta(seconds=9))
        assert len(times) > len(again.result) > 3


def test_who_left_comes_back_with_the_epochs_of_its_sink(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept")
    with session_of(10) as session:
        with session.together(checkpoint=kept, follow=True):
            left = session.add(sink(session, tmp_path, "leaver") + JOIN.format(3), name="leaver")
            stays = session.add(JOIN.format(9), name="stays")
        assert left.await_progress(NOON + timedelta(seconds=8), timeout=LONG)
        left.stop()
        assert stays.is_active
    before = lines(tmp_path, "leaver")
    with session_of(20) as session:
        with session.together(checkpoint=kept):
            stays = session.add(JOIN.format(9), name="stays")
            back = session.add(sink(session, tmp_path, "leaver") + JOIN.format(3), name="leaver")
        ended(stays, back)
    after = lines(tmp_path, "leaver")
    assert len(after) > len(before) > 3 and set(before) < set(after)


def test_a_block_that_fails_leaves_the_checkpoint_as_it_was(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept")
    with session_of(10) as session:
        with session.together(checkpoint=kept):
            ended_query = session.add(JOIN.format(3), name="one")
        ended(ended_query)
        with pytest.raises(CheckpointError, match="by another query 'one'"), session.together(checkpoint=kept):
            session.add(ALONE, name="one")
        with pytest.raises(ZeroDivisionError), session.together(checkpoint=kept):
            lost = session.add(JOIN.format(3), name="one")
            raise ZeroDivisionError
        assert not lost.is_active and isinstance(lost.exception(), ZeroDivisionError)
        with pytest.raises(CheckpointError, match="queries that come and go"):
            session.start(JOIN.format(3), name="one", checkpoint=kept)
        with session.together(checkpoint=kept):
            pass
        assert not session.queries
        with session.together(checkpoint=kept):
            ended_query = session.add(JOIN.format(3), name="one")
        ended(ended_query)


def test_what_cannot_begin_together_is_reported(tmp_path: Path) -> None:
    with session_of(10, within=str(tmp_path)) as session:
        session.add(JOIN.format(3), follow=True)
        with pytest.raises(QueryError, match="active already"), session.together():
            raise AssertionError
        with pytest.raises(OptionError, match="follow their inputs"):
            session.add(JOIN.format(4), follow=False)
        session.add(JOIN.format(4))
    with session_of(10) as session:
        together = str(tmp_path / "together")
        session.execute(JOIN.format(3), checkpoint=together)
        with pytest.raises(CheckpointError, match="queries that begin together"), session.together(checkpoint=together):
            session.add(JOIN.format(3), name="query-1")
