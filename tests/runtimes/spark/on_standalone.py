"""A driver of a standalone cluster in a process of its own: `python -m tests.runtimes.spark.on_standalone order.json`.

It has a session as a user builds it, and does one step after the other; the file `became` says how each went.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow.parquet

from tests.runtimes.spark.processes import descendants, kill, wait_for_end
from tests.runtimes.spark.standalone import QUICK
from transom import Session
from transom.core.errors import TransomError
from transom.session import workspace_of

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Step:
    """A text of queries that is run, with a checkpoint or without; it is stopped after so many batches, or goes on.

    With `end` time ends with the input, as in a run without a checkpoint. `read` is a folder of Parquet files that
    Spark itself reads instead, into a file of this name beside `became`.
    """

    name: str
    text: str = ""
    checkpoint: str | None = None
    batches: int | None = None
    end: bool = False
    read: str | None = None


@dataclass(frozen=True)
class OnStandalone:
    """`watched` are the folders that steps may write to; the driver runs in the first one. `default` is what paths
    without a scheme mean to Spark; `settings` are further ones of the session."""

    master: str
    default: str
    watched: tuple[str, ...]
    steps: tuple[Step, ...]
    python: str = sys.executable
    settings: dict[str, str] = field(default_factory=dict)

    def start(self) -> subprocess.Popen[bytes]:
        order = Path(self.watched[0], "order.json")
        order.write_text(json.dumps(asdict(self)))
        path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        variables = dict(os.environ, PYTHONPATH=path, PYSPARK_PYTHON=self.python, SPARK_LOCAL_IP="127.0.0.1") | QUICK
        command = [sys.executable, "-m", "tests.runtimes.spark.on_standalone", str(order)]
        with open(Path(self.watched[0], "said"), "ab") as said:
            return subprocess.Popen(command, cwd=self.watched[0], env=variables, stdout=said, stderr=said)

    def run(self, patience: float) -> dict[str, str]:
        """What went wrong with each step, by its name, and what it left; `root`: what Spark finds there in the end."""
        driver = self.start()
        try:
            driver.wait(patience)
        finally:
            end(driver)
        return self.became(driver)

    def became(self, driver: subprocess.Popen[bytes]) -> dict[str, str]:
        assert driver.returncode == 0, Path(self.watched[0], "said").read_text()[-5000:]
        answers: dict[str, str] = json.loads(Path(self.watched[0], "became").read_text())
        return answers


def end(driver: subprocess.Popen[bytes]) -> None:
    every = {driver.pid} | descendants(driver.pid)  # none, unless it took too long
    kill(every)
    driver.wait()
    wait_for_end(every)


def main(order: str) -> None:
    from pyspark.sql import SparkSession

    from transom.runtimes.spark import settings

    given = json.loads(Path(order).read_text())
    builder = SparkSession.builder.master(given["master"])
    for setting in (*settings.NEEDED, *settings.WANTED):
        builder = builder.config(setting.name, setting.value)
    for name, value in {
        "spark.hadoop.fs.defaultFS": given["default"],
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executorEnv.NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", ""),
        **given["settings"],
    }.items():
        builder = builder.config(name, value)
    began = time.perf_counter()
    spark = builder.getOrCreate()
    print(f"a session: {time.perf_counter() - began:.1f} s", flush=True)
    became = {}
    for step in (Step(**each) for each in given["steps"]):
        before, began = files(given["watched"]), time.perf_counter()
        try:
            if step.read is not None:
                rows = spark.read.parquet(step.read).toArrow()
                pyarrow.parquet.write_table(rows, Path(given["watched"][0], f"{step.name}.parquet"))
            else:
                run_step(Session(spark=spark), step)
            became[step.name] = ""
        except TransomError as error:
            left = sorted(files(given["watched"]) - before)
            became[step.name] = f"{type(error).__name__}: {error}" + (f" and left {left}" if left else "")
        print(f"{step.name}: {time.perf_counter() - began:.1f} s", flush=True)
    root = spark.sparkContext._jvm.org.apache.hadoop.fs.Path("/")  # type: ignore[union-attr]
    in_root = root.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).listStatus(root)
    became["root"] = " ".join(each.getPath().getName() for each in in_root)
    spark.stop()
    Path(given["watched"][0], "became").write_text(json.dumps(became))


def files(folders: list[str]) -> set[str]:
    return {str(path) for folder in folders for path in Path(folder).rglob("*")}


def run_step(session: Session, step: Step) -> None:
    end = True if step.end else None
    run = workspace_of(session).assemble(workspace_of(session).prepare(step.text), checkpoint=step.checkpoint, end=end)
    done = 0

    def count(progress: object) -> None:
        nonlocal done
        done += 1
        print(f"{step.name}: batch {done} {time.strftime('%X')}", flush=True)
        if done == step.batches:
            run.stop()

    run.listeners.append(count)
    run.run()


if __name__ == "__main__":
    main(sys.argv[1])
