"""Connectors that come with Transom, and one of somebody else, held to the tests that anybody can use."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.connectors import ledger
from tests.connectors.kafka_topics import TestTopic
from tests.connectors.memory_storage import memory_storage
from tests.profile import NIGHTLY
from transom.connectors.commit_log import read_log
from transom.connectors.kafka_sink import KafkaSink
from transom.testing.connector import SinkPlace, SinkTests, SourcePlace, SourceTests
from transom.testing.kafka_broker import KafkaBroker


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


class TestStorageSink(SinkTests):
    """A folder without renaming, read as the log of its commits says."""

    forms = ("stream", "changes", "lifetimes") if NIGHTLY else ("stream",)

    @pytest.fixture
    def place(self) -> Iterator[SinkPlace]:
        with memory_storage() as (uri, storage):

            def rows() -> list[tuple[object, ...]]:
                log = read_log(storage, f"{uri}/answers")
                names = [] if log is None else [file.name for file in log.files]
                files = [storage.read(f"{uri}/answers/{name}") or b"" for name in names]
                return [tuple(row.values()) for file in files for row in pq.read_table(io.BytesIO(file)).to_pylist()]

            yield SinkPlace({"connector": "files", "path": f"{uri}/answers/", "format": "parquet"}, rows)


@pytest.mark.nightly
class TestTopicSource(SourceTests):
    """Of two partitions."""

    @pytest.fixture
    def place(self, kafka: KafkaBroker) -> SourcePlace:
        topic = TestTopic(kafka, 2)

        def append(rows: list[tuple[datetime, int]]) -> None:
            for partition in (0, 1):
                of_partition = [{"ts": str(ts), "v": v} for ts, v in rows if v % 2 == partition]
                topic.write(*of_partition, partition=partition)

        return SourcePlace(topic.properties | {"format": "json"}, append)


def _forget(sink: KafkaSink) -> None:
    sink._let_go()


@pytest.mark.nightly
class TestTopicSink(SinkTests):
    forms = ("stream", "changes", "lifetimes")

    @pytest.fixture
    def place(self, kafka: KafkaBroker) -> SinkPlace:
        topic = TestTopic(kafka, 2)

        def rows() -> list[tuple[object, ...]]:
            tables = [pa.ipc.open_stream(message.value()).read_all() for message in topic.messages()]
            return [tuple(row.values()) for table in tables for row in table.to_pylist()]

        return SinkPlace(topic.properties | {"format": "arrow"}, rows, _forget)


@pytest.mark.nightly
class TestTopicOfUpserts(SinkTests):
    forms = ("net",)

    @pytest.fixture
    def place(self, kafka: KafkaBroker) -> SinkPlace:
        topic = TestTopic(kafka, 2)

        def rows() -> list[tuple[object, ...]]:
            last = {message.key(): message.value() for message in topic.messages()}
            return [tuple(json.loads(value).values()) for value in last.values() if value is not None]

        return SinkPlace(topic.properties | {"format": "upsert-json"}, rows, _forget)
