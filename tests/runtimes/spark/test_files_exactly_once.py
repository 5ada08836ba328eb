"""Restarts from a checkpoint: batches that are run again, other settings, other queries, and damage."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.profile import first_of
from tests.run_on_spark import spark_query
from tests.runtimes.spark.driven import leftovers, shown, standing
from tests.runtimes.spark.killable import program
from transom.connectors.connector import OpenSink
from transom.connectors.open import open_files, open_source
from transom.core.errors import CheckpointError, SparkError
from transom.program.run import QuerySpec
from transom.runtimes.local.job import LocalJob
from transom.runtimes.local.run import LocalRun
from transom.runtimes.spark.query import SparkQuery

Rows = list[dict[str, Any]]


class Broken(Exception):
    """What goes wrong in these tests."""


def sinks_of(folder: Path, name: str, path: str, emit: str) -> tuple[Any, OpenSink, OpenSink]:
    (one,) = standing(program(folder, {name: path}, emit))
    assert one.sink is not None
    dead_letters = open_files({"path": f"{folder}/side/{name}/", "format": "jsonl"})
    return one, open_files(one.sink.properties), dead_letters


def query_of(spark: SparkSession, folder: Path, name: str, path: str = "", emit: str = "changes", **more: Any) -> Any:
    one, sink, dead_letters = sinks_of(folder, name, path or f"{name}-csv/", emit)
    kept = str(folder / "checkpoint")
    return spark_query(
        one, spark, open_source, sink, open_dead_letters=dead_letters, checkpoint=kept, emit=emit, name=name, **more
    )


def together(files: dict[str, list[str]]) -> dict[str, list[str]]:
    """The rows of all parts of a sink, without the header lines of CSV."""
    found: dict[str, list[str]] = {}
    for file, rows in files.items():
        found.setdefault("/".join(file.split("/")[:2]), []).extend(rows if file.endswith("l") else rows[:-1])
    return {name: sorted(rows) for name, rows in found.items()}


@pytest.mark.parametrize(
    ("name", "path", "emit"),
    first_of(
        ("pairs", "pairs-jsonl/", "changes"),
        ("sellers", "sellers.csv", "changes"),
        ("totals", "totals.jsonl", "latest"),
    ),
)
def test_a_batch_that_was_shown_and_not_settled_is_there_once(
    spark: SparkSession, tmp_path: Path, name: str, path: str, emit: str
) -> None:
    """Equal to the local runtime, although a run was broken off between the showing and the settling of a batch."""

    class BrokenOff(SparkQuery):
        def _take(self, messages: pa.Table, number: int) -> None:
            super()._take(messages, number)
            if number == 2:
                raise Broken

    one, sink, dead_letters = sinks_of(tmp_path / "spark", name, path, emit)
    kept = str(tmp_path / "spark" / "checkpoint")
    broken = spark_query(
        one, spark, open_source, sink, BrokenOff, open_dead_letters=dead_letters, checkpoint=kept, emit=emit, name=name
    )
    with pytest.raises(Broken):
        broken.run()
    query_of(spark, tmp_path / "spark", name, path, emit).run()
    query_of(spark, tmp_path / "spark", name, path, emit).run()  # and once more, with nothing left to do
    one, sink, dead_letters = sinks_of(tmp_path / "local", name, path, emit)
    LocalRun([LocalJob([QuerySpec(one, name, emit, sink, dead_letters)], open_source)]).run()
    expected = together(shown(tmp_path / "local"))
    assert all(expected.values()) and len(expected) == 2
    assert together(shown(tmp_path / "spark")) == expected
    assert leftovers(tmp_path / "spark") == []


@pytest.mark.nightly
def test_a_batch_that_is_run_again_has_the_same_number_and_rows(spark: SparkSession, tmp_path: Path) -> None:
    seen: list[tuple[int, Rows]] = []

    def fails_at_two(table: pa.Table, batch: int) -> None:
        seen.append((batch, table.to_pylist()))
        if batch == 2:
            raise Broken

    with pytest.raises(Broken):
        query_of(spark, tmp_path, "sellers", on_batch=fails_at_two).run()
    again: list[tuple[int, Rows]] = []
    query_of(spark, tmp_path, "sellers", on_batch=lambda table, batch: again.append((batch, table.to_pylist()))).run()
    assert [batch for batch, _ in seen] == [0, 1, 2] and again[0] == seen[2]
    assert [batch for batch, _ in again] == list(range(2, 2 + len(again))) and len(again) > 1
    assert not (tmp_path / "out").exists(), "the answer goes to the function alone"


@pytest.mark.nightly
def test_the_number_of_partitions_is_that_of_the_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    def fail(table: pa.Table, batch: int) -> None:
        if batch == 1:
            raise Broken

    with pytest.raises(Broken):
        query_of(spark, tmp_path, "items", on_batch=fail).run()
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        batches: list[int] = []
        query = query_of(spark, tmp_path, "items", on_batch=lambda table, batch: batches.append(batch))
        assert query.layout.partitions == int(before or "") != 3
        query.run()
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before or "")
    assert batches == [1, 2, 3, 4]


@pytest.fixture(scope="module")
def broken_off(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a query that was broken off in its third batch, and its files."""
    folder = tmp_path_factory.mktemp("broken")

    def fail(table: pa.Table, batch: int) -> None:
        if batch == 2:
            raise Broken

    with pytest.raises(Broken):
        query_of(spark, folder, "items", on_batch=fail).run()
    (folder / "out" / "items-csv").mkdir(parents=True)  # the sink that is gone on with
    return folder


def files(folder: Path, pattern: str) -> list[Path]:
    found = [path for path in folder.rglob(pattern) if path.is_file()]
    assert found
    return found


def cut(paths: list[Path]) -> None:
    for path in paths:
        os.truncate(path, path.stat().st_size // 2)


def turn(paths: list[Path]) -> None:
    """Some bytes in the middle become others."""
    for path in paths:
        data = bytearray(path.read_bytes())
        middle = len(data) // 2
        data[middle : middle + 8] = bytes(255 - byte for byte in data[middle : middle + 8])
        path.write_bytes(data)


def remove(paths: list[Path]) -> None:
    for path in paths:
        path.unlink()


DAMAGE: dict[str, Callable[[Path], None]] = {
    "the plan of a batch is cut off": lambda spark: cut(files(spark / "offsets", "2")),
    "all plans are lost": lambda spark: remove(files(spark / "offsets", "[0-9]*")),
    "the end of a batch is unreadable": lambda spark: cut(files(spark / "commits", "1")),
    "state is lost": lambda spark: remove(files(spark / "state", "2_*")),
    "state is cut off": lambda spark: cut(files(spark / "state", "2_*")),
    "state is altered": lambda spark: turn(files(spark / "state", "2_*")),
}


@pytest.mark.parametrize("damage", first_of(*DAMAGE))
def test_a_damaged_checkpoint_is_rejected(spark: SparkSession, tmp_path: Path, broken_off: Path, damage: str) -> None:
    folder = shutil.copytree(broken_off, tmp_path / "copy")
    DAMAGE[damage](folder / "checkpoint" / "spark")
    with pytest.raises(CheckpointError) as raised:
        query_of(spark, folder, "items").run()
    assert raised.value.remedy is not None and "checkpoint" in raised.value.remedy
    assert str(folder / "checkpoint") in raised.value.what and "Exception" not in raised.value.what, raised.value


def test_a_failure_whose_text_tells_the_plan_is_no_damage(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's text names the checkpoint, as it shows the plan and its settings."""
    name = "spark.sql.streaming.stateStore.providerClass"
    rocks = spark.conf.get(name) or ""
    spark.conf.set(name, rocks.replace("RocksDB", "HDFSBacked"))
    try:
        with pytest.raises(SparkError, match="is not supported by TransformWithState") as raised:
            query_of(spark, tmp_path, "items").run()
    finally:
        spark.conf.set(name, rocks)
    assert "empty checkpoint" not in str(raised.value)


def test_the_checkpoint_of_another_query_is_rejected_before_anything_is_touched(
    spark: SparkSession, tmp_path: Path, broken_off: Path
) -> None:
    folder = shutil.copytree(broken_off, tmp_path / "copy")
    there = folder / "out" / "pairs-csv"
    there.mkdir(parents=True)
    (there / "part-000099-0000.csv").touch()
    with pytest.raises(CheckpointError, match="another query"):
        query_of(spark, folder, "pairs").run()
    assert os.listdir(there) == ["part-000099-0000.csv"]
