"""A query with threads: whichever way it ends, none is left; and nobody looks at its memory while they work on it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.run_in_partitions import Cluster
from tests.run_locally import Push
from transom.core.errors import EvaluationError
from transom.kernels.kernel import Step
from transom.kernels.multiway import pace, parallel_mjoin, probing
from transom.kernels.multiway.parallel_mjoin import ParallelMJoinKernel
from transom.kernels.worker_pool import WorkerPool
from transom.pipeline.driver import Pipeline
from transom.pipeline.layout import Layout
from transom.program.run import Run
from transom.runtimes.local.query import LocalQuery
from transom.runtimes.local.run import LocalRun
from transom.session import Session, workspace_of

NOON = datetime(2024, 5, 1, 12)
QUERY = "SELECT a.k FROM a [10 SECONDS], b [ROWS 5], c [10 SECONDS] WHERE a.k = b.k AND b.k = c.k"


def its_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "transom-worker"]


@pytest.fixture(autouse=True)
def _threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever can go over threads does."""
    monkeypatch.setattr(parallel_mjoin, "FEW", 0)
    monkeypatch.setattr(probing, "measured_call", lambda: 0.0)
    monkeypatch.setattr(pace, "sooner", lambda *of: True)
    assert not its_threads()
    yield
    assert not its_threads()


def session(where: str = "") -> tuple[Session, str]:
    found = Session()
    for name in ("a", "b", "c"):
        rows = [{"ts": NOON + timedelta(seconds=i), "k": i // 3} for i in range(60)]
        found.stream(name, rows, time="ts")
    found.execute("SET multiway = 'parallel_mjoin'; SET batch_rows = 4;")
    return found, QUERY + where


def assembled(where: str = "") -> LocalRun:
    given, text = session(where)
    run: Run = workspace_of(given).assemble(workspace_of(given).prepare(text))
    assert isinstance(run, LocalRun)
    return run


def only(run: LocalRun) -> LocalQuery:
    (query,) = run.queries
    assert isinstance(query, LocalQuery)
    return query


def begun(where: str = "") -> LocalQuery:
    """A query that has threads."""
    query = only(assembled(where))
    while not its_threads():
        assert query.step()
    return query


def test_none_is_left_at_the_end() -> None:
    query = begun()
    query.run()
    assert query.pipeline.state.rows_out > 100 and query.finished
    assert query.status().operators[0].rows_out


def test_none_is_left_by_a_query_that_is_closed_or_abandoned() -> None:
    begun().close()
    assert not its_threads()
    query = begun()
    query.abort()
    assert not its_threads()
    query.run()  # and it can go on


def test_none_is_left_by_a_query_that_fails() -> None:
    query = begun(" AND CAST(20 * a.k AS TINYINT) >= b.k")
    with pytest.raises(EvaluationError):
        query.run()


def test_none_is_left_by_a_task_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    query = begun()
    monkeypatch.setattr(probing, "probe_wave", lambda *of: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        query.run()


def test_none_is_left_after_an_interrupt() -> None:
    run = assembled()

    def interrupt(_: LocalRun) -> None:
        if its_threads():
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run.run(interrupt)


def test_none_is_left_by_explain_analyze() -> None:
    given, text = session()
    *_, reported = given.execute(f"EXPLAIN ANALYZE {text}")
    assert reported.text is not None and "parallel_mjoin" in reported.text


def test_none_is_left_by_partitions() -> None:
    given, text = session()
    (planned,) = workspace_of(given).prepare(text)
    assert planned.root is not None
    cluster = Cluster(Layout(planned.root, planned.catalogue, "changes", 2))
    rows = [(NOON + timedelta(seconds=i), i // 3) for i in range(20)]
    cluster.batch([[Push(name, rows) for name in ("a", "b", "c")]])
    assert its_threads()
    cluster.restart()
    assert not its_threads()
    cluster.batch([[Push(name, [], end=True) for name in ("a", "b", "c")]])
    cluster.close()


def test_what_a_step_left_to_others_is_done_before_anybody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshot, status and the end of a query wait for it, and hear of its failure."""
    requested: list[int] = []
    done: list[int] = []
    failing: list[bool] = []
    step = ParallelMJoinKernel.step

    def slow() -> None:
        time.sleep(0.005)
        done.append(1)
        assert not failing, "it failed"

    def stepped(self: ParallelMJoinKernel, state: Any, inputs: Any, at: Step) -> Any:
        assert isinstance(at.worker_pool, WorkerPool)
        at.worker_pool.drain()
        requested.append(1)
        at.worker_pool.later(slow)
        return step(self, state, inputs, at)

    monkeypatch.setattr(ParallelMJoinKernel, "step", stepped)
    query = begun()
    pipeline = query.pipeline
    assert isinstance(pipeline, Pipeline)
    for look in (pipeline.snapshot, query.status, query.job.prepare_checkpoint):
        before = len(requested)
        while len(requested) == before:
            assert query.step()
        assert look() is not None
        assert len(done) == len(requested)
    failing.append(True)
    with pytest.raises(AssertionError, match="it failed"):
        query.run()


def test_queries_without_such_a_join_have_no_worker_pool() -> None:
    given, text = session()
    given.execute("SET multiway = 'tree';")
    (planned,) = workspace_of(given).prepare(text)
    assert planned.root is not None
    pipeline = Pipeline(planned.root, planned.catalogue)
    assert pipeline.part.worker_pool is None
    pipeline.drain()
    pipeline.close()


def test_a_query_goes_on_after_its_memory_was_read_back() -> None:
    query = begun()
    saved = query.snapshot()
    assert its_threads()
    query.restore(saved)
    assert not its_threads()
    query.run()
    whole = only(assembled())
    whole.run()
    assert query.pipeline.state.rows_out == whole.pipeline.state.rows_out > 1000
