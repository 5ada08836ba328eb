"""Our own sources as one streaming source of Spark that yields packed cargo.

The driver plans how far a batch goes and which splits its tasks read; the plan is part of the offset that
Spark logs, so a batch that is run again reads the very same records, whatever has come to the folders since then.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from transom.connectors.connector import Limits, Source, Split
from transom.connectors.source import rejected_batch
from transom.connectors.splits import divide
from transom.pipeline.cargo import Parcel
from transom.pipeline.layout import Layout
from transom.plan.catalogue import StreamDefinition
from transom.runtimes.spark.cargo_rows import CARGO_FIELDS, cargo_batch
from transom.runtimes.spark.depot import Depot
from transom.runtimes.spark.labels import Labels
from transom.runtimes.spark.worker_errors import told_to_the_driver

LEAST_ROWS: Final = 1 << 16
"""A task that reads less than so many rows is not worth its start."""


@dataclass(frozen=True)
class Reading:
    """What the source reads and how; `openers` open the inputs in whatever process it is read."""

    layout: Layout
    names: tuple[str, ...]
    openers: dict[str, Callable[[], Source]]
    tasks: int
    max_rows: int | None
    max_files: int | None
    depot: Depot
    growing: frozenset[str] = frozenset()
    """Inputs whose present end is not their end."""
    follow: bool = False
    """Whether the run waits for more; then the clock goes on though nothing comes."""
    tells_time_from: int | None = None
    """Of a run that ends with all there is now: when it began. One batch at least says what time it is, so that streams
    that have been silent since an earlier run are left behind though nothing comes."""
    ending: tuple[str, ...] = ()
    """Inputs that others read, and that have nothing more to come."""
    folder: str = ""
    """Where paths begin: that of the program, which need not be that of its workers."""
    begin: dict[str, Any] | None = None
    """Where another streaming query has read to; None: the inputs are read from their beginning."""

    def enter(self) -> None:
        """Go where paths begin. On a machine that has no such folder only whole paths can be read."""
        with suppress(OSError):
            os.chdir(self.folder or ".")

    @property
    def wants_time(self) -> bool:
        """Whether the clock on the wall matters to any input."""
        return any(
            d.idle is not None or (isinstance(d, StreamDefinition) and d.arrival_time)
            for d in self.layout.sources.values()
        )


def cargo_source(name: str, reading: Reading) -> type[DataSource]:
    """A source of this name for this query: Spark takes classes, not objects."""
    return type("CargoSource", (_CargoSource,), {"called": name, "reading": reading, "__module__": "__transom__"})


class _CargoSource(DataSource):
    called: str
    reading: Reading

    @classmethod
    def name(cls) -> str:
        return cls.called

    def schema(self) -> StructType:
        return CARGO_FIELDS

    def streamReader(self, schema: StructType) -> CargoReader:
        return CargoReader(self.reading)


@dataclass
class Stretch(InputPartition):
    """What one task reads: splits of inputs in order, and the inputs that end with this batch."""

    sender: int
    now: int | None
    splits: tuple[tuple[str, tuple[Split, ...]], ...]
    ended: tuple[str, ...]


class CargoReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._opened: dict[str, Source] = {}

    def initialOffset(self) -> dict[str, Any]:
        begin = self._reading.begin or {"batch": 0, "at": {}, "ended": []}
        return {name: begin[name] for name in ("batch", "at", "ended")}  # the splits that led there have been read

    def prepareForTriggerAvailableNow(self) -> None:
        """What has an end is read to its end; that is all such a run asks for."""

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._reading.max_rows or 2**62)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """As far as the limits allow, with the splits that lead there."""
        with told_to_the_driver():
            return self._latest(start)

    def _latest(self, start: dict[str, Any]) -> dict[str, Any]:
        reading = self._reading
        reading.enter()
        at, ended, splits = dict(start["at"]), list(start["ended"]), {}
        for name in reading.names:
            if name in ended:
                continue
            static, growing = reading.layout.sources[name].time is None, name in reading.growing
            limits = Limits() if static else Limits(reading.max_rows, reading.max_files)
            plan = self._source(name).plan(at.get(name, {}), limits, growing=growing and (reading.follow or "later"))
            at[name] = plan.position
            if plan.splits:
                splits[name] = [split.packed() for split in plan.splits]
            if plan.over or (plan.ended and not growing):
                ended.append(name)
        ended += [name for name in reading.ending if name not in ended]
        ticks = reading.follow and reading.wants_time
        if reading.tells_time_from is not None and len(ended) < len(reading.layout.sources):
            ticks = ticks or (start.get("now") or 0) < reading.tells_time_from
        if not splits and ended == start["ended"] and not ticks:
            return start
        now = time.time_ns() // 1000 if reading.wants_time else None
        return {"batch": start["batch"] + 1, "at": at, "ended": ended, "splits": splits, "now": now}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        reading = self._reading
        splits = {name: [Split.unpacked(each) for each in packed] for name, packed in end.get("splits", {}).items()}
        ended = tuple(name for name in end["ended"] if name not in start["ended"])
        share = max(1, reading.tasks // max(1, len(splits)))
        groups: list[tuple[str, tuple[Split, ...]]] = []
        for name, mine in splits.items():
            groups += [(name, tuple(group)) for group in divide(mine, share, LEAST_ROWS)]
        # Small inputs share a task; the stretches of one input stay in order, as their senders are.
        stretches = [[group] for group in groups]
        while len(stretches) > reading.tasks:
            stretches[-2:] = [stretches[-2] + stretches[-1]]
        now = end.get("now")
        found = [Stretch(i, now, tuple(stretch), ()) for i, stretch in enumerate(stretches[:-1])]
        last = tuple(stretches[-1]) if stretches else ()
        return [*found, Stretch(len(found), now, last, ended)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Stretch)
        with told_to_the_driver():
            labels = Labels(self._reading.layout)
            for parcel in self._parcels(partition):
                yield cargo_batch([parcel], labels, 1, self._reading.depot)

    def _parcels(self, stretch: Stretch) -> Iterator[Parcel]:
        # The driver's side plans and packs nothing; kernels take a second to import, in each of its processes.
        from transom.pipeline.packer import Packer

        self._reading.enter()
        packer = Packer(self._reading.layout, stretch.sender, stretch.now)
        if stretch.now is not None and not stretch.sender:
            for name in self._reading.names:  # of those that bring nothing it is told, too: they are silent
                packer.hear_of(name)
        for name, splits in stretch.splits:
            source = self._source(name)
            for split in splits:
                for part in source.read_split(split):
                    if part.rejected:
                        yield from packer.reject(name, rejected_batch(part.rejected))
                    if len(part.rows):
                        yield from packer.take(name, part.rows)
        for name in stretch.ended:
            packer.end(name)
        yield from packer.finish()

    def commit(self, end: dict[str, Any]) -> None: ...

    def stop(self) -> None: ...

    def _source(self, name: str) -> Source:
        if name not in self._opened:
            self._opened[name] = self._reading.openers[name]()
        return self._opened[name]
