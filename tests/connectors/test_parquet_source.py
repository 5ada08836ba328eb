from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.connectors.reading import read_all
from transom.connectors import parquet_rows
from transom.connectors.conform import DeclaredRows
from transom.connectors.connector import Limits
from transom.connectors.files import FileSource
from transom.connectors.listing import Listed
from transom.core.errors import SourceError
from transom.core.schema import BIGINT, INTEGER, TIMESTAMP, VARCHAR, Schema
from transom.core.time import FOREVER

COLUMNS = Schema.of(("id", INTEGER), ("name", VARCHAR), ("ts", TIMESTAMP))


def source(path: Path, columns: Schema = COLUMNS, **properties: str) -> FileSource:
    return FileSource(columns, {"path": str(path), **properties}, time_column="ts" if "ts" in columns.names else None)


def written(folder: Path, columns: dict[str, Any], **options: Any) -> Path:
    path = folder / "a.parquet"
    pq.write_table(pa.table(columns), path, **options)
    return path


def test_columns_by_name_and_casts(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {
            "TS": pa.array([0, 1_999], pa.timestamp("ns", "Europe/Paris")),
            "more": [1, 2],
            "Name": pa.array(["a", "b"]).dictionary_encode(),
            "id": pa.array([1, 2], pa.int64()),
        },
    )
    everything = read_all(source(path))
    assert everything.rows == [
        {"id": 1, "name": "a", "ts": datetime(1970, 1, 1)},
        {"id": 2, "name": "b", "ts": datetime(1970, 1, 1, 0, 0, 0, 1)},
    ]


def test_bad_rows_are_rejected_with_their_values(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {
            "id": pa.array([1, 2**40, 3, 4], pa.int64()),
            "name": pa.array([b"a", b"b", b"\xff", b"d"]),
            "ts": pa.array([0, 0, 0, None], pa.timestamp("s")),
        },
    )
    everything = read_all(source(path))
    assert [row["id"] for row in everything.rows] == [1]
    assert [row["position"].rpartition(", ")[2] for row in everything.rejected] == ["row 2", "row 3", "row 4"]
    assert everything.reasons == [
        "column 'id' is INTEGER and cannot hold '1099511627776'",
        "column 'name' is VARCHAR and cannot hold '\\xff'",
        "the time column 'ts' is NULL",
    ]
    assert everything.rejected[0]["raw"] == '{"id": "1099511627776", "name": "b", "ts": "1970-01-01 00:00:00.000"}'


def test_text_that_lies_about_being_utf8(tmp_path: Path) -> None:
    lying = pa.array([b"a", b"\xff"]).view(pa.binary())
    lying = pa.Array.from_buffers(pa.string(), 2, lying.buffers())
    path = written(tmp_path, {"name": lying})
    everything = read_all(source(path, Schema.of(("name", VARCHAR))))
    assert [row["name"] for row in everything.rows] == ["a"]
    assert len(everything.rejected) == 1


@pytest.mark.parametrize(
    ("instant", "fits"), [(FOREVER, False), (FOREVER - 1, True), (2**62, False), (-(2**62), False)]
)
def test_times_at_the_edges(tmp_path: Path, instant: int, fits: bool) -> None:
    path = written(tmp_path, {"ts": pa.array([instant], pa.timestamp("us"))})
    everything = read_all(source(path, Schema.of(("ts", TIMESTAMP))))
    assert (len(everything.rows), len(everything.rejected)) == ((1, 0) if fits else (0, 1))


def test_numbers_are_times_only_with_a_unit(tmp_path: Path) -> None:
    path = written(tmp_path, {"ts": [1_714_521_600]})
    with pytest.raises(SourceError) as error:
        source(path, Schema.of(("ts", TIMESTAMP))).read({}, 1)
    assert "time_unit" in (error.value.remedy or "")
    assert read_all(source(path, Schema.of(("ts", TIMESTAMP)), time_unit="s")).rows == [{"ts": datetime(2024, 5, 1)}]


def test_a_missing_column_and_one_of_another_kind(tmp_path: Path) -> None:
    path = written(tmp_path, {"id": [1], "nome": ["a"], "ts": [{"year": 2024}]})
    with pytest.raises(SourceError) as error:
        source(path).read({}, 1)
    assert ("a.parquet" in error.value.what, "'name'" in error.value.what) == (True, True)
    assert "id, nome, ts" in (error.value.remedy or "")
    with pytest.raises(SourceError, match="struct<year: int64>, which cannot be read as TIMESTAMP"):
        source(path, Schema.of(("ts", TIMESTAMP))).read({}, 1)


@pytest.mark.parametrize("content", [b"not parquet at all", b"PAR1"])
def test_a_file_that_is_no_parquet(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(SourceError, match=r"a\.parquet' is not a whole Parquet file"):
        source(tmp_path / "a.parquet").read({}, 1)


def test_a_damaged_page(tmp_path: Path) -> None:
    path = written(tmp_path, {"name": [str(n) * 9 for n in range(1000)]}, compression="zstd", use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[100:600] = bytes(500)
    path.write_bytes(data)
    with pytest.raises(SourceError, match=r"a\.parquet' is not a whole Parquet file"):
        read_all(source(path, Schema.of(("name", VARCHAR))))


def test_files_without_rows(tmp_path: Path) -> None:
    none = {"id": pa.array([], pa.int32()), "name": pa.array([], pa.string()), "ts": pa.array([], pa.timestamp("us"))}
    assert read_all(source(written(tmp_path, none))).rows == []
    (tmp_path / "a.parquet").write_bytes(b"")
    assert read_all(source(tmp_path / "a.parquet")).rows == []


def test_a_restart_at_every_position_gives_exactly_the_rest(tmp_path: Path) -> None:
    """Across row groups, and with a fresh source that has to find the place."""
    path = written(tmp_path, {"id": list(range(20))}, row_group_size=3)
    columns = Schema.of(("id", BIGINT))
    steps = read_all(source(path, columns), step=1)
    assert [row["id"] for row in steps.rows] == list(range(20))
    for taken, position in enumerate(steps.positions[:20], start=1):
        for step in (1, 7, 100):
            assert [row["id"] for row in read_all(source(path, columns), position, step=step).rows] == list(
                range(taken, 20)
            )


def test_a_source_can_go_back(tmp_path: Path) -> None:
    path = written(tmp_path, {"id": list(range(9))}, row_group_size=4)
    opened = source(path, Schema.of(("id", BIGINT)))
    first = opened.read({}, 2)
    later = opened.read(first.position, 3)
    assert opened.read(first.position, 3).rows.equals(later.rows)
    assert opened.read({}, 2).rows.equals(first.rows)


def test_rows_of_megabytes_come_in_smaller_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_rows, "BLOCK_BYTES", 10_000)
    path = written(tmp_path, {"name": [chr(97 + n) * 4_000 for n in range(20)]}, use_dictionary=False)
    opened = parquet_rows.open_parquet(Listed("a", str(path), 1), 0, 100, DeclaredRows(Schema.of(("name", VARCHAR))))
    first = opened.take(100)
    assert first is not None
    assert 0 < len(first.origin) < 5
    assert len(read_all(source(path, Schema.of(("name", VARCHAR)))).rows) == 20


def test_a_column_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1], "café": [1]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace("café".encode(), b"caf\xff\xfe"))
    source = FileSource(Schema.of(("id", INTEGER)), {"path": str(path)}, time_column=None)
    for read in (lambda: source.read({}, 10), lambda: source.plan({}, Limits(10))):
        with pytest.raises(SourceError, match=r"name is not valid UTF-8: 'caf\\xff\\xfe'"):
            read()


@pytest.mark.parametrize("group", [2, 100])
def test_of_columns_that_nobody_reads_no_value_is_fetched_and_every_row_is_the_same(tmp_path: Path, group: int) -> None:
    """A row that does not fit is rejected whole, and for what is in any column that might not fit."""
    columns = Schema.of(("id", INTEGER), ("n", BIGINT), ("name", VARCHAR), ("ts", TIMESTAMP))
    path = written(
        tmp_path,
        {
            "id": pa.array([1, 2**40, 3, 4], pa.int64()),
            "n": pa.array([10, 20, 30, 40], pa.int64()),
            "name": ["a", "b", "c", "d"],
            "ts": pa.array([0, 0, None, 1], pa.timestamp("s")),
        },
        row_group_size=group,
    )
    narrow, whole = source(path, columns), source(path, columns)
    narrow.narrow(["n"])
    everything, wanted = read_all(narrow), read_all(whole)
    assert everything.rejected == wanted.rejected and len(everything.rejected) == 2
    assert [row["n"] for row in everything.rows] == [10, 40]
    assert [row["id"] for row in everything.rows] == [1, 4], "it might not have fitted, so it was read"
    assert [row["name"] for row in everything.rows] == [None, None]
    assert [row["ts"] for row in everything.rows] == [row["ts"] for row in wanted.rows]


def test_rows_of_which_nobody_reads_anything_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path, {"a": ["x", "y"], "b": ["u", "v"]})
    opened = source(path, Schema.of(("a", VARCHAR), ("b", VARCHAR)))
    opened.narrow([])
    assert len(read_all(opened).rows) == 2
