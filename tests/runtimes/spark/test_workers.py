"""Workers that lack the package are told before a query begins, and so are folders that they do not see."""

from __future__ import annotations

import os
import site
import sys
import weakref
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from transom import Session, __version__
from transom.core.errors import SparkError
from transom.runtimes.spark import workers
from transom.runtimes.spark.workers import check_workers

DAEMON = "spark.python.daemon.module"


@pytest.fixture(params=["our daemon", "plain daemon"])
def fresh(spark: SparkSession, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """A session whose workers have not been looked at, with each daemon that starts them."""
    monkeypatch.setattr(workers, "_known", weakref.WeakSet())
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


def test_workers_without_the_package(fresh: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh.sparkContext, "pythonExec", python_without_transom(tmp_path))
    session = Session(spark=fresh)
    session.stream("s", [{"ts": 1, "k": 1}], time="ts")
    with pytest.raises(SparkError, match="cannot import transom: No module named 'transom'") as raised:
        session.sql("SELECT k FROM s")
    assert raised.value.remedy is not None
    assert all(each in raised.value.remedy for each in ("PYSPARK_PYTHON", "spark.archives", "addPyFile"))
    monkeypatch.undo()
    check_workers(fresh)


@pytest.mark.parametrize("fresh", ["plain daemon"], indirect=True)
def test_workers_with_another_version(fresh: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh.sparkContext, "pythonExec", python_without_transom(tmp_path, "0.0.1"))
    with pytest.raises(SparkError, match=f"have transom 0.0.1, and the driver has {__version__}"):
        check_workers(fresh)


@pytest.mark.parametrize("fresh", ["our daemon"], indirect=True)
def test_workers_without_a_python(fresh: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh.sparkContext, "pythonExec", "/no/such/python")
    with pytest.raises(SparkError, match='cannot import transom: Cannot run program "/no/such/python"'):
        check_workers(fresh)
