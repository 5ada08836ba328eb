"""Queries that share a join in this process: crashes, rejected rows, silent streams, rows stamped on arrival."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.runtimes.local.test_local_run import crash
from transom import Session, SinkError
from transom.connectors.files_sink import FileSink
from transom.program.clock import HeldClock
from transom.program.query_specs import handing
from transom.runtimes.local.run import LocalRun
from transom.session import workspace_of

NOON = datetime(2024, 5, 1, 12)
QUERIES = (
    "SELECT a.k, a.x, b.x AS y FROM a [RANGE 5 SECONDS], b [RANGE 3 SECONDS] WHERE a.k = b.k",
    "SELECT a.x FROM a [ROWS 4], b [RANGE 9 SECONDS] WHERE b.k = a.k AND a.x > 2",
)


def rows(step: int) -> list[dict[str, Any]]:
    found = [{"t": NOON + timedelta(seconds=i), "k": i % 3, "x": i * step % 7} for i in range(30)]
    return [*found[:9], {"t": NOON, "k": 1, "x": 1}, *found[9:], {"t": None, "k": 1, "x": 1}]


def session_of(**options: Any) -> Session:
    session = Session(**options)
    session.stream("a", rows(2), time="t", late="dead_letter")
    session.stream("b", rows(3), time="t")
    return session


def text_of(folder: Path, emit: str) -> str:
    text = ""
    for number, query in enumerate(QUERIES):
        index = folder / (f"o{number}.csv" if number else "o0")
        text += f"CREATE SINK o{number} WITH (connector = 'files', path = '{index}', format = 'csv', emit = '{emit}');"
        text += f"INSERT INTO o{number} {query};"
    return text


def run_of(folder: Path, emit: str, **run_options: Any) -> LocalRun:
    session = session_of(batch_rows=3)
    run = workspace_of(session).assemble(workspace_of(session).prepare(text_of(folder, emit)), **run_options)
    assert isinstance(run, LocalRun) and [job.join is not None for job in run.jobs] == [True]
    return run


def written(folder: Path) -> list[list[str]]:
    parts = sorted((folder / "o0").glob("part-*"))
    first = [line for part in parts for line in part.read_text().splitlines()[1:]]
    return [first, (folder / "o1.csv").read_text().splitlines()[1:]]


@pytest.mark.parametrize("emit", ["changes", "lifetimes"])
@pytest.mark.parametrize("every", [1, 4])
def test_a_group_that_crashes_after_any_step_goes_on_from_its_checkpoint(tmp_path: Path, emit: str, every: int) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        (folder / "o0").mkdir(parents=True)
    run_of(whole, emit).run()
    crashes = 0
    while True:
        run = run_of(broken, emit, checkpoint=str(broken / "kept"), end=True, every=every)
        for _ in range(every + 1):  # one more than is kept
            run.step()
        if run.finished:
            run.run()
            break
        crash(run)
        crashes += 1
    assert crashes >= 4
    assert written(broken) == written(whole) and all(len(rows) > 10 for rows in written(whole))


@pytest.mark.parametrize("every", [1, 4])
def test_a_group_that_fails_between_two_of_its_answers_goes_on_from_its_checkpoint(
    tmp_path: Path, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        (folder / "o0").mkdir(parents=True)
    run_of(whole, "changes").run()
    wanted, written_by_first = 0, 0
    write = FileSink.write

    def reject(sink: FileSink, rows: pa.RecordBatch) -> None:
        nonlocal wanted, written_by_first
        if "o1" in str(vars(sink)):
            wanted -= 1
            if not wanted:
                raise SinkError("no room")
        else:
            written_by_first += len(rows) > 0
        write(sink, rows)

    failures = 0
    monkeypatch.setattr(FileSink, "write", reject)
    while True:
        wanted = every + 1 + failures % 2
        run = run_of(broken, "changes", checkpoint=str(broken / "kept"), end=True, every=every)
        try:
            run.run()
            break
        except SinkError:
            failures += 1
    assert failures > 1 and written_by_first > failures
    assert written(broken) == written(whole)


def test_who_takes_an_answer_may_wait_for_somebody_who_asks_how_the_queries_are_doing() -> None:
    session = session_of(batch_rows=10)
    reported: list[int] = []

    def on_rows(rows: pa.Table) -> None:
        requests = threading.Thread(target=lambda: reported.append(len(run.status())), daemon=True)
        requests.start()
        requests.join(timeout=60)
        assert not requests.is_alive()

    run = workspace_of(session).assemble(workspace_of(session).prepare(";".join(QUERIES)), answer=handing(on_rows))
    run.run()
    assert len(reported) > 2 and set(reported) == {2}


def test_a_row_that_is_rejected_is_reported_once_and_counted_for_each() -> None:
    session = session_of()
    together = session.execute(";".join(QUERIES))
    assert sorted(session.dead_letters["stream"].to_pylist()) == ["a", "a", "b"]
    for result in together:
        assert result.status is not None
        ledgers = {one.name: (one.rows_in, one.late, one.rejected) for one in result.status.inputs}
        assert ledgers == {"a": (32, 1, 1), "b": (32, 1, 1)}


DECLARED = """
CREATE STREAM a (t TIMESTAMP, k INTEGER, x INTEGER, WATERMARK FOR t AS t) WITH (connector = 'memory');
CREATE STREAM b (t TIMESTAMP, k INTEGER, x INTEGER, WATERMARK FOR t AS t)
WITH (connector = 'memory', idle = '10 SECONDS');
"""


def test_a_silent_stream_does_not_hold_the_queries_back() -> None:
    session, clock = Session(), HeldClock(0)
    session.execute(DECLARED)
    run = workspace_of(session).assemble(
        workspace_of(session).prepare(";".join(QUERIES)), follow=True, every=1, clock=clock
    )
    assert isinstance(run, LocalRun)
    session.append("a", rows(2)[:9])
    session.append("b", rows(3)[:4])
    while run.step():
        pass
    assert [status.held_back_by for status in run.status()] == ["b", "b"]
    reported = [status.rows_out for status in run.status()]
    clock.sleep(11_000_000)
    while run.step():
        pass
    assert run.status()[0].progress == run.status()[0].inputs[0].watermark
    assert all(status.rows_out > before for status, before in zip(run.status(), reported, strict=True))
    run.close()


def test_rows_that_are_stamped_on_arrival_have_one_clock_and_a_latency() -> None:
    session = Session(tick="1 second")
    session.stream("a", [{"k": i % 3, "x": i} for i in range(20)])
    session.stream("b", [{"k": i % 3, "x": i} for i in range(20)])
    for result in session.execute(";".join(QUERIES)):
        assert result.status is not None and result.status.finished and result.status.latency is not None
        assert result.status.latency.count == 40
