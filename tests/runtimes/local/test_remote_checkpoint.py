"""Checkpoint, sinks, dead letters and staged rows on a storage: whatever step is the last one, nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from tests.connectors.memory_storage import MemoryStorage, memory_storage
from tests.profile import NIGHTLY
from transom import CheckpointError, Session
from transom.connectors import Connector, StagedSink, register
from transom.connectors.commit_log import read_log
from transom.connectors.storage import Storage, storage_of
from transom.core.errors import SinkError, TransomError
from transom.runtimes.local.run import LocalRun
from transom.session import workspace_of

NOON = datetime(2024, 5, 1, 12)
FILES, ROWS = 4, 30


def text_of(files: str, out: str) -> str:
    return f"""
        SET batch_rows = 11;
        CREATE STREAM s (ts TIMESTAMP, k INTEGER, WATERMARK FOR ts AS ts)
            WITH (connector = 'files', path = '{files}', late = 'dead_letter');
        CREATE SINK o WITH (connector = 'files', path = '{out}/', format = 'jsonl');
        INSERT INTO o ISTREAM(SELECT k, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k)
    """


def write_inputs(storage: Storage, folder: str) -> None:
    for number in range(FILES):
        lines = [f"{NOON + timedelta(seconds=ROWS * number + row)},{row % 7}" for row in range(ROWS)]
        lines.insert(20, f"{NOON - timedelta(days=1)},99")  # which is late
        lines.insert(9, "nonsense")
        storage.put(f"{folder}/{number}.csv", "\n".join(["ts,k", *lines, ""]).encode())


def committed(storage: Storage, folder: str) -> list[dict[str, object]]:
    log = read_log(storage, folder)
    found = []
    for file in () if log is None else log.files:
        data = storage.read(f"{folder}/{file.name}")
        assert data is not None
        found += [json.loads(line) for line in data.splitlines()]
    return found


def run(uri: str, text: str, every: int = 3) -> None:
    with Session() as session:
        planned = workspace_of(session).prepare(text, checkpoint=f"{uri}/check")
        workspace_of(session).assemble(
            planned, checkpoint=f"{uri}/check", dead_letters=f"{uri}/dead", every=every, end=True
        ).run()


@pytest.mark.parametrize("behind", [False, True])
def test_whatever_step_is_the_last_one_the_answer_is_that_of_an_unbroken_run(behind: bool) -> None:
    with memory_storage() as (uri, storage):
        write_inputs(storage, f"{uri}/in")
        run(uri, text_of(f"{uri}/in", f"{uri}/out"))
        expected = committed(storage, f"{uri}/out"), committed(storage, f"{uri}/dead/o")
    assert len(expected[0]) > 100 and len(expected[1]) == 2 * FILES - 1 + 1
    died = 0
    for fails in range(0, 30, 1 if NIGHTLY else 4):
        with memory_storage() as (uri, storage):
            write_inputs(storage, f"{uri}/in")
            storage.steps, storage.fails, storage.behind = 0, fails, behind
            text = text_of(f"{uri}/in", f"{uri}/out")
            with suppress(TransomError):
                run(uri, text)
            died += storage.steps > fails
            storage.fails = None
            run(uri, text)
            assert (committed(storage, f"{uri}/out"), committed(storage, f"{uri}/dead/o")) == expected, fails
    assert died > 5


def test_of_two_runs_the_one_that_was_started_first_gives_up(tmp_path: Path) -> None:
    with memory_storage() as (uri, storage):
        write_inputs(storage, f"{uri}/in")
        text = text_of(f"{uri}/in", f"{uri}/out")
        with Session() as session:
            prepared = workspace_of(session).prepare(text)
            first = workspace_of(session).assemble(
                prepared, checkpoint=f"{uri}/check", dead_letters=f"{uri}/dead", every=1
            )
            assert isinstance(first, LocalRun)
            for _ in range(3):
                first.step()
            run(uri, text)
            shown = committed(storage, f"{uri}/out")
            with pytest.raises(CheckpointError, match="in use by another run, which was started later"):
                first.run()
        assert committed(storage, f"{uri}/out") == shown


def test_rows_that_are_staged_for_a_transaction() -> None:
    """A sink of a system that cannot hold a prepared epoch: its rows wait in the checkpoint."""
    table: dict[int, list[int]] = {}
    down: set[int] = set()

    class Table(StagedSink):
        def transact(self, epoch: int, rows: Sequence[pa.RecordBatch]) -> None:
            if epoch in down:
                down.remove(epoch)
                raise SinkError("the system is down")
            table.setdefault(epoch, [value for each in rows for value in each.column("n").to_pylist()])

    register("table_of_a_test", Connector(sink=Table))
    staged: list[bool] = []
    expected: list[int] = []
    for fails in (None, None, *range(4, 60, 4 if NIGHTLY else 9)):
        table.clear()
        if expected and fails is None:
            down.add(1)
        with memory_storage() as (uri, storage):
            write_inputs(storage, f"{uri}/in")
            text = text_of(f"{uri}/in", f"{uri}/out")
            start, end = text.index("CREATE SINK"), text.index("INSERT")
            text = f"{text[:start]}CREATE SINK o WITH (connector = 'table_of_a_test'); {text[end:]}"
            storage.steps, storage.fails = 0, fails
            with suppress(TransomError):
                run(uri, text)
            staged.append(any("/staged-o/" in name for name in storage.files))
            storage.fails = None
            run(uri, text)
            assert [name for name in storage.files if "/staged-o/" in name] == []
        found = [value for epoch in sorted(table) for value in table[epoch]]
        expected = expected or found
        assert found == expected and len(found) > 100, fails
    assert any(staged)


def test_a_checkpoint_in_a_bucket(bucket: str) -> None:
    storage = storage_of(bucket)
    write_inputs(storage, f"{bucket}/in")
    text = text_of(f"{bucket}/in", f"{bucket}/out")
    with Session(within=bucket) as session:
        session.start(text, checkpoint=f"{bucket}/check").await_termination(300)
    storage.put(f"{bucket}/in/9.csv", f"ts,k\n{NOON + timedelta(hours=1)},5\n".encode())
    with Session(within=bucket) as session:
        session.start(text, checkpoint=f"{bucket}/check", end=True).await_termination(300)
    with memory_storage() as (uri, kept):
        write_inputs(kept, f"{uri}/in")
        kept.put(f"{uri}/in/9.csv", f"ts,k\n{NOON + timedelta(hours=1)},5\n".encode())
        run(uri, text_of(f"{uri}/in", f"{uri}/out"))
        expected = committed(kept, f"{uri}/out")
    assert committed(storage, f"{bucket}/out") == expected


def test_secrets_of_the_environment_are_in_no_message(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(storage: MemoryStorage, path: str) -> None:
        raise OSError("the key a-key-for-tests is not valid")

    storage_of(bucket)  # by which the key is known
    with memory_storage() as (uri, _):
        monkeypatch.setattr(MemoryStorage, "entry", fail)
        with Session() as session, pytest.raises(TransomError, match="is not valid") as raised:
            session.execute(f"CREATE TABLE t WITH (connector = 'files', path = '{uri}/in')")
    assert "a-key-for-tests" not in str(raised.value) and "$AWS_SECRET_ACCESS_KEY" in str(raised.value)
