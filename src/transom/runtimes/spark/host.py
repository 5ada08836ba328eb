"""A stage of the plan as a stateful stage of Spark: every group of frames is a partition, whose memory Spark keeps.

Spark loads this on the driver, too, in a process of its own for every stage, to ask what state it has: a second or less
that every start waits for. So it comes with what it needs for that and no more. The rest is sealed, and is opened, with
all that has to be imported for it, where there is work.

Sealed means pickled, as Spark pickles the whole processor anyway: it travels within that, from the driver to its
workers, and is never read from a disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from transom.runtimes.spark.log_names import LOG

if TYPE_CHECKING:
    import pandas as pd

    from transom.runtimes.spark.hosted import Hosted
    from transom.runtimes.spark.hosting import Hosting


_ENTRY: Final = StructType([StructField("entry", LongType()), StructField("part", IntegerType())])
_BLOB: Final = StructType([StructField("blob", BinaryType())])
"""The log's columns. Of a text every task would ask the JVM four times what it means."""


class Host(StatefulProcessor):
    def __init__(self, hosted: Hosted) -> None:
        self._sealed: bytes = cloudpickle.dumps(hosted)  # type: ignore[no-untyped-call]
        self._hosting: Hosting | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        # One variable, because each costs every batch some time.
        self._entries = handle.getMapState(LOG, _ENTRY, _BLOB)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        if self._hosting is None:
            from transom.runtimes.spark.hosting import Hosting

            self._hosting = Hosting(cloudpickle.loads(self._sealed))
        yield self._hosting.take(int(key[0]), rows, self._entries)

    def close(self) -> None:
        pass
