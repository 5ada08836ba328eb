"""On a real cluster whose file system is HDFS: what driver and workers share or can reach works, and all else is
rejected by name."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from tests.runtimes.spark import million_rows
from tests.runtimes.spark.million_rows import run_locally
from tests.runtimes.spark.on_standalone import ROOT, OnStandalone, Step, end
from tests.runtimes.spark.processes import PATIENCE, command, descendants, kill, wait_until
from tests.runtimes.spark.standalone import QUICK, Standalone, standalone
from transom.connectors.commit_log import read_log
from transom.connectors.storage import storage_of

NOON = datetime(2024, 5, 1, 12)
FILES, ROWS = 6, 40
MILLION = "million"
"""The folder of a test in HDFS."""

LAST = NOON + timedelta(days=1)
"""Long after all others; time has passed by them then, whether or not it ends with the input."""


def write_inputs(folder: Path) -> None:
    for name, step in (("bids", 7), ("asks", 11)):
        (folder / name).mkdir(parents=True)
        for number in range(FILES):
            rows = range(number * ROWS, (number + 1) * ROWS)
            lines = [f"{NOON + timedelta(seconds=row)},{row * step % 10},{name}{row}" for row in rows]
            lines += [f"{LAST},99,last"] if number == FILES - 1 else []
            (folder / name / f"{number}.csv").write_text("\n".join(["ts,item,who", *lines, ""]))


def program(inputs: object, out: object) -> str:
    streams = "".join(
        f"CREATE STREAM {name} (ts TIMESTAMP, item INTEGER, who VARCHAR, WATERMARK FOR ts AS ts)"
        f" WITH (connector = 'files', path = '{inputs}/{name}', format = 'csv');"
        for name in ("bids", "asks")
    )
    return f"""SET batch_files = 1; {streams}
        CREATE SINK pairs WITH (connector = 'files', path = '{out}/', format = 'csv');
        INSERT INTO pairs ISTREAM(SELECT bids.item, bids.who, asks.who AS asked
            FROM bids [RANGE 20 SECONDS], asks [RANGE 20 SECONDS] WHERE bids.item = asks.item)"""


def parts(folder: Path) -> dict[str, list[list[str]]]:
    return {path.name: list(csv.reader(path.read_text().splitlines()))[1:] for path in sorted(folder.glob("part-*"))}


def rows(folder: Path) -> list[list[str]]:
    return sorted(row for part in parts(folder).values() for row in part if row[0] < str(LAST))


def copy(folder: Path, uri: str) -> None:
    for path in folder.rglob("*.csv"):
        storage_of(uri).put(f"{uri}/{path.relative_to(folder)}", path.read_bytes())


def committed(folder: str) -> list[list[str]]:
    """The rows that count, in the order of the log."""
    log = read_log(storage_of(folder), folder)
    found = []
    for file in () if log is None else log.files:
        data = storage_of(folder).read(f"{folder}/{file.name}")
        assert data is not None
        found += list(csv.reader(data.decode().splitlines()))[1:]
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.mark.nightly
def test_a_cluster_with_hdfs_and_private_folders(cluster: Standalone, tmp_path: Path) -> None:
    driver = tmp_path / "driver"
    driver.mkdir()
    shared, hdfs = cluster.shared, cluster.hdfs
    for folder in (driver, shared):
        write_inputs(folder / "in")
    good = program(shared / "in", shared / "out")
    copy(shared / "in", f"{hdfs}/in")
    on_hdfs = program(f"{hdfs}/in", f"{hdfs}/out")
    steps = [Step("unknown checkpoint", good, "s3a://nobody/checkpoint")]
    if cluster.hides:
        steps += [
            Step("unseen checkpoint", good, f"{driver}/checkpoint"),
            Step("unseen source", program(driver / "in", shared / "out"), f"{shared}/checkpoint"),
            Step("unseen sink", program(shared / "in", driver / "out"), f"{shared}/checkpoint"),
        ]
    steps += [
        Step("stopped", good, f"{shared}/checkpoint", batches=2),
        Step("stopped on hdfs", on_hdfs, f"{hdfs}/checkpoint", batches=2),
        Step("without a checkpoint", program(f"{hdfs}/in", f"{hdfs}/alone")),
    ]
    watched = (str(driver), str(shared))
    became = OnStandalone(cluster.master, hdfs, watched, tuple(steps)).run(3 * PATIENCE)
    shown, shown_there = parts(shared / "out"), committed(f"{hdfs}/out")
    went_on = (
        Step("went on", good, f"{shared}/checkpoint"),
        Step("went on on hdfs", on_hdfs, f"{hdfs}/checkpoint"),
    )
    became |= OnStandalone(cluster.master, hdfs, watched, went_on).run(3 * PATIENCE)
    there, alone = committed(f"{hdfs}/out"), committed(f"{hdfs}/alone")
    homes = storage_of(hdfs).entries(f"{hdfs}/user")
    left = [each for home in homes for each in storage_of(hdfs).entries(f"{hdfs}/user/{home.name}")]
    for number, lines in enumerate(ORDERS):
        storage_of(hdfs).put(f"{hdfs}/shop/orders/{number}.csv", "\n".join(["ts,item", *lines, ""]).encode())
        shown_by_docs = documented(cluster, driver)
    assert shown_by_docs == {("1", "1"): 2, ("1", "2"): 1, ("2", "1"): 1}
    for step in ("stopped", "went on", "stopped on hdfs", "went on on hdfs", "without a checkpoint"):
        assert became.pop(step) == ""
    there_now = set(became.pop("root").split()) - {MILLION}
    assert there_now == {"alone", "checkpoint", "in", "out", "user"}, "nothing else is in HDFS"
    assert left == [], "nor in the user's folder"
    assert there[: len(shown_there)] == shown_there and 0 < len(shown_there) < len(there)
    for found in (there, alone):
        assert sorted(row for row in found if row[0] < str(LAST)) == rows(shared / "out")
    check_rejected(became, cluster, driver)
    run_locally(program(shared / "in", tmp_path / "local"))
    assert rows(tmp_path / "local") == rows(shared / "out")
    assert 0 < len(shown) < len(parts(shared / "out")), "it was stopped on its way"
    assert shown.items() <= parts(shared / "out").items(), "what was shown is there"


ORDERS = (
    [f"{NOON},1", f"{NOON + timedelta(minutes=1)},2"],
    [f"{NOON + timedelta(minutes=2)},1", f"{LAST},9"],
)


def documented(cluster: Standalone, folder: Path) -> Counter[tuple[str, ...]]:
    """What the program of docs/spark.md shows when a user starts it."""
    page = (ROOT / "docs" / "spark.md").read_text()
    (program,) = re.findall(r"^```file on_cluster.py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (folder / "on_cluster.py").write_text(program)
    command = [sys.executable, "on_cluster.py", cluster.master, f"{cluster.hdfs}/shop"]
    small = "--conf spark.executor.memory=512m --conf spark.driver.memory=512m --conf spark.driver.host=127.0.0.1"
    variables = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", **QUICK}
    variables["PYSPARK_SUBMIT_ARGS"] = f"{small} --conf spark.driver.bindAddress=127.0.0.1 pyspark-shell"
    done = subprocess.run(
        command, cwd=folder, env=os.environ | variables, capture_output=True, text=True, timeout=2 * PATIENCE
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return Counter(re.findall(r"\|\s*(\d+)\|\s*(\d+)\|$", done.stdout, re.MULTILINE))


def check_rejected(became: dict[str, str], cluster: Standalone, driver: Path) -> None:
    assert not any("and left" in reported for reported in became.values()), became
    reported = became.pop("unknown checkpoint")
    assert "s3a://nobody/checkpoint" in reported, reported
    if not cluster.hides:
        return
    for what, path in (("checkpoint", "checkpoint"), ("source", "in/asks/0.csv"), ("sink", "out")):
        reported = became.pop(f"unseen {what}")
        assert reported.startswith("SparkError") and f"{driver}/{path}'" in reported and "share" in reported, reported
    assert became == {}


BATCH_ROWS = 60_000
IMPATIENT = "Python worker failed to connect back"
"""Spark waits ten seconds for a process on the driver's machine and gives the query up then; a user starts it again."""

KILLS = ("executor", "python", "worker", "driver", "executor", "python", "driver")


@pytest.mark.nightly
def test_a_million_rows_from_and_to_hdfs_through_kills_of_everybody(cluster: Standalone, tmp_path: Path) -> None:
    """A join and an aggregate on it; nothing is shared but HDFS, which has the checkpoint, too."""
    million_rows.write_inputs(tmp_path / "in")
    million_rows.run_locally(million_rows.program(tmp_path / "in", tmp_path / "local"))
    random = Random(21)
    driver = tmp_path / "driver"
    driver.mkdir()
    hdfs = f"{cluster.hdfs}/{MILLION}"
    for path in (tmp_path / "in").rglob("*.parquet"):
        storage_of(hdfs).put(f"{hdfs}/in/{path.relative_to(tmp_path / 'in')}", path.read_bytes())
    text = million_rows.program(f"{hdfs}/in", hdfs, BATCH_ROWS)
    steps = (
        Step("all", text, f"{hdfs}/checkpoint", end=True),
        Step("matches", read=f"{hdfs}/out/matches"),
        Step("totals", read=f"{hdfs}/out/totals"),
    )
    order = OnStandalone(cluster.master, cluster.hdfs, (str(driver),), steps)
    process = order.start()
    try:
        for victim in KILLS:
            if not another_batch(hdfs, process):
                break
            time.sleep(random.uniform(0, 2))
            print(victim, "after", batches(hdfs))
            if victim == "driver":
                end(process)
                process = order.start()
            elif victim == "worker":
                cluster.replace_worker(random.choice([0, 1]))
            else:
                kill_one(cluster, {"executor": "CoarseGrainedExecutorBackend", "python": "pyspark"}[victim], random)
        else:
            victim = "none"
        process.wait(3 * PATIENCE)
        for _ in range(3):
            if IMPATIENT not in order.became(process)["all"]:
                break
            process = order.start()
            process.wait(3 * PATIENCE)
    finally:
        end(process)
    became = order.became(process)
    assert victim == "none", "all of them have been killed before the end"
    assert {step: became[step] for step in ("all", "matches", "totals")} == {"all": "", "matches": "", "totals": ""}
    for name, least in (("matches", 100_000), ("totals", 1_000)):
        expected = million_rows.rows_of(tmp_path / "local" / "out" / name)
        found = million_rows.rows_of(driver / f"{name}.parquet").cast(expected.schema)
        assert found.num_rows > least and found.equals(expected), name


def batches(hdfs: str) -> int:
    """How many are done, of both queries."""
    return sum(
        entry.name.isdigit()
        for query in ("matches", "totals")
        for entry in storage_of(hdfs).entries(f"{hdfs}/checkpoint/{query}/spark/commits")
    )


def another_batch(hdfs: str, driver: subprocess.Popen[bytes]) -> bool:
    """Wait for one; False where the driver has ended before it."""
    known = batches(hdfs)
    wait_until(lambda: batches(hdfs) > known or driver.poll() is not None)
    return driver.poll() is None


def kill_one(cluster: Standalone, what: str, random: Random) -> None:
    """One of the processes that workers have started whose command says so, if there is one just now."""
    started = {pid for worker in cluster.workers for pid in descendants(worker.pid)}
    found = sorted(pid for pid in started if what in command(pid))
    kill(random.sample(found, min(1, len(found))))
