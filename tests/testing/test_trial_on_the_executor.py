"""A trial is a run of the local runtime: what only its executor does happens in a trial, too."""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from transom import LateRowError
from transom.program.checkpoint_folder import STATE, CheckpointFolder
from transom.program.run import QuerySpec, RunOptions
from transom.runtimes.local.run import LocalRun
from transom.runtimes.local.runtime import LocalRuntime
from transom.testing import Trial, run_query

MESSAGES = """
CREATE STREAM sent (ts TIMESTAMP, message INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'files', path = 'sent/');
CREATE STREAM received (ts TIMESTAMP, message INTEGER, WATERMARK FOR ts AS ts)
WITH (connector = 'files', path = 'received/', idle = '1 HOUR');
"""
JOINED = "ISTREAM(SELECT message FROM sent [RANGE {0} SECONDS] JOIN received [RANGE {0} SECONDS] USING (message));"
SOON_AND_LATER = MESSAGES + JOINED.format(5) + JOINED.format(60)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[LocalRun]:
    """The runs that trials have had."""
    runs: list[LocalRun] = []
    assemble = LocalRuntime.assemble

    def noted(runtime: LocalRuntime, specs: Sequence[QuerySpec], run_options: RunOptions) -> LocalRun:
        runs.append(assemble(runtime, specs, run_options))
        return runs[-1]

    monkeypatch.setattr(LocalRuntime, "assemble", noted)
    return runs


def test_queries_with_the_same_join_share_it(runs: list[LocalRun]) -> None:
    trial = Trial(SOON_AND_LATER)
    trial.send("sent", "1 7 \n 40 8")
    trial.send("received", "3 7")
    trial.restart()
    trial.send("received", "50 8")
    trial.end()
    trial.answer("query-1").expect("3 7")
    trial.answer("query-2").expect("3 7 \n 50 8")
    assert [[query.name for query in job.queries] for job in runs[0].jobs] == [["query-1", "query-2"]]
    assert len(runs) == 2


NEAR = """
ISTREAM(
    SELECT s.message AS p, r.message AS q FROM sent [RANGE {0} SECONDS] AS s, received [RANGE {0} SECONDS] AS r
    WHERE s.message < r.message
);
"""
SCHEDULED = MESSAGES + "SET schedule = 'mqt'; SET buffer = 2;" + NEAR.format(5) + NEAR.format(60)


def test_the_work_of_a_shared_join_is_scheduled(runs: list[LocalRun]) -> None:
    inputs = {"sent": "".join(f"{i} {i % 4}\n" for i in range(9)), "received": "3 3 \n 7 2 \n 8 1"}
    for of in ("query-1", "query-2"):
        scheduled = run_query(SCHEDULED, inputs, of=of, seed=1, restart=True)
        scheduled.expect(str(run_query(SCHEDULED.replace("'mqt'", "'off'"), inputs, of=of)))
        assert scheduled.changes
    assert runs[0].status()[0].overload is not None
    assert runs[-1].status()[0].overload is None


def test_a_query_runs_in_the_partitions_that_it_asks_for(runs: list[LocalRun]) -> None:
    text = MESSAGES + "SET partitions = 2;" + JOINED.format(60)
    before = threading.active_count()
    trial = Trial(text, {"sent": "".join(f"{i} {i}\n" for i in range(9))})
    trial.restart()
    trial.send("received", "8 3 \n 9 5")
    trial.end()
    trial.answer().expect("8 3 \n 9 5")
    for run in runs:
        assert len(run.jobs[0].engine.subplan.state.stages) == 2
    assert threading.active_count() <= before


def test_what_a_run_had_written_when_it_failed_is_not_shown() -> None:
    text = MESSAGES.replace("path = 'sent/'", "path = 'sent/', late = 'fail'")
    trial = Trial(text + "SET batch_rows = 1; ISTREAM(SELECT message FROM sent [NOW]);", {"sent": "1 1 \n 2 2"})
    trial.answer().expect("1 1")
    with pytest.raises(LateRowError):
        trial.send("sent", "3 3 \n 4 4 \n 0 0")
    trial.answer().expect("1 1")
    trial.restart()
    with pytest.raises(LateRowError):  # the row is still there
        trial.advance("1 second")
    trial.answer().expect("1 1")


def test_a_restart_reads_the_checkpoint_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    write = CheckpointFolder.write

    def noted(folder: CheckpointFolder, name: str, data: bytes) -> None:
        written.append(name)
        write(folder, name, data)

    monkeypatch.setattr(CheckpointFolder, "write", noted)
    trial = Trial(MESSAGES + JOINED.format(60), {"sent": "1 7", "received": "2 7"})
    assert written.count(STATE) == 3  # the beginning, and what was sent
    trial.restart()
    trial.end()
    trial.answer().expect("2 7")


def test_nothing_is_left_behind(runs: list[LocalRun]) -> None:
    trial = Trial(MESSAGES + JOINED.format(60), {"sent": "1 7"})
    home = Path(vars(runs[0])["_checkpoint"].folder)
    assert (home / STATE).exists()
    del trial
    gc.collect()
    assert not home.exists()
