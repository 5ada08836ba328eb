"""The JVM of a local session, started without Spark's scripts.

`spark-submit` starts a first JVM that only writes the command line of the second, puts a compressed PySpark without
byte code first on the workers' path, and asks for modules that streaming does not use; all of that costs seconds. Here
the gateway that PySpark talks to is started at once, and classes come out of an archive (`class_archive.py`).

The JVM ends when this process does: it reads our end of a pipe.
"""

from __future__ import annotations

import atexit
import os
import struct
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark.java_gateway import launch_gateway

from transom.core.errors import SparkError
from transom.runtimes.spark.class_archive import archive_options, make_later
from transom.runtimes.spark.environment import environment
from transom.runtimes.spark.java import Java
from transom.state.scratch import Scratch

SPARK: Final = Path(pyspark.__file__).parent
CLASS_PATH: Final = f"{SPARK}/jars/*"

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
    "-XX:+IgnoreUnrecognizedVMOptions",  # some of the following are for newer versions of Java
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


def start_jvm(java: Java, log: Path, memory: str, options: Sequence[str], program: Sequence[str]) -> Any:
    """A gateway of PySpark to a new JVM that runs `program`; all that it says goes to the log."""
    with Scratch("gateway") as scratch:
        where = Path(scratch.path) / "gateway"
        archive = archive_options(java, SPARK / "jars", pyspark.__version__)
        command = [
            str(java.executable),
            *("-cp", CLASS_PATH),
            f"-Xmx{memory}",
            *OPTIONS,
            *archive,
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
        # One that has no answer yet would not hear that its pipe is closed.
        atexit.register(process.kill)
        port, secret = _connection(process, where, log)
        atexit.unregister(process.kill)
    with environment({"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}):
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    gateway.proc = process
    make_later(java, CLASS_PATH, archive, process.pid)
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
