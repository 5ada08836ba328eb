"""The package as it is installed, away from a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
from flit_core import buildapi

ROOT = Path(__file__).parents[1]


def test_the_source_distribution_has_what_a_build_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with tarfile.open(tmp_path / buildapi.build_sdist(str(tmp_path))) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/transom/__init__.py"} <= names
    assert not {name.split("/")[0] for name in names} & {"tests", "benchmarks", "docs"}


@pytest.mark.nightly
def test_the_wheel_is_the_package_alone_and_runs(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run([*pip, *build], check=True)
    (wheel,) = tmp_path.glob("transom-*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        (metadata,) = (name for name in names if name.endswith("dist-info/METADATA"))
        said = message_from_bytes(opened.read(metadata))
    assert {name.split("/")[0].split("-")[0] for name in names} == {"transom"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    extras = said.get_all("Provides-Extra", [])
    assert set(extras) == {"kafka", "postgres", "console", "delta", "hdfs", "plot", "dev"}
    needed = [one.partition(";")[2] for one in said.get_all("Requires-Dist", [])]
    assert all(any(f"'{extra}'" in one or f'"{extra}"' in one for one in needed) for extra in extras)
    assert {"transom/py.typed", "transom/cli/building.cql", "transom/kernels/loops.json"} <= set(names)

    home = tmp_path / "home"
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", str(home), str(wheel)], check=True)
    environment = os.environ | {"PYTHONPATH": str(home), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    found = [sys.executable, "-c", "import transom; print(transom.__file__)"]
    where = subprocess.run(found, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
    assert where.startswith(str(home))
    demo = [sys.executable, "-m", "transom.cli.main", "demo", "--runtime", "local"]
    announced = []
    for _ in range(2):
        shown = subprocess.run(demo, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        assert "room 1.05: FIRE" in shown.stdout
        announced.append("compiling kernels" in shown.stderr)
    assert announced == [True, False], "compiled once an installation, and announced then"
