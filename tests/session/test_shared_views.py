"""Queries of one run on one view: computed once, explained, resumed in the middle, each with its own answer."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from transom import CheckpointError, Session
from transom.core.time import from_datetime
from transom.program.run import Run
from transom.runtimes.local.run import LocalRun
from transom.runtimes.spark.run import SparkRun
from transom.session import workspace_of

NOON = datetime(2024, 5, 1, 12)
VIEW = """
CREATE VIEW busy AS SELECT r.room, n.floor, COUNT(*) AS n, MAX(r.x) AS highest FROM r [RANGE 9 SECONDS]
JOIN rooms AS n ON r.room = n.room GROUP BY r.room, n.floor;
"""
QUERIES = (
    "SELECT * FROM busy WHERE room = 'hall'",
    "SELECT floor, SUM(n) AS n FROM busy GROUP BY floor",
    "SELECT a.room, b.room AS other FROM busy AS a JOIN busy AS b ON a.n = b.n AND a.room < b.room",
    "ISTREAM(SELECT room, highest FROM busy ORDER BY highest DESC LIMIT 1)",
)
BOTH = "SELECT room, n FROM busy UNION ALL SELECT room, n FROM (ISTREAM(SELECT room, n FROM busy)) [ROWS 3]"
ALONE = "SELECT room, COUNT(*) AS n FROM r [RANGE 8 SECONDS] GROUP BY room"
TEXT = VIEW + ";".join((*QUERIES, ALONE))


def session_of(sharing: str = "auto", spark: SparkSession | None = None, **options: Any) -> Session:
    session = Session(sharing=sharing, spark=spark, **options)
    rooms = ("hall", "attic", None, "cellar")
    session.stream(
        "r", [{"t": NOON + timedelta(seconds=i), "room": rooms[i * i % 4], "x": i % 7} for i in range(40)], time="t"
    )
    session.table(
        "rooms", [{"room": "hall", "floor": 0}, {"room": "attic", "floor": 2}, {"room": "cellar", "floor": 0}]
    )
    return session


def in_order(answer: list[dict[str, Any]]) -> list[str]:
    return sorted(map(str, answer))


@pytest.mark.parametrize("batch_rows", [1, 1000])
def test_rows_of_a_view_end_beside_those_that_a_query_makes_of_it(batch_rows: int) -> None:
    text = f"{VIEW} {BOTH}; {QUERIES[0]}"
    together, apart = (session_of(sharing, batch_rows=batch_rows).execute(text)[1] for sharing in ("auto", "off"))
    assert len(apart) and in_order(together.to_pylist()) == in_order(apart.to_pylist())


@pytest.mark.parametrize("batch_rows", [1, 1000])
def test_they_have_the_answers_of_queries_that_run_alone(batch_rows: int) -> None:
    apart = session_of("off").execute(TEXT)[1:]
    session = session_of(batch_rows=batch_rows)
    run = workspace_of(session).assemble(workspace_of(session).prepare(TEXT))
    assert isinstance(run, LocalRun)
    assert [[query.name for query in job.queries] for job in run.jobs] == [
        [f"query-{i}" for i in range(1, 5)],
        ["query-5"],
    ]
    run.run()
    for query, alone in zip(run.queries, apart, strict=True):
        assert len(alone) and in_order(query.table().to_pylist()) == in_order(alone.to_pylist())
        status = query.status()
        assert alone.status is not None and status.rows_out == alone.status.rows_out
        assert {each.name: each.used for each in status.inputs} == {
            each.name: each.used for each in alone.status.inputs
        }
    (job, _) = run.jobs
    scans = [each for each in job.engine.subplan.operators if each.kind == "StreamScan"]
    assert len(scans) == 1 and "SharedPlan" in [each.operator for each in run.status()[0].operators]


@pytest.mark.parametrize("batch_rows", [1, 7, 1000])
def test_what_over_says_as_rows_come_is_shared(batch_rows: int) -> None:
    said = """CREATE VIEW said AS SELECT room, x, SUM(x) OVER (PARTITION BY room ORDER BY t) AS total,
    COUNT(*) OVER (ORDER BY t RANGE INTERVAL '3' SECOND PRECEDING) AS lately FROM r;"""
    queries = ("SELECT room, MAX(total) AS most FROM said GROUP BY room", "SELECT x, lately FROM said WHERE x > 2")
    text = said + ";".join(queries)
    together, apart = (session_of(each, batch_rows=batch_rows).execute(text)[1:] for each in ("auto", "off"))
    for one, alone in zip(together, apart, strict=True):
        assert len(alone) and in_order(one.to_pylist()) == in_order(alone.to_pylist())
    for plan in session_of().explain(text).split("\n\n"):
        assert "shared with query" in plan and "forever" in plan and "top" not in plan


def test_a_row_without_a_partner_is_told_as_soon_as_it_is_known() -> None:
    """Not when it is over, as lifetimes are."""
    session = Session(batch_rows=1)
    for name, first in (("a", 0), ("b", 100)):
        session.stream(name, [{"t": NOON + timedelta(seconds=i), "k": first + i} for i in range(9)], time="t")
    view = "CREATE VIEW v AS SELECT a.k, b.t FROM a [RANGE 1 HOUR] LEFT JOIN b [RANGE 1 HOUR] ON a.k = b.k;"
    planned = workspace_of(session).prepare(f"{view} SELECT k FROM v; SELECT COUNT(*) AS n FROM v")
    run = workspace_of(session).assemble(planned)
    assert isinstance(run, LocalRun) and [len(job.queries) for job in run.jobs] == [2]
    for _ in range(12):
        assert run.step()
    rows, counts = (query.table().to_pylist() for query in run.queries)
    assert [row["k"] for row in rows] == [0, 1, 2, 3, 4] and counts[-1]["n"] == 5
    run.abort()


def test_explain_tells_who_shares_the_view() -> None:
    plans = session_of().explain(TEXT).split("\n\n")
    ends = [plan.splitlines()[-1] for plan in plans]
    assert "shared with query 2, query 3, query 4" in ends[0] and "shared with query 1, query 2, query 3" in ends[3]
    assert "shared with" not in plans[4]
    assert "shared with" not in session_of("off").explain(TEXT)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k FROM s [RANGE 4 SECONDS] WHERE k > 1; SELECT k FROM s [RANGE 4 SECONDS] WHERE k > 1",
        "CREATE VIEW v AS SELECT k, COUNT(*) AS n FROM s GROUP BY k; SELECT * FROM v; SELECT n FROM v, s",
        "SELECT MAX(k) FROM s; SET tick = '1 SECOND'; SELECT MAX(k) FROM s",
        "SET lifetimes = 'negative'; SELECT MAX(k) FROM s; SELECT MAX(k) FROM s",
    ],
)
def test_what_is_not_shared(text: str) -> None:
    session = Session()
    session.stream("s", [{"t": NOON, "k": 1}], time="t")
    assert "shared with" not in session.explain(text)


@pytest.mark.parametrize(
    "joined",
    [
        "a [RANGE 5 SECONDS], b [RANGE 4 SECONDS], c [RANGE 3 SECONDS] WHERE a.k = b.k AND b.k = c.k",
        "a [PARTITION BY k ROWS 3], b [RANGE 5 SECONDS] WHERE a.k = b.k",
        "a [PARTITION BY k SESSION 2 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k",
        "a [RANGE 4 SECONDS SLIDE 2 SECONDS], b [RANGE 5 SECONDS SLIDE 1 SECOND] WHERE a.k = b.k",
    ],
)
def test_joins_whose_windows_cannot_differ_are_shared_where_they_are_the_same(joined: str) -> None:
    """Of any number of inputs, and with windows by partition; an aggregate that needs no pairs only when asked: else it
    leaves the join to the others."""
    text = f"SELECT a.k, b.x FROM {joined} AND a.x > 1; SELECT a.k, COUNT(*) AS n FROM {joined} GROUP BY a.k"
    text += f"; SELECT a.x FROM {joined}"
    answers = []
    for sharing in ("on", "off", "auto"):
        session = Session(sharing=sharing)
        for late, name in enumerate("abc"):
            times = (NOON + timedelta(seconds=late + i + i // 4) for i in range(16))
            session.stream(name, [{"t": t, "k": i % 2, "x": i} for i, t in enumerate(times)], time="t")
        plans = session.explain(text).split("\n\n")
        shared = [plan.count("instead of 3 times") + 2 * plan.count("instead of 2 times") for plan in plans]
        # Of three inputs rows have so few matches here that pairs are made in any case.
        auto = [1, 1, 1] if "c [" in joined else [2, 0, 2]
        assert shared == {"on": [1, 1, 1], "off": [0, 0, 0], "auto": auto}[sharing]
        assert ("may need no pairs; SET sharing = 'on'" in plans[1]) == (sharing == "auto" and auto[1] == 0)
        answers.append([in_order(result.to_pylist()) for result in session.execute(text)])
    assert answers[0] == answers[1] == answers[2] and all(map(len, answers[0]))


def sunk(folder: Path, queries: tuple[str, ...] = QUERIES) -> str:
    text = VIEW
    for number, query in enumerate(queries):
        path = folder / f"o{number}.csv"
        text += f"CREATE SINK o{number} WITH (connector = 'files', path = '{path}', emit = 'lifetimes');"
        text += f"INSERT INTO o{number} {query};"
    return text


def check_resumed(folder: Path, spark: SparkSession | None) -> None:
    kept = str(folder / "kept")
    session = session_of(spark=spark, batch_rows=9)
    run = workspace_of(session).assemble(workspace_of(session).prepare(sunk(folder)), checkpoint=kept, follow=True)
    assert isinstance(run, LocalRun | SparkRun) and len(run.jobs if isinstance(run, LocalRun) else run.units) == 1

    def stop_in_the_middle(run: Run) -> None:
        if run.status()[0].progress > from_datetime(NOON + timedelta(seconds=12)):
            run.stop()

    run.run(stop_in_the_middle)
    assert not run.status()[0].finished
    session = session_of(spark=spark, batch_rows=9)
    with pytest.raises(CheckpointError, match="other queries"):
        workspace_of(session).assemble(workspace_of(session).prepare(sunk(folder, QUERIES[:3])), checkpoint=kept)
    session = session_of(spark=spark, batch_rows=9)
    workspace_of(session).assemble(workspace_of(session).prepare(sunk(folder)), checkpoint=kept, end=True).run()
    whole = folder / "alone"
    whole.mkdir()
    session_of("off").execute(sunk(whole))
    for number in range(len(QUERIES)):
        lines, expected = (sorted((each / f"o{number}.csv").read_text().splitlines()) for each in (folder, whole))
        assert lines == expected and len(lines) > 3


def test_they_resume_in_the_middle(tmp_path: Path) -> None:
    check_resumed(tmp_path, None)


@pytest.mark.nightly
def test_they_resume_in_the_middle_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    check_resumed(tmp_path, spark)
