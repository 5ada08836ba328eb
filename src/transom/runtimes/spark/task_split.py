"""What one task reads of the inputs in a batch, and the messages that it makes of it.

A task reads its split and sends the rows on; where one stateful task has all of the plan, it gets the split itself
and reads there, and no row goes from process to process.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import InputPartition

from transom.connectors.connector import Source, Split, SplitRows
from transom.connectors.source import rejected_batch
from transom.core.time import SECOND
from transom.pipeline.frames import SPLITS, Message
from transom.pipeline.layout import Definition, Layout
from transom.plan.catalogue import StreamDefinition
from transom.program.batch_size import FIRST_ROWS
from transom.runtimes.spark.feedback import Feedback
from transom.runtimes.spark.local_shuffle import LocalShuffle

if TYPE_CHECKING:
    from transom.pipeline.packer import Packer

ReadBefore = Callable[[str, Split], list[SplitRows] | None]
"""The rows of a split of an input, if they were read before they were asked for."""

OF_FRAMES: Final = -1
"""Who reports on DataFrames by the clock: none of the tasks that read their rows."""


def _nothing(name: str, split: Split) -> list[SplitRows] | None:
    return None


@dataclass(frozen=True)
class TaskReading:
    """What the source reads and how; `openers` open the inputs in whatever process it is read."""

    layout: Layout
    names: tuple[str, ...]
    openers: dict[str, Callable[[], Source]]
    tasks: int
    max_rows: int | None
    """Of an input in a batch; None: as the driver finds right (`program/batch_size.py`)."""
    max_files: int | None
    local_shuffle: LocalShuffle
    growing: frozenset[str] = frozenset()
    """Inputs whose present end is not their end."""
    follow: bool = False
    """Whether the run waits for more; then the clock goes on though nothing comes, and batches are made when it is due.
    """
    time_known_from: int | None = None
    """Of a run that ends with all there is now: when it began. One batch at least says what time it is, so that streams
    that have been silent since an earlier run are left behind though nothing comes."""
    ending: tuple[str, ...] = ()
    """Inputs that others read, and that have nothing more to come."""
    folder: str = ""
    """Where paths begin: that of the program, which need not be that of its workers."""
    checkpoint: str | None = None
    """The folder of the checkpoint, if it is ours."""
    feedback: str | None = None
    """The folder on the driver's disk in which it leaves what it knows of the batches that are done."""
    begin: dict[str, Any] | None = None
    """Where another streaming query has read to; None: the inputs are read from their beginning."""
    first_rows: int = FIRST_ROWS
    """Of an input in the first batch, where the driver finds what is right."""
    in_host: bool = False
    """Whether the only stateful task reads by itself what others would send it."""

    def aligned(self, name: str) -> bool:
        """Whether an input is read by need. One that is stamped on arrival is read when it comes, and a table whole."""
        definition = self.layout.sources[name]
        return definition.time is not None and not _stamped(definition)

    def enter(self) -> None:
        """Go where paths begin. On a machine that has no such folder only whole paths can be read."""
        with suppress(OSError):
            os.chdir(self.folder or ".")

    @property
    def frames(self) -> list[str]:
        """The inputs that Spark reads."""
        return [name for name in self.layout.sources if name not in self.names]

    @property
    def alone(self) -> bool:
        """Whether a batch is made when this source has something, and at no other time."""
        return self.follow and not self.frames

    def is_time(self, now: int, start: dict[str, Any], feedback: Feedback | None) -> bool:
        """Whether a batch is to be made by the clock though nothing came. `start` is where the last one ended."""
        if not self.follow:
            return self.time_known_from is not None and (start.get("now") or 0) < self.time_known_from
        if feedback is None or (not feedback.paces and start["batch"]):
            return True  # nobody says when something is due
        last = start.get("now") or 0
        # If a batch at that time has not taken it on, the next one hardly will.
        return feedback.wake is not None and feedback.wake <= now and (last < feedback.wake or now - last >= SECOND)

    @property
    def wants_time(self) -> bool:
        """Whether the clock on the wall matters to any input, or to what is put off."""
        return (
            any(
                definition.idle is not None
                or definition.heartbeat is not None
                or definition.ahead is not None
                or _stamped(definition)
                for definition in self.layout.sources.values()
            )
            or self.layout.puts_off
        )


def _stamped(definition: Definition) -> bool:
    return isinstance(definition, StreamDefinition) and definition.arrival_time


@dataclass
class TaskSplit(InputPartition):
    """What one task reads: splits of inputs in order, and the inputs that end with this batch.

    `at_end` are those that had nothing more when the clock said `now`; whether the run `follows` its inputs, and if the
    time of the query had `begun` before this batch.
    """

    sender: int
    now: int | None
    at_end: tuple[str, ...]
    follows: bool
    begun: bool
    splits: tuple[tuple[str, tuple[Split, ...]], ...]
    ended: tuple[str, ...]
    live: dict[str, dict[str, bool]] = field(default_factory=dict)
    """Inputs whose partitions are written side by side; the first task knows all of them, and which are at their end.
    """
    ahead: tuple[tuple[str, tuple[Split, ...]], ...] = ()
    """What the next batch will probably read."""
    schedule: tuple[int, float | None, bool] | None = None
    """How much of the work of a batch is to be done that is put in order (`ScheduledBatch`)."""
    sharing: int = 0
    """How many queries of the run share a memory budget; 0: nobody says."""

    def message(self) -> Message:
        """A message with the splits of a task, for the only partition of the plan, which is to read them."""
        splits, ahead = (
            [(name, [split.packed() for split in some]) for name, some in splits]
            for splits in (self.splits, self.ahead)
        )
        return Message(1, 0, SPLITS, json.dumps({**vars(self), "splits": splits, "ahead": ahead}).encode())

    @staticmethod
    def of(blob: bytes) -> TaskSplit:
        """The splits of a task as they were put into a message."""
        fields: dict[str, Any] = json.loads(blob)
        splits, ahead = (
            tuple((name, tuple(map(Split.unpacked, some))) for name, some in fields.pop(which))
            for which in ("splits", "ahead")
        )
        at_end, ended = tuple(fields.pop("at_end")), tuple(fields.pop("ended"))
        schedule = fields.pop("schedule")
        schedule = None if schedule is None else tuple(schedule)
        return TaskSplit(at_end=at_end, ended=ended, splits=splits, ahead=ahead, schedule=schedule, **fields)


class TaskInputs:
    """The inputs of a query, opened where they are read."""

    def __init__(self, reading: TaskReading) -> None:
        self._reading = reading
        self._opened: dict[str, Source] = {}
        self._others: list[TaskInputs] = []
        """The same, opened once more for every thread that reads ahead: a source is read by one at a time."""

    def source(self, name: str) -> Source:
        if name not in self._opened:
            self._opened[name] = self._reading.openers[name]()
        return self._opened[name]

    def messages(self, task_split: TaskSplit, threads: int = 1, read: ReadBefore = _nothing) -> Iterator[Message]:
        """What becomes of a split, whose splits are read by several threads; some were `read` before this."""
        # The driver's side plans and packs nothing; kernels take a second to import, in each of its processes.
        from transom.pipeline.packer import Packer
        from transom.pipeline.scheduled_batch import ScheduledBatch

        reading, clock = self._reading, (task_split.now, task_split.follows, task_split.begun)
        reading.enter()
        schedule = None if task_split.schedule is None else ScheduledBatch(*task_split.schedule)
        sifts, sharing = not reading.in_host, task_split.sharing
        packer = Packer(reading.layout, task_split.sender, *clock, sifts=sifts, schedule=schedule, sharing=sharing)
        if task_split.now is not None and not task_split.sender:
            for name in reading.names:  # of those that bring nothing it is reported, too: they are silent
                packer.hear_of(name, name in task_split.at_end)
            if reading.frames:
                yield from _heard_of(Packer(reading.layout, OF_FRAMES, *clock, sharing=sharing), reading.frames)
        for name, partitions in task_split.live.items():
            for partition, at_end in partitions.items():
                packer.hear_of(name, at_end, partition)
        for name, partition, part in self._rows(task_split, threads, read):
            if part.rejected:
                yield from packer.reject(name, rejected_batch(part.rejected))
            if len(part.rows):
                of = partition if name in task_split.live else None
                yield from packer.take(name, part.rows, source_partition=of)
        for name in task_split.ended:
            packer.end(name)
        yield from packer.finish()

    def _rows(
        self, task_split: TaskSplit, threads: int, read_before: ReadBefore
    ) -> Iterator[tuple[str, str, SplitRows]]:
        splits = [(name, split) for name, some in task_split.splits for split in some]
        if threads == 1 or len(splits) < 2:
            for name, split in splits:
                ahead = read_before(name, split)
                for part in self.source(name).read_split(split) if ahead is None else ahead:
                    yield name, split.partition, part
            return
        self._others += [TaskInputs(self._reading) for _ in range(threads - len(self._others))]
        free: SimpleQueue[TaskInputs] = SimpleQueue()
        for other in self._others:
            free.put(other)

        def read(name: str, split: Split) -> list[SplitRows]:
            ahead = read_before(name, split)
            if ahead is not None:
                return ahead
            inputs = free.get()
            try:
                return list(inputs.source(name).read_split(split))
            finally:
                free.put(inputs)

        with ThreadPoolExecutor(threads) as pool:
            read_in_order = pool.map(read, *zip(*splits, strict=True))
            for (name, split), parts in zip(splits, read_in_order, strict=True):
                for part in parts:
                    yield name, split.partition, part


def _heard_of(packer: Packer, frames: Iterable[str]) -> Iterator[Message]:
    """Whether a DataFrame is at its end is known where its rows are: if none of it came with the batch, it is."""
    for name in frames:
        packer.hear_of(name)
    yield from packer.finish()
