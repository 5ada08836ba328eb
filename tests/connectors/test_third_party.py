"""A connector that somebody else has written, reached from the text of a query, through crashes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.connectors.ledger import LEDGER, LatestSink, LedgerSink, answers
from transom.connectors import Connector, Opening, SinkDeclaration, register, registry
from transom.connectors.open import check_sink
from transom.core.errors import OptionError, SinkError
from transom.plan.catalogue import SinkDefinition
from transom.runtimes.local.run import LocalRun
from transom.session import Session, workspace_of

TEXT = """
CREATE STREAM s (ts TIMESTAMP, v INTEGER, WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS)
    WITH (connector = 'ledger', folder = '{folder}');
CREATE SINK o WITH (connector = 'Ledger', database = '{folder}/answers.db');
INSERT INTO o ISTREAM(SELECT v FROM s WHERE v >= 0)
"""


class Gone(BaseException):
    """The process dies here."""


def write(folder: Path, partition: str, *values: int) -> None:
    with open(folder / partition, "a") as log:
        log.writelines(f"2024-05-01 00:00:{value:02},{value}\n" for value in values)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "north", *range(0, 20, 2))
    write(tmp_path, "south", *range(1, 20, 2))
    return tmp_path


def run(folder: Path, checkpoint: bool = True, end: bool = True, text: str = TEXT, every: int = 1) -> None:
    session = Session(batch_rows=4)
    planned = workspace_of(session).prepare(text.format(folder=folder))
    workspace_of(session).assemble(
        planned, checkpoint=str(folder / "kept") if checkpoint else None, every=every, end=end
    ).run()


def test_partitions_are_read_and_answers_written(folder: Path) -> None:
    run(folder, checkpoint=False)
    assert answers(f"{folder}/answers.db") == list(range(20))
    assert sorted(set(next(folder.glob("read-by-*")).read_text().split())) == ["north", "south"]
    run(folder, checkpoint=False)
    assert answers(f"{folder}/answers.db") == sorted([*range(20)] * 2), "another run has numbers of its own"


def test_a_run_goes_on_with_what_has_come_since(folder: Path) -> None:
    run(folder, end=False)
    assert answers(f"{folder}/answers.db") == list(range(14)), "the others may still be overtaken"
    write(folder, "south", 29, 39)
    run(folder)
    assert answers(f"{folder}/answers.db") == [*range(20), 29, 39]


@pytest.mark.parametrize("moment", ["written", "prepared", "transacted"])
@pytest.mark.parametrize("at", [1, 2, 4])
def test_every_row_is_there_once_whenever_the_process_dies(
    folder: Path, monkeypatch: pytest.MonkeyPatch, moment: str, at: int
) -> None:
    prepare, transact = LedgerSink.prepare, LedgerSink.transact
    seen: list[int] = []

    def preparing(sink: LedgerSink, epoch: int) -> Any:
        token = prepare(sink, epoch)
        if moment == "written" and epoch >= at:
            raise Gone  # before the checkpoint counts it
        return token

    def transacting(sink: LedgerSink, epoch: int, rows: Sequence[pa.RecordBatch]) -> None:
        seen.append(epoch)
        if moment == "transacted" or len(seen) < at:
            transact(sink, epoch, rows)
        if len(seen) >= at:
            raise Gone

    with monkeypatch.context() as patch, pytest.raises(Gone):
        patch.setattr(LedgerSink, "prepare", preparing)
        patch.setattr(LedgerSink, "transact", transact if moment == "written" else transacting)
        run(folder)
    run(folder)
    assert answers(f"{folder}/answers.db") == list(range(20))
    with sqlite3.connect(folder / "answers.db") as database:
        assert database.execute("SELECT COUNT(*), COUNT(DISTINCT run) FROM epochs").fetchone()[1] == 1
    database.close()
    assert not list((folder / "kept" / "staged-o").iterdir())


LATEST = TEXT.replace("connector = 'Ledger'", "emit = 'latest', connector = 'latest'").replace(
    "ISTREAM(SELECT v FROM s WHERE v >= 0)", "SELECT COUNT(*) AS v FROM s"
)


@pytest.mark.parametrize("checkpoint", [False, True])
def test_the_last_snapshot_is_shown(folder: Path, checkpoint: bool) -> None:
    run(folder, checkpoint, text=LATEST)
    assert answers(f"{folder}/answers.db") == [20]


def test_snapshots_go_on_after_runs_that_had_nothing_to_do(folder: Path) -> None:
    for _ in range(3):
        run(folder, end=False, text=LATEST)
        assert answers(f"{folder}/answers.db") == [14]
    write(folder, "north", 38)
    write(folder, "south", 39)
    run(folder, end=False, text=LATEST)
    assert answers(f"{folder}/answers.db") == [20]


@pytest.mark.parametrize("moment", ["prepared", "counted", "committed"])
@pytest.mark.parametrize(("at", "every"), [(1, 1), (3, 1), (0, 100)])  # the last is the only one
def test_the_last_snapshot_is_shown_whenever_the_process_dies(
    folder: Path, monkeypatch: pytest.MonkeyPatch, moment: str, at: int, every: int
) -> None:
    prepare, commit = LatestSink.prepare, LatestSink.commit

    def preparing(sink: LatestSink, epoch: int) -> Any:
        token = prepare(sink, epoch)
        if moment == "prepared" and epoch >= at:
            raise Gone
        return token

    def committing(sink: LatestSink, epoch: int, token: Any) -> None:
        if moment != "counted" or epoch < at:
            commit(sink, epoch, token)
        if moment != "prepared" and epoch >= at:
            raise Gone

    with monkeypatch.context() as patch, pytest.raises(Gone):
        patch.setattr(LatestSink, "prepare", preparing)
        patch.setattr(LatestSink, "commit", committing)
        run(folder, text=LATEST, every=every)
    run(folder, text=LATEST)
    assert answers(f"{folder}/answers.db") == [20]


def test_sinks_of_one_run_may_keep_their_epochs_in_one_database(folder: Path) -> None:
    another = """;
        CREATE SINK p WITH (connector = 'ledger', database = '{folder}/answers.db');
        INSERT INTO p ISTREAM(SELECT v + 100 AS v FROM s)"""
    run(folder, text=TEXT.strip() + another, every=2)  # so that both have rows in an epoch
    assert answers(f"{folder}/answers.db") == [*range(20), *range(100, 120)]


def test_rows_that_do_not_wait_for_the_end_of_a_step_are_of_its_epoch(folder: Path) -> None:
    session = Session()
    run = workspace_of(session).assemble(workspace_of(session).prepare(TEXT.format(folder=folder)))
    assert isinstance(run, LocalRun)
    (job,) = run.jobs
    assert job.engine.subplan.taker is not None
    rows = [
        pa.array([value], field.type) for value, field in zip((None, 7), job.engine.subplan.output_schema, strict=True)
    ]
    job.engine.subplan.taker(pa.RecordBatch.from_arrays(rows, schema=job.engine.subplan.output_schema))
    job.commit()
    assert job._changed and answers(f"{folder}/answers.db") == [7]
    run.abort()


def sharing(*sinks: str) -> str:
    """Queries on one join, each with a sink of its own."""
    columns, source = "ts TIMESTAMP, v INTEGER, WATERMARK FOR ts AS ts", "connector = 'ledger', folder = '{folder}'"
    streams = [f"CREATE STREAM {name} ({columns}) WITH ({source});" for name in "xy"]
    declared = [f"CREATE SINK {k} WITH (connector = 'ledger', database = '{{folder}}/{k}.db');" for k in sinks]
    queries = [
        f"INSERT INTO {k} ISTREAM(SELECT x.v AS v FROM x [RANGE {ord(k) - 96} SECONDS], y [RANGE {ord(k) - 96} SECONDS]"
        " WHERE x.v = y.v);"
        for k in sinks
    ]
    return "\n".join([*streams, *declared, *queries])


def test_a_query_that_left_a_shared_join_goes_on_with_its_epochs(tmp_path: Path) -> None:
    def more(first: int, behind: int) -> None:
        for partition in ("north", "south"):
            write(tmp_path, partition, *range(first, behind))

    more(0, 3)
    run(tmp_path, end=False, text=sharing("a", "b", "c"))
    more(3, 6)
    run(tmp_path, end=False, text=sharing("a", "b", "c"))
    before = answers(f"{tmp_path}/c.db")
    more(6, 9)
    for _ in range(2):
        run(tmp_path, end=False, text=sharing("a", "b"))
    assert answers(f"{tmp_path}/c.db") == before
    more(9, 12)
    run(tmp_path, text=sharing("a", "b", "c"))
    assert set(answers(f"{tmp_path}/a.db")) == set(range(12))
    assert set(answers(f"{tmp_path}/c.db")) >= {*before, 9, 10, 11}


def test_what_was_prepared_of_a_query_that_left_is_committed_when_it_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for partition in ("north", "south"):
        write(tmp_path, partition, *range(6))
    transact = LedgerSink.transact

    def failing(sink: LedgerSink, epoch: int, rows: Sequence[pa.RecordBatch]) -> None:
        if sink._path.endswith("c.db"):
            raise Gone
        transact(sink, epoch, rows)

    with monkeypatch.context() as patch, pytest.raises(Gone):
        patch.setattr(LedgerSink, "transact", failing)
        run(tmp_path, end=False, text=sharing("a", "b", "c"))
    (staged,) = (tmp_path / "kept" / "staged-c").iterdir()
    run(tmp_path, end=False, text=sharing("a", "b"))
    assert staged.exists()
    run(tmp_path, text=sharing("a", "b", "c"))
    assert answers(f"{tmp_path}/c.db")[0] == 0 and not staged.exists()


def test_a_commit_that_is_repeated_changes_nothing(tmp_path: Path) -> None:
    properties = {"connector": "ledger", "database": f"{tmp_path}/answers.db"}
    declared = SinkDeclaration("o", properties, run="one", staging=str(tmp_path / "staged"))
    schema = pa.schema([("v", pa.int32())])
    sink = LedgerSink(declared, Opening(schema))
    sink.write(pa.record_batch([pa.array([1, 2], pa.int32())], schema=schema))
    token = sink.prepare(7)
    for _ in range(2):
        sink.commit(7, token)
    LedgerSink(declared, Opening(schema)).transact(7, [pa.record_batch({"v": [1, 2]})])
    assert answers(properties["database"]) == [1, 2]
    sink.commit(8, sink.prepare(8))
    sink.write(pa.record_batch([pa.array([3], pa.int32())], schema=schema))
    sink.abort(9)
    assert answers(properties["database"]) == [1, 2] and not list((tmp_path / "staged").iterdir())


def test_rows_that_cannot_be_staged_or_read_back_are_reported(tmp_path: Path) -> None:
    schema = pa.schema([("v", pa.int32())])
    rows = pa.record_batch([pa.array([1], pa.int32())], schema=schema)

    def opened(staging: str) -> LedgerSink:
        properties = {"connector": "ledger", "database": f"{tmp_path}/answers.db"}
        return LedgerSink(SinkDeclaration("o", properties, run="one", staging=str(tmp_path / staging)), Opening(schema))

    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match="cannot be staged"):
        opened("file/below").write(rows)
    sink = opened("staged")
    sink.write(rows)
    token = sink.prepare(0)
    (staged,) = (tmp_path / "staged").iterdir()
    staged.write_bytes(b"nothing")
    with pytest.raises(SinkError, match="cannot be read"):
        opened("staged").commit(0, token)


def test_a_sink_without_snapshots_is_rejected_for_them(folder: Path) -> None:
    text = TEXT.format(folder=folder).replace("(connector = 'Ledger'", "(emit = 'latest', connector = 'Ledger'")
    session = Session()
    planned = workspace_of(session).prepare(text.replace("ISTREAM(SELECT v FROM s WHERE v >= 0)", "SELECT v FROM s"))
    with pytest.raises(OptionError, match="cannot show the latest relation"):
        workspace_of(session).assemble(planned).run()


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Connector]]:
    connectors = {name: registry._CONNECTORS[name] for name in ("files", "generator", "ledger", "memory", "terminal")}
    monkeypatch.setattr(registry, "_CONNECTORS", connectors)
    yield connectors


def test_a_name_is_given_once(names: dict[str, Connector]) -> None:
    register("LEDGER", LEDGER)  # the same again
    for name in ("ledger", "Files"):
        with pytest.raises(OptionError, match="there is a connector"):
            register(name, Connector())
    register("ledger", Connector(sink=LedgerSink), replace=True)
    assert names["ledger"].source is None


def test_what_there_is_is_reported(names: dict[str, Connector]) -> None:
    register("drain", Connector(sink=LedgerSink))
    for name, what in (("pipe", "no connector 'pipe'"), ("generator", "no connector 'generator' to write to")):
        with pytest.raises(OptionError, match=what) as error:
            check_sink(SinkDefinition("o", properties={"connector": name}))
        assert error.value.remedy == "connectors are 'drain', 'files', 'ledger', 'memory' and 'terminal'"


INSTALLED = [("Installed", "tests.connectors.ledger:LEDGER"), ("broken", "tests.nowhere:X"), ("odd", "json:loads")]


@pytest.mark.parametrize(
    ("name", "says"),
    [("installed", None), ("broken", "cannot be loaded"), ("odd", "is no connector"), ("pipe", "no connector 'pipe'")],
)
def test_connectors_of_installed_packages_are_loaded_by_name(
    names: dict[str, Connector], monkeypatch: pytest.MonkeyPatch, name: str, says: str | None
) -> None:
    entries = EntryPoints(EntryPoint(each, value, registry.GROUP) for each, value in INSTALLED)
    monkeypatch.setattr(registry, "entry_points", lambda group: entries.select(group=group))
    if says is None:
        check_sink(SinkDefinition("o", properties={"connector": name}))
        assert names[name] is LEDGER
        return
    with pytest.raises(OptionError, match=says) as error:
        check_sink(SinkDefinition("o", properties={"connector": name}))
    assert error.value.remedy
    if name == "pipe":
        assert "'broken', 'files', 'installed', 'ledger', 'memory', 'odd' and 'terminal'" in error.value.remedy
        assert "installed" not in names, "nobody has requested it"
