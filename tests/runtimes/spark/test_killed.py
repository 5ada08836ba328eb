"""Killed and still right: a worker, an executor, the driver. Nothing is lost, and nothing is there twice."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.run_on_spark import spark_query
from tests.runtimes.spark import million_rows
from tests.runtimes.spark.driven import Driven, leftovers, shown, standing
from tests.runtimes.spark.killable import program
from tests.runtimes.spark.pauses import Pause, PausingQuery
from tests.runtimes.spark.processes import PATIENCE, command, descendants, kill, parent, wait_for_end, wait_until
from transom.connectors.open import open_files, open_source

SINKS = {"sellers": "sellers-parquet/", "pairs": "pairs.csv", "items": "items-jsonl/"}


class Unbroken:
    """What runs show that were left in peace, by file: answers and rejected rows."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder

    def shown(self, *names: str, tasks: int = 2) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in names:
            folder = self._folder / f"{name}-{tasks}"
            if not folder.exists():
                run(self._spark, folder, name, tasks=tasks).close()
            of_name = shown(folder)
            for kind, least in (("out", 100), ("side", 10)):
                assert sum(len(rows) for file, rows in of_name.items() if file.startswith(kind)) > least
            assert leftovers(folder) == []
            found |= of_name
        return found


@pytest.fixture(scope="module")
def unbroken(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Unbroken:
    return Unbroken(spark, tmp_path_factory.mktemp("unbroken"))


def run(spark: SparkSession, folder: Path, name: str, pause: Pause | None = None, tasks: int = 2) -> PausingQuery:
    """A query to its end; if it pauses, the worker that waits is killed."""
    (one,) = standing(program(folder, {name: SINKS[name]}, tasks=tasks))
    assert one.sink is not None
    dead_letters = open_files({"path": f"{folder}/side/{name}/", "format": "jsonl"})
    sink = open_files(one.sink.properties)
    checkpoint = str(folder / "checkpoint" / name)
    query: PausingQuery = spark_query(
        one,
        spark,
        open_source,
        sink,
        PausingQuery,
        open_dead_letters=dead_letters,
        checkpoint=checkpoint,
        name=name,
        pause=pause,
    )
    query.start()
    try:
        if pause is not None:
            wait_until(lambda: pause.pid is not None, lambda: query.active)
            assert pause.pid is not None
            started_by = parent(pause.pid)
            assert started_by is not None and "transom.runtimes.spark.daemon" in command(started_by)
            kill([pause.pid])
            wait_for_end([pause.pid])
        assert query.wait(PATIENCE)
    except BaseException:
        query.abort()
        raise
    return query


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "moment", "stage_number", "tasks"),
    [
        ("sellers", "written", 3, 2),
        ("sellers", "after", 1, 2),
        ("items", "before", 1, 2),
        ("sellers", "before", 1, 1),
        ("sellers", "written", 1, 1),
    ],
)
def test_a_worker_that_is_killed_in_a_batch_goes_unnoticed(
    spark: SparkSession, tmp_path: Path, unbroken: Unbroken, name: str, moment: str, stage_number: int, tasks: int
) -> None:
    query = run(
        spark, tmp_path, name, Pause(str(tmp_path / "paused"), moment, batch=2, stage_number=stage_number), tasks
    )
    assert query.layout.stage_count == (1 if tasks == 1 or name == "items" else 3)
    assert bool(leftovers(tmp_path)) == (moment == "written"), "the file of the attempt that was killed"
    query.close()
    assert shown(tmp_path) == unbroken.shown(name, tasks=tasks)
    assert leftovers(tmp_path) == []


@pytest.mark.nightly
def test_two_executors_equal_the_local_runtime_and_one_that_is_killed_goes_unnoticed(
    tmp_path: Path, unbroken: Unbroken
) -> None:
    """First a million rows in peace; one cluster does for both, since each takes half a minute to start."""
    million, spark = tmp_path / "million", tmp_path / "spark"
    million_rows.write_inputs(million)
    pause = Pause(str(tmp_path / "paused"), "written", batch=2, stage_number=3)
    text, before = program(spark, {"sellers": SINKS["sellers"]}), million_rows.program(million, million / "spark")
    driven = Driven(str(spark), text, master="local-cluster[2,1,1024]", pause=pause, paused="sellers", before=before)
    driver = driven.start()
    try:
        million_rows.run_locally(million_rows.program(million, million / "local"))
        wait_until(lambda: pause.pid is not None, lambda: driver.poll() is None)
        assert pause.pid is not None
        started_by = parent(pause.pid) or 0
        executor = parent(started_by) or 0
        assert "transom.runtimes.spark.daemon" in command(started_by) and "ExecutorBackend" in command(executor)
        below = descendants(executor)
        kill([executor])
        wait_for_end([executor, *below])
        every = descendants(driver.pid)
        assert driver.wait(PATIENCE) == 0, driven.said()
        wait_for_end(every)
    finally:
        end(driver)
    million_rows.check_equal(million / "spark", million / "local")
    assert leftovers(million / "spark") == []
    assert shown(spark) == unbroken.shown("sellers")
    assert leftovers(spark) == []


@pytest.mark.nightly
@pytest.mark.parametrize(("both", "tasks"), [(True, 1), (False, 1), (True, 2), (False, 2)])
def test_a_driver_that_is_killed_again_and_again_goes_on_from_its_checkpoint(
    tmp_path: Path, unbroken: Unbroken, both: bool, tasks: int
) -> None:
    """At moments that are bad each in its own way, and at any moment too.

    Without `both` its JVM is left to end itself.
    """
    text = program(tmp_path, SINKS, tasks=tasks)
    first = Driven(str(tmp_path), text)
    anytime(first, both)
    reached = first.batches("sellers")  # on a fast machine more than one
    for number, (name, moment, batch) in enumerate(
        [("sellers", "written", reached), ("pairs", "gathered", 2), ("items", "shown", 3)]
    ):
        stage_number = 3 if (name, tasks) == ("sellers", 2) else 1
        pause = Pause(str(tmp_path / f"paused-{number}"), moment, batch, stage_number)
        driven = Driven(str(tmp_path), text, pause=pause, paused=name)
        driver = driven.start()
        try:
            wait_until(lambda: pause.pid is not None, lambda: driver.poll() is None)  # noqa: B023
            if moment == "shown":
                assert any(file.startswith(f"out/{name}-jsonl/part-{batch:06}") for file in shown(tmp_path))
        finally:
            end(driver, both)
    driven = Driven(str(tmp_path), text)
    driver = driven.start()
    try:
        assert driver.wait(PATIENCE) == 0, driven.said()
    finally:
        end(driver)
    assert shown(tmp_path) == unbroken.shown(*SINKS, tasks=tasks)
    assert leftovers(tmp_path) == []


def anytime(driven: Driven, both: bool) -> None:
    """The driver is killed while it is at the first query."""
    before, more, later = driven.batches(), random.randint(1, 2), random.uniform(0, 0.3)
    print(f"killed {later:.3f} s after {more} batches were shown")
    driver = driven.start()
    try:
        wait_until(lambda: driven.batches() >= before + more, lambda: driver.poll() is None)
        time.sleep(later)
        assert driver.poll() is None, driven.said()
    finally:
        end(driver, both)


def end(driver: subprocess.Popen[bytes], both: bool = True) -> None:
    """Whatever became of it: no process is left. If not `both`, the others end because the driver has."""
    every = {driver.pid} | descendants(driver.pid)
    kill([driver.pid])
    if both:
        kill(every)
    driver.wait()
    wait_for_end(every)
