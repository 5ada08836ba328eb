"""A run to which queries come begins again: whoever has not come is forgotten, and who has come is not too late."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from transom import Session
from transom.program.query_specs import SpecBuilder
from transom.program.run import RunOptions
from transom.runtimes.local.open_run import OpenRun
from transom.runtimes.local.query import LocalQuery
from transom.session import workspace_of

NOON = datetime(2024, 5, 1, 12)
JOIN = "ISTREAM(SELECT a.k, b.x FROM a [RANGE {0} SECONDS], b [RANGE {0} SECONDS] WHERE a.k = b.k)"
ALONE = "SELECT k, COUNT(*) AS n FROM a [RANGE 4 SECONDS] GROUP BY k"


@pytest.fixture
def session() -> Session:
    session = Session(batch_rows=3, sharing="on")
    for name in "ab":
        session.stream(name, [{"t": NOON + timedelta(seconds=i), "k": i % 3, "x": i} for i in range(12)], time="t")
    return session


def begun(session: Session, checkpoint: Path, texts: dict[str, str]) -> tuple[OpenRun, list[LocalQuery]]:
    """A process that goes on from a checkpoint with queries, by their names; all of it is kept at once."""
    workspace = workspace_of(session)
    run = workspace.runtime.open(RunOptions("end", str(checkpoint), every=1))
    assert isinstance(run, OpenRun)
    builder = SpecBuilder(workspace.screen, "changes", checkpoint=str(checkpoint))
    planned = [query for text in texts.values() for query in workspace.prepare(text)]
    queries = [run.add(spec) for spec in builder.specs(planned, list(texts))]
    run.begin()
    return run, queries


def test_who_has_not_come_is_forgotten_at_once(session: Session, tmp_path: Path) -> None:
    both = {"stays": JOIN.format(3), "goes": ALONE}
    run, queries = begun(session, tmp_path, both)
    for _ in range(3):
        assert run.step()
    reached = [query.job.engine.subplan.state.gates.frontier for query in queries]
    assert None not in reached
    run.abort()
    run, _ = begun(session, tmp_path, {"stays": both["stays"]})
    run.abort()  # before another step
    run, queries = begun(session, tmp_path, both)
    assert [query.job.engine.subplan.state.gates.frontier for query in queries] == [reached[0], None]
    run.abort()


def test_who_comes_to_a_join_that_is_over_reads_all_of_its_input(session: Session, tmp_path: Path) -> None:
    first = {"first": JOIN.format(3)}
    run, _ = begun(session, tmp_path, first)
    run.run()
    run, queries = begun(session, tmp_path, {**first, "second": JOIN.format(5)})
    assert [query.job.finished for query in queries] == [True, False]
    run.run()
    assert [status.rows_in for status in queries[1].status().inputs] == [12, 12]
