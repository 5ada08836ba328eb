"""Folders and files that grow, and positions that outlive the source that gave them."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.connectors.reading import read_all
from transom.connectors.connector import Limits
from transom.connectors.files import FileSource
from transom.connectors.source import Position
from transom.core.errors import CheckpointError, SourceError
from transom.core.schema import INTEGER, Schema

COLUMNS = Schema.of(("id", INTEGER))


def source(path: Path | str, **properties: str) -> FileSource:
    return FileSource(COLUMNS, {"path": str(path), **properties}, time_column=None)


def ids(
    path: Path | str, position: Position | None = None, *, step: int = 100, growing: bool = False
) -> tuple[list[int], Position]:
    everything = read_all(source(path), position, step=step, growing=growing)
    assert everything.rejected == []
    return [row["id"] for row in everything.rows], everything.positions[-1]


def lines(*numbers: int) -> str:
    return "".join(f'{{"id": {number}}}\n' for number in numbers)


def test_a_folder_in_the_order_of_names_and_formats_mixed(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("id\n3\n4\n")
    (tmp_path / "a.jsonl").write_text(lines(1, 2))
    pq.write_table(pa.table({"id": [5, 6]}), tmp_path / "c.parquet")
    (tmp_path / ".d.csv.new").write_text("half a fi")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "below").mkdir()
    (tmp_path / "empty.csv").write_text("")
    for step in (1, 2, 3, 100):
        assert ids(tmp_path, step=step)[0] == [1, 2, 3, 4, 5, 6]


def test_a_batch_spans_files(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.jsonl").write_text(lines(number))
    batch = source(tmp_path).read({}, 100)
    assert batch.rows.column(0).to_pylist() == [0, 1, 2, 3, 4]
    assert batch.ended


def test_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "x1.jsonl").write_text(lines(1))
    (tmp_path / "x2.jsonl").write_text(lines(2))
    (tmp_path / "y.jsonl").write_text(lines(9))
    assert ids(tmp_path / "x*.jsonl")[0] == [1, 2]
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "x0.jsonl").write_text(lines(0))
    assert ids(tmp_path / "**" / "x[01].jsonl")[0] == [0, 1]


def test_a_name_that_looks_like_a_pattern_is_taken_literally_if_it_is_there(tmp_path: Path) -> None:
    (tmp_path / "x[1].jsonl").write_text(lines(7))
    (tmp_path / "x1.jsonl").write_text(lines(1))
    assert ids(tmp_path / "x[1].jsonl")[0] == [7]


def test_nothing_but_patterns_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.jsonl").write_text(lines(1))
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in ("~/a.jsonl", "$HOME/a.jsonl", f"{tmp_path}/a.jsonl; true"):
        with pytest.raises(SourceError, match="there is no file or folder"):
            source(path).read({}, 1)


def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no file or folder"):
        source(tmp_path / "none.csv").read({}, 1)
    with pytest.raises(SourceError, match="no file matches"):
        source(tmp_path / "*.csv").read({}, 1)
    assert source(tmp_path / "*.csv").read({}, 1, growing=True).ended
    with pytest.raises(SourceError, match="neither a file nor a folder"):
        source("/dev/null").read({}, 1)
    (tmp_path / "data.txt").write_text("id\n1\n")
    with pytest.raises(SourceError, match="does not tell its format"):
        source(tmp_path).read({}, 1)
    assert read_all(source(tmp_path, format="csv")).rows == [{"id": 1}]


def test_new_files_are_read_once_wherever_they_sort(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_text(lines(1, 2, 3))
    first = source(tmp_path).read({}, 2)
    assert first.rows.column(0).to_pylist() == [1, 2]
    (tmp_path / "a.jsonl").write_text(lines(10))
    (tmp_path / "c.jsonl").write_text(lines(11))
    rest, position = ids(tmp_path, first.position)
    assert rest == [3, 10, 11]  # the file at hand first, then what is unread by name
    assert ids(tmp_path, position)[0] == []
    pq.write_table(pa.table({"id": [12]}), tmp_path / "a0.parquet")
    rest, position = ids(tmp_path, position)
    assert rest == [12]
    assert ids(tmp_path, position)[0] == []


def test_lines_appended_to_any_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    (tmp_path / "b.csv").write_text("id\n2\n")
    _, position = ids(tmp_path)
    with (tmp_path / "a.csv").open("a") as file:
        file.write("3\n4\n")
    rest, position = ids(tmp_path, position, step=1)
    assert rest == [3, 4]
    with (tmp_path / "b.csv").open("a") as file:
        file.write("5\n")
    assert ids(tmp_path, position)[0] == [5]


def test_an_unfinished_line_waits_while_the_file_grows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("i")
    new_ids, position = ids(path, growing=True)
    assert new_ids == []
    for text, expected in (("d\n1\n2", [1]), ("3", []), ("\n4\n", [23, 4]), ("", [])):
        with path.open("a") as file:
            file.write(text)
        new_ids, position = ids(path, position, growing=True)
        assert new_ids == expected


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_last_line_without_its_end_is_a_row_and_its_end_may_come_later(tmp_path: Path, end: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1}')
    new_ids, position = ids(path)
    assert new_ids == [1]
    with path.open("a", newline="") as file:
        file.write(end + lines(2))
    assert ids(path, position)[0] == [2]


def test_a_line_that_goes_on_after_it_was_read_is_not_lost_silently(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id\n1")
    new_ids, position = ids(path)
    assert new_ids == [1]
    with path.open("a") as file:
        file.write("5\n2\n")
    rest = read_all(source(path), position)
    assert [row["id"] for row in rest.rows] == [2]
    assert rest.rejected[0]["raw"] == "5"
    assert "read already" in rest.reasons[0]


def test_files_that_shrink_or_vanish(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n2\n")
    (tmp_path / "b.csv").write_text("id\n3\n")
    part = source(tmp_path).read({}, 1).position
    whole = ids(tmp_path)[1]
    (tmp_path / "a.csv").write_text("id\n")
    with pytest.raises(SourceError, match="5 of it have been read before"):
        source(tmp_path).read(part, 10)
    (tmp_path / "a.csv").unlink()
    with pytest.raises(SourceError, match="read in part, and now it is not there"):
        source(tmp_path).read(part, 10)
    assert ids(tmp_path, whole)[0] == []  # what is read to the end may be tidied away
    pq.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "c.parquet")
    part = source(tmp_path / "c.parquet").read({}, 3).position | {"current": str(tmp_path / "c.parquet")}
    pq.write_table(pa.table({"id": [1]}), tmp_path / "c.parquet")
    with pytest.raises(SourceError, match="has 1 rows, and 3 of it have been read before"):
        source(tmp_path / "c.parquet").read(part, 1)


def test_growth_at_every_position(tmp_path: Path) -> None:
    """Whatever has been read when a file is added and another one grows: afterwards each row has come once."""
    for taken in range(5):
        folder = tmp_path / str(taken)
        folder.mkdir()
        (folder / "b.jsonl").write_text(lines(1, 2))
        (folder / "d.jsonl").write_text(lines(3, 4))
        seen: list[int] = []
        position: Position = {}
        for _ in range(taken):
            batch = source(folder).read(position, 1)
            seen += batch.rows.column(0).to_pylist()
            position = batch.position
        (folder / "a.jsonl").write_text(lines(5))
        (folder / "c.jsonl").write_text(lines(6))
        with (folder / "b.jsonl").open("a") as file:
            file.write(lines(7))
        seen += ids(folder, position, step=2)[0]
        assert sorted(seen) == [1, 2, 3, 4, 5, 6, 7]


def test_names_that_are_no_text(tmp_path: Path) -> None:
    try:
        with open(os.fsencode(tmp_path) + b"/\xff.csv", "w") as file:
            file.write("id\n1\nx\n")
    except OSError:
        pytest.skip("this file system has no such names")
    everything = read_all(source(tmp_path), step=1)
    assert everything.rows == [{"id": 1}]
    assert everything.rejected[0]["position"] == "\\xff.csv, line 3"


def test_a_column_to_be_stamped_is_null_and_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n2\n")
    columns = Schema.of(("at", INTEGER), ("id", INTEGER))
    stamped = FileSource(columns, {"path": str(tmp_path)}, time_column=None, stamped="at")
    assert read_all(stamped).rows == [{"at": None, "id": 1}, {"at": None, "id": 2}]


# --- no row disappears or repeats without a trace --------------------------------------------------------------------


@pytest.mark.parametrize("text", [b"id\r1\r2\r", b"id\r1\r2", b"\xef\xbb\xbfid\r1\r", b'"id","na\rme"\r1,2\r3,4\r'])
@pytest.mark.parametrize("growing", [False, True])
def test_a_csv_file_whose_lines_end_with_returns_alone_is_rejected(tmp_path: Path, text: bytes, growing: bool) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text)
    for read in (source(path).read, lambda at, rows, growing: source(path).plan(at, Limits(rows), growing=growing)):
        with pytest.raises(SourceError, match="end with carriage returns alone") as error:
            read({}, 10, growing=growing)
        assert "tr '\\r' '\\n'" in str(error.value)


@pytest.mark.parametrize("growing", [False, True])
def test_json_objects_between_returns_alone_are_rejected(tmp_path: Path, growing: bool) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"id": 1}\r{"id": 2}\r')
    with pytest.raises(SourceError, match="end with carriage returns alone"):
        source(path).read({}, 10, growing=growing)
    path.write_bytes(b'{"id":\r1}')  # a blank like any other
    assert read_all(source(path)).rows == [{"id": 1}]


def test_a_return_whose_line_feed_has_not_come_yet_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id\r")
    assert ids(path, growing=True)[0] == []
    path.write_bytes(b"id\r\n1\r\n")
    assert ids(path, growing=True)[0] == [1]


def test_lines_that_end_with_returns_alone_among_others_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id\n1\r2\r3\n4\n")
    everything = read_all(source(path))
    assert [row["id"] for row in everything.rows] == [4]
    assert everything.reasons == ["the line has a line end outside quotes"]


@pytest.mark.parametrize("reach", [False, True])
@pytest.mark.parametrize("other", ["id\n7\n8\n9\n10\n", "id\n1\n9\n3\n"], ids=["longer", "as long"])
def test_a_text_that_has_been_replaced(tmp_path: Path, other: str, reach: bool) -> None:
    """Read in part or to its end, before a restart or not, by another file or in place."""
    for at_once in (1, 2, 10):
        for in_place in (False, True):
            path = tmp_path / "a.csv"
            path.write_text("id\n1\n2\n3\n")
            reading = source(path)
            position = reading.read({}, at_once).position
            (tmp_path / "b").write_text(other)
            (tmp_path / "b").replace(path) if not in_place else path.write_text(other)
            if at_once == 1 and other.startswith("id\n1\n"):
                continue  # nothing that has been read is another
            for again in (reading, source(path)):
                with pytest.raises(SourceError, match=r"'.*a.csv' has been replaced"):
                    again.plan(position, Limits(1)) if reach else again.read(position, 1)


def test_a_long_text_is_known_by_its_beginning_and_by_what_was_read_last(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(lines(*range(1000)))
    position = source(path).read({}, 900).position
    for other in (lines(5, *range(1, 2000)), lines(*range(899), 5, *range(900, 2000))):
        path.write_text(other)
        with pytest.raises(SourceError, match="has been replaced"):
            source(path).read(position, 1)
    path.write_text(lines(*range(2000)))
    assert source(path).read(position, 1).rows.column(0).to_pylist() == [900]


@pytest.mark.parametrize("reach", [False, True])
def test_a_parquet_file_that_has_been_replaced(tmp_path: Path, reach: bool) -> None:
    path = tmp_path / "a.parquet"
    for rows in (1, 3):  # in part, to its end
        pq.write_table(pa.table({"id": [1, 2, 3]}), path)
        position = source(path).read({}, rows).position
        pq.write_table(pa.table({"id": [4, 5, 6]}), path)
        with pytest.raises(SourceError, match=r"'.*a.parquet' has been replaced"):
            source(path).plan(position, Limits(1)) if reach else source(path).read(position, 1)


def test_links_to_folders_that_form_a_ring(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    (tmp_path / "a.jsonl").write_text(lines(1))
    (below / "b.jsonl").write_text(lines(2))
    for number in range(3):  # each of them doubles the ways through the others
        (below / f"up{number}").symlink_to(tmp_path, target_is_directory=True)
    assert ids(tmp_path / "**" / "*.jsonl")[0] == [1, 2]
    assert ids(tmp_path / "**")[0] == [1, 2]
    assert ids(tmp_path / "*" / "*.jsonl")[0] == [2]


def test_a_pattern_from_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x" / ".hidden").mkdir(parents=True)
    for name in ("a.jsonl", "x/b.jsonl", "x/.hidden/c.jsonl"):
        (tmp_path / name).write_text(lines(1))
    for pattern, names in (("**/*.jsonl", ["a.jsonl", "x/b.jsonl"]), ("x/**/*.jsonl", ["x/b.jsonl"])):
        assert sorted(source(pattern).read({}, 9).position["files"]) == names


def test_a_file_of_several_names_is_read_once(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "b.jsonl").write_text(lines(1))
    (folder / "a.jsonl").symlink_to(folder / "b.jsonl")
    (tmp_path / "outside.jsonl").write_text(lines(2))
    for name in ("x.jsonl", "y.jsonl"):
        (folder / name).symlink_to(tmp_path / "outside.jsonl")
    for path in (folder, folder / "*.jsonl"):
        new_ids, position = ids(path)
        assert new_ids == [1, 2]
        assert [Path(name).name for name in position["files"]] == ["b.jsonl", "x.jsonl"]
    (folder / "c.jsonl").symlink_to(folder / "b.jsonl")
    (folder / "0.jsonl").symlink_to(tmp_path / "outside.jsonl")
    assert ids(folder / "*.jsonl", position)[0] == []  # a name that has been read stays the one


def test_a_position_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(lines(1))
    pq.write_table(pa.table({"id": [1]}), tmp_path / "b.parquet")
    for name in ("a.jsonl", "b.parquet"):
        for at in (7, "x", [], [-1, 0, "x"], [2**70, "x"], [1, 2], [True, 0, "x"]):
            with pytest.raises(CheckpointError, match="cannot be read"):
                read_all(source(tmp_path), {"files": {name: at}})
