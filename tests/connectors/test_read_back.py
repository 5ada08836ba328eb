"""The last rows of a file, for whoever wants to see what tasks have written."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from transom.connectors.batch_files import PartFiles
from transom.connectors.file_target import FileTarget
from transom.connectors.read_back import last_rows

SCHEMA = pa.schema([("change", pa.string()), ("at", pa.timestamp("us")), ("a", pa.int64()), ("x", pa.float64())])


def target_of(folder: Path, kind: str) -> FileTarget:
    csv = {"delimiter": ";", "null": "none"} if kind == "csv" else {}
    return FileTarget.of({"connector": "files", "path": str(folder / "out"), "format": kind, **csv}, SCHEMA)


def written(folder: Path, kind: str, count: int) -> str:
    rows = [
        {"change": 'a "+", \u00e9', "at": datetime(2024, 5, 1, 10, 0, 0, i % 7), "a": None if i % 3 else i, "x": i / 4}
        for i in range(count)
    ]
    target = target_of(folder, kind)
    (folder / "out").mkdir()
    (name,) = PartFiles(target, str(folder / "out")).write([pa.RecordBatch.from_pylist(rows, SCHEMA)])
    return str(folder / "out" / name)


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize("count", [1, 50, 9_000])
def test_they_are_the_last_ones(tmp_path: Path, kind: str, count: int) -> None:
    path, properties = written(tmp_path, kind, count), target_of(tmp_path, kind).properties
    rows = [row for batch in last_rows(path, properties, SCHEMA, 20) for row in batch.to_pylist()]
    assert [row["x"] for row in rows] == [i / 4 for i in range(count)][-20:]
    assert [row["a"] for row in rows] == [None if i % 3 else i for i in range(count)][-20:]
    assert {row["change"] for row in rows} == {'a "+", \u00e9'} and rows[-1]["at"].year == 2024


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_of_a_file_that_is_none_there_is_nothing(tmp_path: Path, kind: str) -> None:
    properties = target_of(tmp_path, kind).properties
    assert last_rows(str(tmp_path / "gone"), properties, SCHEMA, 20) == []
    (tmp_path / "odd").write_bytes(b"\x00\xff" * 99 + b"\n,,,\n{")
    assert last_rows(str(tmp_path / "odd"), properties, SCHEMA, 20) == []
