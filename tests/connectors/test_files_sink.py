from __future__ import annotations

import json
import os
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.connectors.epochs import commit
from tests.connectors.reading import read_all
from transom.connectors.files import FileSource
from transom.connectors.files_sink import FileSink
from transom.connectors.part_writers import ParquetPart
from transom.connectors.storage import create_file
from transom.core.errors import SinkError
from transom.core.schema import BOOLEAN, DATE, DOUBLE, INTEGER, REAL, TIMESTAMP, VARCHAR, Column, Schema

FORMATS = ["parquet", "csv", "jsonl"]
NUMBERS = pa.schema([("n", pa.int32())])
COLUMNS = Schema.of(
    ("i", INTEGER), ("f", DOUBLE), ("r", REAL), ("d", pa.decimal128(20, 10)), ("s", VARCHAR), ("b", BOOLEAN),
    ("day", DATE), ("at", TIMESTAMP),
)  # fmt: skip


def numbers(*values: int | None) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.int32())], schema=NUMBERS)


def sink(path: Path | str, schema: pa.Schema = NUMBERS, *, parts: int = 0, **properties: str) -> FileSink:
    return FileSink({"path": str(path), **properties}, schema, parts=parts)


def rows(path: Path, columns: Schema, **properties: str) -> list[dict[str, Any]]:
    everything = read_all(FileSource(columns, {"path": str(path), **properties}, time_column=None))
    assert everything.rejected == []
    return everything.rows


def ints(path: Path, **properties: str) -> list[int | None]:
    return [row["n"] for row in rows(path, Schema.of(("n", INTEGER)), **properties)]


def seen(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_folder_gets_a_part_a_commit_and_shows_no_half_files(tmp_path: Path, file_format: str) -> None:
    out = sink(tmp_path / "out", format=file_format)
    out.write(numbers(1))
    out.write(numbers(2, None))
    assert seen(tmp_path / "out") == []
    assert commit(out) == 1
    assert seen(tmp_path / "out") == [f"part-000000.{file_format}"]
    assert commit(out) == 1  # nothing written, no part
    out.write(numbers())
    out.write(numbers(4))
    assert ints(tmp_path / "out") == [1, 2, None]
    out.close()
    assert seen(tmp_path / "out") == [f"part-00000{n}.{file_format}" for n in range(2)]
    assert ints(tmp_path / "out") == [1, 2, None, 4]
    assert sorted(os.listdir(tmp_path / "out")) == [".transom", *seen(tmp_path / "out")]


@pytest.mark.parametrize("file_format", FORMATS)
def test_one_file_is_shown_at_the_end_with_all_parts(tmp_path: Path, file_format: str) -> None:
    path = tmp_path / "deep" / f"out.{file_format}"
    out = sink(path)
    for number in range(3):
        out.write(numbers(number))
        commit(out)
        assert seen(tmp_path / "deep") == []
    out.close()
    assert os.listdir(tmp_path / "deep") == [path.name]
    assert ints(path) == [0, 1, 2]


@pytest.mark.parametrize("file_format", FORMATS)
def test_an_empty_answer_is_an_empty_file(tmp_path: Path, file_format: str) -> None:
    path = tmp_path / f"out.{file_format}"
    sink(path).close()
    assert ints(path) == []
    if file_format == "parquet":
        assert pq.read_schema(path).names == ["n"]
    if file_format == "csv":
        assert path.read_text() == "n\n"


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("crash", range(5))
def test_a_restart_overwrites_what_was_not_committed(
    tmp_path: Path, file_format: str, single: bool, crash: int
) -> None:
    """A run is lost after `crash` commits while more is being written; the next one resumes from an older commit."""
    path = tmp_path / (f"out.{file_format}" if single else "out")
    out = sink(path, format=file_format)
    for number in range(crash):
        out.write(numbers(number, number))
        commit(out)
    out.write(numbers(99))
    assert out._writer is not None
    out._writer.abort()  # as when the process dies: nothing is tidied up
    counted = max(0, crash - 2)
    again = sink(path, parts=counted, format=file_format)
    for number in range(counted, 4):
        again.write(numbers(number, number))
        commit(again)
    again.close()
    assert ints(path) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_finished_file_can_be_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    out = sink(path)
    out.write(numbers(1))
    out.close()
    more = sink(path, parts=out.parts)
    more.write(numbers(2))
    more.close()
    assert ints(path) == [1, 2]
    sink(path, parts=more.parts).close()
    assert ints(path) == [1, 2]
    path.unlink()
    with pytest.raises(SinkError, match="is not there"):
        sink(path, parts=2)


def test_a_new_run_replaces_the_old_answer_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    for count in (3, 1):
        out = sink(folder, format="csv")
        for number in range(count):
            out.write(numbers(number))
            commit(out)
        (folder / "notes.txt").write_text("mine")
        (folder / "part-one.csv").write_text("mine")
    assert seen(folder) == ["notes.txt", "part-000000.csv", "part-one.csv"]


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_snapshot_is_shown_whole_and_with_its_commit(tmp_path: Path, file_format: str) -> None:
    single, folder = tmp_path / f"one.{file_format}", tmp_path / "out"
    for path, target in ((single, single), (folder, folder / f"latest.{file_format}")):
        out = sink(path, format=file_format)
        shown: list[int] | None = None
        for snapshot in ((1, 2, 3), (), (4,)):
            out.replace(numbers(7))
            out.replace(numbers(*snapshot))
            token = out.prepare(0)
            assert ints(target) == shown if shown is not None else not target.exists()
            out.commit(0, token)
            shown = list(snapshot)
            assert ints(target) == shown
        out.close()
        assert ints(target) == [4]
    assert sorted(os.listdir(tmp_path)) == sorted([single.name, "out"])


def test_a_reader_sees_the_old_file_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    out = sink(path)
    out.replace(numbers(1))
    commit(out)
    with (
        patch("os.fsync", side_effect=OSError(28, "No space left on device")),
        pytest.raises(SinkError, match="No space"),
    ):
        out.replace(numbers(2, 3))
    commit(out)
    assert ints(path) == [1]


def test_a_snapshot_of_a_run_that_failed_is_not_shown(tmp_path: Path) -> None:
    out = sink(tmp_path / "out", format="csv")
    out.replace(numbers(1))
    out.prepare(0)
    out.abort(0)
    assert os.listdir(tmp_path / "out") == [".transom"]


def test_an_aborted_part_leaves_nothing(tmp_path: Path) -> None:
    for file_format in FORMATS:
        out = sink(tmp_path / file_format, format=file_format)
        out.write(numbers(1))
        out.abort(0)
        out.abort(0)
        assert os.listdir(tmp_path / file_format) == [".transom"]


def test_columns_of_one_name_get_names_of_their_own(tmp_path: Path) -> None:
    schema = pa.schema([("n", pa.int32()), ("n", pa.int32())])
    out = sink(tmp_path / "out.csv", schema)
    out.write(pa.RecordBatch.from_arrays([pa.array([1], pa.int32()), pa.array([2], pa.int32())], schema=schema))
    out.close()
    assert (tmp_path / "out.csv").read_text() == "n,n_1\n1,2\n"


def test_rows_of_another_shape_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="takes columns"):
        sink(tmp_path / "out.csv").write(pa.record_batch({"n": ["x"]}))


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match="cannot be written"):
        sink(tmp_path / "file" / "out.csv")


def test_how_values_are_written(tmp_path: Path) -> None:
    values = {
        "i": [1, None], "f": [float("inf"), 0.1], "r": [0.5, None], "d": [Decimal("0.0000000001"), Decimal("1.5")],
        "s": ['a "b", c\n', ""], "b": [True, None], "day": [date(2024, 5, 1), None],
        "at": [datetime(2024, 5, 1, 10), datetime(1, 1, 1, 0, 0, 0, 1)],
    }  # fmt: skip
    batch = pa.record_batch([pa.array(values[column.name], column.type) for column in COLUMNS], schema=COLUMNS.arrow())
    for name in ("out.csv", "out.jsonl"):
        out = sink(tmp_path / name, COLUMNS.arrow())
        out.write(batch)
        out.close()
    assert (tmp_path / "out.csv").read_text() == (
        "i,f,r,d,s,b,day,at\n"
        '1,inf,0.5,0.0000000001,"a ""b"", c\n",true,2024-05-01,2024-05-01 10:00:00\n'
        ',0.1,,1.5000000000,"",,,0001-01-01 00:00:00.000001\n'
    )
    first, second = (json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines())
    assert first == {
        "i": 1, "f": "inf", "r": 0.5, "d": "0.0000000001", "s": 'a "b", c\n', "b": True, "day": "2024-05-01",
        "at": "2024-05-01 10:00:00",
    }  # fmt: skip
    assert (second["i"], second["d"], second["at"]) == (None, "1.5000000000", "0001-01-01 00:00:00.000001")


VALUES = {
    "i": st.integers(-(2**31), 2**31 - 1),
    "f": st.floats(allow_nan=False),
    "r": st.floats(allow_nan=False, width=32),
    "d": st.decimals(allow_nan=False, allow_infinity=False, places=10, min_value=-(10**9), max_value=10**9),
    "s": st.text(max_size=8),
    "b": st.booleans(),
    "day": st.dates(),
    "at": st.datetimes(),
}


@given(st.data(), st.sampled_from(FORMATS), st.sampled_from([(",", ""), (";", "\\N"), ("|", "NULL")]))
def test_what_is_written_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, file_format: str, style: tuple[str, str]
) -> None:
    """Any columns, any values, NULLs among them: the very same after a sink and a source."""
    chosen = data.draw(st.lists(st.sampled_from(COLUMNS.names), min_size=1, unique=True))
    columns = Schema(
        tuple(Column(name, type_) for name, type_ in zip(COLUMNS.names, COLUMNS.types, strict=True) if name in chosen)
    )
    drawn = data.draw(
        st.lists(st.fixed_dictionaries({name: st.none() | VALUES[name] for name in columns.names}), max_size=6)
    )
    batch = pa.RecordBatch.from_pylist(drawn, columns.arrow())
    path = tmp_path_factory.getbasetemp() / f"what.{file_format}"
    options = {"delimiter": style[0], "null": style[1]} if file_format == "csv" else {}
    with patch("os.fsync"):
        out = FileSink({"path": str(path), **options}, columns.arrow())
        out.write(batch)
        out.close()
    assert rows(path, columns, **options) == batch.to_pylist()


@pytest.mark.nightly
def test_strings_of_megabytes(tmp_path: Path) -> None:
    long = 'é"\n' * 3_000_000
    schema = pa.schema([("s", pa.string())])
    for file_format in FORMATS:
        out = sink(tmp_path / f"out.{file_format}", schema)
        out.write(pa.record_batch([pa.array([long, "b"])], schema=schema))
        out.close()
        assert [row["s"] for row in rows(tmp_path / f"out.{file_format}", Schema.of(("s", VARCHAR)))] == [long, "b"]


def test_columns_of_parquet_are_dictionaries_where_values_come_again(tmp_path: Path) -> None:
    count = 20_000
    table = pa.table(
        {
            "different": [f"{n:x}" for n in range(count)],
            "few": [f"{n % 1_000:x}" for n in range(count)],
            "same": pa.array([7] * count),
            "nothing": pa.nulls(count, pa.int64()),
            "thrice": [n // 3 for n in range(count)],
            "flag": [n % 2 == 0 for n in range(count)],
        }
    )
    out = sink(tmp_path / "out", table.schema, format="parquet")
    for batch in table.to_batches(3_000):
        out.write(batch)
    commit(out)
    (path,) = (tmp_path / "out").glob("*.parquet")
    assert pq.read_table(path).equals(table)
    group = pq.ParquetFile(path).metadata.row_group(0)
    has_dictionary = {
        group.column(i).path_in_schema: group.column(i).has_dictionary_page for i in range(group.num_columns)
    }
    assert has_dictionary | {"flag": None, "thrice": None} == {
        "different": False, "few": True, "same": True, "nothing": True, "thrice": None, "flag": None,
    }  # fmt: skip


def test_a_parquet_part_of_nested_or_of_no_rows_is_whole(tmp_path: Path) -> None:
    nested = pa.table({"a": [[n] for n in range(5_000)], "b": [{"c": n} for n in range(5_000)]})
    for number, rows_of in enumerate((nested, nested.slice(0, 0))):
        path = str(tmp_path / f"{number}.parquet")
        writer = ParquetPart(path, create_file(path), nested.schema)
        for batch in rows_of.to_batches():
            writer.write(batch)
        writer.close()
        assert pq.read_table(writer.path).equals(rows_of)
