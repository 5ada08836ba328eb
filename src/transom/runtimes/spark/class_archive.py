"""An archive of Spark's classes, which halves the work of starting it.

A first run writes down the names of the classes that it loads, which costs nothing. When it is over, a process of the
lowest priority makes an archive of them, once for each version of Java and Spark; later runs map it into memory instead
of reading, checking and linking some sixteen thousand classes. Java ignores an archive that does not fit the jars.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from transom.program.interrupt import ending
from transom.runtimes.spark.cache import cache_folder
from transom.runtimes.spark.java import Java

STATEFUL_STAGE: Final = "TransformWithStateInPySparkExec"
"""A run without a stateful query has not loaded what a query needs: its list is thrown away."""

UNUSED_S: Final = 30 * 24 * 3600
WAIT_S: Final = 60


def archive_options(java: Java, jars: Path, version: str) -> list[str]:
    """Use the archive, or write the list that one is made from."""
    made_of = f"{java.executable} {java.version} {version} {jars} {jars.stat().st_mtime_ns}"
    archive = cache_folder("classes") / f"{hashlib.sha256(made_of.encode()).hexdigest()[:16]}.jsa"
    with suppress(FileNotFoundError):
        os.utime(archive)  # it is in use
        return [f"-XX:SharedArchiveFile={archive}"]
    return [f"-XX:DumpLoadedClassList={archive.with_suffix('')}-{os.getpid()}-{time.time_ns()}.classes"]


def make_later(java: Java, class_path: str, options: Sequence[str], process: int) -> None:
    """Have an archive made when this process ends, of the list that the JVM writes, if it does."""
    for option in options:
        name, _, written = option.partition("=")
        if name == "-XX:DumpLoadedClassList":
            atexit.register(_begin, [str(process), str(java.executable), written, class_path])


def _begin(arguments: list[str]) -> None:
    _, _, written, _ = arguments
    if ending():  # nothing is to go on then; another run will make it
        Path(written).unlink(missing_ok=True)
        return
    with suppress(OSError):
        process = subprocess.Popen(
            [sys.executable, "-m", "transom.runtimes.spark.class_archive", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        process.returncode = 0  # it outlives us: nobody is going to wait for it, and Python need not say so


def make(process: int, java: str, written: Path, class_path: str) -> bool:
    """Make the archive of a list once the JVM that writes it has ended; False if there was nothing to do."""
    archive = written.with_name(f"{written.name.partition('-')[0]}.jsa")
    os.nice(19)
    try:
        _wait_for(process)
        if STATEFUL_STAGE not in written.read_text(encoding="utf-8", errors="replace"):
            return False
        with archive.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if archive.exists():
                return False
            new = written.with_suffix(".new")
            command = [java, "-Xshare:dump", f"-XX:SharedClassListFile={written}", f"-XX:SharedArchiveFile={new}"]
            subprocess.run([*command, "-cp", class_path, "-Xlog:disable"], check=True, capture_output=True)
            os.replace(new, archive)
            _forget_unused(archive.parent)
            return True
    except (OSError, subprocess.SubprocessError):
        return False  # somebody else makes it, or it cannot be made; runs go on without
    finally:
        written.unlink(missing_ok=True)
        written.with_suffix(".new").unlink(missing_ok=True)


def _wait_for(process: int) -> None:
    for _ in range(WAIT_S * 10):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)


def _forget_unused(folder: Path) -> None:
    """Archives of versions that are gone."""
    for archive in folder.glob("*.jsa"):
        if time.time() - archive.stat().st_mtime > UNUSED_S:
            archive.unlink(missing_ok=True)


if __name__ == "__main__":
    make(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4])
