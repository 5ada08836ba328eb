"""Where a query without a checkpoint has its state, and the rows that the program hands over.

On one machine that is a folder among the temporary files. On a cluster all machines have to reach it: so it is a folder
of chance in the user's home in the file system that paths of Spark begin in (`fs.defaultFS`), where Transom knows it as
a storage, and otherwise one among the temporary files, which all must share then. It is removed with the query; if the
driver dies before that, by its JVM, which only a kill keeps from it.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from transom.connectors.storage import storage_of
from transom.core.errors import OptionError
from transom.core.location import hadoop_uri, is_remote, storage_path
from transom.program.checkpoint_folder import RUN, put
from transom.runtimes.spark.hadoop import check_reached
from transom.runtimes.spark.workers import Needs, check_temporary_files, check_workers, on_one_machine
from transom.state.scratch import Scratch


class RemoteScratch:
    """A folder on the storage that Spark's paths begin in; only its owner may look into it."""

    def __init__(self, spark: SparkSession, home: str) -> None:
        self.path = f"{home}/.transom-query-{secrets.token_hex(8)}"
        self._hadoop = _hadoop(spark)
        self._where = self._hadoop.Path(hadoop_uri(self.path))
        self._system = self._where.getFileSystem(_settings(spark))
        self._system.mkdirs(self._where)
        self._system.setPermission(self._where, self._hadoop.permission.FsPermission("700"))
        self._system.deleteOnExit(self._where)

    def remove(self) -> None:
        """Remove the folder at once; nothing happens the second time."""
        with suppress(Exception):  # a JVM that has ended has done so itself
            self._system.delete(self._where, True)
            self._system.cancelDeleteOnExit(self._where)

    def forget(self, name: str) -> None:
        with suppress(Exception):
            self._system.delete(self._hadoop.Path(self._where, name), True)


TemporaryFolder: TypeAlias = Scratch | RemoteScratch


def temporary_folder(spark: SparkSession) -> TemporaryFolder:
    """A folder that everybody reaches who works for this session, or an error that says who does not."""
    home = None if on_one_machine(spark) else _home(spark)
    if home is None:
        check_temporary_files(spark)
        return Scratch("query")
    folder = RemoteScratch(spark, home)
    try:
        put(os.path.join(folder.path, RUN), b"")
        check_reached(spark, folder.path)
        check_workers(spark, lambda: Needs({"a query without a checkpoint": folder.path}))
    except BaseException:
        folder.remove()
        raise
    return folder


def forget(folder: TemporaryFolder, names: Iterable[str]) -> None:
    """Remove what has these names in it."""
    for name in names:
        if isinstance(folder, RemoteScratch):
            folder.forget(name)
        else:
            shutil.rmtree(os.path.join(folder.path, name), ignore_errors=True)


def _home(spark: SparkSession) -> str | None:
    """The user's home in the file system that paths of Spark begin in, if Transom reaches it as a storage."""
    try:
        home = storage_path(_hadoop(spark).FileSystem.get(_settings(spark)).getHomeDirectory().toString())
        if is_remote(home):
            storage_of(home).entry(home)
            return home.rstrip("/")
    except (OptionError, OSError):
        pass  # it is a file system that Transom does not know, or it lacks the package for it
    return None


def _hadoop(spark: SparkSession) -> Any:
    """The package of file systems of Hadoop."""
    jvm: Any = spark.sparkContext._jvm
    return jvm.org.apache.hadoop.fs


def _settings(spark: SparkSession) -> Any:
    state: Any = spark._jsparkSession
    return state.sessionState().newHadoopConf()
