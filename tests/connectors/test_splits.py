"""Files and made-up rows read in splits: the same rows, rejects and positions as read in one."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.connectors.reading_splits import agree, of_batch, of_plan
from transom.connectors import lines, parquet_rows, text_scan
from transom.connectors.connector import Limits, Split
from transom.connectors.files import FileSource
from transom.connectors.generator import GeneratorSource
from transom.connectors.listing import Listed
from transom.connectors.open import open_source
from transom.connectors.source import Position
from transom.connectors.splits import SPLIT_RECORDS, divide
from transom.core.errors import SourceError
from transom.core.schema import BIGINT, INTEGER, TIMESTAMP, VARCHAR, Schema
from transom.plan.catalogue import StreamDefinition, TableDefinition, TimeColumn

COLUMNS = Schema.of(("id", INTEGER), ("name", VARCHAR))
CUTS = (1, 2, 7, 1000)


def source(path: Path | str, columns: Schema = COLUMNS, **properties: str) -> FileSource:
    return FileSource(columns, {"path": str(path), **properties}, time_column=None)


def ids(path: Path | str, splits: list[Split]) -> list[int]:
    reader = source(path, Schema.of(("id", INTEGER)))
    return [id for split in splits for chunk in reader.read_split(split) for id in chunk.rows.column(0).to_pylist()]


TEXTS = {
    "plain.csv": b"id,name\n1,a\n2,b\n3,c\n",
    "windows.csv": b"\xef\xbb\xbfid,name\r\n1,a\r\n\r\n2,b\r\n\r\n",
    "quoted.csv": b'name,id\n"a\nb",1\n"c ""d"" \r\n",2\n"\n\n",3\n',
    "slips.csv": b'id,name\n1,"open\n2,b\n3,"c"d\n4,x,y\n5\n6,5" disk\nx,"y"\n7,"end',
    "two_lines_of_header.csv": b'"id","na\nme",name\n1,a,b\n2,c,"d\n\ne"\n',
    "not_utf8.csv": b"id,name\n1,\xff\n2,b",
    "header.csv": b"id,name\n",
    "no_end.csv": b"id,name",
    "blank.csv": b"id,name\n\n\n1,a\n\n\n2,b\n\n\n",
    "return.csv": b"id,name\n1,a\rb\n2,c\r",
    "plain.jsonl": b'{"id": 1, "name": "a\\nb"}\n\n{"id": "x"}\n{"id": 2}\r\n{"id": 3, "name": "\xff"}\n[]\n{"id": 4}',
    "mark.jsonl": b'\xef\xbb\xbf{"id": 1}\n{"id": 2}\n',
    "blank.jsonl": b"\n\r\n\n",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("growing", [False, True])
def test_texts_in_blocks_of_any_size(tmp_path: Path, name: str, growing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / name
    path.write_bytes(TEXTS[name])
    for block, records, max_rows in itertools.product((1, 5, 1 << 20), (2, SPLIT_RECORDS), CUTS):
        monkeypatch.setattr(text_scan, "_BLOCK", block)
        monkeypatch.setattr(text_scan, "SPLIT_RECORDS", records)
        agree(lambda: source(path), max_rows, {}, growing=growing)


def test_one_column_whose_empty_lines_are_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_bytes(b"id\n1\n\n\r\n2\n\n")
    monkeypatch.setattr(text_scan, "_BLOCK", 2)
    for max_rows in CUTS:
        read = agree(lambda: source(tmp_path, Schema.of(("id", INTEGER))), max_rows, {})
        assert [row["id"] for row in read.rows] == [1, None, None, 2, None]


def test_a_folder_of_all_formats(tmp_path: Path) -> None:
    for name, text in TEXTS.items():
        (tmp_path / name).write_bytes(text)
    rows = {"id": list(range(20)), "name": [str(n) for n in range(20)]}
    pq.write_table(pa.table(rows), tmp_path / "m.parquet", row_group_size=6)
    pq.write_table(pa.table(rows).slice(0, 0), tmp_path / "n.parquet")
    whole = [agree(lambda: source(tmp_path), max_rows, {}) for max_rows in CUTS]
    assert whole[0].rows == whole[-1].rows
    assert len(whole[0].rejected) == len(whole[-1].rejected) > 5
    everything = source(tmp_path).plan({}, Limits())
    assert everything.ended and everything.rows == len(whole[0].rows) + len(whole[0].rejected)
    assert of_plan(everything, source(tmp_path)) == whole[-1]


def test_rejected_parquet_rows_say_where_they_stand(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["1", "x", "3", "y"], "name": list("abcd")}), tmp_path / "a.parquet")
    for max_rows in CUTS:
        read = agree(lambda: source(tmp_path), max_rows, {})
        assert [row["position"] for row in read.rejected] == ["a.parquet, row 2", "a.parquet, row 4"]


def test_some_files_at_a_time(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.csv").write_text(f"id\n{number}\n")
    (tmp_path / "0a.csv").write_text("id\n")  # has no row, so it does not count
    (tmp_path / "0b.csv").write_text("id\n7")  # the row waits, and does not keep the others waiting
    planning = source(tmp_path, Schema.of(("id", INTEGER)))
    first = planning.plan({}, Limits(files=2), growing=True)
    assert ids(tmp_path, list(first.splits)) == [0, 1] and not first.ended
    second = planning.plan(first.position, Limits(1, 2), growing=True)
    assert ids(tmp_path, list(second.splits)) == [2] and not second.ended
    third = planning.plan(second.position, Limits(files=2), growing=True)
    assert ids(tmp_path, list(third.splits)) == [3, 4] and third.ended and not third.over
    for wrong in ({"rows": 0}, {"files": 0}, {"bytes": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            Limits(**wrong)


def test_long_texts_are_cut_every_so_many_records_and_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id\n" + "".join(f"{number}\n" for number in range(200_000)))
    splits = source(path, Schema.of(("id", INTEGER))).plan({}, Limits(150_000)).splits
    assert [split.rows for split in splits] == [65_536, 65_536, 18_928]
    assert ids(path, list(splits)) == list(range(150_000))
    path.write_text("id\n" + "".join(f"{number:09}\n" for number in range(20)) + "1" + " " * 80 + "\n2\n")
    monkeypatch.setattr(text_scan, "BLOCK_BYTES", 50)
    splits = source(path, Schema.of(("id", INTEGER))).plan({}, Limits()).splits
    assert [split.rows for split in splits] == [5, 5, 5, 5, 1, 1]


def test_row_groups_are_not_cut_without_need(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array(range(300_000), pa.int32())})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=40_000)
    splits = source(tmp_path, Schema.of(("id", INTEGER))).plan({}, Limits(290_000)).splits
    assert [split.at for split in splits] == [0, 80_000, 160_000, 240_000]
    first, second = divide(splits, 2, 1)
    assert second == [Split("a.parquet", 160_000, 80_000, True), Split("a.parquet", 240_000, 50_000, True)]
    assert ids(tmp_path, first + second) == list(range(290_000))


def test_a_footer_is_read_once_until_the_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    really = parquet_rows._open

    def count(file: Listed) -> Any:
        opened.append(file.name)
        return really(file)

    monkeypatch.setattr(parquet_rows, "_open", count)
    for name in "abcdef":
        pq.write_table(pa.table({"id": [1, 2, 3, 4, 5]}), tmp_path / f"{name}.parquet")
    planning = source(tmp_path, Schema.of(("id", INTEGER)))
    position: dict[str, Any] = {}
    for _ in range(6):
        position = planning.plan(position, Limits(2), growing=True).position
    assert opened == ["a.parquet", "b.parquet", "c.parquet"]
    pq.write_table(pa.table({"id": [1]}), tmp_path / "c.parquet")
    with pytest.raises(SourceError, match="has 1 rows, and 2 of it have been read before"):
        planning.plan(position, Limits(2), growing=True)


def test_a_batch_that_ends_within_a_block_costs_the_next_one_no_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    really = text_scan._read_block

    def count(handle: Any, index: lines.TextOffset, *rest: Any) -> Any:
        looks.append(index.offset)
        return really(handle, index, *rest)

    monkeypatch.setattr(text_scan, "_read_block", count)
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"id": {number}}}\n' for number in range(100)))
    planning = source(path, Schema.of(("id", INTEGER)))
    position: dict[str, Any] = {}
    for _ in range(20):
        position = planning.plan(position, Limits(3)).position
    assert looks == [0]
    path.write_text(path.read_text() + '{"id": 100}\n')
    assert ids(path, list(planning.plan(position, Limits()).splits)) == list(range(60, 101))
    assert len(looks) == 2


# --- what happens between planning and reading -----------------------------------------------------------------------


def test_lines_added_after_planning_are_no_part_of_a_split(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id\n1\n2")
    reach = source(path, Schema.of(("id", INTEGER))).plan({}, Limits())
    path.write_text('id\n1\n23\n"4\n')
    assert ids(path, list(reach.splits)) == [1, 2]


def test_a_line_that_goes_on_after_it_was_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for more in (b"5\n2,b\n", b"\n2,b\n", b"\r\n2,b", b"\r", b'"x\n"', b"5"):
        path.write_bytes(b"id,name\n0,a\n1,b")
        position = source(path).read({}, 100).position
        with path.open("ab") as file:
            file.write(more)
        for max_rows, growing in itertools.product(CUTS, (False, True)):
            agree(lambda: source(path), max_rows, position, growing=growing)


def test_an_unfinished_line_waits(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("i")
    planning = source(path, Schema.of(("id", INTEGER)))
    position: dict[str, Any] = {}
    for text, expected in (("", []), ("d\n1\n2", [1]), ("3", []), ("\n4\n", [23, 4]), ("", [])):
        with path.open("a") as file:
            file.write(text)
        reach = planning.plan(position, Limits(100), growing=True)
        assert reach.ended
        assert ids(path, list(reach.splits)) == expected
        position = reach.position


def test_a_file_that_is_not_what_was_planned(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1}\n{"id": 2}\n')
    (split,) = source(path).plan({}, Limits()).splits
    path.write_text('{"id": 1,\n"x": 2}\n\n\n\n')
    assert of_plan(source(path).plan({}, Limits()), source(path)).rejected
    path.write_text('{"id": 1}          \n')
    with pytest.raises(SourceError, match="has been replaced"):
        list(source(path).read_split(split))
    path.write_text('{"id": 1}\n')
    with pytest.raises(SourceError, match="has 10 bytes, and 20 of it"):
        list(source(path).read_split(split))
    path.unlink()
    with pytest.raises(SourceError, match="cannot be read"):
        list(source(path).read_split(split))


def test_another_file_of_the_same_name_is_looked_at_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id\n1\n2\n3\n")
    planning = source(path, Schema.of(("id", INTEGER)))
    planning.plan({}, Limits(1))
    (tmp_path / "b").write_text("x,id\n0,4444\n")
    (tmp_path / "b").replace(path)
    assert ids(path, list(planning.plan({}, Limits()).splits)) == [4444]


def test_a_parquet_file_that_got_shorter(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "a.parquet")
    (split,) = source(tmp_path, Schema.of(("id", INTEGER))).plan({}, Limits()).splits
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="has 2 rows, and 3 of it"):
        ids(tmp_path, [split])


def test_a_quote_open_for_too_long_spoils_its_own_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_scan, "_BLOCK", 8)
    monkeypatch.setattr(text_scan, "LONGEST_RECORD", 64)
    path = tmp_path / "a.csv"
    path.write_text('id,name\n1,"a\n' + "".join(f"{number},b\n" for number in range(2, 60)))
    for max_rows in CUTS:
        read = agree(lambda: source(path), max_rows, {})
        assert len(read.rows) == 58
        assert [row["position"] for row in read.rejected] == [f"{path}, line 2"]
    path.write_text("id,name\n1," + "x" * 200)
    with pytest.raises(SourceError, match=r"line 2 of file .* is longer than"):
        source(path).plan({}, Limits(1))
    assert lines.LONGEST_RECORD > 1 << 20


# --- other sources ---------------------------------------------------------------------------------------------------


def test_made_up_rows_by_their_numbers() -> None:
    columns = Schema.of(("ts", TIMESTAMP), ("n", BIGINT))
    properties = {"rows": "100000", "rate": "1000", "disorder": "2 seconds"}

    def make() -> GeneratorSource:
        return GeneratorSource(columns, properties, time_column="ts")

    agree(make, 30_000, {})
    whole = make().plan({}, Limits())
    assert whole.ended and whole.over and whole.position == {"rows": 100_000}
    cut = [split for group in divide(whole.splits, 3, 1) for split in group]
    assert len(cut) == 3
    assert of_plan(whole, make(), cut) == of_batch(make().read({}, 100_000))
    endless = GeneratorSource(columns, {}, time_column="ts").plan({"rows": 5}, Limits())
    assert 0 < endless.rows < 10_000_000 and not endless.ended


def test_which_sources_can_be_read_in_other_processes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    columns = Schema.of(("id", INTEGER))
    files = TableDefinition("t", columns, properties={"connector": "files", "path": str(tmp_path)})
    assert open_source(files).distributed
    time = Schema.of(("ts", TIMESTAMP))
    made = StreamDefinition("s", time, TimeColumn("ts", 0), properties={"connector": "generator", "rows": "3"})
    assert open_source(made).distributed
    memory = StreamDefinition("m", time, TimeColumn("ts", 0), properties={"connector": "memory"})
    assert not open_source(memory).distributed


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_a_batch_of_large_rows_ends_about_where_its_bytes_do(tmp_path: Path, name: str) -> None:
    texts = [str(row) * 100 for row in range(100, 200)]
    if name == "a.csv":
        (tmp_path / name).write_text("\n".join(["id", *texts]))
    else:
        pq.write_table(pa.table({"id": texts}), tmp_path / name, use_dictionary=False, compression="none")
    reader, seen = source(tmp_path, Schema.of(("id", VARCHAR))), []
    position: Position = {}
    while True:
        plan = reader.plan(position, Limits(bytes=3000))
        assert plan.rows <= 20
        seen += of_plan(plan, reader).rows
        position = plan.position
        if plan.ended:
            break
    assert [row["id"] for row in seen] == texts


# --- sharing splits out ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("divisible", [True, False])
def test_splits_are_shared_out_in_order_and_about_evenly(divisible: bool) -> None:
    for sizes, parts, least in itertools.product(
        ([], [5], [100], [1, 99], [50, 50], [10] * 10, [1] * 7, [30, 1, 1, 68]), (1, 2, 3, 8), (0, 1, 10, 60)
    ):
        splits = [Split(str(at), 0 if divisible else [0, 0, 9], rows, divisible) for at, rows in enumerate(sizes)]
        groups = divide(splits, parts, least)
        shares = [sum(split.rows for split in group) for group in groups]
        assert len(groups) <= parts and sum(shares) == sum(sizes)
        assert len(groups) < 2 or min(shares) >= max(1, least)
        records = [
            (p.partition, (p.at if divisible else 0) + row) for group in groups for p in group for row in range(p.rows)
        ]
        assert records == [(str(at), row) for at, rows in enumerate(sizes) for row in range(rows)]
        if divisible and sum(sizes) >= parts * max(1, least) * 2:
            assert len(groups) == parts and max(shares) <= 1.3 * sum(sizes) / parts + 1
        if not divisible:
            assert [split for group in groups for split in group] == splits
