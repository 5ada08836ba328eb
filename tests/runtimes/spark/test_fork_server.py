"""The processes of Spark's driver are forked from one that has everything imported, and end when they should."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from transom import Session
from transom.runtimes.spark.launcher import FOLDER, FORKED, SOCKET, write_launcher

MODULE = "pyspark.sql.streaming.python_streaming_source_runner"


def until(done: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A module of the name that Spark requests, which reports of the process that it is run in."""
    package = tmp_path / "path" / "pyspark" / "sql" / "streaming"
    package.mkdir(parents=True)
    for above in (package, package.parent, package.parent.parent):
        (above / "__init__.py").touch()
    reported = """
        import json, os, sys
        if __name__ == "__main__":
            here = {"pid": os.getpid(), "argv": sys.argv[1:], "cwd": os.getcwd(), "x": os.environ.get("X")}
            here["imported"] = "fractions" in sys.modules
            print(json.dumps(here | {"input": sys.stdin.read()}), flush=True)
            if os.environ.get("X") == "waits":
                import time
                time.sleep(600)
            sys.exit(int(os.environ.get("STATUS", 0)))
    """
    (package / "python_streaming_source_runner.py").write_text(textwrap.dedent(reported))
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """It has `fractions` imported, by which one knows who was forked from it."""
    code = (
        f"import fractions; from transom.runtimes.spark.fork_server import serve; serve({str(folder)!r}, {os.getpid()})"
    )
    path = os.pathsep.join([f"{folder}/path", *filter(None, sys.path)])
    running = subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path})
    until(lambda: (folder / SOCKET).exists() or running.poll() is not None)
    yield running
    running.kill()
    running.wait()


@contextmanager
def started(folder: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    launcher = write_launcher(str(folder))
    variables = {**os.environ, "PYTHONPATH": f"{folder}/path", **variables}
    with subprocess.Popen(
        [launcher, "-m", MODULE],
        env=variables,
        cwd=folder / "path",
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        yield process
        process.kill()


def first_line(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    found: dict[str, Any] = json.loads(process.stdout.readline())
    return found


@pytest.mark.parametrize(("status", "reported_status"), [(0, 0), (3, 3), (-1, 255)])
def test_a_process_is_forked_with_what_the_launcher_has(
    folder: Path, server: subprocess.Popen[bytes], status: int, reported_status: int
) -> None:
    with started(folder, X="mine", STATUS=str(status)) as process:
        reported = first_line(process)
        assert reported["imported"] and reported["pid"] != process.pid
        assert (reported["cwd"], reported["x"], reported["input"]) == (f"{folder}/path", "mine", "")
        assert process.wait(30) == reported_status


def test_it_ends_with_the_launcher(folder: Path, server: subprocess.Popen[bytes]) -> None:
    with started(folder, X="waits") as process:
        pid = first_line(process)["pid"]
        assert alive(pid)
        process.kill()
        until(lambda: not alive(pid))


def test_it_ends_with_whoever_started_the_launcher(folder: Path, server: subprocess.Popen[bytes]) -> None:
    with started(folder, X="waits") as process:
        pid = first_line(process)["pid"]
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 1
        until(lambda: not alive(pid))


def test_it_outlives_the_server(folder: Path, server: subprocess.Popen[bytes]) -> None:
    with started(folder, X="waits") as process:
        pid = first_line(process)["pid"]
        server.kill()
        server.wait()
        time.sleep(0.1)
        assert alive(pid) and process.poll() is None
        process.kill()
        until(lambda: not alive(pid))


@pytest.mark.parametrize("left", [False, True])
def test_where_nobody_forks_python_is_started(folder: Path, left: bool) -> None:
    """Also where a server was killed and its socket is left."""
    if left:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(folder / SOCKET))
    with started(folder, STATUS="4") as process:
        assert process.stdin is not None
        process.stdin.close()
        reported = first_line(process)
        assert reported["pid"] == process.pid and not reported["imported"]
        assert process.wait(30) == 4


def test_anything_else_is_plain_python(folder: Path, server: subprocess.Popen[bytes]) -> None:
    code = f"import os, sys; print(os.environ[{FOLDER!r}], sys.argv[1:], sys.flags.isolated)"
    launcher = write_launcher(str(folder))
    assert subprocess.check_output([launcher, "-c", code, "a b", "'"], text=True) == f"{folder} ['a b', \"'\"] 0\n"


@pytest.mark.nightly
def test_the_server_ends_with_its_daemon(folder: Path) -> None:
    code = f"from transom.runtimes.spark import fork_server; fork_server.start({str(folder)!r}); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, start_new_session=True) as daemon:
        until((folder / SOCKET).exists)
        (server,) = (int(pid) for pid in os.listdir("/proc") if pid.isdigit() and _parent(int(pid)) == daemon.pid)
        daemon.kill()
    until(lambda: not alive(server))


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def test_spark_has_its_processes_forked(spark: SparkSession, tmp_path: Path) -> None:
    """While a query runs, a launcher stands for its source, and no process of the session runs such a module itself."""
    folder = Path(spark.sparkContext.pythonExec).parent
    where = f"connector = 'files', path = '{tmp_path}', format = 'csv'"
    with Session(spark=spark) as session:
        session.execute(f"CREATE STREAM s (t TIMESTAMP, WATERMARK FOR t AS t) WITH ({where})")
        with session.start("ISTREAM(SELECT t FROM s)", follow=True):

            def launchers() -> list[list[str]]:
                found = []
                for path in Path("/proc").glob("[0-9]*/cmdline"):
                    with suppress(OSError):  # gone by now
                        found.append(path.read_text().split("\0"))
                return [words for words in found if str(folder) in words and FORKED.intersection(words)]

            until(launchers)
            time.sleep(1.0)  # one for which nobody forks has become a Python of its own by then
            assert [words[3].rpartition("/")[2] for words in launchers()] == ["launcher.py"]
        until(lambda: not launchers())
