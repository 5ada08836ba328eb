"""A standalone cluster of Spark on this machine whose workers share one folder with the driver, and no other.

A master and two workers, each a process of its own, and HDFS as the file system that paths without a scheme mean. What
the workers have for temporary files, their home and their working folder is their own: in a mount namespace where the
machine allows it (then they see an empty temporary folder where the driver has its files), in folders of their own
otherwise. Everything listens on loopback only, and is killed at the end.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.runtimes.spark.processes import PATIENCE, descendants, kill, wait_for_end
from transom.runtimes.spark.java import find_java
from transom.runtimes.spark.jvm import CLASS_PATH, OPTIONS, SHORT, SPARK

ROOT = Path(__file__).parents[3]
HDFS = "org.apache.hadoop.mapreduce.MiniHadoopClusterManager"
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"

QUICK = {"JAVA_TOOL_OPTIONS": " ".join(SHORT)}
"""For drivers and executors, which live for a minute or two on two cores that all share."""

ALONE = r"""
set -e
hidden=$1; own=$2; kept=$3; shift 3
mount --rbind "$own" "$own"
for folder in $(echo "$kept" | tr : ' '); do
    mkdir -p "$own${folder#"$hidden"}"
    mount --rbind "$folder" "$own${folder#"$hidden"}"
done
mount --rbind "$own" "$hidden"
exec "$@"
"""


@dataclass(frozen=True)
class Standalone:
    """`master` and `hdfs` are addresses; `shared` is the folder that all see."""

    master: str
    hdfs: str
    shared: Path
    hides: bool
    """Whether workers see nothing of the driver's temporary folder but `shared`."""
    folder: Path
    workers: list[subprocess.Popen[bytes]]

    def replace_worker(self, index: int) -> None:
        """Kill it with all that it has started, and let another one take its place, on an empty disk."""
        worker = self.workers[index]
        kill({worker.pid, *descendants(worker.pid)})
        worker.wait()
        shutil.rmtree(self.folder / f"worker-{index + 1}", ignore_errors=True)
        self.start_worker(index)

    def start_worker(self, index: int) -> None:
        folder = self.folder / f"worker-{index + 1}"
        worker = _worker(folder, self.master, f"127.0.0.{index + 2}", self.shared)
        self.workers[index:] = [worker, *self.workers[index + 1 :]]
        _said(folder, "Successfully registered with (master)", worker)


@contextmanager
def standalone(folder: Path) -> Iterator[Standalone]:
    """For as long as the block runs. A test is skipped where HDFS cannot be fetched."""
    jars = minicluster()
    shared = folder / "shared"
    shared.mkdir()
    with _ended() as started, _ended() as workers:
        hdfs = folder / "hdfs"
        started.append(_start_hdfs(jars, hdfs))
        master = folder / "master"
        master.mkdir()
        started.append(_java(CLASS_PATH, [MASTER, "--host", "127.0.0.1", "--webui-port", "0", "--port", "0"], master))
        address = _said(master, r"Starting Spark master at (spark://\S+)", started[1])
        where = _address(hdfs, started[0])
        cluster = Standalone(address, where, shared, namespaces() is not None, folder, workers)
        for index in (0, 1):
            cluster.start_worker(index)
        yield cluster


@contextmanager
def hdfs_alone(folder: Path) -> Iterator[str]:
    """The address of an HDFS, for as long as the block runs."""
    jars = minicluster()
    with _ended() as started:
        started.append(_start_hdfs(jars, folder / "hdfs"))
        yield _address(folder / "hdfs", started[0])


def _start_hdfs(jars: Path, folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir()
    options = ["-nomr", "-format", "-datanodes", "1", "-nnport", "0", "-writeDetails", "details"]
    return _java(f"{jars}/*:{CLASS_PATH}", [HDFS, *options], folder)


def _address(folder: Path, process: subprocess.Popen[bytes]) -> str:
    port = _said(folder, r"namenode_port\W+(\d+)", process, "details")
    return f"hdfs://127.0.0.1:{port}"


@cache
def minicluster() -> Path:
    """A folder with HDFS in it, of the version that PySpark has the client of; fetched from Maven Central once, and
    kept beside the environment."""
    wanted = (
        ("org.apache.hadoop", "hadoop-client-minicluster", _hadoop()),
        ("org.junit.jupiter", "junit-jupiter-api", "5.13.4"),
        ("org.opentest4j", "opentest4j", "1.3.0"),
    )
    return _fetched("hadoop-minicluster", wanted, "default->master")


@cache
def s3a() -> list[str]:
    """The jars by which Hadoop reaches S3, as `spark.jars.packages` would fetch them: 690 MB."""
    folder = _fetched("hadoop-aws", (("org.apache.hadoop", "hadoop-aws", _hadoop()),), "default->default")
    return [str(folder / name) for name in _names(folder)]


def _hadoop() -> str:
    (version,) = re.findall(r"^hadoop-client-api-(.+)\.jar$", "\n".join(_names(SPARK / "jars")), re.MULTILINE)
    return str(version)


def _fetched(what: str, wanted: Sequence[tuple[str, str, str]], conf: str) -> Path:
    """A folder with these jars, and what they need if `conf` says so."""
    version = _hadoop()
    jars = Path(sys.prefix) / what / version
    if not jars.exists():
        fresh = jars.parent / f"{version}.{os.getpid()}"
        fresh.mkdir(parents=True)
        lines = (f'<dependency org="{o}" name="{n}" rev="{r}" conf="{conf}"/>' for o, n, r in wanted)
        module = f'<info organisation="tests" module="{what}"/><dependencies>{"".join(lines)}</dependencies>'
        (fresh / "ivy.xml").write_text(f'<ivy-module version="2.0">{module}</ivy-module>')
        fetch = ["org.apache.ivy.Main", "-cache", "cache", "-ivy", "ivy.xml", "-retrieve", "jars/[artifact].[ext]"]
        command = [str(find_java().executable), "-cp", CLASS_PATH, *fetch]
        done = subprocess.run(command, cwd=fresh, capture_output=True, text=True, timeout=PATIENCE)
        got = {f"{name}.jar" for _, name, _ in wanted} <= set(_names(fresh / "jars"))
        if got:
            os.replace(fresh / "jars", jars)
        shutil.rmtree(fresh)
        if not got:
            last = (done.stdout + done.stderr).strip().splitlines()[-1:]
            pytest.skip(f"{what} {version} cannot be had from Maven Central: {last}")
    return jars


def _names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def _worker(folder: Path, master: str, host: str, shared: Path) -> subprocess.Popen[bytes]:
    """At an address of its own: Spark would read what another worker of the same host has on its disk."""
    own, hidden = folder / "tmp", Path(tempfile.gettempdir())
    unshared = namespaces()
    seen = own if unshared is None else hidden
    for name in ("home", "work", "local"):
        (own / name).mkdir(parents=True)
    before: list[str] = []
    if unshared is not None:
        assert shared.is_relative_to(hidden), "tests have their folders among the temporary files"
        kept = {path for path in (shared, ROOT, Path(sys.prefix), SPARK) if path.is_relative_to(hidden)}
        before = alone(unshared, hidden, own, kept)
    variables = {"HOME": str(seen / "home"), "TMPDIR": str(seen), "SPARK_LOCAL_DIRS": str(seen / "local")}
    variables |= {"SPARK_LOCAL_IP": host, **QUICK}  # which the executors inherit
    size = ["--cores", "1", "--memory", "1g"]
    program = [WORKER, "--host", host, "--webui-port", "0", *size, "--work-dir", str(seen / "work"), master]
    return _java(CLASS_PATH, program, folder, before, **variables)


def alone(unshared: Sequence[str], hidden: Path, own: Path, kept: Iterable[Path] = ()) -> list[str]:
    """What to write before a command so that the folder `hidden` is the folder `own` to it, but for what is kept."""
    return [*unshared, "sh", "-c", ALONE, "sh", str(hidden), str(own), ":".join(map(str, sorted(kept)))]


@cache
def namespaces() -> tuple[str, ...] | None:
    """The command that gives a process mounts of its own, if the machine allows it."""
    for options in (("--mount",), ("--mount", "--map-root-user")):
        try:
            mount = ["mount", "--rbind", "/proc", "/proc"]
            subprocess.run(["unshare", *options, *mount], check=True, capture_output=True, timeout=PATIENCE)
        except (OSError, subprocess.SubprocessError):
            continue
        return ("unshare", *options)
    return None


def _java(
    classes: str, program: Sequence[str], folder: Path, before: Sequence[str] = (), **variables: str
) -> subprocess.Popen[bytes]:
    """A small JVM in a folder, whose file `said` gets what it says."""
    java = find_java()
    small = ("-Xmx256m", *(option for option in OPTIONS if "log4j2" not in option), *SHORT)
    home = {} if java.home is None else {"JAVA_HOME": str(java.home)}
    spark = {"SPARK_HOME": str(SPARK), "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_IP": "127.0.0.1"}
    with open(folder / "said", "wb") as said:
        return subprocess.Popen(
            [*before, str(java.executable), "-cp", classes, *small, *program],
            cwd=folder,
            env=os.environ | home | spark | variables,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )


def _said(folder: Path, pattern: str, process: subprocess.Popen[bytes], file: str = "said") -> str:
    """The first group of a pattern in what a process says, as soon as it says it."""
    end = time.monotonic() + PATIENCE
    while True:
        text = (folder / file).read_text() if (folder / file).exists() else ""
        match = re.search(pattern, text)
        if match is not None:
            return match[1]
        assert process.poll() is None and time.monotonic() < end, (folder / "said").read_text()
        time.sleep(0.05)


@contextmanager
def _ended() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Whatever becomes of the test, no process is left: neither those in the list nor those that they started."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        yield started
    finally:
        every = {pid for process in started for pid in (process.pid, *descendants(process.pid))}
        for process in started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        kill(every)
        for process in started:
            process.wait()
        wait_for_end(every)
