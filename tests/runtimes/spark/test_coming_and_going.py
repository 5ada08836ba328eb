"""Queries come to others on Spark, and leave them, while the streaming query of all goes on."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from tests.profile import examples
from transom import Session, SinkError, StreamingQuery
from transom.core.time import format_instant, from_datetime
from transom.runtimes.spark.group import SparkGroup
from transom.runtimes.spark.hosted import Hosted
from transom.runtimes.spark.run import SparkRun

NOON = datetime(2024, 5, 1, 12)
LONG = 120.0
JOIN = "FROM a [RANGE {0} SECONDS], b [RANGE {1} SECONDS] WHERE a.k = b.k AND a.name = b.name"
QUERIES = {
    "pairs": f"SELECT a.k, a.x, b.x AS y {JOIN.format(5, 3)}",
    "counts": f"SELECT a.k, COUNT(*) AS n, MAX(b.x) AS y {JOIN.format(9, 2)} GROUP BY a.k",
    "all": f"SELECT COUNT(*) AS n {JOIN.format(4, 7)} AND a.x > 2",
    "began": f"ISTREAM(SELECT b.name, b.x {JOIN.format(2, 8)})",
    "names": f"SELECT DISTINCT a.name {JOIN.format(12, 12)}",
}
ROWS = "FROM a [ROWS {0}], b [RANGE {1} SECONDS] WHERE a.k = b.k AND a.name = b.name"
COUNTED = {
    "few": f"SELECT a.k, a.x, b.x AS y {ROWS.format(3, 4)}",
    "many": f"SELECT a.name, SUM(b.x) AS s {ROWS.format(9, 9)} GROUP BY a.name",
    "timed": QUERIES["counts"],
}


def rows(first: int, last: int, step: int) -> list[dict[str, Any]]:
    """Two keys, one of them a text and NULL at times."""
    names = ("one", None, "another text", "one")
    return [
        {"t": NOON + timedelta(seconds=i), "k": i % 3, "name": names[i // step % 4], "x": i * step % 7}
        for i in range(first, last)
    ]


class Trial:
    """A session whose streams grow, and what became of its queries: since when each was there, and until when."""

    def __init__(self, spark: SparkSession | None, texts: dict[str, str], **options: Any) -> None:
        self.spark, self.options = spark, options
        self.texts = texts
        self.reached = 0
        self.session = self.process()
        self.shown: dict[str, list[Any]] = {}
        """What queries that are there have shown in processes that are over."""
        self.here: dict[str, StreamingQuery] = {}
        self.since: dict[str, int | None] = {}
        self.until: dict[str, tuple[StreamingQuery, int]] = {}

    def process(self) -> Session:
        """One that has nothing but what can be read."""
        session = Session(spark=self.spark, sharing="on", **self.options)
        for name, step in (("a", 1), ("b", 2)):
            session.stream(name, rows(0, self.reached + 1, step), time="t")
        return session

    def restart(self, checkpoint: Path, *come: str) -> None:
        """Another process, to which queries come at once."""
        self.session.close()
        for name, query in self.here.items():
            assert query.exception() is None
            self.shown.setdefault(name, []).append(query.result.to_arrow())
        self.session = self.process()
        self.begin(checkpoint, *come)

    def begin(self, checkpoint: Path, *come: str) -> None:
        with self.session.together(checkpoint=str(checkpoint), follow=True):
            self.here |= {name: self.session.add(self.texts[name], name=name) for name in (*come, *self.here)}
        self.since = dict.fromkeys(come) | self.since

    def grow(self, seconds: int) -> None:
        """And wait until all queries have seen it."""
        first, self.reached = self.reached + 1, self.reached + seconds
        self.session.append("a", rows(first, self.reached + 1, 1))
        self.session.append("b", rows(first, self.reached + 1, 2))
        for query in self.here.values():
            assert query.await_progress(NOON + timedelta(seconds=self.reached - 1), timeout=LONG)

    def come(self, name: str, called: str | None = None) -> None:
        others = bool(self.here)
        self.here[name] = self.session.add(self.texts[name], name=called or name, follow=True)
        self.since[name] = self.here[name].status.progress if others else None

    def go(self, name: str) -> None:
        query = self.here.pop(name)
        query.stop()
        assert not query.is_active
        self.until[name] = query, query.status.progress

    @property
    def groups(self) -> list[SparkGroup]:
        assert self.session._active._added_to is not None
        run = self.session._active._added_to.run
        assert isinstance(run, SparkRun)
        return [unit for unit in run.units if isinstance(unit, SparkGroup)]

    def await_a_batch(self) -> None:
        """Though nothing came."""
        (group,) = self.groups
        while not group.statuses.batches:
            assert group.active
            sleep(0.05)

    def check(self, name: str, query: StreamingQuery, until: int) -> int:
        """The answer is that of the query alone, whose time begins when it came; how many rows it has."""
        since = self.since[name]
        options: dict[str, Any] = {} if since is None else {"origin": format_instant(since)}
        alone = Session(sharing="off", **options)
        for stream, step in (("a", 1), ("b", 2)):
            alone.stream(stream, rows(0, self.reached + 1, step), time="t")
        reported = pa.concat_tables([*self.shown.get(name, []), query.result.to_arrow()])
        expected = alone.run(self.texts[name]).to_arrow()
        mine, reference = (in_order(t.filter(pc.less(pc.cast(t["at"], "int64"), until))) for t in (reported, expected))
        assert mine == reference, name
        return len(mine)

    def finish(self) -> None:
        assert all(query.is_active for query in self.here.values())
        self.session.close()
        for name, query in self.here.items():
            assert query.exception() is None
            assert {each.query for each in query.recent_progress} == {query.name}
            self.until[name] = query, query.status.progress
        lengths = [self.check(name, query, until) for name, (query, until) in self.until.items()]
        assert min(lengths) > 1, "there is something to be right about"


def in_order(table: Any) -> list[str]:
    return sorted(map(str, table.to_pylist()))


@pytest.mark.parametrize("tasks", [pytest.param(1, marks=pytest.mark.nightly), 2])
def test_answers_are_those_of_the_queries_alone(
    spark: SparkSession, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all state in files, in one task and over several stages."""
    monkeypatch.setattr("transom.runtimes.spark.dataframe_stages.Hosted", partial(Hosted, least=1))
    trial = Trial(spark, QUERIES, batch_rows=examples(by_day=20, at_night=7), tasks=tasks)
    trial.come("pairs")
    trial.grow(8)
    trial.come("counts")
    trial.come("began")  # before a batch has come to the one before it
    trial.await_a_batch()
    assert [one.rows_in for one in trial.here["pairs"].status.inputs] == [9, 9], "none is read twice"
    trial.grow(9)
    trial.go("pairs")
    trial.come("names", called="pairs")
    trial.come("all")
    trial.go("counts")
    trial.grow(12)
    trial.finish()


def test_a_process_goes_on_where_another_one_was(spark: SparkSession, tmp_path: Path) -> None:
    """Where another query has come, and before the streaming query that goes on with both has done a batch."""
    trial = Trial(spark, QUERIES)
    trial.begin(tmp_path / "kept", "pairs")
    trial.grow(8)
    trial.come("counts")
    trial.restart(tmp_path / "kept")
    trial.grow(9)
    trial.finish()


@pytest.mark.nightly
@pytest.mark.parametrize("tasks", [1, 2])
def test_processes_go_on_with_queries_that_come_and_go(spark: SparkSession, tasks: int, tmp_path: Path) -> None:
    """Of whom nothing is left but what the checkpoint has of those that are there."""
    kept = tmp_path / "kept"
    trial = Trial(spark, {**QUERIES, "alone": "SELECT k, COUNT(*) AS n FROM a GROUP BY k"}, tasks=tasks)
    trial.begin(kept, "pairs", "alone")
    trial.grow(8)
    trial.come("counts")
    trial.restart(kept)
    trial.grow(6)
    trial.go("pairs")
    trial.restart(kept, "began")
    trial.grow(1)
    (trial.since["began"],) = (one.begin for one in trial.groups[0].consumers if one.name == "began")
    trial.come("names")
    trial.grow(9)
    trial.finish()
    folders = [path for path in kept.iterdir() if path.is_dir()]
    assert len(folders) == 2 and all(len(list(folder.glob("*/spark"))) == 1 for folder in folders)


@pytest.mark.nightly
def test_rows_that_are_counted(spark: SparkSession) -> None:
    trial = Trial(spark, COUNTED)
    trial.come("few")
    trial.grow(6)
    trial.come("many")
    trial.come("timed")
    trial.go("few")
    trial.grow(15)
    trial.finish()


@pytest.mark.nightly
def test_they_are_one_streaming_query_with_one_state_and_a_sink_each(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "o.csv"
    trial = Trial(spark, {**QUERIES, "rows": COUNTED["few"], "filed": f"INSERT INTO o {QUERIES['pairs']}"})
    trial.session.execute(f"CREATE SINK o WITH (connector = 'files', path = '{path}', emit = 'changes')")
    trial.come("filed")
    trial.grow(6)
    trial.come("counts")
    (group,) = trial.groups
    assert [consumer.name for consumer in group.consumers] == ["filed", "counts"]
    (tmp_path / "no folder").write_text("")
    trial.session.execute(f"CREATE SINK bad WITH (connector = 'files', path = '{tmp_path}/no folder/o.csv')")
    with pytest.raises(SinkError):
        trial.session.add(f"INSERT INTO bad {QUERIES['pairs']}", follow=True)
    assert trial.groups == [group] and group.active, "nobody else is touched"
    before = trial.here["filed"].status
    assert before.progress >= from_datetime(NOON + timedelta(seconds=6)), "what was done stays done"
    trial.come("rows")  # which counts rows: the others would all have to
    assert len(trial.groups) == 2
    trial.grow(5)
    late, early = (trial.here[name].status for name in ("counts", "filed"))
    assert [one.rows_in for one in early.inputs] == [12, 12] and early.rows_out >= before.rows_out
    assert [one.rows_in for one in late.inputs] == [6, 6], "those that waited, and have come since"
    joins = [[one for one in status.operators if one.operator == "SharedJoin"] for status in (late, early)]
    assert joins[0] == joins[1] and len(joins[0]) == 1 and joins[0][0].state_rows > 0
    trial.go("filed")
    reported = path.read_text().splitlines()
    assert len(reported) > 3 and trial.until["filed"][0].status.rows_out == len(reported) - 1
    trial.session.close()
    assert trial.here["counts"].exception() is None
