"""Files on a storage are read as those on a disk are, and compressed ones as those that are not."""

from __future__ import annotations

import gzip
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.connectors.reading import read_all
from tests.profile import first_of
from transom.connectors.connector import Limits, Split
from transom.connectors.file_columns import columns_of_files
from transom.connectors.files import FileSource
from transom.connectors.storage import storage_of
from transom.core.errors import SourceError
from transom.core.location import Within
from transom.core.schema import INTEGER, TIMESTAMP, VARCHAR, Column, Schema

COLUMNS = Schema((Column("ts", TIMESTAMP), Column("n", INTEGER), Column("s", VARCHAR)))
NOON = datetime(2024, 5, 1, 12)
ENDINGS = first_of("parquet", "csv", "jsonl", "csv.gz", "jsonl.zst", "tsv.gz")


def rows(first: int, behind: int) -> list[dict[str, Any]]:
    return [{"ts": NOON + timedelta(seconds=n), "n": n, "s": f"no. {n}\n"} for n in range(first, behind)]


def written(ending: str, values: list[dict[str, Any]], folder: Path) -> bytes:
    """As a file of this kind has them."""
    kind, _, packed = ending.partition(".")
    if kind == "parquet":
        pyarrow.parquet.write_table(pa.Table.from_pylist(values), folder / "x", row_group_size=7)
        return (folder / "x").read_bytes()
    if kind == "jsonl":
        text = "".join(json.dumps(row, default=str) + "\n" for row in values)
    else:
        comma = "\t" if kind == "tsv" else ","
        text = "".join(f'{row["ts"]}{comma}{row["n"]}{comma}"{row["s"]}"\n' for row in values)
        text = comma.join(COLUMNS.names) + "\n" + text
    data = text.encode()
    if packed == "gz":
        return gzip.compress(data[:50]) + gzip.compress(data[50:])
    return pa.compress(data, "zstd", asbytes=True) if packed == "zst" else data


def source(path: object, **given: Any) -> FileSource:
    return FileSource(COLUMNS, {"path": str(path)}, time_column="ts", **given)


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_rows_of_a_bucket_are_those_of_a_disk(bucket: str, tmp_path: Path, ending: str) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        data = written(ending, rows(20 * number, 20 * number + 20), tmp_path)
        (tmp_path / "in" / f"{number}.{ending}").write_bytes(data)
        storage_of(bucket).put(f"{bucket}/in/{number}.{ending}", data)
    storage_of(bucket).put(f"{bucket}/in/_hidden.{ending}", b"!")
    storage_of(bucket).put(f"{bucket}/in/below/other.{ending}", b"!")
    for path in ("in", "in/", f"in/*.{ending}", f"i*/?.{ending}", f"**/[0-2].{ending}"):
        here, there = read_all(source(tmp_path / path), step=9), read_all(source(f"{bucket}/{path}"), step=9)
        assert here.rows == there.rows == rows(0, 60)
        assert here.rejected == there.rejected == []
    assert read_all(source(f"{bucket}/in/1.{ending}"), step=7).rows == rows(20, 40)
    assert columns_of_files("t", {"path": f"{bucket}/in"}, None).names == COLUMNS.names


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv.gz"])
def test_splits_are_read_elsewhere_and_again(bucket: str, tmp_path: Path, ending: str) -> None:
    for number in range(2):
        storage_of(bucket).put(f"{bucket}/{number}.{ending}", written(ending, rows(number, number + 20), tmp_path))
    at: dict[str, Any] = {}
    rows_read = []
    for _ in range(9):
        plan = source(bucket).plan(at, Limits(7))
        at = json.loads(json.dumps(plan.position))
        for split in plan.splits:
            packed = Split.unpacked(json.loads(json.dumps(split.packed())))
            for _ in range(2):
                read = [row for part in source(bucket).read_split(packed) for row in part.rows.to_pylist()]
            rows_read += read
    assert rows_read == rows(0, 20) + rows(1, 21)


def test_files_come_and_lines_are_added_while_a_bucket_is_followed(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transom.connectors.files._SECONDS_OF_A_LISTING", 0)
    storage, reader = storage_of(bucket), source(f"{bucket}/in")
    at = reader.read({}, 100, growing=True).position
    text = written("csv", rows(0, 10), tmp_path)
    storage.put(f"{bucket}/in/b.csv", text[:-9])
    first = reader.read(at, 100, growing=True)
    assert first.rows.to_pylist() == rows(0, 9) and first.ended
    storage.put(f"{bucket}/in/b.csv", text)
    storage.put(f"{bucket}/in/a.csv.gz", written("csv.gz", rows(10, 20), tmp_path))
    later = reader.read(first.position, 100, growing=True)
    assert later.rows.to_pylist() == rows(10, 20) + rows(9, 10)
    again = source(f"{bucket}/in").read(later.position, 100, growing=True)
    assert not len(again.rows) and again.ended and again.position == later.position
    storage.put(f"{bucket}/in/b.csv", text.replace(b"no. 1", b"no. 7"))
    with pytest.raises(SourceError, match=r"'b\.csv' has been replaced"):
        source(f"{bucket}/in").read(later.position, 100, growing=True)
    storage.put(f"{bucket}/in/b.csv", text)
    storage.put(f"{bucket}/in/a.csv.gz", written("csv.gz", rows(11, 21), tmp_path))
    with pytest.raises(SourceError, match=r"'a\.csv\.gz' has been replaced"):
        source(f"{bucket}/in").read(later.position, 100, growing=True)


def test_a_compressed_file_that_breaks_off_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(written("csv.gz", rows(0, 10), tmp_path)[:-12])
    with pytest.raises(SourceError, match=r"'a\.csv\.gz' is not a whole gzip file"):
        read_all(source(tmp_path))
    (tmp_path / "a.csv.gz").write_bytes(b"ts,n,s\n")
    with pytest.raises(SourceError, match=r"'a\.csv\.gz' is not a whole gzip file"):
        read_all(source(tmp_path))


def test_a_large_object_is_read_in_blocks(bucket: str) -> None:
    """Blocks are of four mebibytes, and lines go over their ends."""
    line = b'{"ts": "2024-05-01 12:00:00", "n": 1, "s": "' + b"x" * 997 + b'"}\n'
    storage_of(bucket).put(f"{bucket}/a.jsonl", line * 9_000)
    assert sum(row["n"] for row in read_all(source(bucket), step=4_000).rows) == 9_000


def test_what_is_not_there_or_cannot_be_reached_is_said(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceError, match=f"there is no file or folder '{bucket}/none'"):
        read_all(source(f"{bucket}/none"))
    with pytest.raises(SourceError, match="no file matches"):
        read_all(source(f"{bucket}/*.csv"))
    assert read_all(source(f"{bucket}/none"), growing=True).rows == []
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(SourceError, match="cannot be read") as raised:
        read_all(source("s3a://elsewhere/in"))
    assert "address, region, credentials" in str(raised.value.remedy)


def test_sources_stay_within_a_folder_of_a_bucket(bucket: str, tmp_path: Path) -> None:
    storage_of(bucket).put(f"{bucket}/in/a.jsonl", written("jsonl", rows(0, 3), tmp_path))
    assert read_all(source(f"{bucket}/in/*.jsonl", within=Within.of(f"{bucket}/in"))).rows == rows(0, 3)
    for within, path in ((f"{bucket}/in", f"{bucket}/inside"), (f"{bucket}/in", tmp_path), (tmp_path, f"{bucket}/in")):
        with pytest.raises(Exception, match="leads outside of"):
            source(path, within=Within.of(within))
