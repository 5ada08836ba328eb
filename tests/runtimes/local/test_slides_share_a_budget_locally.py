"""The joins of a run keep to one budget, and what they have emitted counts towards it while it waits in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from transom import Session
from transom.connectors import files_sink
from transom.connectors.connector import Connector, Opening, Sink, SinkDeclaration
from transom.connectors.registry import register
from transom.connectors.staged_sink import StagedSink
from transom.kernels.slide_join.budget import RunBudget
from transom.program.slides import SlideStatus
from transom.program.status import Status
from transom.runtimes.local import runtime
from transom.runtimes.local.job import LocalJob

STREAMS = "".join(
    f"""CREATE STREAM {name} (ts TIMESTAMP, k INTEGER, g VARCHAR, WATERMARK FOR ts AS ts)
        WITH (connector = 'generator', rows = 12000, rate = 2000, seed = {seed},
              column.k = 'uniform 0 2000', column.g = 'text 60');"""
    for seed, name in enumerate("ab", 1)
)
WINDOW = "[RANGE 4 SECONDS SLIDE 1 SECOND]"
JOIN = f"RSTREAM(SELECT a.k, a.g, b.g AS h FROM a {WINDOW}, b {WINDOW} WHERE a.k = b.k)"
COUNTED = f"RSTREAM(SELECT b.k, b.g FROM a {WINDOW}, b [RANGE 2 SECONDS SLIDE 1 SECOND] WHERE a.k = b.k)"
SETTINGS = "SET memory = '4 MB'; SET slide_join = 'incremental'; SET batch_rows = 1000;"


def complete(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of slides, without attempts and markers."""
    rows = table.to_pylist()
    return sorted(
        tuple(v for n, v in row.items() if n not in ("attempt", "status")) for row in rows if not row["status"]
    )


def slides_of(status: Status | None) -> SlideStatus:
    assert status is not None and status.slides is not None
    return status.slides


def test_queries_of_a_run_keep_to_one_budget() -> None:
    together = [result for result in Session().execute(f"{STREAMS} {SETTINGS} {JOIN}; {COUNTED};") if result.status]
    for result, query in zip(together, (JOIN, COUNTED), strict=True):
        (alone,) = (each for each in Session().execute(f"{STREAMS} {SETTINGS} {query};") if each.status)
        assert complete(result.table) == complete(alone.table)
        assert slides_of(alone.status).report.sharing == 1
    reports = [slides_of(result.status).report for result in together]
    assert all(report.sharing == 2 and report.budget == 4 << 20 for report in reports)
    most = max(report.peak_together for report in reports)
    assert max(report.peak_bytes for report in reports) < most <= 4 << 20, "each alone has less than both together"
    assert max(report.peak_bytes for report in reports) > 2 << 20, "what one does not need the other one has"
    assert any("for 2 joins, which had at most" in line for line in slides_of(together[0].status).lines())


def test_a_query_that_leaves_gives_its_part_back(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = RunBudget()
    monkeypatch.setattr(runtime, "RunBudget", lambda: budget)
    session = Session()
    session.execute(f"{STREAMS} {SETTINGS}")
    with session.together():
        first, second = session.add(JOIN, name="first"), session.add(COUNTED, name="second")
    first.await_termination()
    second.await_termination()
    assert 2 in [slides_of(each.status).report.sharing for each in (first, second)]
    session.close()
    assert len(budget.pool(0, 1)) == 0 and not budget.sinks


class Transactions(StagedSink):
    sizes: list[int]

    def transact(self, epoch: int, rows: Any) -> None:
        self.sizes.append(sum(batch.nbytes for batch in rows))


def test_an_epoch_ends_when_its_rows_are_too_many_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a checkpoint, which would have them on disk."""
    Transactions.sizes = []

    def opened(declared: SinkDeclaration, opening: Opening) -> Sink:
        return Transactions(declared, opening)

    register("transactions", Connector(sink=opened))
    sink = "CREATE SINK out WITH (connector = 'transactions');"
    Session().execute(f"{STREAMS} {SETTINGS} {sink} INSERT INTO out {JOIN};")
    assert len(Transactions.sizes) > 10 and sum(Transactions.sizes) > 8 << 20
    assert max(Transactions.sizes) <= (4 << 20) // 8 + (4 << 20) // 16, "an eighth of the budget, and what came last"


def test_rows_that_wait_push_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink that has half of the budget in its hands leaves the other half."""
    session = Session()
    run = f"{STREAMS} {SETTINGS} {JOIN};"
    free = slides_of(session.execute(run)[-1].status).report
    monkeypatch.setattr(LocalJob, "_hold", None)
    monkeypatch.setattr(RunBudget, "_emitted", lambda self: 2 << 20)
    less = slides_of(Session().execute(run)[-1].status).report
    assert less.bytes_written > free.bytes_written and less.peak_bytes <= free.peak_bytes
    assert less.peak_together <= 4 << 20


def test_a_large_epoch_is_several_files_within_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_sink, "MOST_GROUPS", 3)
    out = tmp_path / "out"
    sink = f"CREATE SINK out WITH (connector = 'files', path = '{out}', format = 'parquet');"
    text = f"{STREAMS} {SETTINGS} {sink} INSERT INTO out {JOIN};"
    Session().execute(text, checkpoint=str(tmp_path / "kept"), end=True)
    parts = sorted(out.glob("part-*.parquet"))
    assert [part.name for part in parts] == [f"part-{i:06}.parquet" for i in range(len(parts))]
    assert len(parts) > 5 and all(pq.ParquetFile(part).num_row_groups <= 3 for part in parts)
    (alone,) = (each for each in Session().execute(f"{STREAMS} {SETTINGS} {JOIN};") if each.status)
    assert complete(pa.concat_tables(map(pq.read_table, parts))) == complete(alone.table)
