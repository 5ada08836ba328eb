"""Folders and files that grow, and positions that outlive the source that gave them."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.connectors.reading import read_all
from transom.connectors.files import FileSource
from transom.connectors.source import Position
from transom.core.errors import SourceError
from transom.core.schema import INTEGER, Schema

COLUMNS = Schema.of(("id", INTEGER))


def source(path: Path | str, **properties: str) -> FileSource:
    return FileSource(COLUMNS, {"path": str(path), **properties}, time_column=None)


def ids(
    path: Path | str, position: Position | None = None, *, step: int = 100, growing: bool = False
) -> tuple[list[int], Position]:
    found = read_all(source(path), position, step=step, growing=growing)
    assert found.rejected == []
    return [row["id"] for row in found.rows], found.positions[-1]


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
    found, position = ids(path, growing=True)
    assert found == []
    for text, expected in (("d\n1\n2", [1]), ("3", []), ("\n4\n", [23, 4]), ("", [])):
        with path.open("a") as file:
            file.write(text)
        found, position = ids(path, position, growing=True)
        assert found == expected


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_last_line_without_its_end_is_a_row_and_its_end_may_come_later(tmp_path: Path, end: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1}')
    found, position = ids(path)
    assert found == [1]
    with path.open("a", newline="") as file:
        file.write(end + lines(2))
    assert ids(path, position)[0] == [2]


def test_a_line_that_goes_on_after_it_was_read_is_not_lost_silently(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id\n1")
    found, position = ids(path)
    assert found == [1]
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
    found = read_all(source(tmp_path), step=1)
    assert found.rows == [{"id": 1}]
    assert found.rejected[0]["position"] == "\\xff.csv, line 3"


def test_a_column_to_be_stamped_is_null_and_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n2\n")
    columns = Schema.of(("at", INTEGER), ("id", INTEGER))
    stamped = FileSource(columns, {"path": str(tmp_path)}, time_column=None, stamped="at")
    assert read_all(stamped).rows == [{"at": None, "id": 1}, {"at": None, "id": 2}]
