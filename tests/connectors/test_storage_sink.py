"""Answers on a storage: whole epochs or nothing, once, whatever step of writing is the last."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.connectors.memory_storage import Died, MemoryStorage, memory_storage
from tests.connectors.reading import read_all
from tests.profile import NIGHTLY
from transom.connectors.commit_log import read_log
from transom.connectors.connector import Opening, Resume, Sink, SinkDeclaration
from transom.connectors.files import FileSource
from transom.connectors.open import open_files
from transom.connectors.registry import find_connector
from transom.core.errors import OptionError, SinkError, TransomError
from transom.core.schema import INTEGER, Column, Schema

SCHEMA = pa.schema([("n", pa.int32())])
COLUMNS = Schema((Column("n", INTEGER),))


@pytest.fixture
def kept() -> Iterator[tuple[str, MemoryStorage]]:
    with memory_storage() as uri_and_storage:
        yield uri_and_storage


def opened(uri: str, resume: Resume | None = None, run: str | None = "a", snapshots: bool = False) -> Sink:
    connector = find_connector({"connector": "files"}, "out", sink=True)
    assert connector.sink is not None
    declared = SinkDeclaration("out", {"path": uri, "format": "parquet"}, run)
    return connector.sink(declared, Opening(SCHEMA, resume, snapshots=snapshots))


def batch(*values: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.int32())], schema=SCHEMA)


def shown(uri: str, file_format: str = "parquet") -> list[int]:
    """In the order in which a source reads them."""
    source = FileSource(COLUMNS, {"path": uri, "format": file_format}, time_column=None)
    return [row["n"] for row in read_all(source, growing=True).rows]


def write_epochs(uri: str, first: int, behind: int, resume: Resume | None = None) -> Resume:
    """As a run does that keeps what was prepared before it commits."""
    sink = opened(uri, resume)
    if resume is not None:
        sink.commit(resume.done - 1, resume.token)
    for epoch in range(first, behind):
        sink.write(batch(2 * epoch, 2 * epoch + 1))
        token = json.loads(json.dumps(sink.prepare(epoch)))
        sink.commit(epoch, token)
        sink.commit(epoch, token)
        resume = Resume(epoch + 1, epoch + 1, token)
    sink.close()
    assert resume is not None
    return resume


def test_epochs_are_read_in_their_order_and_old_commits_are_gathered(kept: tuple[str, MemoryStorage]) -> None:
    uri, storage = kept
    write_epochs(f"{uri}/out/", 0, 35)
    assert shown(f"{uri}/out") == list(range(70))
    names = [entry.name for entry in storage.entries(f"{uri}/out/_spark_metadata")]
    assert sorted(names, key=lambda name: int(name.partition(".")[0])) == [
        *("19.compact", *map(str, range(20, 29)), "29.compact"),
        *map(str, range(30, 35)),
    ]
    line = json.loads(storage.files[f"{uri}/out/_spark_metadata/30"][0].decode().split("\n")[1])
    assert re.fullmatch(rf"{uri}/out/part-[0-9a-f]{{32}}\.parquet", line.pop("path"))
    assert {"isDir": False, "action": "add", "blockReplication": 1}.items() <= line.items()
    assert line["size"] > 0 and line["modificationTime"] > 0 and line["blockSize"] > 0


@pytest.mark.parametrize("behind", [False, True])
def test_whatever_step_is_the_last_one_no_row_is_lost_and_none_is_there_twice(behind: bool) -> None:
    """The run that goes on knows the last token that was kept; one is kept as soon as it is prepared."""
    for fails in range(0, 100, 1 if NIGHTLY else 3):
        with memory_storage() as (uri, storage):
            before = write_epochs(f"{uri}/out/", 0, 8)  # so that the log is gathered on the way
            storage.steps, storage.fails, storage.behind = 0, fails, behind
            resume = before
            try:
                sink = opened(f"{uri}/out/", resume)
                sink.commit(resume.done - 1, resume.token)
                for epoch in range(8, 12):
                    sink.write(batch(2 * epoch, 2 * epoch + 1))
                    token = json.loads(json.dumps(sink.prepare(epoch)))
                    resume = Resume(epoch + 1, epoch + 1, token)
                    sink.commit(epoch, token)
                sink.close()
                died = False
            except TransomError as error:
                assert isinstance(error.__cause__, Died)
                died = True
                with suppress(TransomError):
                    sink.abort(epoch)
            storage.fails = None
            seen = shown(f"{uri}/out")
            assert seen == list(range(len(seen))) and len(seen) % 2 == 0 and len(seen) >= 16
            write_epochs(f"{uri}/out/", resume.done, 14, resume)
            assert shown(f"{uri}/out") == list(range(28))
            log = read_log(storage, f"{uri}/out")
            parts = {entry.name for entry in storage.entries(f"{uri}/out") if entry.name.startswith("part-")}
            assert log is not None and parts == {file.name for file in log.files}, "nothing is left behind"
            if not died:
                assert fails > 5
                return


def replayed(sink: Sink, epoch: int, *values: int) -> None:
    """As tasks write, and the driver commits."""
    assert sink.tasks is not None
    parts = [(number, sink.tasks.write([batch(value)])) for number, value in reversed(list(enumerate(values)))]
    sink.add_parts(parts)
    sink.commit(epoch, sink.prepare(epoch))


def test_a_batch_that_is_run_again_changes_nothing(kept: tuple[str, MemoryStorage]) -> None:
    uri, storage = kept
    sink = opened(f"{uri}/out/")
    replayed(sink, 0, 1, 2)
    replayed(sink, 1, 3, 4)
    assert sink.tasks is not None
    sink.tasks.write([batch(99)])  # by a task whose driver died
    again = opened(f"{uri}/out/", Resume(1, 2))
    replayed(again, 1, 3, 4)
    replayed(again, 2)
    replayed(again, 3, 5)
    again.close()
    assert shown(f"{uri}/out") == [1, 2, 3, 4, 5]
    assert sum(entry.name.startswith("part-") for entry in storage.entries(f"{uri}/out")) == 5


def test_another_run_takes_the_place_of_one_when_it_shows_something(kept: tuple[str, MemoryStorage]) -> None:
    uri, storage = kept
    resume = write_epochs(f"{uri}/out/", 0, 13)
    opened(f"{uri}/out/", run="b").close()
    write_epochs(f"{uri}/out/", 13, 14, resume)
    assert shown(f"{uri}/out") == list(range(28)), "the other has shown nothing"
    other = opened(f"{uri}/out/", run="b")
    replayed(other, 0, 1)
    assert shown(f"{uri}/out") == [1]
    replayed(other, 1, 2)
    other.close()
    assert shown(f"{uri}/out") == [1, 2]
    assert sum(entry.name.startswith("part-") for entry in storage.entries(f"{uri}/out")) == 2
    with pytest.raises(SinkError, match="has the answer of another run by now"):
        opened(f"{uri}/out/", resume)


@pytest.mark.parametrize("steps", range(6))
def test_a_run_that_dies_while_it_takes_over(steps: int) -> None:
    with memory_storage() as (uri, storage):
        write_epochs(f"{uri}/out/", 0, 3)
        storage.steps, storage.fails = 0, steps
        with suppress(TransomError):
            replayed(opened(f"{uri}/out/", run="b"), 0, 7)
        storage.fails = None
        assert shown(f"{uri}/out") in ([0, 1, 2, 3, 4, 5], [7])
        again = opened(f"{uri}/out/", Resume(0, 1) if steps else None, run="b")
        replayed(again, 0, 7)
        again.close()
        assert shown(f"{uri}/out") == [7]
        assert sum(entry.name.startswith("part-") for entry in storage.entries(f"{uri}/out")) == 1


def test_folders_of_others_are_left_alone(kept: tuple[str, MemoryStorage]) -> None:
    uri, storage = kept
    storage.put(f"{uri}/out/part-00000-x.c000.snappy.parquet", b"")
    with pytest.raises(SinkError, match="has files that no query of ours has written"):
        opened(f"{uri}/out/")
    with pytest.raises(SinkError, match="has files that no query of ours has written"):
        open_files({"path": f"{uri}/out/", "format": "csv"}).check()


def test_a_checkpoint_without_its_log_or_a_folder_that_is_gone(kept: tuple[str, MemoryStorage]) -> None:
    uri, storage = kept
    resume = write_epochs(f"{uri}/out/", 0, 2)
    with pytest.raises(SinkError, match="there is no log of it"):
        opened(f"{uri}/out/")
    storage.files.clear()
    with pytest.raises(SinkError, match="is not there"):
        opened(f"{uri}/out/", resume)


def test_a_log_that_lacks_a_commit_is_rejected(kept: tuple[str, MemoryStorage]) -> None:
    uri, storage = kept
    resume = write_epochs(f"{uri}/out/", 0, 3)
    del storage.files[f"{uri}/out/_spark_metadata/1"]
    with pytest.raises(SinkError, match="commit 1 is missing"):
        opened(f"{uri}/out/", resume)
    with pytest.raises(TransomError, match="commit 1 is missing"):
        shown(f"{uri}/out")


@pytest.mark.parametrize("path", ["out/", "latest.parquet"])
def test_snapshots_replace_one_file(kept: tuple[str, MemoryStorage], path: str) -> None:
    uri, storage = kept
    write_epochs(f"{uri}/out/", 0, 2)
    sink = opened(f"{uri}/{path}", run="b", snapshots=True)
    for values in ((1, 2), (3,)):
        sink.replace(batch(*values))
        sink.commit(0, sink.prepare(0))
    sink.close()
    where = f"{uri}/out/latest.parquet" if path == "out/" else f"{uri}/{path}"
    assert pyarrow.parquet.read_table(storage.open(where)).to_pydict() == {"n": [3]}
    assert path != "out/" or [entry.name for entry in storage.entries(f"{uri}/out")] == [".transom", "latest.parquet"]


def test_one_file_that_grows_is_rejected(kept: tuple[str, MemoryStorage]) -> None:
    with pytest.raises(OptionError, match="is one file, to which a storage can add no rows") as raised:
        opened(f"{kept[0]}/a.parquet")
    assert f"path = '{kept[0]}/a/'" in str(raised.value.remedy)


def test_what_was_written_for_an_epoch_that_failed_is_removed(kept: tuple[str, MemoryStorage]) -> None:
    uri, storage = kept
    sink = opened(f"{uri}/out/")
    assert sink.tasks is not None
    sink.add_parts([(0, sink.tasks.write([batch(1)]))])
    sink.write(batch(2))
    sink.abort(0)
    assert [entry.name for entry in storage.entries(f"{uri}/out")] == [".transom"]
