"""Whether the workers of a session can do what a query asks of them, found out before anything is written.

They must be able to import Transom, in the driver's version, and on a cluster they must see the folders that the driver
sees: a checkpoint on a disk that is not shared would fall apart into pieces on all machines, each of which looks whole.
A small job finds out, on every executor that is there.
"""

from __future__ import annotations

import os
import re
import secrets
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession

from transom import __version__
from transom.connectors.connector import OpenSink, Source
from transom.connectors.listing import show
from transom.connectors.storage import storage_of
from transom.core.errors import SparkError
from transom.core.location import is_remote
from transom.program.checkpoint_folder import is_there
from transom.runtimes.spark.worker_errors import cause

_IMPORT: Final = re.compile(r"No module named '?[\w.]+'?|Cannot run program \S+|PYTHON_VERSION_MISMATCH\] [^\n]*")
_REMEDY: Final = (
    "let PYSPARK_PYTHON or spark.pyspark.python name a Python that has it, on every machine, before the session starts,"
    " or ship one (spark.archives); spark.submit.pyFiles and addPyFile ship transom alone, without what it needs"
)

_checked: weakref.WeakSet[SparkContext] = weakref.WeakSet()
"""Sessions whose workers can import what they need."""


@dataclass(frozen=True)
class Needs:
    """What a query needs on the machines of its workers.

    `folders` are written by driver and workers; they need not be there yet. `files` are read by workers.
    """

    folders: dict[str, str] = field(default_factory=dict)
    """By what they are to the user."""
    files: dict[str, int] = field(default_factory=dict)
    """With the bytes that they have at least."""

    @staticmethod
    def of(sources: Iterable[Source], sinks: Iterable[OpenSink], checkpoint: str | None) -> Needs:
        folders = {} if checkpoint is None else {"the checkpoint": checkpoint}
        for sink in sinks:
            folders |= sink.folders()
        files: dict[str, int] = {}
        for source in sources:
            files |= source.files()
        return Needs(folders, files)


def on_one_machine(spark: SparkSession) -> bool:
    """Whether all work is done in the driver's own process, so that there are no executors."""
    return (spark.conf.get("spark.master") or "").partition("[")[0] == "local"


def check_workers(spark: SparkSession, needs: Callable[[], Needs] = Needs) -> None:
    """Reject a session whose workers cannot do the work; they are asked once whether they have the package."""
    alone = on_one_machine(spark)
    if alone and spark.sparkContext in _checked:
        return
    wanted = Needs() if alone else needs()
    with ExitStack() as stack:
        tokens = {what: stack.enter_context(_token(folder)) for what, folder in wanted.folders.items()}
        named = {token: f"the folder of {what}, '{show(wanted.folders[what])}'," for what, token in tokens.items()}
        looked_for = [*((token, 0) for token in named if token is not None), *wanted.files.items()]
        reports = _workers_report(spark, looked_for)
        at_hosts = sorted((int(index), host) for host, kind, index in reports if kind == "unseen")
        # A file may have gone since it was listed, for everybody.
        unseen = [(host, looked_for[at][0]) for at, host in at_hosts if is_there(looked_for[at][0])]
    for host, kind, report in reports:
        if kind == "version" and report != __version__:
            raise SparkError(
                f"the workers on {host} have transom {report}, and the driver has {__version__}", remedy=_REMEDY
            )
        if kind == "import":
            raise _cannot_import(f"{report} ({host})")
    _checked.add(spark.sparkContext)
    for host, kind, report in reports:
        if kind == "unreachable":
            index, _, why = report.partition(" ")
            path = looked_for[int(index)][0]
            raise _unreachable(named.get(path) or repr(show(path)), host, why)
    for host, path in unseen:
        if is_remote(path):
            raise _unreachable(named.get(path) or repr(show(path)), host, "it is not there for them")
        raise SparkError(
            f"{named.get(path) or repr(show(path))} is not on a disk that the driver and the workers on {host} share",
            remedy="choose a folder on a disk that all machines have at the same place",
        )


def check_temporary_files(spark: SparkSession) -> None:
    """A query without a checkpoint has its state among the temporary files, which machines do not share as a rule."""
    if not on_one_machine(spark):
        what = "temporary files, where a query without a checkpoint has its state"
        check_workers(spark, lambda: Needs({what: tempfile.gettempdir()}))


def _workers_report(spark: SparkSession, looked_for: Sequence[tuple[str, int]]) -> list[tuple[str, str, str]]:
    """(host, kind, what) of all that workers had to report, `unseen` with the number of a path."""

    version = __version__

    # It travels as it is: where Transom cannot be imported, nothing of it could be loaded.
    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import socket

        import pyarrow as pa

        report = []
        try:
            import transom

            report.append(("version", transom.__version__))
            if transom.__version__ == version:
                import transom.runtimes.spark.hosting
        except ImportError as error:
            report.append(("import", str(error)))
        for index, (path, size) in enumerate(looked_for):
            if "://" in path:
                try:
                    from transom.connectors.storage import storage_of

                    entry = storage_of(path).entry(path)
                    if entry is None or entry.size < size:
                        report.append(("unseen", str(index)))
                except Exception as error:  # whatever it is, it is the driver's to say
                    report.append(("unreachable", f"{index} {error}"))
            elif not os.path.isfile(path) or os.path.getsize(path) < size:
                report.append(("unseen", str(index)))
        for _ in batches:
            pass
        host = socket.gethostname()
        columns = [[host] * len(report), [kind for kind, _ in report], [what for _, what in report]]
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, pa.string()) for column in columns], ["host", "kind", "what"]
        )

    tasks = 1 if on_one_machine(spark) else max(2, spark.sparkContext.defaultParallelism)
    try:
        rows = spark.range(0, tasks, 1, tasks).mapInArrow(look, "host string, kind string, what string").collect()
    except Exception as error:  # of PySpark, or of the JVM itself
        text = str(error)
        missing = _IMPORT.search(text)
        if missing is not None:
            raise _cannot_import(missing[0].removeprefix("PYTHON_VERSION_MISMATCH] ")) from None
        raise SparkError(f"the workers of the Spark session fail: {cause(text)}", remedy="the log says more") from None
    return sorted({(row.host, row.kind, row.what) for row in rows})


def _unreachable(what: str, host: str, why: str) -> SparkError:
    return SparkError(
        f"the workers on {host} cannot reach {what.rstrip(',')}: {why}",
        remedy="give them what the storage asks for, as the driver has it: set spark.executorEnv.AWS_ENDPOINT_URL,"
        " spark.executorEnv.AWS_ACCESS_KEY_ID and so on, or let the machines have roles; hdfs:// needs hdfs-native",
    )


def _cannot_import(why: str) -> SparkError:
    return SparkError(f"the workers of the Spark session cannot import transom: {why}", remedy=_REMEDY)


@contextmanager
def _token(folder: str) -> Iterator[str | None]:
    """A file that only this driver can have written there, or above where the folder is going to be.

    None where the driver may not write: that is reported by whoever wants to write there.
    """
    if is_remote(folder):
        path = f"{folder.rstrip('/')}/.transom-{secrets.token_hex(16)}"
        try:
            storage_of(path).put(path, b"")
        except OSError:
            yield None
            return
        try:
            yield path
        finally:
            with suppress(OSError):
                storage_of(path).delete(path)
        return
    above = os.path.abspath(folder)
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    path = os.path.join(above, f".transom-{secrets.token_hex(16)}")
    try:
        open(path, "xb").close()
    except OSError:
        yield None
        return
    try:
        yield path
    finally:
        with suppress(FileNotFoundError):
            os.unlink(path)
