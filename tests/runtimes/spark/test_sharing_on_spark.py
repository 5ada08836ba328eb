"""Queries on one join are one streaming query on Spark, with an answer each."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from transom import CheckpointError, Session
from transom.core.time import from_datetime
from transom.program.run import Run
from transom.program.status import OperatorStatus
from transom.runtimes.spark.group import SparkGroup
from transom.runtimes.spark.run import SparkRun
from transom.session import workspace_of

NOON = datetime(2024, 5, 1, 12)
QUERIES = (
    "SELECT a.k, a.x, b.x AS y FROM a [RANGE 5 SECONDS], b [RANGE 3 SECONDS] WHERE a.k = b.k",
    "SELECT a.k, COUNT(*) AS n FROM b [NOW], a [RANGE 9 SECONDS] WHERE b.k = a.k AND a.x > 2 GROUP BY a.k",
    "ISTREAM(SELECT b.k, b.x FROM a [RANGE 2 SECONDS], b [RANGE 8 SECONDS] WHERE a.k = b.k)",
)


def rows(step: int) -> list[dict[str, Any]]:
    return [{"t": NOON + timedelta(seconds=i), "k": i % 3, "x": i * step % 7} for i in range(30)]


def session_of(spark: SparkSession | None, sharing: str = "on", **options: Any) -> Session:
    session = Session(spark=spark, sharing=sharing, **options)
    session.stream("a", rows(2), time="t")
    session.stream("b", rows(3), time="t")
    return session


def shape(operator: OperatorStatus) -> tuple[Any, ...]:
    """What is notified of an operator; pairs are those of the one join, wherever it runs."""
    pairs = operator.rows_out if operator.operator in ("SharedJoin", "Narrow") else None
    return operator.number, operator.operator, operator.tactic, pairs


def in_order(answer: list[Any]) -> list[str]:
    return sorted(map(str, answer))


@pytest.mark.nightly
def test_they_have_the_answers_of_queries_that_run_alone(spark: SparkSession) -> None:
    session = session_of(spark, batch_rows=40)
    run = workspace_of(session).assemble(workspace_of(session).prepare(";".join(QUERIES)))
    assert isinstance(run, SparkRun)
    (group,) = run.units
    assert isinstance(group, SparkGroup) and [query.name for query in run.queries] == ["query-1", "query-2", "query-3"]
    run.run()
    alone = session_of(None, sharing="off").execute(";".join(QUERIES))
    locally = session_of(None)
    together = workspace_of(locally).assemble(workspace_of(locally).prepare(";".join(QUERIES)))
    together.run()
    for here, there in zip(together.status(), run.status(), strict=True):
        assert [shape(operator) for operator in there.operators] == [shape(operator) for operator in here.operators]
        assert there.rows_out == here.rows_out
    for query, expected in zip(run.queries, alone, strict=True):
        assert in_order(query.table().to_pylist()) == in_order(expected.to_pylist())
        status = query.status()
        assert expected.status is not None and status.finished and status.rows_out == expected.status.rows_out
        assert {each.name: each.used for each in status.inputs} == {"a": 30, "b": 30}
        assert "SharedJoin" in [operator.operator for operator in status.operators]
    assert len({status.operators[6].state_rows for status in run.status()}) == 1


def test_each_goes_on_from_the_checkpoint_with_its_own_files(spark: SparkSession, tmp_path: Path) -> None:
    text = ""
    for number, query in enumerate(QUERIES[:2]):
        path = tmp_path / f"o{number}.csv"
        text += f"CREATE SINK o{number} WITH (connector = 'files', path = '{path}', emit = 'changes');"
        text += f"INSERT INTO o{number} {query};"
    kept = str(tmp_path / "kept")
    session = session_of(spark, batch_rows=20)
    run = workspace_of(session).assemble(workspace_of(session).prepare(text), checkpoint=kept, follow=True)

    def stop_in_the_middle(run: Run) -> None:
        if run.status()[0].progress > from_datetime(NOON + timedelta(seconds=9)):
            run.stop()

    run.run(stop_in_the_middle)
    assert run.status()[0].rows_out > 0
    session = session_of(spark, batch_rows=20)
    workspace_of(session).assemble(workspace_of(session).prepare(text), checkpoint=kept, end=True).run()
    alone = session_of(None, sharing="off")
    for number, query in enumerate(QUERIES[:2]):
        reported = (tmp_path / f"o{number}.csv").read_text().splitlines()[1:]
        assert len(reported) == len(alone.run(query))
    other = session_of(spark)
    with pytest.raises(CheckpointError, match="other queries"):
        workspace_of(other).assemble(workspace_of(other).prepare(text + QUERIES[2]), checkpoint=kept)
