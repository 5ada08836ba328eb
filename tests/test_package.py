"""The package as it is installed, away from a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.nightly
def test_the_wheel_is_the_package_alone_and_runs(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run([*pip, *build], check=True)
    (wheel,) = tmp_path.glob("transom-*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"transom"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {"transom/py.typed", "transom/cli/building.cql", "transom/kernels/loops.json"} <= set(names)

    home = tmp_path / "home"
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", str(home), str(wheel)], check=True)
    environment = os.environ | {"PYTHONPATH": str(home), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    found = [sys.executable, "-c", "import transom; print(transom.__file__)"]
    where = subprocess.run(found, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
    assert where.startswith(str(home))
    demo = [sys.executable, "-m", "transom.cli.main", "demo", "--runtime", "local"]
    shown = subprocess.run(demo, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
    assert "room 1.05: FIRE" in shown
