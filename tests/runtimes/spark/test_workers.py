"""Workers that lack the package are reported before a query begins, and so are folders that they do not see."""

from __future__ import annotations

import os
import shlex
import site
import sys
import tempfile
import weakref
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtimes.spark.standalone import alone, namespaces
from transom import Session, __version__
from transom.core.errors import SparkError
from transom.runtimes.spark import temporary, workers
from transom.runtimes.spark.workers import Needs, check_workers
from transom.session import workspace_of

DAEMON = "spark.python.daemon.module"


@pytest.fixture(params=["our daemon", "plain daemon"])
def fresh(spark: SparkSession, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """A session whose workers have not been looked at, with each daemon that starts them."""
    monkeypatch.setattr(workers, "_checked", weakref.WeakSet())
    if request.param == "plain daemon":
        conf = spark.sparkContext._jsc.sc().conf()
        ours = conf.get(DAEMON)
        conf.remove(DAEMON)
        request.addfinalizer(lambda: conf.set(DAEMON, ours))
    return spark


def python_without_transom(folder: Path, other: str | None = None) -> str:
    """The same Python with the same packages but for Transom; or with this version of it."""
    packages = folder / "packages"
    packages.mkdir()
    for path in (Path(each) / name for each in site.getsitepackages() for name in os.listdir(each)):
        if "transom" not in path.name:
            (packages / path.name).symlink_to(path)
    if other is not None:
        (packages / "transom" / "runtimes" / "spark").mkdir(parents=True)
        (packages / "transom" / "__init__.py").write_text(f"__version__ = '{other}'\n")
        (packages / "transom" / "runtimes" / "spark" / "host.py").touch()
    python = folder / "python"
    base = sys._base_executable  # type: ignore[attr-defined]
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec "{base}" "$@"\n')
    python.chmod(0o700)
    return str(python)


@pytest.mark.nightly
def test_workers_without_the_package(fresh: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh.sparkContext, "pythonExec", python_without_transom(tmp_path))
    session = Session(spark=fresh)
    session.stream("s", [{"ts": datetime(2024, 5, 1), "k": 1}], time="ts")
    with pytest.raises(SparkError, match="cannot import transom: No module named 'transom'") as raised:
        session.execute("SELECT k FROM s")
    assert raised.value.remedy is not None
    assert all(each in raised.value.remedy for each in ("PYSPARK_PYTHON", "spark.archives", "addPyFile"))
    monkeypatch.undo()
    check_workers(fresh)


@pytest.mark.parametrize("fresh", ["plain daemon"], indirect=True)
def test_workers_with_another_version(fresh: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh.sparkContext, "pythonExec", python_without_transom(tmp_path, "0.0.1"))
    with pytest.raises(SparkError, match=f"have transom 0.0.1, and the driver has {__version__}"):
        check_workers(fresh)


@pytest.mark.nightly
@pytest.mark.parametrize("fresh", ["our daemon"], indirect=True)
def test_workers_without_a_python(fresh: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh.sparkContext, "pythonExec", "/no/such/python")
    with pytest.raises(SparkError, match='cannot import transom: Cannot run program "/no/such/python"'):
        check_workers(fresh)


@pytest.fixture
def cluster(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """A session that is asked what it is asked on a cluster."""
    for module in (workers, temporary):
        monkeypatch.setattr(module, "on_one_machine", lambda spark: False)
    return spark


def test_folders_and_files_that_workers_see(cluster: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("seven b")
    check_workers(cluster, lambda: Needs({"the checkpoint": f"{tmp_path}/not/yet"}, {f"{tmp_path}/there": 7}))
    assert os.listdir(tmp_path) == ["there"], "nothing is left of the question"
    with pytest.raises(SparkError, match=f"'{tmp_path}/there' is not on a disk that the driver and the workers on"):
        check_workers(cluster, lambda: Needs({}, {f"{tmp_path}/there": 8}))
    check_workers(cluster, lambda: Needs({}, {f"{tmp_path}/gone": 8}))


def test_what_workers_do_not_see_is_rejected_before_anything_is_written(
    cluster: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unshared = namespaces()
    if unshared is None:
        pytest.skip("this machine has no mount namespaces for its users: all workers see what the driver sees")
    shared, hidden, own, python = (tmp_path / name for name in ("shared", "hidden", "own", "python"))
    for folder in (shared, hidden, own):
        folder.mkdir()
        (folder / "in.csv").write_text("ts,k\n2024-05-01 12:00:00,1\n")
    (own / "in.csv").unlink()
    command = shlex.join([*alone(unshared, hidden, own), sys.executable])
    python.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    python.chmod(0o700)
    monkeypatch.setattr(cluster.sparkContext, "pythonExec", str(python))
    for source, sink, checkpoint, named in (
        (shared, shared, hidden, f"the folder of the checkpoint, '{hidden}/checkpoint',"),
        (shared, hidden, shared, f"the folder of the sink '{hidden}/out/', '{hidden}/out',"),
        (hidden, shared, shared, f"'{hidden}/in.csv'"),
    ):
        session = Session(spark=cluster)
        text = f"""
            CREATE STREAM s (ts TIMESTAMP, k INTEGER, WATERMARK FOR ts AS ts)
                WITH (connector = 'files', path = '{source}/in.csv');
            CREATE SINK out WITH (connector = 'files', path = '{sink}/out/', format = 'csv');
            INSERT INTO out SELECT k FROM s;
        """
        with pytest.raises(SparkError) as raised:
            workspace_of(session).assemble(workspace_of(session).prepare(text), checkpoint=f"{checkpoint}/checkpoint")
        assert raised.value.what.startswith(f"{named} is not on a disk that the driver and the workers on ")
        assert [os.listdir(folder) for folder in (shared, hidden, own)] == [["in.csv"], ["in.csv"], []]
    with pytest.raises(SparkError, match="temporary files"):
        monkeypatch.setattr(tempfile, "gettempdir", lambda: str(hidden))
        temporary.temporary_folder(cluster)
