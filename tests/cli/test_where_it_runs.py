"""Every command says where queries run, how to have it otherwise, and what takes a while; all on standard error."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import subprocess
import sys
import threading
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.commands import environment, write_project
from transom.cli import main as command_line
from transom.cli.display import Display
from transom.cli.main import main
from transom.cli.notices import say_where
from transom.connectors.screen import Screen
from transom.kernels.jit import when_compiling
from transom.program import first_run
from transom.program.first_run import NOTICE
from transom.runtimes.spark import launch


def printed(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, list[str]]:
    """Exit code, standard output, and the notices but for those about compiling."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    notices = [line for line in captured.err.splitlines() if line.startswith(NOTICE) and "compiling" not in line]
    return code, captured.out, notices


@pytest.mark.parametrize("arguments", [("run", "a.cql"), ("explain", "a.cql"), ("shell",), ("demo",)])
def test_it_is_spark_unless_somebody_says_otherwise(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def runtime(*options: str) -> str:
        name: str = command_line.command_parser().parse_args([*arguments, *options]).runtime
        return name

    assert runtime() == "local"  # as the environment of the tests says
    assert runtime("--runtime", "spark") == "spark"
    monkeypatch.delenv("TRANSOM_RUNTIME")
    assert runtime() == "spark"
    assert runtime("--runtime", "local") == "local"
    monkeypatch.setenv("TRANSOM_RUNTIME", "flink")
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "there is no runtime 'flink'; write spark or local" in capsys.readouterr().err


def test_a_run_says_where_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_project(tmp_path)
    announced = [f"{NOTICE}running in this process; --runtime spark runs on Spark"]
    assert printed(capsys, "run", path) == (0, "", announced)
    path.write_text(path.read_text().replace("INSERT INTO out", "EXPLAIN"))
    code, out, notices = printed(capsys, "run", path)
    assert (code, notices) == (0, [f"{NOTICE}the plan in this process; --runtime spark shows the one on Spark"])
    assert out.startswith("#")
    path.write_text(path.read_text().replace("EXPLAIN", "EXPLAIN ANALYZE"))
    assert printed(capsys, "run", path)[2] == announced
    path.write_text("SET tick = '1 SECOND'")
    assert printed(capsys, "run", path) == (0, "", [])


def test_a_plan_says_where_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_project(tmp_path, "SET partitions = 3;" + write_project(tmp_path / "other").read_text())
    code, here, notices = printed(capsys, "explain", path)
    assert (code, notices) == (0, [f"{NOTICE}the plan in this process; --runtime spark shows the one on Spark"])
    code, there, notices = printed(capsys, "explain", path, "--runtime", "spark", "--cores", "5")
    assert (code, notices) == (
        0,
        [f"{NOTICE}the plan on Spark, 5 cores; --runtime local shows the one in this process"],
    )
    assert "3 partitions" in here and "3 partitions" not in there
    code, out, _ = printed(capsys, "explain", path, "--runtime", "spark", "--json")
    assert code == 0 and list(json.loads(out)) == ["queries"]
    code, _, notices = printed(capsys, "explain", path, "--analyze")
    assert (code, notices) == (0, [f"{NOTICE}running in this process; --runtime spark runs on Spark"])


def test_nobody_starts_spark_to_look_at_a_plan(tmp_path: Path) -> None:
    path = write_project(tmp_path)
    program = f"import sys, transom.cli.main as m; m.main(['explain', {str(path)!r}]); print('pyspark' in sys.modules)"
    alone = {name: value for name, value in environment().items() if name != "TRANSOM_RUNTIME"}
    ended = subprocess.run([sys.executable, "-c", program], env=alone, capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "False"
    assert ended.stderr.startswith(f"{NOTICE}the plan on Spark, {os.cpu_count()} core")


def test_the_shell_does_not_wait_for_spark(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    started, resume = threading.Event(), threading.Event()

    def never(*cores: object, **settings: object) -> None:
        started.set()
        resume.wait()
        raise OSError("it was not wanted any more")

    monkeypatch.setattr(launch, "start", never)
    given = "CREATE TABLE t (a INTEGER) WITH (connector = 'memory'); EXPLAIN SELECT a FROM t; SHOW QUERIES"
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    try:
        code, out, notices = printed(capsys, "shell", "--runtime", "spark", "--cores", "2")
        assert started.wait(10) and not resume.is_set()
    finally:
        resume.set()
    assert (code, "static_table: table t" in out) == (0, True)
    assert notices == [f"{NOTICE}starting Spark on this machine, 2 cores; --runtime local runs in this process"]


def test_compiling_on_spark_is_known_where_nothing_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    options = Namespace(runtime="spark", cores=1)
    say_where(options, runs=True)
    assert capsys.readouterr().err.splitlines() == [
        f"{NOTICE}starting Spark on this machine, 1 core; --runtime local runs in this process",
        f"{NOTICE}compiling kernels, once on a machine: some seconds, in the workers of Spark",
    ]
    (tmp_path / "join").mkdir()
    (tmp_path / "join" / "probe.nbi").touch()
    say_where(options, runs=True)
    assert "compiling" not in capsys.readouterr().err


@pytest.fixture
def loop(tmp_path: Path) -> Callable[[], Callable[[int], int]]:
    """Makes a loop of a file that nobody has compiled, anew each time."""
    path = tmp_path / "loop.py"
    path.write_text("from transom.kernels.jit import jit\n\n@jit\ndef doubled(n):\n    return n + n\n")

    def make() -> Callable[[int], int]:
        spec = importlib.util.spec_from_file_location("loop", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made: Callable[[int], int] = module.doubled
        return made

    return make


def test_compiling_is_reported_once_and_only_where_nothing_is_cached(loop: Callable[[], Callable[[int], int]]) -> None:
    announced: list[str] = []
    with when_compiling(lambda: announced.append("compiling")):
        first = loop()
        assert announced == []
        assert (first(2), first(2.5)) == (4, 5.0)  # type: ignore[arg-type]
        assert announced == ["compiling"]
    with when_compiling(lambda: announced.append("compiling again")):
        assert loop()(3) == 6
    assert announced == ["compiling"]


def test_where_there_is_no_display_compiling_is_a_notice(capsys: pytest.CaptureFixture[str]) -> None:
    Display(Screen(), shown=False).announce("compiling")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"{NOTICE}compiling\n")


PROGRAM = """
import sys
from transom import Session

sys.ps1 = ">>> "  # as at a prompt
session = Session()
session.stream("s", [{"ts": "2024-05-01 10:00:00", "a": 1}], time="ts")
session.run("SELECT SUM(a) FROM s [ROWS 2]")
"""


@pytest.mark.nightly
def test_a_program_that_somebody_looks_at_says_once_that_it_compiles(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    announced = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
        announced.append(done.stderr)
    assert announced == [f"{NOTICE}compiling kernels, once on a machine: some seconds\n", ""]


@pytest.mark.parametrize(("looked_at", "command", "said"), [(True, False, 2), (False, False, 0), (True, True, 0)])
def test_programs_are_told_only_where_somebody_looks(
    looked_at: bool, command: bool, said: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(first_run, "somebody_looks", lambda: looked_at)
    monkeypatch.setattr(first_run, "_by_the_command", command)
    first_run.announce_workers(compiled=True)
    first_run.announce_workers(compiled=False)
    first_run._say("compiling")
    assert len(capsys.readouterr().err.splitlines()) == said
