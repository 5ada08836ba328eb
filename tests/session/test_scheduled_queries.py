"""SET schedule and SET overload in a session: the same answers, what is reported, and what is rejected."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from transom import CheckpointError, OverloadError, Result, Session
from transom.cli.summary import summary
from transom.program.clock import HeldClock
from transom.program.overload import OverloadStatus
from transom.runtimes.local.run import LocalRun
from transom.session import workspace_of

NOON = datetime(2024, 5, 1, 12)
JOIN = "ISTREAM(SELECT a.n AS i, b.n AS j FROM a [RANGE {0} SECONDS], b [RANGE {0} SECONDS] WHERE a.k < b.k - 60)"
WINDOWS = (2, 5, 6, 20)
QUERIES = ";".join(JOIN.format(window) for window in WINDOWS)
EQUAL = "SELECT a.k FROM a [RANGE {0} SECONDS], b [RANGE {0} SECONDS] WHERE a.k = b.k"


class HurriedClock(HeldClock):
    """Every look takes so long that a step has no time for more."""

    def now(self) -> int:
        self.sleep(100_000)
        return super().now()


def rows(seed: int, count: int = 300) -> list[dict[str, Any]]:
    drawn, t = random.Random(seed), NOON
    made = []
    for n in range(count):
        t += timedelta(milliseconds=drawn.choice((0, 50, 200)))
        made.append({"t": t, "k": drawn.randrange(100), "n": n})
    return made


def session_of(**options: Any) -> Session:
    session = Session(**options)
    session.stream("a", rows(1), time="t")
    session.stream("b", rows(2), time="t")
    return session


def run_of(text: str = QUERIES, checkpoint: Path | None = None, **options: Any) -> LocalRun:
    """By a clock that leaves no time."""
    session = session_of(**options)
    folder = None if checkpoint is None else str(checkpoint)
    run = workspace_of(session).assemble(
        workspace_of(session).prepare(text), checkpoint=folder, end=True, every=1, clock=HurriedClock()
    )
    assert isinstance(run, LocalRun)
    return run


def pairs(answer: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    return {tuple(row.values()) for row in answer}


def reported_of(result: Result) -> OverloadStatus | None:
    assert result.status is not None
    return result.status.overload


@pytest.fixture(scope="module")
def at_once() -> list[set[tuple[Any, ...]]]:
    return [pairs(result.to_pylist()) for result in session_of().execute(QUERIES)]


@pytest.mark.parametrize("policy", ["fifo", "mqt", "mandf", "admandf", "slack"])
def test_whatever_is_done_first_the_answers_are_the_same(policy: str, at_once: list[set[tuple[Any, ...]]]) -> None:
    run = run_of(schedule=policy, buffer=20)
    run.run()
    assert [pairs(query.table().to_pylist()) for query in run.queries] == at_once
    for status in run.status():
        reported = status.overload
        assert reported is not None and status.finished
        assert (reported.policy, reported.due, reported.processed, reported.shed, reported.pending) == (
            policy,
            600,
            600,
            0,
            0,
        )
        assert reported.partial is None and reported.shed_rows.num_rows == 0 and reported.loads.num_rows > 1


def test_a_null_is_no_key_where_joins_on_a_key_are_put_in_order() -> None:
    texts = [
        f"ISTREAM(SELECT a.n AS i, b.n AS j, a.k {EQUAL.format(window).removeprefix('SELECT a.k ')})"
        for window in (2, 9)
    ]
    answers = []
    for policy in ("off", "mqt"):
        session = Session(schedule=policy)
        for name, seed in (("a", 1), ("b", 2)):
            session.stream(name, [{**row, "k": (0, 1, None)[row["k"] % 3]} for row in rows(seed)], time="t")
        answers.append([pairs(result.to_pylist()) for result in session.execute(";".join(texts))])
    assert answers[0] == answers[1] and min(map(len, answers[0])) > 100
    assert {row[-1] for row in answers[0][0]} == {0, 1}


def test_what_is_shed_is_reported_and_the_rest_is_right(at_once: list[set[tuple[Any, ...]]]) -> None:
    run = run_of(schedule="mqt", overload="shed", buffer=5)
    run.run()
    assert any(len(query.table()) < len(whole) for query, whole in zip(run.queries, at_once, strict=True))
    for query, whole, window in zip(run.queries, at_once, WINDOWS, strict=True):
        pairs_now, reported = pairs(query.table().to_pylist()), query.status().overload
        assert reported is not None and pairs_now <= whole
        assert reported.due == 600 == reported.processed + reported.shed and reported.pending == 0
        shed = reported.shed_rows.to_pylist()
        assert sum(lost["rows"] for lost in shed) == reported.shed > 0
        assert {pair[0] for pair in whole - pairs_now} <= {lost["first"] for lost in shed}
        assert reported.partial is not None
        assert reported.partial[1] - reported.partial[0] >= window * 1_000_000
        assert f"{reported.shed:,} shed + 0 pending; partial from 2024-05-01 12:00:" in summary([query.status()])


def test_an_overload_that_is_an_error_says_of_what() -> None:
    with pytest.raises(OverloadError, match="query 'query-4' has not come to a row of 2024-05-01 12:00:") as raised:
        run_of(schedule="fifo", overload="fail", buffer=5).run()
    assert raised.value.remedy is not None and "SET overload = 'block'" in raised.value.remedy


def test_explain_says_what_is_scheduled_and_what_has_nothing_to_schedule() -> None:
    session = session_of(schedule="admandf", overload="shed")
    plans = session.explain(QUERIES).split("\n\n")
    assert all(
        "scheduled by admandf, a step of 50 ms; when more than 5,000 rows of a side wait: shed" in plan
        for plan in plans
    )
    by_key = ";".join(EQUAL.format(window) for window in WINDOWS)
    assert session.explain(by_key).count("side wait: shed; partners of a key in the order of their age") == 4
    assert all(reported_of(result) is not None for result in session.execute(by_key))
    session.execute("SET join = 'nested_loop'")
    assert "scheduled by admandf" in session.explain(by_key) and "of a key" not in session.explain(by_key)
    session.execute("SET join = 'auto'; SET schedule = 'auto'")
    assert session.explain(by_key).count("not scheduled: rows find their partners by a key, at once") == 4
    assert all(reported_of(result) is None for result in session.execute(by_key))
    alone = session.explain(f"{JOIN.format(2)}; SELECT a.k FROM a")
    assert "join not scheduled: a join that is not shared is made at once" in alone
    assert "scheduled" not in session_of().explain(QUERIES)


@pytest.mark.parametrize(("overload", "policy"), [("block", "mqt"), ("shed", "slack"), ("fail", "slack")])
def test_auto_takes_the_policy_that_serves_what_happens_under_load(overload: str, policy: str) -> None:
    session = session_of(schedule="auto", overload=overload)
    assert f"scheduled by {policy}, " in session.explain(QUERIES)
    for result in session.execute(QUERIES):
        assert result.status is not None and result.status.overload is not None
        assert result.status.overload.policy == policy


def test_auto_leaves_to_others_what_needs_no_order() -> None:
    """An aggregate that needs no pairs, and parts of any kind, are made as without it."""
    without = "SELECT COUNT(*) AS n FROM a [RANGE {0} SECONDS], b [RANGE {0} SECONDS] WHERE a.k = b.k"
    text = ";".join(without.format(window) for window in (2, 9))
    assert (
        session_of(schedule="auto").explain(text).split("\n\n")[0].splitlines()[:4]
        == (session_of().explain(text).split("\n\n")[0].splitlines()[:4])
    )


def test_queries_that_count_rows_are_not_scheduled_with_others() -> None:
    counting = QUERIES.replace("b [RANGE 2 SECONDS]", "b [ROWS 3]").replace("b [RANGE 5 SECONDS]", "b [ROWS 7]")
    plans = session_of(schedule="mqt").explain(counting).split("\n\n")
    assert ["a window counts rows" in plan for plan in plans] == [True, True, False, False]
    results = session_of(schedule="mqt").execute(counting)
    assert [reported_of(result) is None for result in results] == [True, True, False, False]
    for result, apart in zip(results, session_of(sharing="off").execute(counting), strict=True):
        assert pairs(result.to_pylist()) == pairs(apart.to_pylist())


def test_a_run_goes_on_from_a_checkpoint_with_work_that_waits(
    tmp_path: Path, at_once: list[set[tuple[Any, ...]]]
) -> None:
    text = "".join(
        f"CREATE SINK o{i} WITH (connector = 'files', path = '{tmp_path}/o{i}.csv'); INSERT INTO o{i} {query};"
        for i, query in enumerate(QUERIES.split(";"))
    )
    waited, finished = 0, False
    while not finished:
        run = run_of(text, tmp_path / "kept", schedule="mqt", buffer=30)
        (job,) = run.jobs
        for _ in range(15):
            run.step()
        waited += not job.engine.at_rest
        finished = run.finished
        if finished:
            run.close()
        else:
            run.abort()
    for i, whole in enumerate(at_once):
        lines = (tmp_path / f"o{i}.csv").read_text().splitlines()[1:]
        assert len(lines) == len(whole)
    assert waited > 1


def test_a_checkpoint_is_of_one_way_to_work(tmp_path: Path) -> None:
    run = run_of(checkpoint=tmp_path, schedule="mqt")
    run.step()
    run.abort()
    with pytest.raises(CheckpointError, match="with SET schedule mqt for query 'query-1', and it is off now"):
        run_of(checkpoint=tmp_path)


def test_a_standing_query_has_its_own_progress_and_comes_and_goes() -> None:
    session = session_of(schedule="mqt", buffer=50)
    first = session.add(JOIN.format(9), follow=True)
    assert first.await_progress("2024-05-01 12:00:20", timeout=60)
    second = session.add(JOIN.format(2), name="narrow", follow=True)
    for name in "ab":
        session.append(name, [{"t": NOON + timedelta(hours=1), "k": 90 * (name == "b"), "n": 999}])
        session.append(name, [{"t": NOON + timedelta(hours=2), "k": 0, "n": 1000}])
    for query in (first, second):
        assert query.await_progress(NOON + timedelta(hours=1, seconds=1), timeout=60)
        assert [row["i"] for row in query.result.to_pylist()][-1] == 999
        reported = query.status.overload
        assert reported is not None and reported.due == reported.processed + reported.shed + reported.pending
    assert second.status.overload is not None and second.status.overload.due < 600
    second.stop()
    session.close()
