"""Connectors that come with Transom, and one of somebody else, held to the tests that anybody can use."""

from __future__ import annotations

import csv
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.connectors import ledger
from transom.testing.connector import SinkPlace, SinkTests, SourcePlace, SourceTests


class TestCsvFile(SourceTests):
    @pytest.fixture
    def place(self, tmp_path: Path) -> SourcePlace:
        path = tmp_path / "rows.csv"
        path.write_text("ts,v\n")

        def append(rows: list[tuple[datetime, int]]) -> None:
            with open(path, "a") as file:
                csv.writer(file).writerows(rows)

        return SourcePlace({"connector": "files", "path": str(path)}, append)


class TestParquetFolder(SourceTests):
    @pytest.fixture
    def place(self, tmp_path: Path) -> SourcePlace:
        folder = tmp_path / "rows"
        folder.mkdir()

        def append(rows: list[tuple[datetime, int]]) -> None:
            for part in (rows[:2], rows[2:]):
                if part:
                    columns = {"ts": [ts for ts, _ in part], "v": pa.array([v for _, v in part], pa.int32())}
                    pq.write_table(pa.table(columns), folder / f"{len(list(folder.iterdir())):03}.parquet")

        return SourcePlace({"connector": "files", "path": str(folder)}, append)


class TestLedger(SourceTests):
    """Which has two partitions."""

    @pytest.fixture
    def place(self, tmp_path: Path) -> SourcePlace:
        folder = tmp_path / "ledger"
        folder.mkdir()
        for partition in ledger.PARTITIONS:
            (folder / partition).touch()

        def append(rows: list[tuple[datetime, int]]) -> None:
            for ts, v in rows:
                with open(folder / ledger.PARTITIONS[v % 2], "a") as log:
                    log.write(f"{ts},{v}\n")

        return SourcePlace({"connector": "ledger", "folder": str(folder)}, append)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the dead close no files
class TestFileSink(SinkTests):
    """Of changes that come net it writes the changes themselves, which the kit takes for no table."""

    forms = ("stream", "changes", "lifetimes")

    @pytest.fixture
    def place(self, tmp_path: Path) -> SinkPlace:
        path = tmp_path / "answers"

        def rows() -> list[tuple[object, ...]]:
            files = sorted(path.glob("[!._]*"))
            return [tuple(row.values()) for file in files for row in pq.read_table(file).to_pylist()]

        return SinkPlace({"connector": "files", "path": str(path), "format": "parquet"}, rows)
