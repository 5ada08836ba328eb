"""The settings of Spark that Transom needs or likes, each with its reason: one closed list.

A session of the user's own is taken as it is: what is needed and missing is an error that shows the lines to write,
what is merely wanted is reported.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pyspark.sql import SparkSession

from transom.core.errors import SparkError

TRIES: Final = 4
"""How often a task is tried before the query fails: a worker that is killed goes unnoticed."""

MOST_PARTITIONS_A_CORE: Final = 4

STREAMING: Final = "org.apache.spark.sql.execution.streaming"


@dataclass(frozen=True)
class SparkSetting:
    """`live`: it can be changed in a session that runs already."""

    name: str
    value: str
    why: str
    live: bool = True


@dataclass(frozen=True)
class Missing:
    """A setting that a session does not have as Transom would have it; `found` is None where it is not set at all."""

    name: str
    wanted: str
    present: str | None
    why: str
    needed: bool
    live: bool = True

    def __str__(self) -> str:
        """The line to write."""
        return f'.config("{self.name}", "{self.wanted}")  # {self.why}'


NEEDED: Final = (
    SparkSetting(
        "spark.sql.streaming.stateStore.providerClass",
        f"{STREAMING}.state.RocksDBStateStoreProvider",
        "stateful stages in Python keep their state in RocksDB; Spark rejects any other store",
    ),
)
"""Without these a query cannot run."""

WANTED: Final = (
    SparkSetting(
        "spark.python.unix.domain.socket.enabled",
        "true",
        "workers are reached through files that only the user can open, and without the delays of TCP",
        live=False,
    ),
    SparkSetting(
        "spark.python.daemon.module",
        "transom.runtimes.spark.daemon",
        "workers start with everything imported, and collect no garbage after every task",
        live=False,
    ),
    SparkSetting(
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
        "true",
        "a batch writes what it changed, not files of the whole store",
    ),
    SparkSetting(
        "spark.sql.streaming.stateStore.checkpointFormatVersion",
        "2",
        "files of the checkpoint carry checksums, and a task that was given up cannot disturb the one that replaced it",
    ),
    SparkSetting(
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled",
        "false",
        "sources and stateful stages share their workers; where it is on, each kind starts a daemon of its own",
    ),
    SparkSetting(
        "spark.sql.session.timeZone",
        "UTC",
        "instants look the same in Spark's columns as in Transom's",
    ),
)
"""Queries run without them, more slowly or less safely."""

LOCAL: Final = {
    # One machine: nobody else has to reach the driver.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Hadoop's newer interface starts some forty processes (chmod, readlink) a batch on a local disk.
    "spark.sql.streaming.checkpointFileManagerClass": f"{STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager",
    # The call sites of DataFrame operations are of no use where the plan comes from a query text.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.adaptive.enabled": "false",  # streaming has no use for it, and Spark warns of it
    "spark.locality.wait": "0s",
}
"""What a session that Transom starts for itself has besides."""


PARTITIONS: Final = "spark.sql.shuffle.partitions"

ARROW_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
MOST_ARROW_ROWS: Final = "131072"
"""Rows of DataFrames come to the workers in batches of so many: each costs something, however few it has."""

_changing: Final = threading.Lock()


@contextmanager
def settings_of(spark: SparkSession, partitions: int) -> Iterator[None]:
    """A streaming query that starts here has so many partitions in all its stages; the session has what it had."""
    wanted = {PARTITIONS: str(partitions)}
    with _changing:
        if spark.conf.get(ARROW_ROWS, None) is None:  # nobody has chosen it
            wanted[ARROW_ROWS] = MOST_ARROW_ROWS
        before = {name: spark.conf.get(name, None) for name in wanted}
        for name, value in wanted.items():
            spark.conf.set(name, value)
        try:
            yield
        finally:
            for name, earlier in before.items():
                if earlier is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, earlier)


def partitions(spark: SparkSession) -> str | None:
    """The number of partitions as the session has it, not as it is while another query starts."""
    with _changing:
        return spark.conf.get(PARTITIONS)


def missing(spark: SparkSession) -> list[Missing]:
    """What the session lacks, the needed first."""
    lacking = []
    for needed, settings in ((True, NEEDED), (False, WANTED)):
        for setting in settings:
            value = spark.conf.get(setting.name, None)
            if value != setting.value:
                lacking.append(Missing(setting.name, setting.value, value, setting.why, needed, setting.live))
    return lacking + _tries(spark) + _partitions(spark)


def check(spark: SparkSession) -> None:
    """Reject a session that lacks what a query needs, with the lines that mend it."""
    needed = [each for each in missing(spark) if each.needed]
    if needed:
        lines = "\n".join(f"    {each}" for each in needed)
        names = ", ".join(each.name for each in needed)
        raise SparkError(
            f"the Spark session lacks what a query needs: {names}",
            remedy=f"build it with\n{lines}\n  or let Transom start one of its own (Session without spark=..)",
        )


def _partitions(spark: SparkSession) -> list[Missing]:
    """Every partition is a task in every batch; Spark's own number, 200, is made for other work."""
    cores, value = spark.sparkContext.defaultParallelism, partitions(spark) or ""
    if value.isdecimal() and int(value) <= MOST_PARTITIONS_A_CORE * cores:
        return []
    why = "a query has so many partitions, and each of them is a task in every batch"
    return [Missing(PARTITIONS, str(cores), value, why, needed=False)]


def _tries(spark: SparkSession) -> list[Missing]:
    """Local mode takes the number of tries from the master's name, a cluster from a setting."""
    why = "a worker that dies is replaced, and the query goes on"
    master = spark.conf.get("spark.master") or ""
    local = re.fullmatch(r"local(?:\[([^,\]]+)(?:,\s*(\d+))?\])?", master)
    if local:
        wanted = f"local[{local[1] or 1},{TRIES}]"
        few = int(local[2] or 1) < TRIES
        return [Missing("spark.master", wanted, master, why, needed=False, live=False)] if few else []
    name = "spark.task.maxFailures"
    value = spark.conf.get(name, None)
    few = value is not None and int(value) < TRIES
    return [Missing(name, str(TRIES), value, why, needed=False, live=False)] if few else []
