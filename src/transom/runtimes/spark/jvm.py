"""The JVM of a local session, started without Spark's scripts.

`spark-submit` starts a first JVM that only writes the command line of the second, puts a compressed PySpark without
byte code first on the workers' path, and asks for modules that streaming does not use; all of that costs seconds. Here
the gateway that PySpark talks to is started at once. Classes are loaded from an archive that an earlier run left
behind, which halves the work of a start.

The JVM ends when this process does: it reads our end of a pipe.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark.java_gateway import launch_gateway

from transom.core.errors import SparkError
from transom.runtimes.spark.cache import cache_folder
from transom.runtimes.spark.environment import environment
from transom.runtimes.spark.java import Java

SPARK: Final = Path(pyspark.__file__).parent

GATEWAY: Final = "org.apache.spark.api.python.PythonGatewayServer"
SUBMIT: Final = "org.apache.spark.deploy.SparkSubmit"
"""Starts the gateway too, after it has fetched packages and read the defaults of an installation."""

OPENED: Final = (
    *(f"java.base/java.{name}" for name in ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util")),
    *(f"java.base/java.util.{name}" for name in ("concurrent", "concurrent.atomic")),
    *(f"java.base/{name}" for name in ("jdk.internal.ref", "sun.nio.ch", "sun.nio.cs", "sun.security.action")),
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
"""Packages of Java that Spark looks into, as its own launcher opens them."""

LOGGING: Final = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"

OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",  # the last two are for Java 24
    *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED),
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "-Dderby.connection.requireAuthentication=false",
    LOGGING,
    "-XX:-UsePerfData",
    "-Xshare:auto",
    "-Xlog:cds=off",  # it would name every class that has no place in an archive
)

SHORT: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For runs of a minute or so: no time goes into code that would only pay later."""

LASTING: Final = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
"""The slow compiler waits ten times longer than usual, so that it does not get in the way of the start."""

STATEFUL_STAGE: Final = b"TransformWithStateInPySparkExec"

UNUSED_S: Final = 30 * 24 * 3600

ABANDONED_S: Final = 3600
"""A half-written archive that is older than this was left by a JVM that was killed."""


def start_jvm(java: Java, log: Path, memory: str, options: Sequence[str], program: Sequence[str]) -> Any:
    """A gateway of PySpark to a new JVM that runs `program`; all that it says goes to the log."""
    with tempfile.TemporaryDirectory(prefix="transom-") as folder:
        where = Path(folder) / "gateway"
        command = [
            str(java.executable),
            *("-cp", f"{SPARK}/jars/*"),
            f"-Xmx{memory}",
            *OPTIONS,
            *_class_archive(java),
            *options,
            *program,
        ]
        # PySpark's own scripts set the seed: workers of all executors have to hash texts alike.
        variables = dict(os.environ, _PYSPARK_DRIVER_CONN_INFO_PATH=str(where), PYTHONHASHSEED="0")
        variables |= {"SPARK_HOME": str(SPARK), "SPARK_SCALA_VERSION": "2.13"}
        if program[0] == GATEWAY:
            del variables["SPARK_HOME"]  # it puts the compressed PySpark on the path, and only a cluster needs it
        with log.open("ab") as file:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=file,
                env=variables,
                process_group=0,  # Ctrl-C is for the user's program, which then stops Spark in good order
            )
        port, secret = _connection(process, where, log)
    with environment({"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}):
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    gateway.proc = process
    return gateway


def _connection(process: subprocess.Popen[bytes], where: Path, log: Path) -> tuple[int, str]:
    while not where.exists():
        if process.poll() is not None:
            process.communicate()  # closes our end of its pipe
            raise SparkError(
                f"Java ended with status {process.returncode} before Spark was up",
                remedy=f"the last lines of {log} say why; {_last_line(log)}",
            )
        time.sleep(0.01)
    with where.open("rb") as file:
        port, length = struct.unpack(">ii", file.read(8))
        return port, file.read(length).decode()


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "it is empty")[:300]


def _class_archive(java: Java) -> list[str]:
    """Use the archive of loaded classes that an earlier JVM left behind, or have this one write it when it ends."""
    jars = SPARK / "jars"
    made_of = f"{java.executable} {java.version} {pyspark.__version__} {jars} {jars.stat().st_mtime_ns}"
    name = hashlib.sha256(made_of.encode()).hexdigest()[:16]
    folder = cache_folder("classes")
    archive = folder / f"{name}.jsa"
    for written in folder.glob(f"{name}-*.new"):
        with suppress(FileNotFoundError):  # another process was quicker
            if _complete(written) and _of_a_query(written):
                os.replace(written, archive)
                _forget_old(folder)
            elif _complete(written) or time.time() - written.stat().st_mtime > ABANDONED_S:
                written.unlink()
    if archive.exists():
        os.utime(archive)
        return [f"-XX:SharedArchiveFile={archive}"]
    return [f"-XX:ArchiveClassesAtExit={folder / f'{name}-{os.getpid()}-{time.time_ns()}.new'}"]


def _forget_old(folder: Path) -> None:
    """Archives of Java or Spark versions that are no longer used."""
    for archive in folder.glob("*.jsa"):
        if time.time() - archive.stat().st_mtime > UNUSED_S:
            archive.unlink(missing_ok=True)


def _complete(archive: Path) -> bool:
    """Java writes the header last, over bytes that are zero until then."""
    with archive.open("rb") as file:
        return any(file.read(4))


def _of_a_query(archive: Path) -> bool:
    """Whether the run that left it had a stateful query, so that the classes of one are in it."""
    with archive.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(STATEFUL_STAGE) >= 0
