"""What a stateful stage does with the frames of a partition: a step with its memory, and what goes on from there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from transom.pipeline import state_backend
from transom.pipeline.exhausted import reported_when_exhausted
from transom.pipeline.fragment_partition import FragmentPartition
from transom.pipeline.frames import FRAMES, SPLITS, STATUS, Frame, Message
from transom.pipeline.layout import SINK
from transom.pipeline.partition_state import PARTITION_CLASSES
from transom.pipeline.partition_status import kept_in
from transom.runtimes.spark import read_ahead
from transom.runtimes.spark.answer_parts import written
from transom.runtimes.spark.hosted import Hosted
from transom.runtimes.spark.labels import Labels
from transom.runtimes.spark.log_names import files_of
from transom.runtimes.spark.message_rows import message_columns
from transom.runtimes.spark.savepoint import memory_at
from transom.runtimes.spark.spark_log import SparkLog
from transom.runtimes.spark.state_files import StateFiles
from transom.runtimes.spark.task_split import TaskInputs, TaskSplit
from transom.runtimes.spark.worker_errors import reported_to_driver
from transom.state.arena import Arena

_HOSTED: dict[tuple[str, int, int], tuple[FragmentPartition, state_backend.StateCache]] = {}
"""Partitions that this process has hosted, by run, fragment and number: their kernels need not be built again."""

MOST_PARTITIONS: Final = 64

READERS: Final = 2
"""So many threads read for a partition that reads by itself."""


class Hosting:
    """The work of a host."""

    def __init__(self, hosted: Hosted) -> None:
        self._host = hosted
        self._labels = Labels(hosted.layout)
        self._inputs = TaskInputs(hosted.reading)

    def take(self, label: int, rows: Iterator[pd.DataFrame], entries: Any) -> pd.DataFrame:
        """The frames of a partition, or what only passes this stage; what goes on from here. `entries` is Spark's
        state."""
        log = SparkLog(entries, self._files(label))
        fragment, number = self._labels.partition_id(self._host.stage_number, label)
        if fragment == SINK:
            columns = ["fragment", "partition", "kind", "blob"]
            return self._frame([Message(*row) for frame in rows for row in frame[columns].itertuples(index=False)])
        with reported_to_driver():
            partition, cache = self._partition(fragment, number, log)
            came, gone = self._unloaded(fragment, number, rows)
            begin = partial(memory_at, self._host.folder if self._host.begins else None, fragment, number)
            try:
                with reported_when_exhausted(partial(kept_in, partition)):
                    write = partial(written, self._host.writers, self._host.layout.shown)
                    kept = state_backend.step(partition, log, cache, came, begin, write)
            finally:
                partition.close()  # partitions lie here for long, and nobody says when they are needed no more
            partition.state = partition.start()  # what was put down belongs to whoever takes it next
            messages = [*gone, *kept.messages]
        cost = {"fragment": fragment, "partition": number, "written": kept.written, "rebuilt": kept.rebuilt}
        status = Message(SINK, number, STATUS, parts=(Frame({"kind": "kept", "kept": cost}),))
        return self._frame([*messages, status])

    def _files(self, label: int) -> StateFiles:
        host = self._host
        return StateFiles(None if host.folder is None else files_of(host.folder, host.stage_number, label), host.least)

    def _unloaded(
        self, fragment: int, number: int, rows: Iterator[pd.DataFrame]
    ) -> tuple[list[Message], list[Message]]:
        """What came for a partition, what it is to read by itself included; and what of that goes past it."""
        came: list[Message] = []
        gone: list[Message] = []
        for kind, blob in (row for frame in rows for row in zip(frame["kind"], frame["blob"], strict=True)):
            if kind == SPLITS:
                task_split, ahead = TaskSplit.of(blob), read_ahead.of(self._host.run, self._host.reading)
                for message in self._inputs.messages(task_split, READERS, ahead.take):
                    (came if message.kind == FRAMES else gone).append(message)
                ahead.begin(task_split.ahead)
            else:
                came.append(Message(fragment, number, FRAMES, self._host.local_shuffle.pick_up(kind, blob)))
        return came, gone

    def _partition(
        self, fragment: int, number: int, log: SparkLog
    ) -> tuple[FragmentPartition, state_backend.StateCache]:
        partition_id = self._host.run, fragment, number
        if partition_id not in _HOSTED:
            header = log.header()
            if header is not None:
                log.tidy(state_backend.Header.of(header).entries())
            while len(_HOSTED) >= MOST_PARTITIONS:
                del _HOSTED[next(iter(_HOSTED))]
            name, local_shuffle = f"{fragment}-{number}", self._host.local_shuffle
            on_disk = os.path.join(local_shuffle.cache_folder(), self._host.run)
            in_memory = on_disk if local_shuffle.memory is None else os.path.join(local_shuffle.memory, self._host.run)
            cache = Arena(os.path.join(in_memory, name), PARTITION_CLASSES, os.path.join(on_disk, name))
            home = os.path.join(on_disk, f"{name}.spill")
            _HOSTED[partition_id] = FragmentPartition(self._host.layout, fragment, number, home), cache
        return _HOSTED[partition_id]

    def _frame(self, messages: list[Message]) -> pd.DataFrame:
        to = self._host.stage_number + 1
        columns = message_columns(messages, self._labels, to, self._host.local_shuffle)
        blobs = [blob if isinstance(blob, bytes) else bytes(blob) for blob in columns.pop("blob")]
        numbers = {name: np.array(column, dtype=np.int32) for name, column in columns.items()}
        return pd.DataFrame({**numbers, "blob": pd.Series(blobs, dtype=object)})
