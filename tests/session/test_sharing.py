"""Queries on one join in a session: run together, explained, and coming and going."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from transom import OptionError, QueryError, Session
from transom.runtimes.local.run import LocalRun
from transom.session import workspace_of

NOON = datetime(2024, 5, 1, 12)
LONG = 60.0
JOIN = "SELECT a.k, a.x, b.x AS y FROM a [RANGE {0} SECONDS], b [RANGE {1} SECONDS] WHERE a.k = b.k"
QUERIES = (
    JOIN.format(5, 3),
    "SELECT COUNT(*) AS n FROM b [ROWS 4], a [RANGE 9 SECONDS] WHERE b.k = a.k AND a.x > 2",
    f"ISTREAM({JOIN.format(2, 8)} AND b.x <> a.x)",
)
OTHERS = (
    "SELECT a.k FROM a [PARTITION BY k ROWS 2], b [NOW] WHERE a.k = b.k",
    "SELECT a.k FROM a [RANGE 4 SECONDS], b [NOW] WHERE a.k = b.k AND a.x = b.x",
    "SELECT x FROM a [RANGE 4 SECONDS]",
)


def rows(first: int, last: int, step: int) -> list[dict[str, Any]]:
    return [{"t": NOON + timedelta(seconds=i), "k": i % 3, "x": i * step % 7} for i in range(first, last)]


def session_of(sharing: str = "on", **options: Any) -> Session:
    session = Session(sharing=sharing, **options)
    session.stream("a", rows(0, 30, 2), time="t")
    session.stream("b", rows(0, 30, 3), time="t")
    return session


def in_order(answer: list[dict[str, Any]]) -> list[str]:
    return sorted(map(str, answer))


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert [thread.name for thread in threading.enumerate() if thread not in before] == []


@pytest.mark.parametrize("batch_rows", [1, 7, 1000])
def test_queries_that_share_have_the_answers_of_queries_that_do_not(batch_rows: int) -> None:
    text = ";".join((*QUERIES, *OTHERS))
    together = session_of(batch_rows=batch_rows).execute(text)
    apart = session_of(sharing="off").execute(text)
    for shared, alone in zip(together, apart, strict=True):
        assert in_order(shared.to_pylist()) == in_order(alone.to_pylist())
        assert len(shared) and shared.status is not None and alone.status is not None
        assert set(map(repr, shared.status.inputs)) == set(map(repr, alone.status.inputs))
        assert shared.status.rows_out == alone.status.rows_out


def test_a_run_puts_queries_on_one_join_together_and_leaves_the_others_alone() -> None:
    session = session_of()
    run = workspace_of(session).assemble(workspace_of(session).prepare(";".join((OTHERS[0], *QUERIES, *OTHERS[1:]))))
    assert isinstance(run, LocalRun)
    assert [job.join is not None for job in run.jobs] == [False, True, False, False]
    assert [query.name for query in run.queries] == [f"query-{i}" for i in range(1, 7)]
    run.abort()
    alone = workspace_of(session).assemble(workspace_of(session).prepare(f"SET sharing = 'off'; {';'.join(QUERIES)}"))
    assert isinstance(alone, LocalRun) and all(job.join is None for job in alone.jobs)
    alone.abort()


def test_explain_tells_who_shares_what() -> None:
    session = session_of()
    plans = session.explain(";".join((*QUERIES[:2], OTHERS[0], OTHERS[2]))).split("\n\n")
    assert "shared with query 2 (a [RANGE 9 SECOND], b [ROWS 4])" in plans[0] and "once for 2 queries" in plans[0]
    assert "narrow_rows: a [RANGE 9 SECOND], b [ROWS 4]" in plans[1]
    assert "join not shared: a window counts rows by partition" in plans[2]
    assert "shared" not in plans[3]
    assert "not shared: SET sharing is 'off'" in session.explain(f"SET sharing = 'off'; {';'.join(QUERIES)}")
    assert "narrow" not in session.explain(QUERIES[0])


def test_an_aggregate_that_needs_no_pairs_is_shared_if_it_is_asked_for() -> None:
    session = Session(sharing="auto")
    for name in ("a", "b"):  # a row matches so many that nobody wants to see the pairs
        alike = [{"t": datetime(2024, 5, 1) + timedelta(milliseconds=i), "k": 1, "x": i} for i in range(300)]
        session.stream(name, alike, time="t")
    reported = session.explain(";".join(QUERIES)).split("\n\n")
    assert "shared with query 3" in reported[0]
    assert (
        "join not shared: join-aggregate adaptive may need no pairs; SET sharing = 'on' makes them for all"
        in reported[1]
    )
    assert "shared with query 1, query 3" in session_of("on").explain(";".join(QUERIES)).replace(
        " (a [RANGE 5 SECOND], b [RANGE 3 SECOND])", ""
    ).replace(" (a [RANGE 2 SECOND], b [RANGE 8 SECOND])", "")


def written(folder: Path, number: int) -> str:
    return (
        f"CREATE SINK o{number} WITH (connector = 'files', path = '{folder}/o{number}.csv', emit = 'lifetimes');"
        f"INSERT INTO o{number} {QUERIES[number]};"
    )


def test_a_checkpoint_is_gone_on_from_with_other_queries(tmp_path: Path) -> None:
    """The first leaves and the third comes; of the second nothing is lost and nothing told twice."""
    text = [written(tmp_path, number).replace("ISTREAM", "") for number in range(3)]
    expected = session_of(sharing="off").run(QUERIES[1], emit="lifetimes").to_pylist()

    def run_of(*numbers: int) -> LocalRun:
        session = session_of(batch_rows=4)
        planned = workspace_of(session).prepare("".join(text[number] for number in numbers))
        run = workspace_of(session).assemble(planned, checkpoint=str(tmp_path / "kept"), end=True, every=1)
        assert isinstance(run, LocalRun)
        return run

    run = run_of(0, 1)
    for _ in range(7):
        assert run.step()
    frontier = run.status()[0].progress
    run.abort()
    run = run_of(2, 1)
    assert [status.progress for status in run.status()] == [frontier, frontier]
    before = run.status()[0].inputs[0]
    assert before.used == 0 and before.rows_in == before.waiting
    run.run()
    reported = (tmp_path / "o1.csv").read_text().splitlines()[1:]
    assert len(reported) == len(expected) and len((tmp_path / "o2.csv").read_text().splitlines()) > 5


def feed(session: Session, first: int, last: int) -> None:
    session.append("a", rows(first, last, 2))
    session.append("b", rows(first, last, 3))


def test_queries_come_and_go_while_others_run() -> None:
    session = Session(batch_rows=5, sharing="on")
    session.stream("a", rows(0, 10, 2), time="t")
    session.stream("b", rows(0, 10, 3), time="t")
    seen: list[dict[str, Any]] = []
    with session:
        first = session.add(QUERIES[0], follow=True)
        assert first.await_progress(NOON + timedelta(seconds=8), timeout=LONG) and first.is_active
        second = session.add(QUERIES[2], name="second", on_rows=lambda t: seen.extend(t.to_pylist()), follow=True)
        alone = session.add(OTHERS[2], follow=True)
        assert second.status.inputs[0].used == 0
        feed(session, 10, 20)
        assert second.await_progress(NOON + timedelta(seconds=18), timeout=LONG)
        gone = second.stop()
        assert gone == second.status and not second.is_active and second.exception() is None
        reported = len(seen)
        feed(session, 20, 30)
        assert first.await_progress(NOON + timedelta(seconds=28), timeout=LONG) and len(seen) == reported
        assert alone.await_progress(NOON + timedelta(seconds=28), timeout=LONG)
        assert first.status.operators[-1].rows_out == first.status.operators[-2].rows_out
    expected = session_of(sharing="off").run(QUERIES[0], emit="changes").to_arrow().to_pylist()
    until = NOON + timedelta(seconds=29)
    assert in_order(first.result.to_pylist()) == in_order([row for row in expected if row["at"] < until])
    since = NOON + timedelta(seconds=9)
    of_second = Session(sharing="off")
    for name, step in (("a", 2), ("b", 3)):
        of_second.stream(name, [row for row in rows(0, 20, step) if row["t"] >= since], time="t")
    expected = of_second.run(QUERIES[2]).to_arrow().to_pylist()
    until = NOON + timedelta(seconds=19)
    assert in_order(seen) == in_order([row for row in expected if row["at"] < until]) and seen


def test_a_bounded_run_ends_and_another_begins_with_the_next_query() -> None:
    with session_of() as session:
        first = session.add(QUERIES[0])
        assert first.await_termination(timeout=LONG) and not first.is_active
        second = session.add(QUERIES[0], emit="latest")
        assert second.await_termination(timeout=LONG) and second.status.finished
        assert len(first.result) and len(second.result) == 5, "as of the last row"


def test_what_cannot_be_added_or_removed_is_reported() -> None:
    with session_of() as session:
        first = session.add(QUERIES[0], name="q", follow=True)
        with pytest.raises(QueryError, match="'q' is active already"):
            session.add(QUERIES[1], name="q", follow=True)
        with pytest.raises(OptionError, match="follow their inputs"):
            session.add(QUERIES[1], follow=False)
        with pytest.raises(OptionError, match="cannot be called"):
            session.add(QUERIES[1], name="../q", follow=True)
        again = session.add(QUERIES[1], name="q", follow=True, replace=True)
        assert not first.is_active and session.queries == [again]


def test_what_fails_in_one_query_is_reported_to_all() -> None:
    with session_of() as session:
        first = session.add(QUERIES[0], follow=True)
        assert first.await_progress(NOON + timedelta(seconds=28), timeout=LONG)

        def fail(table: Any) -> None:
            raise RuntimeError("no more")

        second = session.add(OTHERS[2], on_rows=fail, follow=True)
        with pytest.raises(RuntimeError, match="no more"):
            second.await_termination(timeout=LONG)
        assert first.exception() is second.exception() and not first.is_active
