"""Starts the Python workers of an executor: Spark runs it as `spark.python.daemon.module`.

PySpark's own daemon forks empty processes, each of which then imports everything, and collects all garbage after every
task, which takes longer than a small task itself. This one imports first and forks then; `gc.freeze` puts what is
there beyond the collector's reach, so that it has only a task's own objects to look at.

Spark keeps a daemon for each kind of worker and names the kind as the first argument.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from transom.runtimes.spark import fork_server
from transom.runtimes.spark.launcher import FOLDER, FORKED
from transom.runtimes.spark.python_path import forget_other_paths, without_archives

TASKS: Final = "pyspark.worker"
"""The kind of worker that runs tasks. Others plan a source, or look after one, in the driver."""

KEPT_MS: Final = 2_000
"""For so many milliseconds Arrow keeps memory that was given back, unless the user says otherwise: between one batch
and the next it would be returned to the system, which takes longer to clear it again than a batch takes to read."""

FOR_ALL: Final = ("numpy", "pyarrow", "pyspark.sql.types", "pyspark.sql.datasource")

FOR_TASKS: Final = (
    "pandas",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.streaming.stateful_processor_util",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "pyspark.sql.streaming.stateful_processor_api_client",
    "pyspark.sql.streaming.value_state_client",
    "pyspark.sql.streaming.map_state_client",
    "pyspark.sql.streaming.list_state_client",
    "transom.runtimes.spark.message_source",
    "transom.runtimes.spark.dataframe_source",
    "transom.runtimes.spark.hosting",
    "transom.runtimes.spark.warm",
    *FORKED,
)


def main(arguments: Sequence[str]) -> None:
    kind = arguments[0] if arguments else TASKS
    # No thread may run at the fork: it would be gone in the worker, with whatever it held locked.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", str(KEPT_MS))
    sys.path[:] = without_archives(sys.path)
    forget_other_paths()
    preload((kind, *FOR_ALL, *(FOR_TASKS if kind == TASKS else ())))
    if kind == TASKS:
        load_kernels()
    gc.collect()
    folder = os.environ.pop(FOLDER, None)
    if kind == TASKS and folder is not None:
        fork_server.start(folder)
    gc.freeze()
    from pyspark.daemon import manager  # only now: the path had to be put in order first

    manager()


def preload(modules: Sequence[str]) -> None:
    """Import what workers will want. One that is not there is for the worker to miss, if it needs it."""
    for module in modules:
        try:
            import_module(module)
        except ImportError:
            continue


def load_kernels() -> None:
    """A worker that cannot have them loaded beforehand loads them itself, and says what is wrong where it is heard."""
    try:
        from transom.runtimes.spark.warm import warm_up

        warm_up()
    except Exception:
        traceback.print_exc()


if __name__ == "__main__":
    main(sys.argv[1:])
