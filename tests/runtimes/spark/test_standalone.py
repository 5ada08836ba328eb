"""On a real cluster whose file system is HDFS: what driver and workers share works, and all else is rejected by
name."""

from __future__ import annotations

import csv
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.runtimes.spark.million_rows import run_locally
from tests.runtimes.spark.on_standalone import OnStandalone, Step
from tests.runtimes.spark.processes import PATIENCE
from tests.runtimes.spark.standalone import Standalone, standalone

NOON = datetime(2024, 5, 1, 12)
FILES, ROWS = 6, 40
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


@pytest.mark.nightly
def test_a_cluster_with_hdfs_and_private_folders(tmp_path: Path) -> None:
    with standalone(tmp_path) as cluster:
        driver = tmp_path / "driver"
        driver.mkdir()
        shared, hdfs = cluster.shared, cluster.hdfs
        for folder in (driver, shared):
            write_inputs(folder / "in")
        good = program(shared / "in", shared / "out")
        steps = [
            Step("hdfs checkpoint", good, f"{hdfs}/checkpoint"),
            Step("hdfs source", program(f"{hdfs}/in", shared / "out"), f"{shared}/checkpoint"),
            Step("hdfs sink", program(shared / "in", f"{hdfs}/out"), f"{shared}/checkpoint"),
        ]
        if cluster.hides:
            steps += [
                Step("unseen checkpoint", good, f"{driver}/checkpoint"),
                Step("unseen source", program(driver / "in", shared / "out"), f"{shared}/checkpoint"),
                Step("unseen sink", program(shared / "in", driver / "out"), f"{shared}/checkpoint"),
                Step("unseen temporary files", good),
            ]
        steps.append(Step("stopped", good, f"{shared}/checkpoint", batches=2))
        watched = (str(driver), str(shared))
        became = OnStandalone(cluster.master, hdfs, watched, tuple(steps)).run(3 * PATIENCE)
        shown = parts(shared / "out")
        went_on = Step("went on", good, f"{shared}/checkpoint")
        became |= OnStandalone(cluster.master, hdfs, watched, (went_on,)).run(3 * PATIENCE)
    assert (became.pop("stopped"), became.pop("went on")) == ("", "")
    assert became.pop("hdfs") == "", "nothing is in HDFS"
    check_rejected(became, cluster, driver)
    run_locally(program(shared / "in", tmp_path / "local"))
    assert rows(tmp_path / "local") == rows(shared / "out")
    assert 0 < len(shown) < len(parts(shared / "out")), "it was stopped on its way"
    assert shown.items() <= parts(shared / "out").items(), "what was shown is there"


def check_rejected(became: dict[str, str], cluster: Standalone, driver: Path) -> None:
    assert not any("and left" in reported for reported in became.values()), became
    for what in ("checkpoint", "source", "sink"):
        reported = became.pop(f"hdfs {what}")
        assert "hdfs:" in reported and "there is no file system 'hdfs' here" in reported, reported
    if not cluster.hides:
        return
    for what, path in (("checkpoint", "checkpoint"), ("source", "in/asks/0.csv"), ("sink", "out")):
        reported = became.pop(f"unseen {what}")
        assert reported.startswith("SparkError") and f"{driver}/{path}'" in reported and "share" in reported, reported
    reported = became.pop("unseen temporary files")
    assert reported.startswith("SparkError") and "without a checkpoint" in reported, reported
    assert became == {}
