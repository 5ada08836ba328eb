"""A SparkSession of Transom's own: quick to start, quiet, and closed to the network.

All that the JVM and the workers say goes to a log file, from Spark's first line to the last one at shutdown, so
nothing of it can get between the lines that a user reads. `log_file` says where it is.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from transom.core.errors import SparkError
from transom.runtimes.spark import hadoop_origins, local_files, settings
from transom.runtimes.spark.cache import cache_folder, kernels_folder
from transom.runtimes.spark.environment import environment
from transom.runtimes.spark.java import Java, find_java
from transom.runtimes.spark.jvm import GATEWAY, LASTING, LOGGING, SHORT, SUBMIT, start_jvm
from transom.runtimes.spark.launcher import write_launcher
from transom.runtimes.spark.nothing import Nothing
from transom.state.scratch import Scratch

LOG_FILE: Final = "spark.transom.log"
LOGS_KEPT: Final = 10

_LONGEST_PATH: Final = 36
"""Letters of a folder in which sockets may lie; the name of ours and of a socket in it come to it."""

FETCHED: Final = ("spark.jars", "spark.submit", "spark.driver.extraClassPath")
"""Settings that only `SparkSubmit` understands."""


def start(cores: int | str = "*", *, master: str | None = None, lasting: bool = True, **extra: object) -> SparkSession:
    """A local session with good settings; `extra` are further settings of Spark by their names, which win.

    `lasting` is False for runs of a minute or so, which start sooner and reach a lower speed in the end. A process has
    one JVM in its life: options of Java count for its first session only.
    """
    if SparkContext._active_spark_context is not None:
        raise SparkError(
            "a Spark session is running in this process already, and there can be one only",
            remedy="use it (transom.Session(spark=..)), or stop it first",
        )
    chosen = _settings(cores, master, extra)
    java = find_java()
    with environment(_variables(java, chosen)), _interrupts_kept():
        gateway = _living_gateway() or _new_gateway(java, chosen, lasting)
        chosen[LOG_FILE] = vars(gateway).get(LOG_FILE, "")
        conf = SparkConf(loadDefaults=False).setAll(list(chosen.items()))
        return SparkSession(SparkContext(conf=conf, gateway=gateway))


def warm(spark: SparkSession) -> threading.Thread:
    """Start the workers and load what a first batch will want, while the caller goes on with its plan."""

    def work() -> None:
        # Whatever goes wrong here goes wrong in the query too, and is reported there; or it costs some time.
        with suppress(Exception):
            local_files.install(spark)
        with suppress(Exception):
            spark.sparkContext._jvm.org.rocksdb.RocksDB.loadLibrary()  # type: ignore[union-attr]
        with suppress(Exception):
            spark.dataSource.register(Nothing)
            spark.read.format(Nothing.name()).load().write.format("noop").mode("append").save()
        with suppress(Exception):
            hadoop_origins.forget(spark)

    thread = threading.Thread(target=work, name="transom-warm", daemon=True)
    thread.start()
    return thread


def log_file(spark: SparkSession) -> Path | None:
    """Where the session's log is, if Transom started its JVM."""
    name = spark.conf.get(LOG_FILE, None)
    return Path(name) if name else None


def _settings(cores: int | str, master: str | None, extra: Mapping[str, object]) -> dict[str, str]:
    number = os.cpu_count() or 1 if cores == "*" else int(cores)
    chosen = {setting.name: setting.value for setting in (*settings.NEEDED, *settings.WANTED)}
    chosen |= settings.LOCAL
    chosen |= {
        "spark.master": master or f"local[{number},{settings.TRIES}]",
        "spark.app.name": "transom",
        "spark.sql.shuffle.partitions": str(number),
        "spark.python.unix.domain.socket.dir": _folder(),
        "spark.executorEnv.NUMBA_CACHE_DIR": str(kernels_folder()),
    }
    if master is not None:  # executors of their own, if it is a cluster
        chosen["spark.executor.extraJavaOptions"] = LOGGING
    for name, value in extra.items():
        chosen[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return chosen


def _variables(java: Java, chosen: Mapping[str, str]) -> dict[str, str | None]:
    """What the JVM and the workers find in their environment; None is taken out of it."""
    path = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return {
        "JAVA_HOME": str(java.home) if java.home else None,
        "PYSPARK_PYTHON": _python(chosen),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": os.environ.get("SPARK_WORKER_DIR") or _folder(),  # else it is beside the installation
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, path)) if path else None,  # executors run in other folders
        "PYTHONDONTWRITEBYTECODE": None,  # workers would compile every module anew
    }


def _python(chosen: Mapping[str, str]) -> str:
    """What Spark is to start as Python; on other machines there is no launcher of ours."""
    if not chosen["spark.master"].startswith("local["):
        return sys.executable
    return write_launcher(_folder())


def _living_gateway() -> Any:
    """The JVM of an earlier session of this process; one that was killed is forgotten."""
    gateway = SparkContext._gateway
    process = vars(gateway).get("proc") if gateway is not None else None
    if process is not None and process.poll() is not None:
        SparkContext._gateway = SparkContext._jvm = None
        return None
    return gateway


def _new_gateway(java: Java, chosen: Mapping[str, str], lasting: bool) -> Any:
    options = [*(LASTING if lasting else SHORT), *shlex.split(chosen.get("spark.driver.extraJavaOptions", ""))]
    program = [GATEWAY]
    if not chosen["spark.master"].startswith("local[") or any(name.startswith(FETCHED) for name in chosen):
        given = (part for name, value in chosen.items() for part in ("--conf", f"{name}={value}"))
        program = [SUBMIT, *given, "pyspark-shell"]
    log = _new_log()
    gateway = start_jvm(java, log, chosen["spark.driver.memory"], options, program)
    setattr(gateway, LOG_FILE, str(log))
    return gateway


def _folder() -> str:
    """A folder that nobody else can look into, with a short name: those of sockets may have a hundred letters."""
    where = tempfile.gettempdir()
    return Scratch("spark", where if len(where) <= _LONGEST_PATH else "/tmp").path


def _new_log() -> Path:
    folder = cache_folder("logs")
    for old in sorted(folder.glob("spark-*.log"))[: -LOGS_KEPT + 1]:
        old.unlink(missing_ok=True)
    return folder / f"spark-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """PySpark takes Ctrl-C for itself when a context is made; it stays with whoever had it."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
