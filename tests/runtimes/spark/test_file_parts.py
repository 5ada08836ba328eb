"""Files that tasks write and the driver shows, and what is made of the leavings of runs that died."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from tests.connectors.epochs import commit
from transom.connectors import batch_files
from transom.connectors.batch_files import BatchFiles, PartFiles
from transom.connectors.files_sink import FileSink
from transom.connectors.sink_folder import MARK
from transom.core.errors import OptionError, SinkError
from transom.core.location import Within
from transom.pipeline.frames import FILES, OUT, STATUS, Frame, Message, pack
from transom.runtimes.spark.answer_parts import written

SCHEMA = pa.schema([("n", pa.int32())])


def rows(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers, pa.int32())], schema=SCHEMA)


def sink(path: Path, done: int = 0, planned: int = 0, snapshots: bool = False, run: str | None = None) -> BatchFiles:
    properties = {"path": str(path), "format": "csv"}
    return BatchFiles(properties, SCHEMA, done=done, planned=planned, snapshots=snapshots, run=run)


def write(out: BatchFiles, batch: int, *partitions: tuple[int, ...]) -> None:
    """As the tasks of a batch and the driver do it together."""
    tasks = out.tasks
    assert tasks is not None
    out.add_parts((partition, tasks.write([rows(*numbers)])) for partition, numbers in enumerate(partitions))
    token = json.loads(json.dumps(out.prepare(batch)))
    for _ in range(2):  # the second time nothing happens
        out.commit(batch, token)


def numbers(path: Path) -> list[int]:
    files = sorted(path.glob("[!.]*")) if path.is_dir() else [path]
    return [int(line) for file in files for line in file.read_text().splitlines()[1:]]


def hidden(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(".") and name != MARK]


def test_tasks_write_and_the_driver_shows(tmp_path: Path) -> None:
    out = sink(tmp_path / "out")
    travelled: PartFiles = pickle.loads(pickle.dumps(out.tasks))
    status = Message(0, 1, STATUS, pack([Frame({"kind": "status"})]))
    mine, nothing, other = (
        Message(0, 1, OUT, pack([Frame({"kind": "out", "query": query}, rows(*each))]))
        for query, each in (("q", (1, 2, 3)), ("q", ()), ("r", (4,)))
    )
    first, *rest = written({"q": travelled}, {"q": rows().schema}, [mine, nothing, other, status])
    assert (first.kind, first.partition, rest) == (FILES, 1, [other, status]), "whose query has no files is left alone"
    (about,) = [part.about for part in first.opened()]
    assert (
        (about["query"], about["rows"]) == ("q", 3)
        and hidden(tmp_path / "out") == about["part"]
        and numbers(tmp_path / "out") == []
    )
    out.add_parts([(about["partition"], about["part"])])
    out.commit(7, out.prepare(7))
    assert sorted(os.listdir(tmp_path / "out")) == [MARK, "part-000007-0000.csv"]
    assert numbers(tmp_path / "out") == [1, 2, 3]


def test_a_writer_that_fails_leaves_nothing_of_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_files, "MANY_ROWS", 2)
    tasks = sink(tmp_path / "out").tasks
    assert tasks is not None
    checked = tasks.target.checked

    def fails(self: object, batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.column(0)[0].as_py() == 2:
            raise OSError(28, "No space left on device")
        return checked(batch)

    monkeypatch.setattr(type(tasks.target), "checked", fails)
    with pytest.raises(SinkError, match="No space left"):
        tasks.write([rows(1), rows(2)])
    assert hidden(tmp_path / "out") == []


@pytest.mark.parametrize("sizes", [(5, 1), (1, 5), (2, 2, 2), (0, 6), (3, 0, 4)])
def test_many_rows_are_several_files_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...]
) -> None:
    monkeypatch.setattr(batch_files, "MANY_ROWS", 6)
    monkeypatch.setattr(batch_files, "WRITERS", 3)
    out = sink(tmp_path / "out")
    tasks = out.tasks
    assert tasks is not None
    several = iter(range(100))
    batches = [rows(*(next(several) for _ in range(size))) for size in sizes]
    out.add_parts([(1, tasks.write([rows(200, 201)])), (0, tasks.write(batches))])
    out.commit(2, json.loads(json.dumps(out.prepare(2))))
    assert numbers(tmp_path / "out") == [*range(sum(sizes)), 200, 201], "those of the first partition come first"
    assert len(list((tmp_path / "out").glob("part-000002-*"))) == 4 and hidden(tmp_path / "out") == []


@pytest.mark.parametrize("name", ["out", "out.csv"])
def test_a_batch_that_is_run_again_is_there_once(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    out = sink(path)
    write(out, 0, (1,), (2,))
    write(out, 1, (3,), (4,))  # and the process dies before that is settled
    again = sink(path, done=1, planned=2)
    if path.is_dir():
        assert numbers(path) == [1, 2, 3, 4], "rows that were shown do not go and come"
    write(again, 1, (3, 4))  # with a part less, to see that none stays
    write(again, 2, (5,))
    again.close()
    assert numbers(path) == [1, 2, 3, 4, 5]
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("name", ["out", "out.csv"])
def test_a_fresh_start_forgets_everything(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    local = FileSink({"path": str(path), "format": "csv"}, SCHEMA)
    local.write(rows(9))
    commit(local)
    out = sink(path)
    write(out, 0, (1,))
    assert out.tasks is not None
    out.tasks.write([rows(8)])  # by a task that was given up
    fresh = sink(path)
    write(fresh, 0, (2,))
    fresh.close()
    assert numbers(path) == [2]
    assert hidden(tmp_path) == [] and (path.is_file() or hidden(path) == [])


def test_parts_of_a_run_that_went_further_are_forgotten(tmp_path: Path) -> None:
    out = sink(tmp_path / "out")
    for batch in range(4):
        write(out, batch, (batch,))
    sink(tmp_path / "out", done=2, planned=2).abort(0)  # the checkpoint was put back from a copy
    assert numbers(tmp_path / "out") == [0, 1, 2, 3], "a run that fails at once has changed nothing"
    sink(tmp_path / "out", done=2, planned=2).close()
    assert numbers(tmp_path / "out") == [0, 1]


def test_a_finished_file_is_gone_on_with_even_if_that_dies_too(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    out = sink(path)
    write(out, 0, (1,))
    out.close()
    sink(path, done=1, planned=1).close()  # nothing new
    assert numbers(path) == [1]
    second = sink(path, done=1, planned=1)
    write(second, 1, (2,))  # dies
    third = sink(path, done=1, planned=2)
    write(third, 1, (2,))  # dies when the batch is done
    sink(path, done=2, planned=2).close()
    assert numbers(path) == [1, 2]
    assert os.listdir(tmp_path) == ["out.csv"]


def test_a_finished_file_that_is_gone_is_missed(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    out = sink(path)
    write(out, 0, (1,))
    out.close()
    path.unlink()
    with pytest.raises(SinkError, match="is not there, and 1 parts of it"):
        sink(path, done=1, planned=1)


@pytest.mark.parametrize("moment", ["commit_file", "shutil.rmtree"])
def test_a_run_that_dies_while_it_makes_one_file(tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(BaseException):
        pass

    def gone(*_: object) -> None:
        raise Gone

    path = tmp_path / "out.csv"
    out = sink(path)
    write(out, 0, (1,), (2,))
    with monkeypatch.context() as patch:
        patch.setattr(f"transom.connectors.file_target.{moment}", gone)
        with pytest.raises(Gone):
            out.close()
    again = sink(path, done=1, planned=1)
    write(again, 1, (3,))
    again.close()
    assert numbers(path) == [1, 2, 3]
    assert os.listdir(tmp_path) == ["out.csv"]


@pytest.mark.parametrize("name", ["out", "out.csv"])
def test_snapshots_replace_each_other_and_stay(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    out = sink(path, snapshots=True)
    assert out.tasks is None
    out.replace(rows(1))
    out.replace(rows(2, 3))
    out.close()
    sink(path, done=2, planned=2, snapshots=True).close()
    assert numbers(path) == [2, 3]
    sink(tmp_path / "none.csv", snapshots=True).close()
    assert numbers(tmp_path / "none.csv") == []
    assert hidden(tmp_path) == []


def test_a_task_that_cannot_write_leaves_nothing(tmp_path: Path) -> None:
    out = sink(tmp_path / "out")
    assert out.tasks is not None
    with pytest.raises(SinkError, match="takes columns"):
        out.tasks.write([pa.record_batch({"n": ["x"]})])
    assert os.listdir(tmp_path / "out") == [MARK]
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(SinkError, match="cannot be written"):
        out.tasks.write([rows(1)])


@pytest.mark.parametrize("name", ["out", "out.csv"])
def test_shown_parts_are_not_removed_because_there_is_no_log(tmp_path: Path, name: str) -> None:
    """As where the log went to another file system than the one that we look into."""
    path = tmp_path / name
    for batch in range(3):
        write(sink(path, batch, batch, run="one"), batch, (batch,))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SinkError, match="there is no log of it any more"):
        sink(path, run="one")
    assert sorted(tmp_path.rglob("*")) == before


def test_rows_behind_a_finished_file_are_not_removed_because_there_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    write(first := sink(path, run="one"), 0, (1,))
    first.close()
    write(sink(path, 1, 1, run="one"), 1, (2,))
    with pytest.raises(SinkError, match="there is no log of it any more"):
        sink(path, run="one")
    write(other := sink(path, run="two"), 0, (3,))  # dies
    del other
    write(again := sink(path, 0, 1, run="two"), 0, (3,))
    again.close()
    assert numbers(path) == [3] and sorted(os.listdir(tmp_path)) == [".out.csv.run", "out.csv"]


def test_the_parts_of_another_run_go_with_the_first_rows(tmp_path: Path) -> None:
    """Also if it is stopped and goes on before it has any; batches without rows remove nothing."""
    for batch in range(3):
        write(sink(tmp_path, batch, batch, run="one"), batch, (batch,))
    out = sink(tmp_path, run="two")
    write(out, 0)
    sink(tmp_path, done=1, planned=2, run="two").abort(0)
    again = sink(tmp_path, done=1, planned=2, run="two")
    write(again, 1)
    again.close()
    assert numbers(tmp_path) == [0, 1, 2]
    write(sink(tmp_path, done=2, planned=3, run="two"), 2, (7,), (8,))
    assert numbers(tmp_path) == [7, 8]
    with pytest.raises(SinkError, match="has the answer of another run by now"):
        sink(tmp_path, done=3, planned=3, run="one")


def test_parts_of_somebody_else_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "part-000000-0000.csv").write_text("n\n1\n")
    for snapshots in (False, True):
        with pytest.raises(SinkError, match="no query of ours"):
            sink(tmp_path, snapshots=snapshots)
    assert os.listdir(tmp_path) == ["part-000000-0000.csv"]


def test_a_task_writes_nothing_outside_of_the_folder_to_stay_within(tmp_path: Path) -> None:
    within = Within.of(tmp_path)
    out = BatchFiles({"path": str(tmp_path / "out"), "format": "csv"}, SCHEMA, done=0, planned=0, within=within)
    travelled: PartFiles = pickle.loads(pickle.dumps(out.tasks))
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "out").symlink_to(tmp_path.parent)
    with pytest.raises(OptionError, match="leads outside of"):
        travelled.write([rows(1)])
