"""Our own sources as one streaming source of Spark that yields packed frames.

The driver plans how far a batch goes and which splits its tasks read; the plan is part of the offset that
Spark logs, so a batch that is run again reads the very same records, whatever has come to the folders since then.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from transom.connectors.connector import Limits, Plan, Split
from transom.connectors.splits import divide
from transom.program.alignment import InputPace, read_by_need
from transom.program.batch_size import FIRST_ROWS, MOST_BYTES
from transom.runtimes.spark.feedback import Feedback
from transom.runtimes.spark.labels import Labels
from transom.runtimes.spark.message_rows import MESSAGE_FIELDS, message_batch
from transom.runtimes.spark.offset_log import OffsetLog
from transom.runtimes.spark.task_split import TaskInputs, TaskReading, TaskSplit
from transom.runtimes.spark.worker_errors import reported_to_driver

LEAST_ROWS: Final = 1 << 16
"""A task that reads less than so many rows is not worth its start."""

_POLL: Final = 0.1
_SELDOM: Final = 0.3
"""Seconds between two looks at the inputs of a query that follows them: at first, and after a long silence."""

_QUICK: Final = 0.01
"""Seconds. Whoever needs longer to find what to read next is not asked twice a batch."""

_PATIENCE: Final = 1.0
"""For so many seconds the source looks by itself before Spark has to ask again."""

MOST_WAITING: Final = 8
"""While an input that the others wait for brings nothing, so many times the rows of a batch may wait of each.

However large batches have become: what waits is in memory, and of no use yet.
"""


def message_source(name: str, reading: TaskReading) -> type[DataSource]:
    """A source of this name for this query: Spark takes classes, not objects."""
    return type("CargoSource", (_MessageSource,), {"called": name, "reading": reading, "__module__": "__transom__"})


class _MessageSource(DataSource):
    called: str
    reading: TaskReading

    @classmethod
    def name(cls) -> str:
        return cls.called

    def schema(self) -> StructType:
        return MESSAGE_FIELDS

    def streamReader(self, schema: StructType) -> MessageReader:
        return MessageReader(self.reading)


@dataclass
class _Batch:
    """A batch as it is planned: how far it goes, which inputs end with it, and what is to be read.

    The inputs `at_end` have nothing more now.
    """

    at: dict[str, Any]
    ended: list[str]
    at_end: list[str] = field(default_factory=list)
    splits: dict[str, list[Any]] = field(default_factory=dict)
    whole: dict[str, Any] = field(default_factory=dict)
    """How far it goes, as the sources know it, in those that it reads."""
    live: dict[str, dict[str, bool]] = field(default_factory=dict)


class MessageReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, reading: TaskReading) -> None:
        self._reading = reading
        self._inputs = TaskInputs(reading)
        self._log = None if reading.checkpoint is None else OffsetLog(reading.checkpoint)
        self._pause = _POLL
        self._to_the_end = False
        self._ahead: tuple[int, dict[str, list[Split]]] = (0, {})
        """The number of the batch that was planned last, and what is likely to be read behind it."""

    def initialOffset(self) -> dict[str, Any]:
        begin = self._reading.begin or {"batch": 0, "at": {}, "ended": []}
        return {name: begin[name] for name in ("batch", "at", "ended")}  # the splits that led there have been read

    def prepareForTriggerAvailableNow(self) -> None:
        """What has an end is read to its end; that is all such a run wants. Where nothing has come Spark ends it."""
        self._to_the_end = True

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._reading.max_rows or 2**62)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The offset as far as the limits allow, with the splits that lead there."""
        with reported_to_driver():
            return self._latest(start)

    def _latest(self, start: dict[str, Any]) -> dict[str, Any]:
        """Where nothing is to be done it looks again for a while: to ask it costs Spark more than to look does.

        A run to the end looks until all that is to end with it has ended, its query is stopping, or the driver is gone.
        """
        reading = self._reading
        reading.enter()
        patience = time.monotonic() + (_PATIENCE if reading.alone else 0.0)
        missing = [name for name in reading.names if name not in start["ended"] and name not in reading.growing]
        waits, driver = self._to_the_end and bool(missing), os.getppid()
        while True:
            feedback = None if reading.feedback is None else Feedback.read(reading.feedback)
            batch = self._plan(start, feedback)
            if batch is not None:
                self._pause = _POLL
                return batch
            if (feedback is not None and feedback.stopping) or os.getppid() != driver:
                return start
            if time.monotonic() >= patience and not waits:
                return start
            wake = 0.0 if feedback is None or feedback.wake is None else feedback.wake / 1e6 - time.time()
            time.sleep(min(self._pause, wake) if wake > 0 else self._pause)
            self._pause = min(1.1 * self._pause, _SELDOM)

    def _plan(self, start: dict[str, Any], feedback: Feedback | None) -> dict[str, Any] | None:
        """The next batch; None if there is nothing to be done now."""
        reading = self._reading
        # Before anybody looks: what comes later is not behind this clock.
        now = time.time_ns() // 1000 if reading.wants_time else None
        rows = reading.max_rows or (None if feedback is None else feedback.rows) or reading.first_rows
        paces = {} if feedback is None else feedback.paces
        began = time.monotonic()
        batch = self._read_by_need(start, paces, rows)
        quick = time.monotonic() - began < _QUICK
        self._ahead = start["batch"] + 1, self._foreseen(batch, paces, rows) if quick else {}
        ended = batch.ended + [name for name in reading.ending if name not in batch.ended]
        if not batch.splits and ended == start["ended"]:
            has_more = len(ended) < len(reading.layout.sources)
            waits = feedback is not None and feedback.waits
            if not waits and (now is None or not has_more or not reading.is_time(now, start, feedback)):
                return None
        begun = feedback is not None and feedback.begun is not None
        entry: dict[str, Any] = {"now": now, "at_end": batch.at_end, "follows": reading.follow, "begun": begun}
        if batch.live:
            entry["live"] = batch.live
        if feedback is not None and feedback.sharing:
            entry["sharing"] = feedback.sharing
        if reading.layout.schedule is not None:
            entry["schedule"] = self._schedule(batch, ended, feedback)
        return {"batch": start["batch"] + 1, "at": batch.at, "ended": ended, "splits": batch.splits, **entry}

    def _schedule(
        self, batch: _Batch, ended: Sequence[str], feedback: Feedback | None
    ) -> tuple[int, float | None, bool]:
        """How much of the work is to be done that is put in order: as an offset it is logged before the batch is run.

        The last batch of a run leaves nothing; a run that follows its inputs has none.
        """
        over = all(name in batch.at_end or name in ended for name in self._reading.layout.sources)
        last = over and not self._reading.follow
        return time.time_ns() // 1000, None if feedback is None else feedback.speed, last

    def _read_by_need(self, start: dict[str, Any], paces: Mapping[str, InputPace], most: int) -> _Batch:
        reading = self._reading
        batch = _Batch(dict(start["at"]), list(start["ended"]))
        left = [name for name in reading.names if name not in batch.ended]
        aligned = [name for name in left if reading.aligned(name)]
        for name in left:
            if name not in aligned:
                self._read(name, most, batch)
        read_by_need(
            {name: paces.get(name, InputPace()) for name in aligned},
            most,
            lambda name, rows: self._read(name, rows, batch),
            MOST_WAITING * (reading.max_rows or FIRST_ROWS) if reading.follow else None,
        )
        return batch

    def _foreseen(self, batch: _Batch, paces: Mapping[str, InputPace], most: int) -> dict[str, list[Split]]:
        """What the batch behind this one will read if inputs go on as they do. It need not be right, and is not
        logged; what may be other rows by then is not in it."""
        reading = self._reading
        if not reading.in_host:
            return {}
        taken = {name: [Split.unpacked(each) for each in packed] for name, packed in batch.splits.items()}
        names = [name for name in reading.names if name not in batch.ended and reading.aligned(name)]
        lasting = {
            name for name in names if name in taken and self._inputs.source(name).version(taken[name][-1]) is not None
        }
        splits: dict[str, list[Split]] = {}

        def read(name: str, rows: int) -> int:
            if name not in lasting:
                return rows
            splits[name] = list(self._next(name, rows, batch.whole[name]).splits)
            return sum(split.rows for split in splits[name])

        if lasting:
            later = {name: _later(paces.get(name, InputPace()), taken.get(name, [])) for name in names}
            read_by_need(later, most, read)
        return splits

    def _next(self, name: str, rows: int | None, position: Any) -> Plan:
        """The next rows of an input from a position on, as its source knows it."""
        reading = self._reading
        static, growing = reading.layout.sources[name].time is None, name in reading.growing
        limited = reading.max_rows is not None or reading.max_files is not None
        limits = Limits() if static else Limits(rows, reading.max_files, None if limited else MOST_BYTES)
        return self._inputs.source(name).plan(position, limits, growing=growing and (reading.follow or "later"))

    def _read(self, name: str, rows: int | None, batch: _Batch) -> int:
        """Plan to read so many rows of an input in the batch; how many there are."""
        reading = self._reading
        growing = name in reading.growing
        before = batch.at.get(name, {})
        plan = self._next(name, rows, before if self._log is None else self._log.whole(name, before))
        batch.whole[name] = plan.position
        batch.at[name] = plan.position if self._log is None else self._log.brief(name, before, plan.position)
        if plan.splits:
            batch.splits[name] = [split.packed() for split in plan.splits]
        if plan.live is not None and reading.aligned(name):
            batch.live[name] = dict(plan.live)
        if plan.ended:
            batch.at_end.append(name)
        if plan.over or (plan.ended and not growing):
            batch.ended.append(name)
        return plan.rows

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        reading = self._reading
        splits = {name: [Split.unpacked(each) for each in packed] for name, packed in end.get("splits", {}).items()}
        ended = tuple(name for name in end["ended"] if name not in start["ended"])
        groups = self._divided(splits)
        # Small inputs share a task; the splits of one input stay in order, as their senders are.
        task_splits = [[group] for group in groups]
        while len(task_splits) > (1 if reading.in_host else reading.tasks):
            task_splits[-2:] = [task_splits[-2] + task_splits[-1]]
        clock = end.get("now"), tuple(end.get("at_end", ())), bool(end.get("follows")), bool(end.get("begun"))
        sharing = int(end.get("sharing", 0))
        live: dict[str, dict[str, bool]] = end.get("live", {})
        unsaid: dict[str, dict[str, bool]] = {name: {} for name in live}  # to say it once is enough
        lives = [live, *(unsaid for _ in task_splits[1:])]
        task_splits_before = [
            TaskSplit(i, *clock, tuple(some), (), lives[i], sharing=sharing) for i, some in enumerate(task_splits[:-1])
        ]
        last = tuple(task_splits[-1]) if task_splits else ()
        number, foreseen = self._ahead
        ahead = tuple(self._divided(foreseen)) if number == end["batch"] else ()
        schedule = end.get("schedule")
        planned = None if schedule is None else tuple(schedule)
        number = len(task_splits_before)
        return [*task_splits_before, TaskSplit(number, *clock, last, ended, lives[-1], ahead, planned, sharing)]

    def _divided(self, splits: Mapping[str, list[Split]]) -> list[tuple[str, tuple[Split, ...]]]:
        """The splits in groups for all the tasks that there may be, each of one input."""
        share = max(1, self._reading.tasks // max(1, len(splits)))
        groups = ((name, divide(of_input, share, LEAST_ROWS)) for name, of_input in splits.items())
        return [(name, tuple(group)) for name, some in groups for group in some]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, TaskSplit)
        reading = self._reading
        with reported_to_driver():
            labels = Labels(reading.layout)
            # Where one task has all of the plan it reads by itself: nothing has to come to it.
            messages = [partition.message()] if reading.in_host else self._inputs.messages(partition)
            for message in messages:
                yield message_batch([message], labels, 1, reading.local_shuffle)

    def commit(self, end: dict[str, Any]) -> None: ...

    def stop(self) -> None: ...


def _later(pace: InputPace, splits: Sequence[Split]) -> InputPace:
    """How far an input is likely to be when these have been read."""
    rows = sum(split.rows for split in splits)
    watermark = pace.leads_to(rows)
    return pace if watermark is None else replace(pace, watermark=int(watermark), rows=pace.rows + rows)
