"""Whose the parts in a folder are, and that nothing is removed but what a run may remove, when it may."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.connectors.epochs import commit, prepare
from transom import Session
from transom.connectors.files_sink import FileSink
from transom.core.errors import SinkError

SCHEMA = pa.schema([("n", pa.int32())])


def sink(path: Path, parts: int | None = None, run: str | None = None) -> FileSink:
    return FileSink({"path": str(path), "format": "csv"}, SCHEMA, parts=parts, run=run)


def write(out: FileSink, *numbers: int) -> None:
    out.write(pa.record_batch([pa.array(numbers, pa.int32())], schema=SCHEMA))


def put(out: FileSink, *numbers: int) -> None:
    write(out, *numbers)
    commit(out)


def numbers(folder: Path) -> list[int]:
    return [int(line) for file in sorted(folder.glob("[!.]*")) for line in file.read_text().splitlines()[1:]]


def owner(folder: Path) -> object:
    return json.loads((folder / ".transom").read_text())["run"]


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder of parts as Spark or anybody else writes them."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "part-000000.csv").write_text("n\n1\n")
    return folder


def test_a_folder_of_somebody_else_is_rejected_before_anything_is_written(tmp_path: Path, theirs: Path) -> None:
    with pytest.raises(SinkError, match=r"no query of ours has written, such as 'part-000000\.csv'") as raised:
        sink(theirs)
    assert raised.value.remedy == "choose another folder, or empty this one"
    session = Session()
    session.table("t", [{"a": 1}])
    with pytest.raises(SinkError, match="theirs"):
        session.execute(f"""
            CREATE SINK mine WITH (connector = 'files', path = '{tmp_path}/mine/', format = 'csv');
            CREATE SINK theirs WITH (connector = 'files', path = '{theirs}', format = 'csv');
            INSERT INTO mine SELECT a FROM t;
            INSERT INTO theirs SELECT a FROM t
        """)
    assert os.listdir(tmp_path) == ["theirs"] and os.listdir(theirs) == ["part-000000.csv"]


def test_a_snapshot_of_somebody_else_is_theirs_too(tmp_path: Path) -> None:
    (tmp_path / "latest.csv").write_text("n\n1\n")
    with pytest.raises(SinkError, match=r"'latest\.csv'"):
        sink(tmp_path)


def test_a_folder_without_parts_is_anybodys(tmp_path: Path) -> None:
    (tmp_path / "readme.txt").write_text("to be filled")
    out = sink(tmp_path)
    put(out, 1)
    out.close()
    assert sorted(os.listdir(tmp_path)) == [".transom", "part-000000.csv", "readme.txt"]


def test_the_parts_of_an_earlier_run_go_with_the_first_commit(tmp_path: Path) -> None:
    old = sink(tmp_path)
    for number in range(3):
        put(old, number)
    sink(tmp_path).close()  # writes nothing
    failed = sink(tmp_path)
    write(failed, 7)
    failed.abort(0)
    assert numbers(tmp_path) == [0, 1, 2]
    fresh = sink(tmp_path)
    write(fresh, 8)
    prepare(fresh)
    assert numbers(tmp_path) == [0, 1, 2]
    commit(fresh)
    assert numbers(tmp_path) == [8]
    put(fresh, 9)
    assert numbers(tmp_path) == [8, 9]


def test_snapshots_and_parts_take_the_place_of_each_other(tmp_path: Path) -> None:
    put(sink(tmp_path), 1)
    latest = sink(tmp_path)
    latest.replace(pa.record_batch([pa.array([2], pa.int32())], schema=SCHEMA))
    latest.close()
    assert numbers(tmp_path) == [2]
    put(sink(tmp_path), 3)
    assert numbers(tmp_path) == [3]


def test_a_run_that_goes_on_knows_its_own_folder(tmp_path: Path) -> None:
    out = sink(tmp_path, run="one")
    put(out, 1)
    again = sink(tmp_path, parts=1, run="one")
    put(again, 2)
    again.close()
    assert (numbers(tmp_path), owner(tmp_path)) == ([1, 2], "one")


def test_what_a_log_does_not_count_goes_on_its_word(tmp_path: Path) -> None:
    out = sink(tmp_path, run="one")
    for number in range(3):
        put(out, number)
    sink(tmp_path, parts=1, run="one").abort(0)  # the checkpoint was put back from a copy
    assert numbers(tmp_path) == [0, 1, 2]
    sink(tmp_path, parts=1, run="one").close()
    assert numbers(tmp_path) == [0]


@pytest.mark.parametrize("name", ["out", "out.csv"])
def test_parts_whose_log_is_lost_are_not_removed(tmp_path: Path, name: str) -> None:
    """The checkpoint is there, and its log is not: it lies in another file system, or somebody has removed it."""
    out = sink(tmp_path / name, run="one")
    put(out, 1)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SinkError, match="there is no log of it any more") as raised:
        sink(tmp_path / name, run="one")
    assert "remove the checkpoint folder" in str(raised.value.remedy)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_run_whose_folder_another_one_has_taken_does_not_go_on(tmp_path: Path) -> None:
    put(sink(tmp_path, run="one"), 1)
    waiting = sink(tmp_path, run="two")
    put(again := sink(tmp_path, parts=1, run="one"), 2)
    assert numbers(tmp_path) == [1, 2], "the other run has not written anything yet"
    put(waiting, 3)
    assert (numbers(tmp_path), owner(tmp_path)) == ([3], "two")
    with pytest.raises(SinkError, match="has the answer of another run by now"):
        sink(tmp_path, parts=again.parts, run="one")


@pytest.mark.parametrize("moment", ["prepared", "removing", "removed", "shown"])
def test_a_run_that_dies_when_it_takes_a_folder_over(
    tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of both runs are never seen together, and the one that comes back has all of its own."""

    class Gone(BaseException):
        pass

    def dying(work: Callable[..., None], at: str) -> Callable[..., None]:
        def unless(*arguments: str) -> None:
            if at in str(arguments[-1]):
                raise Gone
            work(*arguments)

        return unless

    for number in range(3):
        put(old := sink(tmp_path, parts=number, run="one"), number)
    assert old.parts == 3
    out = sink(tmp_path, run="two")
    write(out, 8)
    assert prepare(out) == 1  # which a log has by now
    with monkeypatch.context() as patch:
        if moment == "removing":
            patch.setattr("os.unlink", dying(os.unlink, "part-000001"))
        elif moment == "removed":
            patch.setattr("transom.connectors.files_sink.commit_file", dying(lambda *_: None, "part"))
        if moment in ("removing", "removed"):
            with pytest.raises(Gone):
                commit(out)
    if moment == "shown":
        commit(out)
    assert 8 not in numbers(tmp_path) or numbers(tmp_path) == [8]
    if moment != "prepared":
        with pytest.raises(SinkError, match="another run"):
            sink(tmp_path, parts=3, run="one")
    again = sink(tmp_path, parts=1, run="two")
    put(again, 9)
    assert numbers(tmp_path) == [8, 9]


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "[" * 9999, '{"format": 2, "run": "x"}', '{"format": 1, "run": 7}', "\udcff"]
)
def test_a_mark_that_cannot_be_read_is_nobodys(tmp_path: Path, text: str) -> None:
    put(sink(tmp_path), 1)
    (tmp_path / ".transom").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(SinkError, match="nobody knows whose its files are"):
        sink(tmp_path)
    assert numbers(tmp_path) == [1]


def test_a_session_goes_on_from_a_checkpoint_and_starts_anew_without_it(tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    rows.mkdir()
    text = f"""
        CREATE STREAM s (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'files', path = '{rows}');
        CREATE SINK o WITH (connector = 'files', path = '{tmp_path}/out/', format = 'csv');
        INSERT INTO o ISTREAM(SELECT a FROM s)
    """

    def run(kept: str) -> None:
        with Session() as session:
            session.start(text, checkpoint=str(tmp_path / kept)).await_termination(300)

    (rows / "1.csv").write_text("ts,a\n2024-05-01 00:00:00,1\n2024-05-01 00:00:01,1\n")
    run("kept")
    before = (tmp_path / "out" / "part-000000.csv").read_text()
    run("kept")
    assert (tmp_path / "out" / "part-000000.csv").read_text() == before
    (tmp_path / "kept" / "checkpoint.arrow").unlink()
    with pytest.raises(SinkError, match="no log of it"):
        run("kept")
    assert (tmp_path / "out" / "part-000000.csv").read_text() == before
    (rows / "1.csv").write_text("ts,a\n2024-05-01 00:00:00,2\n2024-05-01 00:00:01,2\n")
    run("other")
    assert (tmp_path / "out" / "part-000000.csv").read_text().splitlines()[1].endswith(",2")
