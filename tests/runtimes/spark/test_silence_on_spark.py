"""Time goes on in silence on Spark: batches are made when something is due, and a backlog makes no row late."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.profile import first_of
from tests.runtimes.spark.processes import PATIENCE
from transom import Session
from transom.program.run import Run
from transom.program.status import Status
from transom.program.streaming_query import StreamingQuery
from transom.session import workspace_of

DEAD = """
CREATE STREAM beats (host VARCHAR) WITH (connector = 'memory', time = 'arrival');
DSTREAM(SELECT DISTINCT host FROM beats [RANGE 300 MILLISECONDS])
"""

KEPT = """
CREATE STREAM orders (id INTEGER, ts TIMESTAMP INVISIBLE, WATERMARK FOR ts AS ts)
    WITH (connector = 'files', path = '{folder}/orders/', format = 'csv');
CREATE STREAM refunds (id INTEGER, ts TIMESTAMP INVISIBLE, WATERMARK FOR ts AS ts)
    WITH (connector = 'files', path = '{folder}/refunds/', format = 'csv', {how} = '300 MILLISECONDS');
CREATE SINK kept WITH (connector = 'files', path = '{folder}/kept/', format = 'csv');
INSERT INTO kept
ISTREAM(SELECT id FROM orders [RANGE 1 HOUR] EXCEPT SELECT id FROM refunds [RANGE 1 HOUR])
"""


def write(folder: Path, name: str, start: datetime, rows: list[tuple[int, int]]) -> None:
    """A file of ids, each so many milliseconds after the start; it is there as a whole."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    number = len(list((folder / name).iterdir()))
    lines = [f"{id},{(start + timedelta(milliseconds=at)).isoformat(sep=' ')}" for id, at in rows]
    hidden = folder / name / f".{number}"
    hidden.write_text("\n".join(["id,ts", *lines, ""]))
    hidden.rename(folder / name / f"{number}.csv")


def now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def follow(spark: SparkSession, text: str, folder: Path, enough: Callable[[Status], bool]) -> Status:
    """Run until it is enough."""
    session = Session(spark=spark, batch_rows=2)
    run = workspace_of(session).assemble(
        workspace_of(session).prepare(text), follow=True, checkpoint=str(folder / "checkpoint")
    )
    end = time.monotonic() + PATIENCE

    def watch(run: Run) -> None:
        (status,) = run.status()
        if enough(status) or any(one.late for one in status.inputs) or time.monotonic() > end:
            run.stop()

    run.run(watch)
    (status,) = run.status()
    assert enough(status), status
    return status


@pytest.mark.parametrize("how", first_of("idle", "heartbeat"))
def test_orders_go_on_though_nobody_wants_money_back(spark: SparkSession, tmp_path: Path, how: str) -> None:
    start = now() - timedelta(seconds=3)
    write(tmp_path, "orders", start, [(1, 0), (2, 1000), (3, 2000)])
    write(tmp_path, "refunds", start, [(1, 0)])
    text = KEPT.format(folder=tmp_path, how=how)
    follow(spark, text, tmp_path, lambda status: status.rows_out == 1)
    # While nobody looked, both had more to say than one batch takes.
    later = now()
    write(tmp_path, "orders", later, [(4 + i, 10 * i) for i in range(6)])
    write(tmp_path, "refunds", later, [(5, 10), (70, 20), (7, 30), (80, 40), (90, 45), (100, 46)])
    read = [9, 7]
    status = follow(
        spark,
        text,
        tmp_path,
        lambda status: status.rows_out == 5 and [one.rows_in for one in status.inputs] == read,
    )
    assert [(one.late, one.rejected) for one in status.inputs] == [(0, 0), (0, 0)]
    shown = [line for path in (tmp_path / "kept").glob("*.csv") for line in path.read_text().splitlines()[1:]]
    assert sorted(line.split(",")[-1] for line in shown) == ["2", "3", "4", "6", "8"]


@pytest.mark.nightly
def test_who_is_gone_is_missed_and_no_batch_is_made_for_nothing(spark: SparkSession) -> None:
    with Session(spark=spark) as session:
        seen: list[dict[str, Any]] = []
        query = session.start(DEAD, follow=True, on_rows=lambda rows: seen.extend(rows.to_pylist()))
        batches = [made(session, query, seen, host) for host in ("a", "b")]
        assert [row["host"] for row in seen] == ["a", "b"]
        assert batches[1] <= batches[0] + 4, "it came, and it left"


def made(session: Session, query: StreamingQuery, seen: list[dict[str, Any]], host: str) -> int:
    """A host comes and is missed; how many batches have been made until then, and for a while after it."""
    session.append("beats", [{"host": host}])
    end = time.monotonic() + PATIENCE
    while not any(row["host"] == host for row in seen) and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.5)
    return query.status.steps


def frame(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema("id int, ts timestamp_ntz").option("header", True).csv(str(folder))


@pytest.mark.nightly
def test_silence_and_the_clock_of_dataframes(spark: SparkSession, tmp_path: Path) -> None:
    start = now() - timedelta(seconds=3)
    write(tmp_path, "orders", start, [(1, 0), (2, 1000), (3, 2000)])
    write(tmp_path, "refunds", start, [(1, 0), (2, 4 * 3_600_000)])
    with Session(spark=spark) as session:
        orders, refunds = (frame(spark, tmp_path / name) for name in ("orders", "refunds"))
        session.stream("orders", orders, time="ts")
        session.stream("refunds", refunds, time="ts", idle="300 ms", ahead=timedelta(hours=1))
        seen: list[pa.Table] = []
        query = session.start(
            "ISTREAM(SELECT id FROM orders [RANGE 1 HOUR] EXCEPT SELECT id FROM refunds [RANGE 1 HOUR])",
            follow=True,
            on_rows=seen.append,
        )
        end = time.monotonic() + PATIENCE
        while not seen and time.monotonic() < end:
            time.sleep(0.05)
        assert [row["id"] for table in seen for row in table.to_pylist()] == [2]
        _, reported = query.status.inputs
    assert reported.reasons == {"the timestamp is further ahead of the clock than is allowed": 1}
