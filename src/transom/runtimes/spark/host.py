"""A level of the plan as a stateful stage of Spark: every group of cargo is a bucket, whose memory Spark keeps.

Spark loads this on the driver, too, in a process of its own for every stage, to ask what state it has. So what takes
time to import is in `hosting.py`, and imported where there is work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from transom.connectors.connector import TaskWriter
from transom.pipeline.layout import Layout
from transom.runtimes.spark.depot import Depot
from transom.runtimes.spark.labels import Labels
from transom.runtimes.spark.log_names import HEADER, LOG

if TYPE_CHECKING:
    import pandas as pd

    from transom.runtimes.spark.hosting import Hosting


class Host(StatefulProcessor):
    """`run` names the run of the query, so that a worker does not confuse one with another.

    Rows of answers that have `writers` are written here, and only what these tell of them goes on. In the folder
    `memories` is what buckets begin with.
    """

    def __init__(
        self,
        layout: Layout,
        level: int,
        run: str,
        depot: Depot,
        writers: Mapping[str, TaskWriter] = MappingProxyType({}),
        memories: str | None = None,
    ) -> None:
        self.layout = layout
        self.level = level
        self.run = run
        self.depot = depot
        self.writers = dict(writers)
        self.memories = memories
        self._hosting: Hosting | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._log = SparkLog(handle)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        from transom.runtimes.spark.hosting import Hosting

        if self._hosting is None:
            self._hosting = Hosting(self, self._log, Labels(self.layout))
        yield self._hosting.take(int(key[0]), rows)

    def close(self) -> None:
        pass


class SparkLog:
    """The log of the bucket at hand, in Spark's state: one variable, because each costs every batch some time."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._entries = handle.getMapState(LOG, "entry long, part int", "blob binary")

    def header(self) -> str | None:
        found = self._entries.getValue(HEADER)
        return None if found is None else bytes(found[0]).decode()

    def write_header(self, header: str) -> None:
        self._entries.updateValue(HEADER, (header.encode(),))

    def read(self, entry: int, part: int) -> bytes:
        found = self._entries.getValue((entry, part))
        assert found is not None
        return bytes(found[0])

    def write(self, entry: int, part: int, blob: bytes) -> None:
        self._entries.updateValue((entry, part), (blob,))

    def remove(self, entry: int, part: int) -> None:
        self._entries.removeKey((entry, part))
